//! Links that have names.

/// The links that `topology.profile` names, and what is set of them. Sarwar's thesis (2014),
/// section 4.3, has their rates and round trips; the loss of IPSTAR is what its Table 4.3 has of
/// calls without congestion control.
const PROFILES: [(&str, &[(&str, &str)]); 2] = [
    (
        "ipstar",
        &[
            ("topology.rate", "1 Mbit/s"),
            ("topology.rate_back", "256 kbit/s"),
            ("topology.rtt", "1.1 s"),
            ("topology.loss", "0.1%"),
        ],
    ),
    ("bgan", &[("topology.rate", "492 kbit/s"), ("topology.rtt", "1.3 s")]),
];

/// The names that `topology.profile` takes.
pub(crate) const NAMES: &[&str] = &["none", PROFILES[0].0, PROFILES[1].0];

/// What a profile sets a key to, if it does.
pub(super) fn value(profile: &str, path: &str) -> Option<&'static str> {
    let (_, sets) = PROFILES.iter().find(|(name, _)| *name == profile)?;
    sets.iter().find(|(key, _)| *key == path).map(|(_, value)| *value)
}
