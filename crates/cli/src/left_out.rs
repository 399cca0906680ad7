//! What a transfer left out: said, and counted in the exit code.

use fontis::LeftOut;

use crate::failure::Failure;
use crate::listen::status;

/// What becomes of symbolic links that point out of their folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Links {
    /// They are left out.
    #[default]
    Skip,
    /// They are made as they are at the sender.
    Keep,
}

/// Warns of each path that is known, and fails with the number of all if there are any.
pub(crate) fn check<'a>(
    all: impl IntoIterator<Item = &'a LeftOut>,
    is_silent: bool,
) -> Result<(), Failure> {
    let mut sum = LeftOut::default();
    for one in all {
        // The peer says some of these numbers.
        sum.special = sum.special.saturating_add(one.special);
        sum.unreadable = sum.unreadable.saturating_add(one.unreadable);
        sum.links = sum.links.saturating_add(one.links);
        sum.names = sum.names.saturating_add(one.names);
        sum.attributes = sum.attributes.saturating_add(one.attributes);
        sum.first.extend(one.first.iter().cloned());
    }
    if sum.total() == 0 {
        return Ok(());
    }
    if !is_silent {
        sum.first.iter().for_each(|path| status(&format_args!("left out: {path}")));
    }
    Err(Failure::Failed(format!("all is there but what was left out: {}", counts(&sum))))
}

/// The counts in words.
pub(crate) fn counts(left_out: &LeftOut) -> String {
    let LeftOut { special, unreadable, links, names, attributes, .. } = *left_out;
    let parts = [
        (special, "socket, pipe or device", "sockets, pipes or devices"),
        (unreadable, "file or folder that cannot be read", "files or folders that cannot be read"),
        (links, "outward link (--links keep)", "outward links (--links keep)"),
        (names, "name that cannot be there", "names that cannot be there"),
        (
            attributes,
            "attribute or owner that cannot be set",
            "attributes or owners that cannot be set",
        ),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let parts =
        parts.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted_by_its_reason_and_fails_the_command() {
        assert!(check([&LeftOut::default()], true).is_ok());
        let most = LeftOut { special: u64::MAX, ..LeftOut::default() };
        assert!(check([&most, &most], true).is_err());
        let one = LeftOut { special: 1, ..LeftOut::default() };
        let other = LeftOut { unreadable: 4, links: 2, names: 3, ..LeftOut::default() };
        let failure = check([&one, &other], true).unwrap_err();
        assert_eq!(failure.exit_code(), 1);
        let said = failure.to_string();
        for count in ["1 socket,", "4 files", "2 outward links", "3 names"] {
            assert!(said.contains(count), "{said}");
        }
    }
}
