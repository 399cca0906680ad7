use std::collections::BTreeMap;

use fontis_base::{Duration, IntervalSet, Time};

use super::counts::Counts;
use super::handle::Handle;
use super::series::{Group, RateBins, Series};
use super::spans::Spans;
use crate::header::PacketHeader;
use crate::packet::{Kind, Marks, TracePacket};

/// One direction of a flow's data: what its sender sent, what its receiver got and said of it.
#[derive(Clone, Debug)]
pub(crate) struct FlowDirection {
    pub(crate) counts: Counts,
    /// The wire's number of the first item, to which all are related.
    base: Option<u64>,
    /// One beyond the highest that was sent.
    pub(crate) highest: u64,
    pub(crate) acked: u64,
    /// The receiver's window and by how much it is shifted.
    pub(crate) window: Option<u64>,
    scale: Option<u8>,
    /// Whether packets are numbered, in place of what they carry.
    is_numbered: bool,
    /// The largest packet's items.
    most: u32,
    /// Sent and not acknowledged, by their end.
    outstanding: BTreeMap<u64, Outstanding>,
    received: IntervalSet,
    in_order: u64,
    /// By path: when the packet that arrived last of those sent latest had been sent.
    latest: BTreeMap<u8, Time>,
    last_sent: Time,
    pub(crate) smallest_rtt: Option<Duration>,
    pub(crate) window_limited: Spans,
    pub(crate) window_closed: Spans,
    /// Silences that ended with a retransmission.
    pub(crate) stalls: Vec<(Time, Time)>,
    /// When the receiver began to hold data back.
    held_since: Option<Time>,
    /// By path whose packet was missing: how long data was held back, and the longest such span.
    pub(crate) held: BTreeMap<u8, (Duration, (Time, Time))>,
    sent_bytes: RateBins,
    delivered_bytes: RateBins,
    /// Bytes of data that arrived and were new, and how they grew.
    delivered: u64,
    progress: Series,
    /// Bytes of data that were sent, by which the items of acknowledgements are counted as bytes,
    /// and how many.
    items: (u64, u64),
    flight: Series,
    windows: Series,
    rtts: Series,
    buffer: Series,
    pub(crate) rtt_sum: f64,
    pub(crate) rtt_samples: u64,
}

/// A range that was sent and is not acknowledged.
#[derive(Clone, Debug)]
struct Outstanding {
    /// The last copy's time.
    sent: Time,
    /// The timestamp in the last copy.
    timestamp: Option<u32>,
    /// Each copy.
    copies: Vec<Handle>,
}

/// What an acknowledgement settles.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// Copies that must have arrived.
    pub(crate) arrived: Vec<Handle>,
    /// Copies that must have been lost.
    pub(crate) lost: Vec<Handle>,
    /// Copies that were sent in vain.
    pub(crate) spurious: Vec<Handle>,
}

/// More ranges than this and the oldest are believed: a trace may begin or end anywhere.
const MOST_OUTSTANDING: usize = 65_536;

impl FlowDirection {
    pub(crate) fn new(flow: u16, name: &str) -> Self {
        let series = |group, what: &str| Series::new(group, format!("{name} {what}"), Some(flow));
        Self {
            counts: Counts::default(),
            base: None,
            highest: 0,
            acked: 0,
            window: None,
            scale: None,
            is_numbered: false,
            most: 0,
            outstanding: BTreeMap::new(),
            received: IntervalSet::default(),
            in_order: 0,
            latest: BTreeMap::new(),
            last_sent: Time::ZERO,
            smallest_rtt: None,
            window_limited: Spans::default(),
            window_closed: Spans::default(),
            stalls: Vec::new(),
            held_since: None,
            held: BTreeMap::new(),
            sent_bytes: RateBins::default(),
            delivered_bytes: RateBins::default(),
            delivered: 0,
            progress: series(Group::Delivered, "delivered"),
            items: (0, 0),
            flight: series(Group::Window, "unacknowledged"),
            windows: series(Group::Window, "receive window"),
            rtts: series(Group::RoundTrip, "round trip"),
            buffer: series(Group::ReceiveBuffer, "held back"),
            rtt_sum: 0.0,
            rtt_samples: 0,
        }
    }

    /// A number of the wire, which wraps, as one that does not: the one nearest to what is known.
    fn unwrap(&mut self, number: u64, bits: u8, near: u64) -> u64 {
        let base = *self.base.get_or_insert(number);
        if !(8..64).contains(&bits) {
            return number.wrapping_sub(base).min(u64::MAX / 2);
        }
        let modulus = 1u64 << bits;
        let offset = number.wrapping_sub(base) & (modulus - 1);
        let turn = near & !(modulus - 1);
        let candidates = [turn.checked_sub(modulus), Some(turn), turn.checked_add(modulus)];
        let all = candidates.into_iter().flatten().map(|turn| turn.saturating_add(offset));
        all.min_by_key(|candidate| candidate.abs_diff(near)).unwrap_or(offset)
    }

    /// A packet of this direction leaves; `at` is when that is noticed. `follow` keeps its copies
    /// until acknowledged.
    pub(crate) fn sent(
        &mut self,
        at: Time,
        packet: &mut TracePacket,
        header: &PacketHeader,
        follow: Option<Handle>,
    ) {
        self.counts.packets += 1;
        self.counts.bytes += u64::from(packet.size);
        self.sent_bytes.add(at, u64::from(packet.size));
        if header.syn {
            self.scale = Some(header.window_scale.unwrap_or(0).min(14));
        }
        let Some(seq) = header.seq else { return };
        let seq = self.unwrap(seq, header.bits, self.highest);
        packet.seq = seq;
        packet.len = header.len;
        if header.len == 0 {
            return;
        }
        self.counts.data +=
            u64::from(matches!(header.kind, Kind::Data | Kind::Repair | Kind::Opaque));
        let end = seq.saturating_add(u64::from(header.len));
        let again = header.again.unwrap_or(seq < self.highest);
        self.most = self.most.max(header.len);
        if again && !header.is_numbered() {
            packet.marks.set(Marks::RETRANSMITTED);
            self.counts.retransmitted += 1;
            let silence = at.since(self.last_sent);
            let patience = self.smallest_rtt.unwrap_or_default() * 3;
            if silence > patience.max(SILENCE) && self.acked < self.highest {
                self.stalls.push((self.last_sent, at));
            }
        }
        self.highest = self.highest.max(end);
        self.last_sent = self.last_sent.max(at);
        self.is_numbered = header.is_numbered();
        self.items.0 += u64::from(header.data.unwrap_or(header.len));
        self.items.1 += u64::from(header.len);
        let entry = self.outstanding.entry(end).or_insert(Outstanding {
            sent: at,
            timestamp: None,
            copies: Vec::new(),
        });
        entry.sent = at;
        entry.timestamp = header.timestamps.map(|(value, _)| value);
        match follow {
            Some(handle) => entry.copies.push(handle),
            // Only how many there were matters.
            None => entry.copies.push(Handle::default()),
        }
        if self.outstanding.len() > MOST_OUTSTANDING {
            self.outstanding.pop_first();
        }
        self.tell_flight(at);
    }

    fn tell_flight(&mut self, at: Time) {
        let flight = self.highest.saturating_sub(self.acked);
        // Where packets are numbered, not bytes, it is their mean size that counts.
        let each = if self.is_numbered {
            self.counts.bytes as f64 / self.counts.packets.max(1) as f64
        } else {
            1.0
        };
        self.flight.push(at, flight as f64 * each);
        if let Some(window) = self.window {
            let full = window > 0 && flight + u64::from(self.most) > window && flight > 0;
            let patience = self.smallest_rtt.unwrap_or(SILENCE);
            self.window_limited.say(at, full && self.most > 0, patience);
        }
    }

    /// A packet of this direction arrives; gives how many of its items were new.
    pub(crate) fn arrived(
        &mut self,
        at: Time,
        packet: &mut TracePacket,
        header: &PacketHeader,
    ) -> u64 {
        if packet.marks.has(Marks::CONGESTION) {
            self.counts.marked += 1;
        }
        let latest = self.latest.entry(packet.path).or_default();
        if packet.sent < *latest && !packet.marks.has(Marks::COPY) {
            packet.marks.set(Marks::REORDERED);
            self.counts.reordered += 1;
        }
        *latest = (*latest).max(packet.sent);
        if header.seq.is_none() || header.len == 0 || header.is_numbered() {
            return u64::from(header.len);
        }
        let end = packet.seq.saturating_add(u64::from(packet.len));
        let new = if end <= self.in_order {
            0
        } else {
            self.received.insert(packet.seq.max(self.in_order), end)
        };
        self.counts.delivered += new;
        if new == 0 {
            packet.marks.set(Marks::USELESS);
            if !packet.marks.has(Marks::COPY) && self.counts.retransmitted > 0 {
                self.counts.spurious += 1;
                if packet.marks.has(Marks::RETRANSMITTED) {
                    packet.marks.set(Marks::SPURIOUS);
                }
            }
            return 0;
        }
        let before = self.in_order;
        self.in_order = self.received.first_missing(self.in_order);
        self.received.remove_below(self.in_order);
        let held = self.received.total();
        self.buffer.push(at, held as f64);
        if self.in_order > before
            && let Some(since) = self.held_since.take()
        {
            let span = at.since(since);
            let (sum, longest) = self.held.entry(packet.path).or_default();
            *sum += span;
            if span > longest.1.since(longest.0) {
                *longest = (since, at);
            }
        }
        if held > 0 {
            self.held_since.get_or_insert(at);
        }
        new
    }

    /// So many bytes of data are there that were not before.
    pub(crate) fn delivered(&mut self, at: Time, bytes: u64) {
        if bytes > 0 {
            self.delivered_bytes.add(at, bytes);
            self.delivered += bytes;
            self.progress.push(at, self.delivered as f64);
        }
    }

    /// The receiver's word reaches the sender; gives what is settled by it.
    pub(crate) fn acknowledged(
        &mut self,
        at: Time,
        packet: &mut TracePacket,
        header: &PacketHeader,
        window: Option<u64>,
    ) -> Settled {
        let mut settled = Settled::default();
        let Some(ack) = header.ack else { return settled };
        if self.base.is_none() {
            return settled;
        }
        let ack = self.unwrap(ack, header.bits, self.acked);
        packet.ack = ack;
        if let Some(window) = window {
            self.window = Some(window);
            self.windows.push(at, window as f64);
            self.window_closed.say(at, window == 0, Duration::ZERO);
        }
        for (index, (left, right)) in header.sack.iter().enumerate() {
            let (left, right) =
                (self.unwrap(*left, header.bits, ack), self.unwrap(*right, header.bits, ack));
            // RFC 2883: what is below the acknowledgement or inside the next block arrived twice.
            let inside = index == 0
                && header.sack.get(1).is_some_and(|(l, r)| {
                    let (l, r) =
                        (self.unwrap(*l, header.bits, ack), self.unwrap(*r, header.bits, ack));
                    l <= left && right <= r
                });
            if index == 0 && left < right && (right <= ack || inside) {
                let copies = self.outstanding.range(..=right).next_back();
                if let Some((_, sent)) = copies.filter(|(end, _)| **end == right) {
                    settled.spurious.extend(sent.copies.iter().skip(1).copied());
                }
                settled.spurious.push(Handle::default());
            }
        }
        if ack > self.acked && ack <= self.highest {
            // Where nobody sees arrivals, acknowledgements tell of them.
            if !self.is_numbered && self.counts.delivered == 0 {
                let (bytes, items) = self.items;
                let acked = u128::from(ack) * u128::from(bytes) / u128::from(items.max(1));
                let acked = u64::try_from(acked).unwrap_or(u64::MAX);
                self.delivered(at, acked.saturating_sub(self.delivered));
            }
            self.acked = ack;
            let rest = self.outstanding.split_off(&(ack + 1));
            let done = core::mem::replace(&mut self.outstanding, rest);
            if let Some(last) = done.values().next_back().filter(|last| last.copies.len() == 1) {
                self.round_trip(at, at.since(last.sent + header.ack_delay));
            }
            for sent in done.into_values() {
                // Eifel (RFC 3522): the acknowledgement echoes a timestamp older than that of the
                // copy.
                let echo = header.timestamps.map(|(_, echo)| echo);
                let older = |(echo, sent): (u32, u32)| (sent.wrapping_sub(echo) as i32) > 0;
                let first = sent.copies.len() > 1 && echo.zip(sent.timestamp).is_some_and(older);
                let mut copies = sent.copies.into_iter();
                if first {
                    settled.arrived.extend(copies.next());
                    settled.spurious.extend(copies);
                } else {
                    settled.arrived.extend(copies.next_back());
                    settled.lost.extend(copies);
                }
            }
        }
        self.tell_flight(at);
        settled
    }

    /// Whether acknowledgements are outstanding.
    pub(crate) const fn is_owed(&self) -> bool {
        self.acked < self.highest
    }

    /// A sample of the round-trip time.
    pub(crate) fn round_trip(&mut self, at: Time, sample: Duration) {
        self.rtts.push(at, sample.as_secs_f64() * 1e3);
        self.smallest_rtt = Some(self.smallest_rtt.map_or(sample, |least| least.min(sample)));
        self.rtt_sum += sample.as_secs_f64();
        self.rtt_samples += 1;
    }

    /// By how much windows that this direction's sender announces are shifted.
    pub(crate) const fn scale(&self) -> Option<u8> {
        self.scale
    }

    /// The base of its numbers is `number`: what a SYN says.
    pub(crate) fn begin_at(&mut self, number: u64) {
        self.base.get_or_insert(number);
    }

    /// Its series.
    pub(crate) fn into_series(self, flow: u16, name: &str) -> Vec<Series> {
        let rate = |what: &str| Series::new(Group::Rate, format!("{name} {what}"), Some(flow));
        let packets = self.counts.packets;
        let mut all = vec![self.sent_bytes.into_series(rate("sent"), packets)];
        if self.delivered > 0 {
            all.push(self.progress);
            all.push(self.delivered_bytes.into_series(rate("delivered"), packets));
        }
        // Windows and acknowledgements of what carries no data say nothing.
        if self.counts.data > 0 {
            all.extend([self.flight, self.windows, self.rtts, self.buffer]);
        }
        all.retain_mut(|series| {
            series.finish();
            series.points.len() > 1 && series.points.iter().any(|(_, value)| *value != 0.0)
        });
        all
    }
}

/// A silence shorter than this is nobody's stall, and an interruption shorter than this none.
const SILENCE: Duration = Duration::from_millis(200);
