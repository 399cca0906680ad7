/// A number that the environment gives a test, as `FONTIS_RUNS` and `FONTIS_SEED`.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}
