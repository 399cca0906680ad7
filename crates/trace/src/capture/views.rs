use std::collections::BTreeMap;
use std::net::IpAddr;

use super::flow_key::{End, FlowKey, key};
use super::frames::Numbered;
use super::wire::ip_packet::IpPacket;

/// What is known of how captures see a flow: which end they are at, and how long a round trip
/// takes.
pub(super) struct Views {
    flows: BTreeMap<FlowKey, (IpAddr, u64)>,
    /// The address that is this end of the most flows.
    home: Option<IpAddr>,
}

impl Views {
    pub(super) fn of(frames: &[Numbered]) -> Self {
        /// By end of what was sent: when. And the fastest answer.
        type Waiting = (BTreeMap<u64, u64>, Option<u64>);
        let mut answers: BTreeMap<FlowKey, BTreeMap<End, Waiting>> = BTreeMap::new();
        for (_, at, seen) in frames {
            let flow = answers.entry(key(seen)).or_default();
            let header = &seen.header;
            if let Some(ack) = header.ack
                && let Some((waiting, least)) = flow.get_mut(&seen.destination)
                && let Some(sent) = waiting.remove(&ack)
            {
                let took = at.saturating_sub(sent);
                *least = Some(least.map_or(took, |least| least.min(took)));
            }
            if let Some(seq) = header.seq.filter(|_| header.len > 0 || header.syn) {
                let wraps = u64::MAX >> (64 - u32::from(header.bits.clamp(1, 64)));
                let end = (seq + u64::from(header.len)) & wraps;
                let (waiting, _) = flow.entry(seen.source).or_default();
                waiting.entry(end).or_insert(*at);
                if waiting.len() > 4096 {
                    waiting.pop_first();
                }
            }
        }
        let mut flows = BTreeMap::new();
        let mut votes: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (key, sides) in answers {
            // Who waits longest for answers has the whole path between: the capture is at its end.
            let slow = sides.iter().filter_map(|(end, (_, least))| Some((least.as_ref()?, end)));
            if let Some((rtt, (address, _))) = slow.max_by_key(|(least, _)| **least) {
                flows.insert(key, (*address, *rtt));
                *votes.entry(*address).or_default() += 1;
            }
        }
        let home = votes.into_iter().max_by_key(|(_, votes)| *votes).map(|(address, _)| address);
        Self { flows, home }
    }

    /// Whether the capture is at the packet's source, and the round trip's nanoseconds.
    pub(super) fn at_source(&self, seen: &IpPacket) -> (bool, u64) {
        match (self.flows.get(&key(seen)), self.home) {
            (Some((address, rtt)), _) => (seen.source.0 == *address, *rtt),
            (None, Some(home)) if seen.destination.0 == home => (false, 0),
            _ => (true, 0),
        }
    }
}
