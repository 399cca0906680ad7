//! A line of 64 bytes in the registers of a processor.

/// Bytes in a line: one cache line.
pub(crate) const LINE: usize = 64;

/// Registers that hold a line. All methods must be inlined into a function that has the processor's
/// feature enabled; [`Level`](super::Level) is what chooses it.
pub(crate) trait Lane: Copy {
    /// A factor in GF(2⁸), prepared for [`mul`](Self::mul).
    type Factor: Copy;
    /// Whether there are registers for some twenty lines.
    const MANY: bool = false;

    fn load(bytes: &[u8; LINE]) -> Self;
    fn store(self, bytes: &mut [u8; LINE]);
    /// Asks for a line that will be loaded soon.
    fn prefetch(_line: &[u8; LINE]) {}
    fn zero() -> Self;
    fn xor(self, other: Self) -> Self;
    /// Each byte times α.
    fn times_alpha(self) -> Self;
    fn factor(value: u8) -> Self::Factor;
    /// Each byte times the factor.
    fn mul(self, factor: Self::Factor) -> Self;
}
