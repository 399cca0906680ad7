//! A sender and many receivers, each behind a path of its own, in virtual time.

mod forgery;
mod live;
mod one_way;
mod room;
mod times;
mod wire;
