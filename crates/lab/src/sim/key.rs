use fontis_sim::scenario::Run;

/// The key of a run, hashed from everything that decides its result: its settings with their
/// traces, its seed, this version. Descriptions do not count.
pub fn key(run: &Run) -> String {
    const ABOUT: [&str; 5] = ["id", "title", "paper", "figure", "minutes"];
    let is_about =
        |key: &str| ABOUT.iter().any(|about| key.strip_prefix("scenario.") == Some(about));
    let settings = run.settings.iter().filter(|(key, _)| !is_about(key));
    let mut text = format!("{} {}", env!("CARGO_PKG_VERSION"), run.seed);
    for (key, value) in settings {
        text.push_str(&format!("\n{key}={value}"));
    }
    // Of a file the settings have the name alone.
    for link in &run.experiment.links {
        if let Some(trace) = &link.config.trace {
            text.push_str(&format!("\n{}", blake3::hash(trace.to_string().as_bytes())));
        }
    }
    let hash = blake3::hash(text.as_bytes()).to_hex();
    hash.as_str()[..24].to_owned()
}
