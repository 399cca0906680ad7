/// Fails if the system has no source of randomness, so that a command can report it at its start.
pub(crate) fn check() -> std::io::Result<()> {
    getrandom::fill(&mut [0; 1]).map_err(std::io::Error::other)
}

/// Unpredictable bytes.
///
/// # Panics
/// Where the system has no source of randomness: on such a one nothing is safe.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[cfg(test)]
    if crate::whole::world::fill(&mut bytes) {
        return bytes;
    }
    getrandom::fill(&mut bytes).expect("the system's random source");
    bytes
}
