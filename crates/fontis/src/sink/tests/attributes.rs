#![cfg(target_os = "linux")]

use super::*;
use crate::manifest::{Attribute, Extra};

/// A file with attributes of two classes, and an owner.
fn with_extra(path: &str) -> Entry {
    let attribute = |name: &str| Attribute { name: name.to_owned(), value: b"1".to_vec() };
    let attributes = ["trusted.fontis", "user.fontis"].map(attribute).to_vec();
    let extra = Some(Box::new(Extra { owner: Some((12_345, 54_321)), attributes }));
    // Not even its owner could set an attribute of a file of this mode.
    Entry { extra, mode: 0o400, ..file(path, 1) }
}

fn has(path: &Path, name: &str) -> bool {
    let mut value = [0; 8];
    rustix::fs::getxattr(path, name, &mut value[..]).is_ok()
}

#[test]
fn a_peers_attributes_and_owners_are_set_only_as_far_as_was_asked() {
    use std::os::unix::fs::MetadataExt;
    let is_root = rustix::process::geteuid().is_root();
    for archive in [Archive::None, Archive::User, Archive::All] {
        for manifest in [
            Manifest::new("x", vec![with_extra("")]).unwrap(),
            folder([with_extra("x"), Entry { extra: with_extra("y").extra, ..dir("y") }]),
        ] {
            let to = temp();
            let (place, is_folder) = (to.path().join("x"), manifest.is_folder());
            let options = SinkOptions { archive, ..SinkOptions::default() };
            let content = [blake3::hash(b"content")];
            let sink = Sink::create(&Dest::new(&place), manifest, &content, options).unwrap();
            sink.write_block(0, b"x").unwrap();
            let (path, left_out) = sink.finish().unwrap();
            let paths = if is_folder { vec![path.join("x"), path.join("y")] } else { vec![path] };
            let may = archive == Archive::All && is_root;
            for path in &paths {
                if archive != Archive::None && !has(path, "user.fontis") {
                    eprintln!("skipped: this file system has no attributes");
                    return;
                }
                assert_eq!(has(path, "user.fontis"), archive != Archive::None);
                assert_eq!(has(path, "trusted.fontis"), may, "{archive:?}");
                let gives = archive != Archive::None && is_root;
                assert_eq!(fs::metadata(path).unwrap().uid() == 12_345, gives, "{archive:?}");
            }
            let refused = if archive == Archive::None || may { 0 } else { paths.len() as u64 };
            assert_eq!(left_out.attributes, refused);
        }
    }
}
