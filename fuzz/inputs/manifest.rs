//! Descriptions of objects from anybody: raw bytes, and entries that are nearly right.

use fontis::{Entry, EntryKind, Hole, Manifest, Modified, Omitted};

/// Whatever decodes is written as it was read. What is refused when it is made does not decode, and
/// what is accepted does.
pub(crate) fn run(data: &[u8]) {
    if let Ok(manifest) = Manifest::decode(data) {
        check(&manifest);
    }
    let mut rest = data;
    let mut entries = vec![entry(String::new(), EntryKind::Directory, 0)];
    while let Some((&[what, length, number], after)) = rest.split_first_chunk::<3>() {
        let (path, after) = after.split_at(usize::from(length & 0x0f).min(after.len()));
        rest = after;
        let path = String::from_utf8_lossy(path).into_owned();
        let number = u64::from(number);
        let kind = match what % 6 {
            0 => EntryKind::Directory,
            1 => EntryKind::file(number),
            2 => EntryKind::file(u64::MAX - number),
            3 => EntryKind::Symlink { target: path.chars().rev().collect() },
            4 => EntryKind::Symlink { target: format!("../{path}") },
            _ => {
                let (start, end) = (u64::from(length), u64::from(what));
                let holes = vec![Hole { start: 0, end: number / 4 }, Hole { start, end }];
                EntryKind::File { size: number, holes }
            }
        };
        if what & 0x80 == 0 {
            entries.push(entry(path, kind, u32::from(what)));
        } else {
            // A file alone.
            entries = vec![entry(path, kind, u32::from(what))];
        }
    }
    match Manifest::new("name", entries) {
        Ok(manifest) => {
            let omitted = Omitted { special: 1, unreadable: data.len() as u64 };
            check(&manifest.with_omitted(omitted));
        }
        Err(error) => drop(error.to_string()),
    }
}

fn entry(path: String, kind: EntryKind, mode: u32) -> Entry {
    Entry { path, kind, mode, modified: Modified::default(), extra: None }
}

fn check(manifest: &Manifest) {
    assert!(manifest.size() <= manifest.length());
    let encoded = manifest.encode().expect("what was accepted is within the limits");
    let again = Manifest::decode(&encoded).expect("what we encode decodes");
    assert_eq!(&again, manifest);
    for i in 0..manifest.entries().len() {
        let is_link = matches!(manifest.entry(i).kind, EntryKind::Symlink { .. });
        assert!(is_link || !manifest.is_outward(i), "only links point outwards");
    }
}
