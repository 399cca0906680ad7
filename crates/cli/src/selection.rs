//! Flags that say what of a folder is sent.

use std::fs;
use std::path::PathBuf;

use fontis::{Archive, Exclusions, SourceOptions};

use crate::archive::ArchiveArgs;
use crate::failure::Failure;

/// The heading of these flags in help texts.
const SELECTION: &str = "What is sent";

/// Patterns of what is left out of a folder.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PatternArgs {
    /// Leave out what matches this pattern; the flag may be repeated. Patterns are those of
    /// .gitignore: *.o matches in every folder, /build in the topmost alone, build/ folders alone;
    /// !PATTERN keeps what an earlier pattern leaves out. Quote them: shells interpret * and !
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Leave out what matches a pattern in this file, one a line; patterns of --exclude come after
    /// them. The flag may be repeated
    #[arg(long, value_name = "FILE")]
    exclude_from: Vec<PathBuf>,
}

/// What of a folder is sent.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct SelectionArgs {
    #[command(flatten, next_help_heading = SELECTION)]
    patterns: PatternArgs,
    /// Leave out what the .gitignore files in the folder say; the folder .git is sent, unless
    /// --exclude .git
    #[arg(long, help_heading = SELECTION)]
    gitignore: bool,
    #[command(flatten)]
    archive: ArchiveArgs,
}

impl SelectionArgs {
    /// Whether no flag was given.
    pub(crate) fn is_empty(&self) -> bool {
        let PatternArgs { exclude, exclude_from } = &self.patterns;
        let has_patterns = !exclude.is_empty() || !exclude_from.is_empty();
        !has_patterns && !self.gitignore && self.archive.which() == Archive::None
    }

    /// Reads the patterns.
    pub(crate) fn load(&self) -> Result<SourceOptions, Failure> {
        let exclusions = self.patterns.load(self.gitignore)?;
        Ok(SourceOptions { exclusions, archive: self.archive.which() })
    }
}

impl PatternArgs {
    /// Reads the patterns; with `gitignore` the files of the folder count, too.
    pub(crate) fn load(&self, gitignore: bool) -> Result<Exclusions, Failure> {
        let mut texts = Vec::new();
        for path in &self.exclude_from {
            let text = fs::read_to_string(path).map_err(|error| {
                Failure::Failed(format!("cannot read patterns from {}: {error}", path.display()))
            })?;
            texts.push(text);
        }
        let lines = texts.iter().flat_map(|text| text.lines());
        let patterns = lines.chain(self.exclude.iter().map(String::as_str));
        Exclusions::new(patterns, gitignore).map_err(|error| Failure::Usage(error.to_string()))
    }
}
