//! The journal of a partial file, as a disk may give it back.

/// No more records than bytes.
pub(crate) fn run(data: &[u8]) {
    if let Some(records) = fontis::readers::journal(data) {
        assert!(16 * records <= data.len());
    }
}
