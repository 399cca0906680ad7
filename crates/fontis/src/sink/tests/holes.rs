use super::*;
use crate::manifest::Hole;

/// A file of 1 MiB whose object has the 8192 bytes of `content`, half of them at its middle.
fn sparse(path: &str) -> Entry {
    let holes =
        vec![Hole { start: 4096, end: 1 << 19 }, Hole { start: (1 << 19) + 4096, end: 1 << 20 }];
    entry(path, EntryKind::File { size: 1 << 20, holes }, 0o640)
}

/// The file that `sparse` describes.
fn with_holes(content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 20];
    bytes[..4096].copy_from_slice(&content[..4096]);
    bytes[1 << 19..][..4096].copy_from_slice(&content[4096..]);
    bytes
}

#[test]
fn a_file_with_holes_is_made_with_them() {
    let mut content = vec![0; 8192];
    random().fill(&mut content);
    let to = temp();
    for manifest in [
        Manifest::new("x", vec![sparse("")]).unwrap(),
        folder([sparse("x"), entry("y", empty_of(1 << 40), 0o600)]),
    ] {
        let is_folder = manifest.is_folder();
        let place = to.path().join(if is_folder { "folder" } else { "file" });
        let sink = create(&place, manifest, false).unwrap();
        sink.write_block(5000, &content[5000..]).unwrap();
        sink.write_block(0, &content[..5000]).unwrap();
        let (path, _) = sink.finish().unwrap();
        let file = if is_folder { path.join("x") } else { path };
        assert_eq!(fs::read(&file).unwrap(), with_holes(&content));
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            assert!(fs::metadata(&file).unwrap().blocks() * 512 <= 1 << 16, "it has holes");
        }
        if is_folder {
            assert_eq!(fs::metadata(place.join("y")).unwrap().len(), 1 << 40);
        }
    }
}

/// A file that is nothing but a hole.
fn empty_of(size: u64) -> EntryKind {
    EntryKind::File { size, holes: vec![Hole { start: 0, end: size }] }
}

#[test]
fn what_was_written_into_a_hole_is_gone_when_the_transfer_goes_on() {
    let mut content = vec![0; 8192];
    random().fill(&mut content);
    let tree = HashTree::of_reader(&content[..], 4096, |_| ()).unwrap();
    for manifest in [Manifest::new("x", vec![sparse("")]).unwrap(), folder([sparse("x")])] {
        let to = temp();
        let (place, is_folder) = (to.path().join("x"), manifest.is_folder());
        let sink = create(&place, manifest.clone(), false).unwrap();
        sink.write_block(0, &content[..4096]).unwrap();
        drop(sink);
        let partial = to.path().join(".x.fontis-partial");
        let partial = if is_folder { partial.join("x") } else { partial };
        let mut bytes = fs::read(&partial).unwrap();
        bytes[4096..].fill(7);
        fs::write(&partial, &bytes[..(1 << 19) + 100]).unwrap();
        let sink = create(&place, manifest, false).unwrap();
        let kept = sink.resume(&tree, |_| ()).unwrap();
        assert_eq!(kept.done, [0..1]);
        sink.write_block(4096, &content[4096..]).unwrap();
        let (path, _) = sink.finish().unwrap();
        let file = if is_folder { path.join("x") } else { path };
        assert!(fs::read(&file).unwrap() == with_holes(&content));
    }
}

#[test]
fn a_partial_without_holes_serves_an_object_with_holes() {
    let mut content = vec![0; 8192];
    random().fill(&mut content);
    let to = temp();
    let place = to.path().join("x");
    let dense = with_holes(&content);
    let sink = create(&place, single(2 << 20), false).unwrap();
    sink.write_block(0, &dense).unwrap();
    sink.write_block(1 << 20, &vec![9; 1 << 20]).unwrap();
    drop(sink);
    let tree = HashTree::of_reader(&content[..], 4096, |_| ()).unwrap();
    let sink = create(&place, Manifest::new("x", vec![sparse("")]).unwrap(), false).unwrap();
    assert_eq!(sink.resume(&tree, |_| ()).unwrap().done, [0..2]);
    let (path, _) = sink.finish().unwrap();
    assert!(fs::read(path).unwrap() == dense);
}
