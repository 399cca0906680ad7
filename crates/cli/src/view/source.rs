//! The sources of a trace: a file, a recording's folder, or captures of both ends.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fontis_lab::sim::{CAPTURE, PARTIAL, QLOG, TRACE};
use fontis_trace::read::{Format, read};
use fontis_trace::{Detail, Trace, capture};

use crate::failure::Failure;

/// The files of one trace.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Its name on the page.
    pub(crate) title: String,
    /// A file, or a folder in which the newest file counts.
    first: PathBuf,
    /// The capture of the other end.
    second: Option<PathBuf>,
}

/// The traces of files; of growing folders, the newest.
pub(crate) fn sources(
    files: &[PathBuf],
    compare: bool,
    live: bool,
) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for path in files {
        let first = if live { path.clone() } else { file_of(path)? };
        format_of(&file_of(&first)?)?;
        sources.push(Source { title: title_of(path), first, second: None });
    }
    let paths: Vec<PathBuf> = sources.iter().map(|source| source.first.clone()).collect();
    if let ([one, two], false) = (&*paths, compare || live)
        && format_of(one)? == Format::Capture
        && format_of(two)? == Format::Capture
        && capture::are_of_the_same(open(one)?, open(two)?)
    {
        let title = format!("{} and {}", sources[0].title, sources[1].title);
        return Ok(vec![Source { title, first: one.clone(), second: Some(two.clone()) }]);
    }
    Ok(sources)
}

/// The file that a path stands for: itself, or what its folder has of a recording, of the newest
/// run, or of qlogs; captures, which say less, if there is nothing else.
fn file_of(path: &Path) -> Result<PathBuf, Failure> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let (mut found, mut captures) = (recorded(path), Vec::new());
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    for entry in entries {
        let ends = entry.extension().and_then(|ending| ending.to_str());
        if entry.is_dir() {
            found.extend(recorded(&entry));
            captures.push(entry.join(CAPTURE));
        } else if matches!(ends, Some("sqlog" | "qlog")) {
            found.push(entry);
        } else if matches!(ends, Some("pcap" | "pcapng")) {
            captures.push(entry);
        }
    }
    if found.is_empty() {
        captures.retain(|path| path.is_file());
        found = captures;
    }
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|facts| facts.modified()).ok();
    found.into_iter().max_by_key(|path| (changed(path), path.clone())).ok_or_else(|| {
        let what = format!("there is no {TRACE}, qlog, pcap or pcapng in it");
        let hint = "fontis sim --packets writes the first beside each recording, --qlog of a transfer the second";
        Failure::Usage(format!("{}: {what}; {hint}", path.display()))
    })
}

/// The traces in the folder of a run, also of a running one.
fn recorded(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![folder.join(TRACE), folder.join(QLOG)];
    if let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) {
        let partial = parent.join(format!(".{}{PARTIAL}", name.to_string_lossy()));
        all.extend([partial.join(TRACE), partial.join(QLOG)]);
    }
    all.retain(|path| path.is_file());
    all
}

/// A file's name; of a recording the scenario and its run, as in "LB cubic".
fn title_of(path: &Path) -> String {
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    if path.is_dir() || path.ends_with(TRACE) || path.ends_with(CAPTURE) {
        let run = folder.and_then(|folder| fs::read_to_string(folder.join("run.json")).ok());
        let run: Option<serde_json::Value> = run.and_then(|text| serde_json::from_str(&text).ok());
        if let Some(run) = run {
            let words = [&run["how"]["settings"]["scenario.id"], &run["label"]];
            let words =
                words.iter().filter_map(|word| word.as_str()).filter(|word| !word.is_empty());
            let title = words.collect::<Vec<_>>().join(" ");
            if !title.is_empty() {
                return title;
            }
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
        let problem = "it is no trace, pcap, pcapng, qlog, trace of ns-2, or output of fontis get --share --json";
        Failure::Failed(format!("{}: {problem}", path.display()))
    })
}

impl Source {
    /// Reads it.
    pub(crate) fn read(&self, detail: Detail) -> Result<Trace, Failure> {
        let path = file_of(&self.first)?;
        let first = open(&path)?;
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
        trace.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
    }

    /// A value that changes when its files do.
    pub(crate) fn version(&self) -> String {
        let of = |path: &PathBuf| {
            let facts = fs::metadata(path).ok()?;
            let changed = facts.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            Some(format!("{}-{}", facts.len(), changed.as_nanos()))
        };
        let first = file_of(&self.first).ok();
        let second = self.second.as_ref().and_then(of).unwrap_or_default();
        format!("{}+{second}", first.as_ref().and_then(of).unwrap_or_default())
    }
}
