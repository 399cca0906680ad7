//! Messages of transfers, and the descriptions of objects in them.

use fontis::Manifest;

/// Whatever decodes is written as it was read, and a manifest too.
pub(crate) fn run(data: &[u8]) {
    fontis::readers::message(data);
    if let Ok(manifest) = Manifest::decode(data) {
        let encoded = manifest.encode().expect("what was decoded is within the limits");
        let again = Manifest::decode(&encoded).expect("what we encode decodes");
        assert_eq!(again, manifest);
    }
}
