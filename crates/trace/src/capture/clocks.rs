use std::collections::BTreeMap;
use std::net::IpAddr;

use super::flow_key::End;
use super::frames::Numbered;
use super::wire::bytes::mix;
use super::wire::ip_packet::IpPacket;

/// How the second capture's clock differs from the first's: by how much, and how fast that changes.
///
/// The difference is such that the fastest packets of both directions take equally long. A drift
/// shows as a change of the fastest packets' times in both directions alike; queues that grow
/// change one direction only.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clocks {
    /// Nanoseconds by which the second is ahead at `since`.
    pub(crate) ahead: i64,
    /// On the second clock.
    pub(super) since: u64,
    /// Nanoseconds that the second gains in a nanosecond.
    pub(crate) drift: f64,
    /// Whether packets of both directions were compared.
    pub(crate) is_two_way: bool,
    /// Whether what goes from the first place to the second goes from the lower address to the
    /// higher.
    pub(super) goes_up: bool,
    /// When the first packet was captured, on the first clock.
    pub(crate) origin: u64,
}

impl Clocks {
    /// From the beginning of both; `None` if they have too few packets in common.
    pub(crate) fn between(first: &[Numbered], second: &[Numbered]) -> Option<Self> {
        let name = |seen: &IpPacket| mix([identity(seen), 0]);
        let known: BTreeMap<u64, u64> =
            first.iter().map(|(_, at, seen)| (name(seen), *at)).collect();
        // By direction of the packet: the smallest and largest difference, and how many.
        let mut ways: BTreeMap<bool, (i64, i64, u64)> = BTreeMap::new();
        for (_, at, seen) in second {
            let Some(before) = known.get(&name(seen)) else { continue };
            let delta = at.wrapping_sub(*before) as i64;
            let way = ways.entry(goes_up(seen)).or_insert((i64::MAX, i64::MIN, 0));
            *way = (way.0.min(delta), way.1.max(delta), way.2 + 1);
        }
        let common: u64 = ways.values().map(|(.., count)| count).sum();
        if common < 3 {
            return None;
        }
        let since = second.first().map_or(0, |(_, at, _)| *at);
        let clocks = Self { since, ..Self::default() };
        Some(match (ways.get(&true), ways.get(&false)) {
            (Some(up), Some(down)) => {
                // What goes from the first place to the second has the larger difference.
                let goes_up = up.0 >= down.0;
                let (there, back) = if goes_up { (up, down) } else { (down, up) };
                let ahead = there.0 / 2 + back.1 / 2;
                Self { ahead, is_two_way: true, goes_up, ..clocks }
            }
            (up, down) => Self { ahead: up.or(down)?.0, goes_up: up.is_some(), ..clocks },
        })
    }

    /// A time of the second clock on the first one.
    pub(super) fn on_first(&self, at: u64) -> u64 {
        let since = at.wrapping_sub(self.since) as i64;
        let gained = (since as f64 * self.drift) as i64;
        at.saturating_add_signed(self.ahead.saturating_add(gained).saturating_neg())
    }

    /// A time of either clock on the first one.
    pub(crate) fn on(&self, side: usize, at: u64) -> u64 {
        if side == 0 { at } else { self.on_first(at) }
    }
}

pub(super) fn goes_up(seen: &IpPacket) -> bool {
    seen.source < seen.destination
}

/// What both ends see of a packet.
pub(crate) fn identity(seen: &IpPacket) -> u64 {
    let of = |(address, port): &End| match address {
        IpAddr::V4(v4) => mix([u64::from(u32::from(*v4)), u64::from(*port)]),
        IpAddr::V6(v6) => {
            let bits = u128::from(*v6);
            mix([(bits >> 64) as u64, bits as u64, u64::from(*port)])
        }
    };
    mix([of(&seen.source), of(&seen.destination), seen.identity])
}
