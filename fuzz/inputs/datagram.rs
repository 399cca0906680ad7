//! The cleartext fields of a datagram.

use fontis::protection::{Header, header, sealed_for};

/// Any bytes are a datagram or none, and both ways to find a connection agree.
pub(crate) fn run(data: &[u8]) {
    let fields = header(data);
    if let Some(id) = sealed_for(data) {
        assert_eq!(fields, Some(Header::For(id)));
    }
    if let Some(Header::VersionNegotiation { versions, .. }) = fields {
        assert!(4 * versions.len() <= data.len(), "no more versions than bytes");
    }
}
