use std::collections::BTreeMap;

use bytes::Bytes;
use fontis_base::{Duration, Stream, Time};
use fontis_codes::{BlockDecoder, BlockShape, Decoded};

use super::{LiveSymbol, live_shape};
use crate::cast::backoff::backoff;
use crate::cast::gate::GateKept;
use crate::cast::loss::FadingLoss;
use crate::cast::packet::{CastNeed, CastReport, CastState};

/// Runs of blocks that a report has room for.
const MOST_NEEDS: usize = 96;
/// Receivers that need not be quiet because others speak.
const FEW: u32 = 32;
/// The wait of few receivers before a report: what comes in the wrong order is not lost.
const SOON: Duration = Duration::from_millis(5);
/// What an answer takes beyond the round trip.
const ANSWER_TAKES: Duration = Duration::from_millis(20);
/// The longest times that are believed, in microseconds and milliseconds.
const LONGEST: u32 = 10_000_000;
const LONGEST_EVERY: u32 = 600_000;
/// Two clocks drift apart by less than this part of the time.
const DRIFT_PART: u64 = 2000;
/// Blocks beyond the next one of which something is kept.
const MOST_OPEN: u32 = 1024;

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveEvent {
    /// The stream goes on with these bytes.
    Data(Bytes),
    /// So many blocks did not come in time; the stream goes on after them.
    Gap(u32),
    /// The stream is over.
    End,
}

/// A block of which something came.
struct OpenBlock {
    shape: BlockShape,
    /// When its first byte was read, in milliseconds of the sender's clock.
    at: u32,
    state: Filling,
}

enum Filling {
    Open(BlockDecoder),
    Whole(Bytes),
}

/// A receiver of a stream.
pub struct LiveReceiver {
    latency: Duration,
    memory: u64,
    held: u64,
    stream: Stream,
    /// The next block to hand over; none before the sender was heard.
    next: Option<u32>,
    open: BTreeMap<u32, OpenBlock>,
    /// The sender's zero in time of our own, as the fastest packet says: nanoseconds; and when that
    /// was.
    zero: Option<(i64, Time)>,
    state: CastState,
    state_at: Option<u64>,
    /// Blocks below it were sent whole once.
    edge: u32,
    /// The number of blocks, once the sender has said that no more follow.
    end: Option<u32>,
    is_over: bool,
    loss: FadingLoss,
    newest: Option<(u64, Time)>,
    round_trip: Option<Duration>,
    report_at: Option<Time>,
    hold_until: Time,
    status_at: Time,
    sequence: u32,
    member: u32,
}

impl LiveReceiver {
    /// A receiver of a stream, whose number in the group is `member`. It gives a block up `latency`
    /// after its first byte was read, the time of the path not counted, and holds at most `memory`
    /// bytes of blocks.
    pub fn new(latency: Duration, memory: u64, member: u32, seed: u64) -> Self {
        Self {
            latency,
            memory,
            held: 0,
            stream: Stream::new(seed, "live receiver"),
            next: None,
            open: BTreeMap::new(),
            zero: None,
            state: CastState::default(),
            state_at: None,
            edge: 0,
            end: None,
            is_over: false,
            loss: FadingLoss::default(),
            newest: None,
            round_trip: None,
            report_at: None,
            hold_until: Time::ZERO,
            status_at: Time::MAX,
            sequence: 0,
            member,
        }
    }

    /// Whether everything was handed over.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    fn came(&mut self, number: u64, now: Time) {
        self.loss.came(number);
        if self.newest.is_none_or(|(newest, _)| number > newest) {
            self.newest = Some((number, now));
        }
    }

    fn add(&mut self, symbol: &LiveSymbol) {
        let LiveSymbol { block, esi, len, at, ref data, .. } = *symbol;
        let Some(next) = self.next else { return };
        if block < next || block - next >= MOST_OPEN {
            return;
        }
        if !self.open.contains_key(&block) {
            let Some(shape) = live_shape(len) else { return };
            if self.held + u64::from(len) > self.memory {
                return;
            }
            self.held += u64::from(len);
            let state = Filling::Open(BlockDecoder::new(shape));
            self.open.insert(block, OpenBlock { shape, at, state });
        }
        let Some(open) = self.open.get_mut(&block) else { return };
        let Filling::Open(decoder) = &mut open.state else { return };
        // What says otherwise than the first symbol of a block is not of it.
        if open.shape.len() != len || open.at != at {
            return;
        }
        let _ = decoder.add(esi, data);
        if decoder.needed() > 0 {
            return;
        }
        let empty = Filling::Whole(Bytes::new());
        if let Filling::Open(decoder) = std::mem::replace(&mut open.state, empty) {
            open.state = match decoder.decode_job().run() {
                Decoded::Block(data) => Filling::Whole(data),
                Decoded::Failed(decoder) => Filling::Open(decoder),
            };
        }
    }

    /// What comes next, if it is there or its time is over.
    pub fn take(&mut self, now: Time) -> Option<LiveEvent> {
        let next = self.next?;
        if let Some(OpenBlock { state: Filling::Whole(_), .. }) = self.open.get(&next) {
            self.next = Some(next.saturating_add(1));
            let open = self.open.remove(&next)?;
            self.held -= u64::from(open.shape.len());
            let Filling::Whole(data) = open.state else { return None };
            return Some(LiveEvent::Data(data));
        }
        if self.end.is_some_and(|end| next >= end) {
            let is_new = !std::mem::replace(&mut self.is_over, true);
            return is_new.then_some(LiveEvent::End);
        }
        // Nothing before the block whose time is over comes any more.
        let late = match self.open.first_key_value() {
            Some(_) if self.deadline()? > now => return None,
            Some((block, open)) if matches!(open.state, Filling::Open(_)) => {
                block.saturating_add(1)
            }
            Some((block, _)) => *block,
            // Of these nothing came at all; the sender has given them up.
            None => self.state.pass.min(self.state.visit),
        };
        if late <= next {
            return None;
        }
        while let Some(open) = self.open.first_entry().filter(|open| *open.key() < late) {
            self.held -= u64::from(open.remove().shape.len());
        }
        self.next = Some(late);
        Some(LiveEvent::Gap(late - next))
    }

    /// When the first block of which something came is given up, and all before it.
    fn deadline(&self) -> Option<Time> {
        let ((_, open), (zero, _)) = (self.open.first_key_value()?, self.zero?);
        let at = zero.saturating_add(i64::from(open.at) * 1_000_000).max(0);
        Some(Time::from_nanos(at as u64) + self.latency)
    }

    /// When [`poll`](Self::poll) or [`take`](Self::take) may have something.
    pub fn timeout(&self) -> Time {
        let report = self.report_at.unwrap_or(Time::MAX).min(self.status_at);
        report.min(self.deadline().unwrap_or(Time::MAX))
    }

    /// The round trip, as far as it is known.
    fn rtt(&self) -> Duration {
        let known = self.round_trip.unwrap_or_else(|| {
            Duration::from_micros(u64::from(self.state.round_trip.min(LONGEST)))
        });
        known.max(Duration::from_millis(1))
    }

    /// What is lacking of blocks that were sent whole, a run for each number of symbols.
    fn needs(&self) -> Vec<CastNeed> {
        let mut needs: Vec<CastNeed> = Vec::new();
        let Some(next) = self.next else { return needs };
        let first = next.max(self.state.pass);
        let end = self.edge.min(first.saturating_add(MOST_OPEN));
        for block in first..end {
            let symbols = match self.open.get(&block) {
                None => u32::from(u16::MAX),
                Some(OpenBlock { state: Filling::Whole(_), .. }) => continue,
                Some(OpenBlock { state: Filling::Open(decoder), .. }) => decoder.needed().max(1),
            };
            if let Some(last) = needs.last_mut()
                && last.symbols == symbols
                && last.first + last.blocks == block
            {
                last.blocks += 1;
            } else if needs.len() < MOST_NEEDS {
                needs.push(CastNeed { first: block, blocks: 1, symbols });
            }
        }
        needs
    }

    /// The needs that nobody has told the sender of yet.
    fn untold(&self) -> Vec<CastNeed> {
        let mut needs = self.needs();
        if self.state.members > FEW {
            needs.retain(|need| {
                let of = |planned: u32| planned >= need.symbols.min(u32::from(u16::MAX));
                let mut planned = self.state.planned.iter();
                !planned.any(|one| one.block == need.first && need.blocks == 1 && of(one.count))
            });
        }
        needs
    }

    fn plan_report(&mut self, now: Time) {
        if self.report_at.is_some() || self.state_at.is_none() || self.untold().is_empty() {
            return;
        }
        let longest = match self.state.members > FEW {
            true => self.rtt() * 4,
            false => SOON,
        };
        let wait = backoff(&mut self.stream, longest, self.state.members);
        self.report_at = Some((now + wait).max(self.hold_until));
    }

    /// A report, if one is due.
    pub fn poll(&mut self, now: Time) -> Option<CastReport> {
        self.state_at?;
        let is_due = self.report_at.is_some_and(|at| at <= now);
        let speaks = self.status_at <= now;
        if self.is_over || !(is_due || speaks) {
            return None;
        }
        let needs = self.untold();
        if is_due {
            self.report_at = None;
        }
        if needs.is_empty() && !speaks {
            return None;
        }
        let every = u64::from(self.state.status_every.min(LONGEST_EVERY));
        self.status_at = now + Duration::from_millis(every).max(self.latency / 4);
        if !needs.is_empty() {
            // The answer takes a round trip; the report, or the answer, may be lost.
            self.hold_until = now + self.rtt() + ANSWER_TAKES;
            self.report_at = Some(self.hold_until);
        }
        self.sequence += 1;
        let (newest, came) = self.newest.unwrap_or((0, now));
        Some(CastReport {
            sequence: self.sequence,
            visit: self.edge,
            loss: (self.loss.share() * 1e6) as u32,
            newest,
            held: now.since(came).as_micros().min(u64::from(u32::MAX)) as u32,
            lacking: needs.iter().map(|need| u64::from(need.symbols)).sum(),
            needs,
            ..CastReport::default()
        })
    }
}

impl GateKept for LiveReceiver {
    type Symbol = LiveSymbol;

    fn block_of(symbol: &LiveSymbol) -> u32 {
        symbol.block
    }

    fn symbol(&mut self, number: u64, symbol: &LiveSymbol, now: Time) {
        self.came(number, now);
        let left = (i64::from(symbol.at) + i64::from(symbol.age)) * 1_000_000;
        let zero = (now.as_nanos() as i64).saturating_sub(left);
        // Clocks drift apart: the least of long ago says little.
        let least = self.zero.map(|(least, at)| {
            least.saturating_add((now.since(at) / DRIFT_PART).as_nanos() as i64)
        });
        self.zero = Some((least.map_or(zero, |least| least.min(zero)), now));
        self.add(symbol);
        if self.next.is_some() && symbol.block > self.edge {
            // Whole blocks leave in their order.
            self.edge = symbol.block;
        }
        self.plan_report(now);
    }

    fn state(&mut self, number: u64, state: CastState, now: Time) {
        self.came(number, now);
        if self.state_at.is_some_and(|newest| number < newest) {
            return;
        }
        if let Some(own) = state.round_trips.iter().find(|one| one.member == self.member) {
            self.round_trip = Some(Duration::from_micros(u64::from(own.round_trip.min(LONGEST))));
        }
        if self.state_at.is_none() {
            // The first report tells the sender the round trip and the loss.
            self.status_at = now + backoff(&mut self.stream, self.latency / 4, state.members);
        }
        self.state_at = Some(number);
        // A newcomer begins with the block that leaves next.
        let next = *self.next.get_or_insert(state.visit);
        self.edge = self.edge.max(state.visit).max(next);
        if state.idle {
            self.end = Some(state.visit);
        }
        self.state = state;
        self.plan_report(now);
    }

    fn arrived(&mut self, number: u64, now: Time) {
        self.came(number, now);
    }

    fn has(&self, block: u32) -> bool {
        self.next.is_some_and(|next| block < next)
    }

    /// It takes only what receipts name, and nothing of that is wrong.
    fn reject(&mut self, _block: u32) {}

    fn distrust(&mut self) {}

    fn restore(&mut self, symbol: &LiveSymbol) {
        self.add(symbol);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_which_nothing_came_are_given_up_when_the_sender_does() {
        let mut receiver = LiveReceiver::new(Duration::from_secs(1), 1 << 20, 0, 1);
        let now = Time::ZERO + Duration::from_millis(50);
        let state = |visit, pass, idle| CastState { visit, pass, idle, ..CastState::default() };
        receiver.state(0, state(3, 3, false), now);
        let data = Bytes::from_static(b"of the third");
        let (len, at, age) = (data.len() as u32, 0, 10);
        receiver.symbol(1, &LiveSymbol { block: 3, esi: 0, len, at, age, data: data.clone() }, now);
        assert_eq!(receiver.take(now), Some(LiveEvent::Data(data)));
        // Two more have left, and all their symbols were lost; the sender repairs them yet.
        receiver.state(4, state(6, 4, true), now);
        assert_eq!(receiver.take(now), None);
        assert_eq!(receiver.needs(), [CastNeed { first: 4, blocks: 2, symbols: 0xffff }]);
        receiver.state(5, state(6, 6, true), now);
        assert_eq!(receiver.take(now), Some(LiveEvent::Gap(2)));
        assert_eq!(receiver.take(now), Some(LiveEvent::End));
        assert_eq!(receiver.take(now), None);
        assert!(receiver.is_over());
    }
}
