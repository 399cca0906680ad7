use fontis_base::Rate;
use fontis_proto::tcp::{Flags, SackBlocks, Segment, SynOptions};
use fontis_proto::{dfcp, published};

/// What simulated packets carry: typed protocol packets, no bytes. What is large and rare is boxed: packets move from
/// queue to queue, and one takes a line of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A DFCP packet.
    Dfcp(Box<dfcp::Packet>),
    /// A TCP segment.
    Tcp(Packed),
    /// A packet of the DFCP of 2015.
    Published(Box<published::Packet>),
    /// What a controller tells a sender: how fast to send.
    Rate(Rate),
    /// What a sender tells a controller: whether it has something to send.
    Active(bool),
    /// A datagram without a transport, and its number.
    Datagram(u64),
}

/// A TCP segment in half of its room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    seq: u32,
    ack: u32,
    len: u32,
    window: u16,
    flags: Flags,
    has_timestamps: bool,
    timestamps: (u32, u32),
    /// What most segments are without.
    options: Option<Box<(SackBlocks, Option<SynOptions>)>>,
}

impl From<&Segment> for Packed {
    #[inline]
    fn from(segment: &Segment) -> Self {
        let Segment { seq, ack, len, window, flags, timestamps, ref sack, ref syn } = *segment;
        let is_plain = sack.is_empty() && syn.is_none();
        Self {
            seq,
            ack,
            len,
            window,
            flags,
            has_timestamps: timestamps.is_some(),
            timestamps: timestamps.unwrap_or_default(),
            options: (!is_plain).then(|| options(segment)),
        }
    }
}

/// What most segments are without. Apart: read where it is not, it would have to be waited for, since only a part of it has been
/// written.
#[inline(never)]
fn options(segment: &Segment) -> Box<(SackBlocks, Option<SynOptions>)> {
    Box::new((segment.sack, segment.syn))
}

impl Packed {
    /// The segment.
    #[inline]
    pub fn segment(&self) -> Segment {
        let Self { seq, ack, len, window, flags, .. } = *self;
        let timestamps = self.has_timestamps.then_some(self.timestamps);
        match &self.options {
            None => Segment { seq, ack, len, window, flags, timestamps, ..Segment::default() },
            Some(options) => {
                let (sack, syn) = **options;
                Segment { seq, ack, len, window, flags, timestamps, sack, syn }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_comes_out_of_its_packing_as_it_went_in() {
        let plain =
            Segment { seq: 1, ack: 2, len: 3, window: 4, flags: Flags::ACK, ..Segment::default() };
        let timed = Segment { timestamps: Some((0, 7)), ..plain };
        let mut sacked = timed;
        assert!(sacked.sack.push(8, 9));
        let syn = SynOptions { mss: 1460, window_scale: None, sack_permitted: true };
        let syn = Segment { syn: Some(syn), ..plain };
        for segment in [plain, timed, sacked, syn] {
            assert_eq!(Packed::from(&segment).segment(), segment);
        }
    }

    #[test]
    fn a_packet_takes_a_line_of_the_cache() {
        assert!(size_of::<fontis_base::Packet<Payload>>() <= 64);
    }
}
