use crate::dccp::number::DccpSeq;
use crate::dccp::option::DccpOption;

/// Drop Codes from this one on are those of corruption, and reserved ones (RFC 4340 section 11.7).
pub(super) const CORRUPT: u8 = 3;
/// The Drop Code of a receive buffer that had no room.
pub(super) const RECEIVE_BUFFER: u8 = 2;

/// The packets whose data did not reach the application, with their Drop Codes, as an
/// acknowledgement of `ack` tells.
pub(super) fn drops(ack: DccpSeq, options: &[DccpOption]) -> impl Iterator<Item = (DccpSeq, u8)> {
    let mut below = 0;
    let blocks = options.iter().filter_map(|option| match option {
        DccpOption::DataDropped(blocks) => Some(blocks),
        _ => None,
    });
    blocks.flatten().flat_map(move |block| {
        let (run, code) = match block >> 7 {
            0 => (u64::from(block & 0x7f) + 1, None),
            _ => (u64::from(block & 15) + 1, Some(block >> 4 & 7)),
        };
        let first = below;
        below += run;
        let packets = if code.is_some() { run } else { 0 };
        (0..packets).map(move |step| (ack.minus(first + step), code.unwrap_or(0)))
    })
}

/// Whether the receiver asks for no more than it gets.
pub(super) fn is_slow(options: &[DccpOption]) -> bool {
    options.contains(&DccpOption::SlowReceiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_standard() {
        // Two packets that arrived, one that the buffer dropped, three, two that were corrupt.
        let options = [DccpOption::DataDropped(vec![0x01, 0xa0, 0x02, 0xb1])];
        let found: Vec<_> = drops(DccpSeq::new(100), &options).collect();
        assert_eq!(found, [(98, 2), (94, 3), (93, 3)].map(|(seq, code)| (DccpSeq::new(seq), code)));
    }
}
