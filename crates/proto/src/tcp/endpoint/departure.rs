use fontis_base::Time;

use super::{Departure, Leaving, TcpEndpoint, Transmit};
use crate::tcp::segment::{Options, SackBlocks, Segment, TcpFlags, wire};

impl Departure<'_> {
    /// Makes the segment.
    #[inline(always)]
    pub fn transmit(self) -> Transmit {
        let Self { endpoint, now } = self;
        match endpoint.leaving.flags.has(TcpFlags::SYN) {
            true => endpoint.syn_segment(now),
            false => endpoint.segment(now),
        }
    }
}

impl TcpEndpoint {
    /// The segment that leaves, if it is no SYN. It acknowledges what has arrived.
    // Inline, so that its parts stay in registers until they are where they go: who reads in large
    // words what has just been written in small ones waits until all that was written before has
    // reached the memory.
    #[inline(always)]
    fn segment(&mut self, now: Time) -> Transmit {
        let Leaving { seq, flags, len, ecn_capable, pure } = self.leaving;
        // Blocks beside data would make a full segment exceed the MTU.
        let has_blocks = pure && self.options.sack && self.receiver.has_blocks();
        let options = if has_blocks { self.blocks() } else { None };
        let echo = if self.receiver.echo() { TcpFlags::ECE } else { TcpFlags::default() };
        let next = self.receiver.next();
        let window = self.receiver.offer(self.options.our_scale, &self.config);
        self.receiver.acknowledge(pure);
        let segment = Segment {
            seq,
            ack: self.peer_wire(next),
            len,
            window,
            flags: flags | echo,
            options,
            ..Segment::default()
        };
        let segment = segment.with_timestamps(self.timestamps(now, self.timestamp_recent));
        Transmit { segment, ecn_capable }
    }

    /// What is selectively acknowledged; none if that is nothing.
    #[inline(never)]
    fn blocks(&mut self) -> Option<Box<Options>> {
        let base = self.peer_isn.wrapping_add(1);
        let most = if self.options.timestamps { 3 } else { 4 };
        let mut options = Box::new(Options::Sack(SackBlocks::default()));
        if let Options::Sack(blocks) = &mut *options {
            self.receiver.blocks(most, |start, end| {
                blocks.push(wire(base, start), wire(base, end));
            });
            if blocks.as_slice().is_empty() {
                return None;
            }
        }
        Some(options)
    }
}
