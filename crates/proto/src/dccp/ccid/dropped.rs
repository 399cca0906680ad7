use fontis_base::{Duration, Time};

use crate::dccp::number::DccpSeq;
use crate::dccp::option::DccpOption;
use crate::rate::tfrc::{LossHistory, LossInterval};

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

/// Packets whose data were corrupt. They count as marked (RFC 4340 section 11.7), but their
/// receiver has their headers and reports no loss event: so the sender of a rate keeps events of
/// its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Corruption {
    history: LossHistory,
    /// The first packet of the newest event, and when it was heard of.
    event: Option<(DccpSeq, Time)>,
}

impl Corruption {
    /// Notes that a corrupt packet was newly reported, on a path of this round trip; `first` is the
    /// first packet that was sent. Whether it begins an event.
    pub(super) fn note(&mut self, now: Time, seq: DccpSeq, first: DccpSeq, rtt: Duration) -> bool {
        if self.event.is_some_and(|(_, at)| now.since(at) <= rtt) {
            return false;
        }
        let begin = self.event.map_or(first, |(begin, _)| begin);
        let packets = seq.offset_from(begin).max(1) as f64;
        self.history.close(LossInterval { packets, losses: 1, is_short: false });
        self.event = Some((seq, now));
        true
    }

    /// The rate of these events when `ack` is known to have come.
    pub(super) fn event_rate(&self, ack: DccpSeq) -> f64 {
        let Some((begin, _)) = self.event else { return 0.0 };
        let packets = ack.offset_from(begin).max(0) as f64;
        self.history.loss_event_rate(&LossInterval { packets, ..LossInterval::default() }, false)
    }
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
