//! The token that a client shows.

/// Only a token as it was made is good.
pub(crate) fn run(data: &[u8]) {
    fontis::readers::token(data);
}
