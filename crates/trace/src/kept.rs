use fontis_base::{Duration, Time};

use super::packet::NOWHERE;
use crate::lane::{Lane, LaneKind};
use crate::packet::TracePacket;
use crate::trace::Hop;

/// What of a trace is kept packet by packet. All of it is analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// About how many packets at most; of more, the ordinary ones are thinned out.
    pub most: usize,
    /// Only packets sent at this time after the beginning or later.
    pub from: Duration,
    /// Only packets sent before.
    pub until: Duration,
}

impl Default for Detail {
    fn default() -> Self {
        Self { most: 1_500_000, from: Duration::ZERO, until: Duration::MAX }
    }
}

/// The packets that a trace keeps one by one: of very many the ordinary ones are thinned out first.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    detail: Detail,
    packets: Vec<(u64, TracePacket)>,
    hops: Vec<(u64, Hop)>,
    /// Of ordinary and of remarkable packets one in so many is kept.
    pub(crate) strides: [u64; 2],
}

impl Kept {
    /// None yet.
    pub(crate) const fn new(detail: Detail) -> Self {
        Self { detail, packets: Vec::new(), hops: Vec::new(), strides: [1, 1] }
    }

    /// A packet whose life is over, by the number that it had while the trace was built, and the
    /// queues that it passed.
    pub(crate) fn push(&mut self, number: u64, packet: TracePacket, hops: Vec<Hop>) {
        let since = packet.sent.since(Time::ZERO);
        if since < self.detail.from || since >= self.detail.until || !self.keeps(number, &packet) {
            return;
        }
        self.hops.extend(hops.into_iter().map(|hop| (number, hop)));
        self.packets.push((number, packet));
        while self.packets.len() > self.detail.most {
            let remarkable =
                self.packets.iter().filter(|(_, packet)| packet.is_remarkable()).count();
            // Remarkable packets may have half of the room before they are thinned out, too.
            self.strides[usize::from(remarkable * 2 > self.detail.most)] *= 2;
            let mut packets = core::mem::take(&mut self.packets);
            packets.retain(|(number, packet)| self.keeps(*number, packet));
            self.packets = packets;
            let mut kept: Vec<u64> = self.packets.iter().map(|(number, _)| *number).collect();
            kept.sort_unstable();
            self.hops.retain(|(number, _)| kept.binary_search(number).is_ok());
        }
    }

    fn keeps(&self, number: u64, packet: &TracePacket) -> bool {
        number.is_multiple_of(self.strides[usize::from(packet.is_remarkable())])
    }

    /// Puts hosts that speak first on the left, others on the right, and queues between; gives the
    /// new place of each lane.
    pub(crate) fn order_lanes(&mut self, lanes: &mut Vec<Lane>) -> Vec<u16> {
        let mut first = vec![true; lanes.len()];
        let mut packets: Vec<&(u64, TracePacket)> = self.packets.iter().collect();
        packets.sort_by_key(|(number, _)| *number);
        for (_, packet) in packets {
            let (from, to) = (usize::from(packet.from), usize::from(packet.to));
            // Who was spoken to before it spoke answers.
            if first.get(from) == Some(&true) && from != to && to < first.len() {
                first[to] = false;
            }
        }
        let place = |lane: &usize| match lanes[*lane].kind {
            LaneKind::Queue => 1,
            LaneKind::Host | LaneKind::Node if first[*lane] => 0,
            LaneKind::Host | LaneKind::Node => 2,
        };
        let mut order: Vec<usize> = (0..lanes.len()).collect();
        order.sort_by_key(place);
        let mut new = vec![NOWHERE; lanes.len()];
        for (to, from) in (0u16..).zip(&order) {
            new[*from] = to;
        }
        *lanes = order.iter().map(|lane| lanes[*lane].clone()).collect();
        for (_, packet) in &mut self.packets {
            for lane in [&mut packet.from, &mut packet.to, &mut packet.place] {
                *lane = renamed(&new, *lane);
            }
        }
        for (_, hop) in &mut self.hops {
            hop.lane = renamed(&new, hop.lane);
        }
        new
    }

    /// The packets in the order in which they left, and the queues that they passed.
    pub(crate) fn finish(mut self) -> (Vec<TracePacket>, Vec<Hop>) {
        self.packets.sort_by_key(|(number, packet)| (packet.sent, *number));
        let mut places: Vec<(u64, u32)> =
            (0..).zip(&self.packets).map(|(index, (number, _))| (*number, index)).collect();
        places.sort_unstable();
        let place = |number: u64| {
            let found = places.binary_search_by_key(&number, |(number, _)| *number);
            found.ok().map(|index| places[index].1)
        };
        let hops = self.hops.iter();
        let mut hops: Vec<Hop> = hops
            .filter_map(|(number, hop)| Some(Hop { packet: place(*number)?, ..*hop }))
            .collect();
        hops.sort_by_key(|hop| (hop.packet, hop.enter));
        (self.packets.into_iter().map(|(_, packet)| packet).collect(), hops)
    }
}

/// A lane's new place; what is no lane stays as it is.
pub(crate) fn renamed(new: &[u16], lane: u16) -> u16 {
    new.get(usize::from(lane)).copied().unwrap_or(lane)
}
