/// Says whether the system has a source of randomness, so that who begins can be told.
pub(crate) fn check() -> std::io::Result<()> {
    getrandom::fill(&mut [0; 1]).map_err(std::io::Error::other)
}

/// Bytes that nobody can guess.
///
/// # Panics
/// Where the system has no source of randomness: on such a one nothing is safe.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system's random source");
    bytes
}
