//! The flag for owners and extended attributes.

use fontis::Archive;

/// The owners and attributes that are sent, or kept.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct ArchiveArgs {
    /// Extended attributes and owners: both sides need the flag. user is those of the class user,
    /// and owners, by their numbers, if this side is root; all is those of security, trusted and
    /// system, too, if this side is root: they decide what programs may do
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true)]
    #[arg(value_enum, default_missing_value = "user")]
    archive: Option<Which>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Which {
    User,
    All,
}

impl ArchiveArgs {
    pub(crate) fn which(self) -> Archive {
        match self.archive {
            None => Archive::None,
            Some(Which::User) => Archive::User,
            Some(Which::All) => Archive::All,
        }
    }
}
