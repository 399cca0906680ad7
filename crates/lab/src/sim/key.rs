use fontis_sim::scenario::Run;

/// What decides a run's result, hashed: its settings, its seed, this version. What is only said about it does not count.
pub fn key(run: &Run) -> String {
    const ABOUT: [&str; 5] = ["id", "title", "paper", "figure", "minutes"];
    let is_about =
        |key: &str| ABOUT.iter().any(|about| key.strip_prefix("scenario.") == Some(about));
    let settings = run.settings.iter().filter(|(key, _)| !is_about(key));
    let mut text = format!("{} {}", env!("CARGO_PKG_VERSION"), run.seed);
    for (key, value) in settings {
        text.push_str(&format!("\n{key}={value}"));
    }
    let hash = blake3::hash(text.as_bytes()).to_hex();
    hash.as_str()[..24].to_owned()
}
