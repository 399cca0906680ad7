use std::fs;
use std::path::{Path, PathBuf};

use fontis_sim::scenario::{Files, Scenario, ScenarioError};

/// A scenario in a file.
#[derive(Clone, Debug)]
pub struct ScenarioFile {
    /// Its path.
    pub path: PathBuf,
    /// Its contents.
    pub scenario: Scenario,
}

/// Folders hold folders, and those hold scenarios: `scenarios/<paper>/<figure>.toml`.
const DEPTH: usize = 4;

/// The folder of scenarios: the one that `FONTIS_SCENARIOS` names, or `scenarios` here or in a
/// folder above.
pub fn folder() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("FONTIS_SCENARIOS") {
        return Some(path.into());
    }
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|folder| folder.join("scenarios")).find(|path| path.is_dir())
}

/// Reads a scenario; an error gives the file, the line and the fault.
pub fn read(path: &Path) -> Result<ScenarioFile, String> {
    let place = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("{place}: {error}"))?;
    let folder = path.parent().unwrap_or(Path::new("")).to_string_lossy();
    let scenario = parse(&text, &folder).map_err(|error| format!("{place}: {error}"))?;
    Ok(ScenarioFile { path: path.to_owned(), scenario })
}

/// Reads the text of a scenario; files that it names are looked for in a folder, and then in the
/// present one.
pub fn parse(text: &str, folder: &str) -> Result<Scenario, ScenarioError> {
    let read = |folder: &str, name: &str| {
        let beside = Path::new(folder).join(name);
        let path = if beside.is_file() { &beside } else { Path::new(name) };
        fs::read_to_string(path).map_err(|error| format!("{}: {error}", name.escape_debug()))
    };
    Scenario::parse_with(text, Files { folder: folder.to_owned(), read })
}

/// All scenarios below a folder, in the order of their paths; those that cannot be read as errors.
pub fn list(folder: &Path) -> Vec<Result<ScenarioFile, String>> {
    paths(folder).iter().map(|path| read(path)).collect()
}

fn paths(folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    collect(folder, DEPTH, &mut paths);
    paths.sort();
    paths
}

fn collect(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() && depth > 0 {
            collect(&path, depth - 1, paths);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
}

/// The scenario that is meant: the file of this path, or the one with this id.
pub fn find(name: &str) -> Result<ScenarioFile, String> {
    if Path::new(name).is_file() {
        return read(Path::new(name));
    }
    let Some(folder) = folder() else {
        return Err(format!(
            "there is no file {name:?}, and no folder of scenarios to look for it"
        ));
    };
    let mut ids = Vec::new();
    for path in paths(&folder) {
        let Some(id) = id_of(&path) else { continue };
        if id.eq_ignore_ascii_case(name) {
            return read(&path);
        }
        ids.push(id);
    }
    let known = ids.join(", ");
    Err(format!("there is no file and no scenario {name:?}; in {} are {known}", folder.display()))
}

/// The id that a file gives itself, without a look at the rest, whose checks take far longer.
fn id_of(path: &Path) -> Option<String> {
    let table: toml::Table = fs::read_to_string(path).ok()?.parse().ok()?;
    Some(table.get("scenario")?.get("id")?.as_str()?.to_owned())
}
