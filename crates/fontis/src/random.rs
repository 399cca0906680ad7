/// Bytes that nobody can guess.
///
/// # Panics
/// Where the system has no source of randomness: on such a one nothing is safe.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system's random source");
    bytes
}
