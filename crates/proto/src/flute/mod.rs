//! FLUTE version 2 (RFC 6726): files to any number of receivers that cannot answer, over ALC
//! (RFC 5775), LCT (RFC 5651) and the FEC building block (RFC 5052).
//!
//! Start here: a [`FluteSender`] says which symbol of which file leaves next and when, and writes
//! its datagram; a [`FluteReceiver`] takes datagrams, keeps no more than its budget, and yields
//! the blocks of files. Neither owns a socket, a clock or a file's bytes. An [`FdtInstance`] lists
//! the files of a session; the [`FecOti`] of each says how it is cut, and with which
//! [`FecScheme`]. `docs/flute.md` lists what of the RFCs is here.

mod alc;
mod decoder;
mod encoder;
mod error;
mod fdt;
mod incoming;
mod lct;
mod order;
mod oti;
mod oti_wire;
mod plan;
mod receiver;
mod sender;
mod waiting;

pub use alc::{AlcPacket, FecPayloadId};
pub use decoder::FecBlockDecoder;
pub use encoder::FecBlockEncoder;
pub use error::{AlcError, FdtError, FecOtiError};
pub use fdt::{FdtFile, FdtInstance, FdtRefusal};
pub use lct::{FdtExtension, LctHeader};
pub use oti::{FecBlock, FecOti, FecScheme};
pub use plan::{FecPlan, FecPlanError};
pub use receiver::{FluteEvent, FluteReceiver, FluteReceiverConfig, FluteStatus};
pub use sender::{FluteSender, FluteSenderConfig, FluteTransmit};
