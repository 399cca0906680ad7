//! Where a trace comes from: a file, a recording's folder, or captures of both ends.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use fontis_lab::sim::TRACE;
use fontis_sim::trace::read::{Format, read};
use fontis_sim::trace::{Detail, Trace, capture};

use crate::failure::Failure;

/// What one trace is read from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// What the page calls it.
    pub(crate) title: String,
    first: PathBuf,
    /// The capture of the other end.
    second: Option<PathBuf>,
}

/// The traces that files stand for.
pub(crate) fn sources(files: &[PathBuf], compare: bool) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for path in files {
        let first = if path.is_dir() { path.join(TRACE) } else { path.clone() };
        if path.is_dir() && !first.is_file() {
            return Err(Failure::Usage(format!(
                "{}: there is no {TRACE} in it; fontis sim --packets writes one beside each recording",
                path.display()
            )));
        }
        format_of(&first)?;
        sources.push(Source { title: title_of(path), first, second: None });
    }
    let paths: Vec<PathBuf> = sources.iter().map(|source| source.first.clone()).collect();
    if let ([one, two], false) = (&*paths, compare)
        && format_of(one)? == Format::Capture
        && format_of(two)? == Format::Capture
        && capture::are_of_the_same(open(one)?, open(two)?)
    {
        let title = format!("{} and {}", sources[0].title, sources[1].title);
        return Ok(vec![Source { title, first: one.clone(), second: Some(two.clone()) }]);
    }
    Ok(sources)
}

/// A file's name; of a recording the label of its run, as in "cubic".
fn title_of(path: &Path) -> String {
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    if path.is_dir() || path.ends_with(TRACE) {
        let run = folder.and_then(|folder| fs::read_to_string(folder.join("run.json")).ok());
        let run: Option<serde_json::Value> = run.and_then(|text| serde_json::from_str(&text).ok());
        if let Some(label) =
            run.as_ref().and_then(|run| run["label"].as_str()).filter(|l| !l.is_empty())
        {
            return label.to_owned();
        }
    }
    path.file_name()
        .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
}

fn format_of(path: &Path) -> Result<Format, Failure> {
    let mut begin = Vec::new();
    let read = open(path)?.take(4096).read_to_end(&mut begin);
    read.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    Format::of(&begin).ok_or_else(|| {
        let problem = "it is no trace, pcap, pcapng, qlog or trace of ns-2";
        Failure::Failed(format!("{}: {problem}", path.display()))
    })
}

impl Source {
    /// Reads it.
    pub(crate) fn read(&self, detail: Detail) -> Result<Trace, Failure> {
        let path = self.first.display();
        let first = open(&self.first)?;
        let trace = match &self.second {
            None => read(first, &self.title, detail).map_err(|error| error.to_string()),
            Some(second) => {
                let second = open(second)?;
                capture::read_both(
                    BufReader::new(first),
                    BufReader::new(second),
                    &self.title,
                    detail,
                )
                .map_err(|error| error.to_string())
            }
        };
        trace.map_err(|error| Failure::Failed(format!("{path}: {error}")))
    }

    /// What changes when its files do.
    pub(crate) fn version(&self) -> String {
        let of = |path: &PathBuf| {
            let facts = fs::metadata(path).ok()?;
            let changed = facts.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
            Some(format!("{}-{}", facts.len(), changed.as_nanos()))
        };
        let second = self.second.as_ref().and_then(of).unwrap_or_default();
        format!("{}+{second}", of(&self.first).unwrap_or_default())
    }
}
