//! Captures: pcap and pcapng, of one place or of both ends.
//!
//! At one place only one of a packet's two times is seen. Which end it is follows from who is answered faster; the other time is
//! computed with half of the shortest round trip and marked so, and losses are concluded from acknowledgements. With captures
//! of both ends every packet has both times; the difference of the clocks is taken so that the fastest packets of the two
//! directions take equally long.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::net::IpAddr;

use fontis_base::{Duration, Time};

pub use super::frames::CaptureError;
use super::frames::Frames;
use super::mptcp::{Connections, Subflow};
use super::wire::{Multipath, Protocol, Seen, mix};
use super::{Builder, Detail, Handle, Header, Kind, LaneKind, Marks, Packet, Trace};

/// Reads a capture of one place.
pub fn read(input: impl Read + Send, title: &str, detail: Detail) -> Result<Trace, CaptureError> {
    let mut frames = Frames::new(input)?;
    let prelude = prelude(&mut frames)?;
    let origin = prelude.iter().map(|(_, at, _)| *at).find(|at| *at > 0).unwrap_or(0);
    let views = Views::of(&prelude);
    let mut reading = Reading::new(title, origin, detail);
    let mut take = |(number, at, seen): Numbered| reading.one_place(number, at, seen, &views);
    prelude.into_iter().for_each(&mut take);
    while let Some(frame) = next(&mut frames, &mut reading)? {
        let (number, at, seen) = frame;
        reading.one_place(number, at, seen, &views);
    }
    reading.builder.note(
        "Captured at one place: times at the other end are computed from the round-trip time, and losses from acknowledgements.",
    );
    Ok(reading.finish(frames.is_cut))
}

/// Whether two captures are of the same packets.
pub fn are_of_the_same(first: impl Read + Send, second: impl Read + Send) -> bool {
    let of = |input| -> Option<Vec<Numbered>> { prelude(&mut Frames::new(input).ok()?).ok() };
    let Some(first) = of(Box::new(first) as Box<dyn Read + Send + '_>) else { return false };
    let Some(second) = of(Box::new(second) as Box<dyn Read + Send + '_>) else { return false };
    Offset::between(&first, &second).is_some()
}

/// Reads captures of both ends; they must be of the same packets.
pub fn read_both(
    first: impl Read + Send,
    second: impl Read + Send,
    title: &str,
    detail: Detail,
) -> Result<Trace, CaptureError> {
    let mut sides = [
        Frames::new(Box::new(first) as Box<dyn Read + Send + '_>)?,
        Frames::new(Box::new(second) as Box<dyn Read + Send + '_>)?,
    ];
    let [one, two] = &mut sides;
    let preludes = [prelude(one)?, prelude(two)?];
    let offset = Offset::between(&preludes[0], &preludes[1])
        .unwrap_or(Offset { nanos: 0, is_two_way: false });
    let shift = |at: u64| at.saturating_add_signed(-offset.nanos);
    let first = preludes[0].first().map(|(_, at, _)| *at);
    let second = preludes[1].first().map(|(_, at, _)| shift(*at));
    let origin = [first, second].into_iter().flatten().min().unwrap_or(0);
    let mut reading = Reading::new(title, origin, detail);
    let mut early = preludes.map(Vec::into_iter);
    let mut heads: [Option<Numbered>; 2] = [None, None];
    loop {
        for side in [0, 1] {
            if heads[side].is_none() {
                heads[side] = match early[side].next() {
                    Some(frame) => Some(frame),
                    None => next(&mut sides[side], &mut reading)?,
                };
            }
        }
        let time = |side: usize| {
            heads[side].as_ref().map(|(_, at, _)| if side == 0 { *at } else { shift(*at) })
        };
        let side = match (time(0), time(1)) {
            (None, None) => break,
            (Some(_), None) => 0,
            (None, Some(_)) => 1,
            (Some(first), Some(second)) => usize::from(second < first),
        };
        let at = time(side).unwrap_or(0);
        let Some((number, _, seen)) = heads[side].take() else { break };
        reading.both_places(side, number, at, seen);
    }
    reading.give_up(u64::MAX);
    let by = Duration::from_nanos(offset.nanos.unsigned_abs()).as_secs_f64();
    let how = if offset.is_two_way {
        "the fastest packets of both directions take equally long"
    } else {
        "the fastest packet takes no time"
    };
    reading.builder.note(format!(
        "Captured at both ends: the second clock is put {} by {by:.6} s, so that {how}.",
        if offset.nanos > 0 { "back" } else { "forward" }
    ));
    if reading.matched * 2 < reading.seen_first {
        reading.builder.note("Few packets were seen at both ends: offloads may have joined or cut them (ethtool -K DEVICE tso off gso off gro off).");
    }
    let is_cut = sides.iter().any(|side| side.is_cut);
    Ok(reading.finish(is_cut))
}

type Numbered = (u64, u64, Seen);

/// So many frames are looked at before the first is judged.
const PRELUDE: usize = 20_000;

fn prelude(frames: &mut Frames<'_>) -> Result<Vec<Numbered>, CaptureError> {
    let mut all = Vec::new();
    while all.len() < PRELUDE {
        match frames.next() {
            Ok(Some(frame)) => all.push(frame),
            Ok(None) => break,
            // What can be read is shown.
            Err(CaptureError::Damaged(_)) if !all.is_empty() => {
                frames.is_cut = true;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

fn next(frames: &mut Frames<'_>, reading: &mut Reading) -> Result<Option<Numbered>, CaptureError> {
    if frames.is_cut {
        return Ok(None);
    }
    match frames.next() {
        Err(error @ CaptureError::Damaged(_)) => {
            reading.builder.note(format!("It was read up to there: {error}."));
            frames.is_cut = true;
            Ok(None)
        }
        other => other,
    }
}

type End = (IpAddr, u16);

fn key(seen: &Seen) -> (End, End, u8) {
    let protocol = match seen.protocol {
        Protocol::Dfcp | Protocol::Quic | Protocol::Udp => 17,
        Protocol::Tcp => 6,
        Protocol::Sctp => 132,
        Protocol::Dccp => 33,
        Protocol::Other => 0,
    };
    let (low, high) = (seen.source.min(seen.destination), seen.source.max(seen.destination));
    (low, high, protocol)
}

/// What is known of how captures see a flow: which end they are at, and how long a round trip takes.
struct Views {
    flows: BTreeMap<(End, End, u8), (IpAddr, u64)>,
    /// The address that is this end of the most flows.
    home: Option<IpAddr>,
}

impl Views {
    fn of(frames: &[Numbered]) -> Self {
        /// By end of what was sent: when. And the fastest answer.
        type Waiting = (BTreeMap<u64, u64>, Option<u64>);
        let mut answers: BTreeMap<(End, End, u8), BTreeMap<End, Waiting>> = BTreeMap::new();
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
    fn at_source(&self, seen: &Seen) -> (bool, u64) {
        match (self.flows.get(&key(seen)), self.home) {
            (Some((address, rtt)), _) => (seen.source.0 == *address, *rtt),
            (None, Some(home)) if seen.destination.0 == home => (false, 0),
            _ => (true, 0),
        }
    }
}

/// How far the second capture's clock is ahead of the first's.
struct Offset {
    nanos: i64,
    is_two_way: bool,
}

impl Offset {
    /// `None` if they have too few packets in common.
    fn between(first: &[Numbered], second: &[Numbered]) -> Option<Self> {
        let name = |seen: &Seen| mix([identity(seen), 0]);
        let known: BTreeMap<u64, u64> =
            first.iter().map(|(_, at, seen)| (name(seen), *at)).collect();
        // By direction of the packet: the smallest and largest difference, and how many.
        let mut ways: BTreeMap<bool, (i64, i64, u64)> = BTreeMap::new();
        for (_, at, seen) in second {
            let Some(before) = known.get(&name(seen)) else { continue };
            let delta = at.wrapping_sub(*before) as i64;
            let way = ways.entry(seen.source < seen.destination).or_insert((i64::MAX, i64::MIN, 0));
            *way = (way.0.min(delta), way.1.max(delta), way.2 + 1);
        }
        let common: u64 = ways.values().map(|(.., count)| count).sum();
        if common < 3 {
            return None;
        }
        let (up, down) = (ways.get(&true), ways.get(&false));
        Some(match (up, down) {
            (Some(up), Some(down)) => {
                // What goes from the first place to the second has the larger difference.
                let (there, back) = if up.0 >= down.0 { (up, down) } else { (down, up) };
                Self { nanos: there.0 / 2 + back.1 / 2, is_two_way: true }
            }
            (Some(way), None) | (None, Some(way)) => Self { nanos: way.0, is_two_way: false },
            (None, None) => return None,
        })
    }
}

/// What both ends see of a packet.
fn identity(seen: &Seen) -> u64 {
    let of = |(address, port): &End| match address {
        IpAddr::V4(v4) => mix([u64::from(u32::from(*v4)), u64::from(*port)]),
        IpAddr::V6(v6) => {
            let bits = u128::from(*v6);
            mix([(bits >> 64) as u64, bits as u64, u64::from(*port)])
        }
    };
    mix([of(&seen.source), of(&seen.destination), seen.identity])
}

struct FlowKnown {
    index: u16,
    /// Who spoke first.
    first: End,
    protocol: Protocol,
}

struct Reading {
    builder: Builder,
    flows: Vec<FlowKnown>,
    by_key: BTreeMap<(End, End, u8), usize>,
    connections: Connections,
    /// Subflows of Multipath TCP: their path, and the end of who spoke first in their connection.
    subflows: BTreeMap<(End, End, u8), (u8, End, Subflow)>,
    /// SCTP: by verification tag.
    by_tag: BTreeMap<u32, usize>,
    lanes: BTreeMap<IpAddr, u8>,
    /// Seen at one end and not yet at the other: by identity the side, the handle and when.
    waiting: BTreeMap<u64, VecDeque<(usize, Handle, u64)>>,
    by_time: VecDeque<(u64, u64)>,
    /// When the first and the last packet was captured at either place.
    ends: [Option<(u64, u64)>; 2],
    matched: u64,
    /// The longest way of a packet that was seen at both places.
    longest: u64,
    seen_first: u64,
}

/// A packet that has not been seen at the other end after this time is lost: longer than any queue.
const LOST_AFTER: u64 = 10_000_000_000;

impl Reading {
    fn new(title: &str, origin: u64, detail: Detail) -> Self {
        Self {
            builder: Builder::new(title, Time::from_nanos(origin), detail),
            flows: Vec::new(),
            by_key: BTreeMap::new(),
            connections: Connections::default(),
            subflows: BTreeMap::new(),
            by_tag: BTreeMap::new(),
            lanes: BTreeMap::new(),
            waiting: BTreeMap::new(),
            by_time: VecDeque::new(),
            ends: [None; 2],
            matched: 0,
            longest: 0,
            seen_first: 0,
        }
    }

    fn lane(&mut self, address: IpAddr) -> u8 {
        if let Some(lane) = self.lanes.get(&address) {
            return *lane;
        }
        let lane = self.builder.lane(&address.to_string(), LaneKind::Host);
        self.lanes.insert(address, lane);
        lane
    }

    /// The flow of a packet, made if it is new.
    fn flow(&mut self, seen: &Seen) -> usize {
        let key = key(seen);
        let tagged = seen.tags[0].and_then(|tag| self.by_tag.get(&tag).copied());
        let known = tagged.or_else(|| self.by_key.get(&key).copied());
        let joined = match seen.multipath {
            Some(Multipath::Join(token)) if known.is_none() => self.connections.joined(token),
            _ => None,
        };
        let joins = joined.map(|(place, _)| place);
        let place = known.or(joins).unwrap_or_else(|| {
            let end = |(address, port): End| std::net::SocketAddr::new(address, port).to_string();
            let name = format!("{} → {}", end(seen.source), end(seen.destination));
            let (protocol, unit) = (seen.protocol.name(), seen.protocol.unit());
            let index = self.builder.flow(&name, protocol, unit);
            self.flows.push(FlowKnown { index, first: seen.source, protocol: seen.protocol });
            self.flows.len() - 1
        });
        if known.is_none() {
            self.by_key.insert(key, place);
        }
        for tag in seen.tags.into_iter().flatten() {
            self.by_tag.entry(tag).or_insert(place);
        }
        let flow = &mut self.flows[place];
        // A connection over UDP says what it is when it begins.
        if flow.protocol == Protocol::Udp && seen.protocol != Protocol::Udp {
            flow.protocol = seen.protocol;
            self.builder.name_protocol(flow.index, seen.protocol.name(), seen.protocol.unit());
        }
        match seen.multipath {
            Some(Multipath::Join(_)) if joined.is_none() => {
                self.builder.name_protocol(flow.index, "MPTCP, joined", "bytes");
            }
            Some(_) => self.builder.name_protocol(flow.index, "MPTCP", "bytes"),
            None => {}
        }
        if seen.multipath.is_some() && !self.subflows.contains_key(&key) {
            // Who joins is not always who spoke first.
            let first = match joined {
                Some((_, 0)) => seen.source,
                Some(_) => seen.destination,
                None => self.flows[place].first,
            };
            let other = if first == seen.source { seen.destination } else { seen.source };
            let path =
                self.builder.path(self.flows[place].index, &format!("{} – {}", first.0, other.0));
            self.subflows.insert(key, (path, first, Subflow::default()));
        }
        place
    }

    /// The packet as the trace has it, its header, and whether the second speaker sent it.
    fn packet(&mut self, number: u64, sent: u64, seen: Seen) -> (Packet, Header, bool) {
        let place = self.flow(&seen);
        let (index, first, protocol) = {
            let flow = &self.flows[place];
            (flow.index, flow.first, flow.protocol)
        };
        let (from, to) = (self.lane(seen.source.0), self.lane(seen.destination.0));
        // Addresses of a multihomed end differ, its port does not.
        let back = match protocol {
            Protocol::Sctp if seen.source.1 != seen.destination.1 => seen.source.1 != first.1,
            Protocol::Sctp => seen.source.0 != first.0 && seen.tags[0].is_some(),
            _ => match self.subflows.get(&key(&seen)) {
                Some((_, first, _)) => seen.source != *first,
                None => seen.source != first,
            },
        };
        let mut packet = Packet::sent(number, Time::from_nanos(sent), from, to, seen.size);
        packet.flow = index;
        if protocol == Protocol::Sctp {
            let ends = if back {
                (seen.destination.0, seen.source.0)
            } else {
                (seen.source.0, seen.destination.0)
            };
            packet.path = self.builder.path(index, &format!("{} – {}", ends.0, ends.1));
        }
        let key = key(&seen);
        let mut header = seen.header;
        if let Some((path, _, subflow)) = self.subflows.get_mut(&key) {
            packet.path = *path;
            self.connections.translate(
                place,
                usize::from(back),
                seen.multipath,
                subflow,
                &mut header,
            );
        }
        if protocol == Protocol::Dfcp
            && header.kind == Kind::Opaque
            && header.seq.is_none()
            && let Some((path, number)) = seen.sealed
        {
            packet.path = path;
            header = Header { seq: Some(number), len: 1, bits: 64, path, ..header };
        }
        (packet, header, back)
    }

    fn one_place(&mut self, number: u64, at: u64, seen: Seen, views: &Views) {
        let (at_source, rtt) = views.at_source(&seen);
        let way = rtt / 2;
        let sent = if at_source { at } else { at.saturating_sub(way) };
        let is_acknowledged =
            matches!(seen.protocol, Protocol::Tcp | Protocol::Sctp | Protocol::Dccp);
        let (mut packet, header, back) = self.packet(number, sent, seen);
        if !at_source && way > 0 {
            packet.marks.set(Marks::ESTIMATED);
        }
        let follow = at_source && header.len > 0 && header.seq.is_some() && is_acknowledged;
        let now = Time::from_nanos(at);
        let handle = self.builder.sent(now, packet, header, back, follow);
        if !at_source {
            self.builder.arrived(handle, now);
        } else if !follow && is_acknowledged {
            self.builder.arrived_soon(handle, Time::from_nanos(at + way));
        }
    }

    fn both_places(&mut self, side: usize, number: u64, at: u64, seen: Seen) {
        let name = identity(&seen);
        let active = self.ends[side].get_or_insert((at, at));
        active.1 = at;
        self.give_up(at);
        let waiting = self.waiting.entry(name).or_default();
        if let Some((first, handle, left)) = waiting.front().copied()
            && first != side
        {
            waiting.pop_front();
            if waiting.is_empty() {
                self.waiting.remove(&name);
            }
            self.matched += 1;
            self.longest = self.longest.max(at.saturating_sub(left));
            self.builder.arrived(handle, Time::from_nanos(at));
            return;
        }
        self.seen_first += 1;
        let (packet, header, back) = self.packet(number, at, seen);
        let has_data = header.len > 0;
        let handle = self.builder.sent(Time::from_nanos(at), packet, header, back, false);
        let waiting = self.waiting.entry(name).or_default();
        waiting.push_back((side, handle, at));
        if has_data && waiting.len() > 1 {
            // The same data again: the first never came. Acknowledgements may well be the same.
            let old = waiting.pop_front();
            if let Some((_, old, _)) = old {
                self.builder.lost(old, None, None);
            }
        }
        self.by_time.push_back((at, name));
    }

    /// Packets that were seen long ago at one end only are lost.
    fn give_up(&mut self, now: u64) {
        let ends = self.ends;
        while let Some((at, name)) = self.by_time.front().copied() {
            if now.saturating_sub(at) < LOST_AFTER {
                break;
            }
            self.by_time.pop_front();
            let Some(waiting) = self.waiting.get_mut(&name) else { continue };
            let Some((side, handle, _)) = waiting.front().copied().filter(|(.., when)| *when == at)
            else {
                continue;
            };
            waiting.pop_front();
            if waiting.is_empty() {
                self.waiting.remove(&name);
            }
            // When nobody listened there any more, nobody knows.
            let arrival = at.saturating_add(self.longest);
            if ends[1 - side].is_some_and(|(begin, end)| begin <= at && arrival < end) {
                self.builder.lost(handle, None, None);
            }
        }
    }

    fn finish(mut self, is_cut: bool) -> Trace {
        if is_cut {
            self.builder
                .note("The file is cut off in the middle of a frame; it was read up to there.");
        }
        self.builder.finish()
    }
}
