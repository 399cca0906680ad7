//! The rules by which parts of a folder are not sent.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use cap_std::fs::Dir;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::file::open;
use crate::name;

/// The name of the files with rules.
const RULES: &str = ".gitignore";
/// Bytes of such a file at most.
const MAX_RULES: u64 = 1 << 20;

/// A pattern that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("'{pattern}' is no pattern: {reason}; write one as in .gitignore")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

/// The parts of a folder that are not sent. By default all of it is sent.
#[derive(Clone, Debug)]
pub struct Exclusions {
    patterns: Gitignore,
    gitignore: bool,
}

impl Default for Exclusions {
    fn default() -> Self {
        Self { patterns: Gitignore::empty(), gitignore: false }
    }
}

impl Exclusions {
    /// What matches one of `patterns` is not sent. They have the form and the meaning of the lines
    /// of a `.gitignore` file in the folder: the last that matches decides, and `!` before a
    /// pattern keeps what it matches. With `gitignore` the folder's own files of this name count,
    /// too, each for the folder that it is in; `patterns` go before them.
    ///
    /// # Errors
    /// [`PatternError`]: the first pattern that cannot be read.
    pub fn new<'a>(
        patterns: impl IntoIterator<Item = &'a str>,
        gitignore: bool,
    ) -> Result<Self, PatternError> {
        let mut builder = GitignoreBuilder::new("");
        let wrong = |pattern: &str, error: &ignore::Error| {
            let (pattern, reason) = (pattern.to_owned(), reason(error));
            PatternError { pattern, reason }
        };
        for pattern in patterns {
            builder.add_line(None, pattern).map_err(|error| wrong(pattern, &error))?;
        }
        let patterns = builder.build().map_err(|error| wrong("all of them", &error))?;
        Ok(Self { patterns, gitignore })
    }

    /// Returns true if all of a folder is sent.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty() && !self.gitignore
    }

    /// The rules of the folder `dir`, which lies at `path` below the one where the rules begin,
    /// within the folder that has the rules `above`.
    ///
    /// # Errors
    /// Its file of rules is there and cannot be read, or is longer than 1 MiB.
    pub(crate) fn rules(
        &self,
        dir: &Dir,
        path: &str,
        above: Option<&Arc<Rules>>,
    ) -> io::Result<Option<Arc<Rules>>> {
        let file = match self.gitignore.then(|| open(dir, Path::new(RULES))) {
            None => return Ok(above.cloned()),
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(above.cloned());
            }
            Some(file) => file?,
        };
        let mut bytes = Vec::new();
        if file.take(MAX_RULES + 1).read_to_end(&mut bytes)? as u64 > MAX_RULES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut builder = GitignoreBuilder::new(name::to_path(path));
        for line in String::from_utf8_lossy(&bytes).lines() {
            // As in git, what is no pattern matches nothing.
            let _ = builder.add_line(None, line);
        }
        let own = builder.build().map_err(io::Error::other)?;
        Ok(Some(Arc::new(Rules { own, above: above.cloned() })))
    }

    /// Returns true if the entry at `path`, in a folder with these rules, is not sent.
    pub(crate) fn leave_out(&self, path: &str, is_dir: bool, rules: Option<&Arc<Rules>>) -> bool {
        if self.is_empty() {
            return false;
        }
        let path = name::to_path(path);
        let mut found = self.patterns.matched(&path, is_dir);
        let mut next = rules;
        while let (Match::None, Some(rules)) = (&found, next) {
            found = rules.own.matched(&path, is_dir);
            next = rules.above.as_ref();
        }
        found.is_ignore()
    }
}

/// The rules in a folder and in those above it.
#[derive(Debug)]
pub(crate) struct Rules {
    own: Gitignore,
    above: Option<Arc<Self>>,
}

/// The path of `name` in the folder at `path`.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

/// The innermost reason: what is around it names files and patterns again.
fn reason(error: &ignore::Error) -> String {
    match error {
        ignore::Error::Glob { err, .. } => err.clone(),
        other => other.to_string(),
    }
}
