//! The flags of what is received and gets a name.

use fontis::SinkOptions;

use crate::archive::ArchiveArgs;
use crate::left_out::Links;

/// How what is received is stored.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct StoreArgs {
    /// Replace an existing destination
    #[arg(long, short)]
    force: bool,
    /// Symbolic links that point out of the folder: skip leaves them out, keep makes them as they
    /// are at the sender; whatever follows such a link reads or writes elsewhere
    #[arg(long, value_enum, default_value_t)]
    links: Links,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Begin anew, and delete the partial file of an interrupted transfer
    #[arg(long)]
    restart: bool,
}

impl StoreArgs {
    pub(crate) fn options(self) -> SinkOptions {
        SinkOptions {
            overwrite: self.force,
            restart: self.restart,
            outward_links: self.links == Links::Keep,
            archive: self.archive.which(),
            ..SinkOptions::default()
        }
    }
}
