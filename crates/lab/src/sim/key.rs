use std::fmt::Write as _;

use fontis_sim::scenario::Run;

use crate::sim::behaviour::behaviour;

/// The key of a run, hashed from all that is asked of it: its settings with their traces, and its
/// seed. Descriptions do not count. What the code makes of that, [`behaviour`](fn@super::behaviour)
/// tells.
pub fn key(run: &Run) -> String {
    const ABOUT: [&str; 5] = ["id", "title", "paper", "figure", "minutes"];
    let is_about =
        |key: &str| ABOUT.iter().any(|about| key.strip_prefix("scenario.") == Some(about));
    let settings = run.settings.iter().filter(|(key, _)| !is_about(key));
    let mut text = run.seed.to_string();
    for (key, value) in settings {
        text.push_str(&format!("\n{key}={value}"));
    }
    // Of a file the settings have the name alone.
    for link in &run.experiment.links {
        if let Some(trace) = &link.config.trace {
            text.push_str(&format!("\n{}", blake3::hash(trace.to_string().as_bytes())));
        }
    }
    hashed(&text)
}

/// The key of a run's result: what is asked of it, and what the code does with that.
pub fn result_key(run: &Run) -> String {
    let mut text = key(run);
    for (part, hash) in behaviour(run) {
        let _ = write!(text, "\n{part} {hash}");
    }
    hashed(&text)
}

fn hashed(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().as_str()[..24].to_owned()
}
