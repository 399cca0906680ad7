//! Symbolic links that point out of their object.

use super::check::parent_of;
use super::entries::Entries;
use super::entry::{Entry, EntryKind};

/// Those among these links that may lead out of the object of these entries.
pub(super) fn among(mut links: Vec<usize>, entries: &Entries) -> Vec<usize> {
    links.retain(|&link| match entries.get(link) {
        Entry { path, kind: EntryKind::Symlink { target }, .. } => {
            points_outwards(&path, &target, entries)
        }
        _ => false,
    });
    links.shrink_to_fit();
    links
}

/// Returns true unless a symlink stays within the object, whatever its other symlinks are.
///
/// Counting `..` against depth is sound only as long as the walk passes through real directories:
/// after a symlink, or a name that is not there, the physical depth is unknown, so `..` counts as
/// outwards from there on.
fn points_outwards(link: &str, target: &str, entries: &Entries) -> bool {
    let (mut place, mut real) = (parent_of(link).to_owned(), true);
    for component in target.split('/') {
        match component {
            "" | "." => {}
            ".." if !real || place.is_empty() => return true,
            ".." => place.truncate(parent_of(&place).len()),
            _ => {
                if !place.is_empty() {
                    place.push('/');
                }
                place.push_str(component);
                real = real && entries.is_folder_at(&place);
            }
        }
    }
    // On Windows a target is absolute in other ways, too.
    target.starts_with(['/', '\\']) || target.contains(':') && cfg!(windows)
}
