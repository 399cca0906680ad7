use std::collections::BTreeMap;

use fontis_base::{Duration, Rate, Serializer, Time};
use fontis_codes::BlockShape;

use super::{LIVE_SYMBOL, live_block_time, live_shape};
use crate::cast::agenda::most_caused;
use crate::cast::departures::Departures;
use crate::cast::group::Group;
use crate::cast::loss::symbols_to_send;
use crate::cast::member::CastMember;
use crate::cast::overhead::symbols_for;
use crate::cast::packet::{CastReport, CastState, Planned};

/// The choices of a sender of a stream.
#[derive(Clone, Copy, Debug)]
pub struct LiveConfig {
    /// Bytes of symbols that leave in a second at most, as a rate.
    pub rate: Rate,
    /// The time from the reading of a byte until it is given up, without that of the path.
    pub latency: Duration,
    /// The share of what is sent that all reports together may be.
    pub report_share: f64,
    /// The round trip that is assumed until one is measured.
    pub first_round_trip: Duration,
}

impl LiveConfig {
    /// The usual choices.
    pub const fn new(rate: Rate, latency: Duration) -> Self {
        let first_round_trip = Duration::from_millis(100);
        Self { rate, latency, report_share: 0.0005, first_round_trip }
    }
}

/// The next packet for the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveTransmit {
    /// Symbol `esi` of `block`, whose first byte was read at `at` milliseconds, `age` milliseconds
    /// ago.
    Symbol {
        /// The block.
        block: u32,
        /// The symbol.
        esi: u32,
        /// Bytes of the block.
        len: u32,
        /// When its first byte was read.
        at: u32,
        /// The milliseconds since then.
        age: u16,
    },
    /// The sender's state: `visit` is the first block that has not been sent whole, `pass` the
    /// first that is still repaired, and `idle` says that no block follows.
    State(CastState),
}

/// A block that is not yet given up.
#[derive(Debug)]
struct LiveBlock {
    shape: BlockShape,
    at: Time,
    /// The numbers of the packets that its symbols left in.
    sent: Vec<u64>,
    /// Symbols that are to leave.
    due: u32,
    /// Symbols of its first visit.
    first: u32,
}

/// The probability that a block is lacking something when no repair can come in time.
const FAILURE: f64 = 1e-5;
/// The loss that is assumed until somebody has said his.
const FIRST_LOSS: f64 = 0.1;
/// The worst loss that symbols are added for without being asked for.
const MOST_LOSS: f64 = 0.3;
/// What a report takes beyond the round trip: the receiver's wait, and a receipt.
const REPORT_TAKES: Duration = Duration::from_millis(25);
/// Round trips of repairs that must fit into the latency, or everything is added beforehand.
const ROUNDS: u64 = 3;
/// Standard deviations of repairs beyond the mean, and if they are the last that come in time.
const MARGIN: f64 = 1.5;
const LAST_MARGIN: f64 = 4.0;
const LAST_EXTRA: u32 = 2;
/// Symbols of a block at most, in multiples of k and beyond.
const MOST_TIMES: u32 = 3;
const MOST_EXTRA: u32 = 64;
/// Blocks of one report whose needs are taken.
const MOST_NEEDS: u32 = 256;
/// Repairs that a state lists.
const MOST_PLANNED: usize = 64;
const STATE_EVERY: Duration = Duration::from_millis(100);
const STATE_LEAST: Duration = Duration::from_millis(10);
/// The time between two states that say that it is over.
const END_EVERY: Duration = Duration::from_millis(40);
/// How long that is said after the last block was given up.
const FAREWELL: Duration = Duration::from_secs(1);
/// What is not sent in time is made up for, if it is at most so late.
const CATCH_UP: Duration = Duration::from_millis(10);

/// Symbols of a block that leave at most.
fn most_of(shape: BlockShape) -> u32 {
    (shape.source_symbols() * MOST_TIMES + MOST_EXTRA).min(shape.esi_limit())
}

/// The sender of a stream.
#[derive(Debug)]
pub struct LiveSender {
    config: LiveConfig,
    group: Group,
    departures: Departures,
    pacer: Serializer,
    blocks: BTreeMap<u32, LiveBlock>,
    /// Blocks that were closed.
    closed: u32,
    /// Source symbols of them.
    needed: u64,
    sent: u64,
    state_at: Time,
    last_state: Option<Time>,
    /// When the stream ended.
    ended: Option<Time>,
}

impl LiveSender {
    /// One that has nothing to send yet.
    pub fn new(config: LiveConfig) -> Self {
        Self {
            group: Group::new(config.first_round_trip, config.report_share, 0),
            departures: Departures::default(),
            pacer: Serializer::new(config.rate),
            blocks: BTreeMap::new(),
            closed: 0,
            needed: 0,
            sent: 0,
            state_at: Time::MAX,
            last_state: None,
            ended: None,
            config,
        }
    }

    /// A receiver joins. It begins with the next block.
    pub fn join(&mut self, member: u32, now: Time) {
        self.group.join(member);
        self.speak_soon(now);
    }

    /// A receiver is gone.
    pub fn leave(&mut self, member: u32) {
        self.group.leave(member);
    }

    /// The receivers.
    pub fn members(&self) -> impl Iterator<Item = (u32, &CastMember)> {
        self.group.members()
    }

    /// Symbols that have left.
    pub const fn symbols_sent(&self) -> u64 {
        self.sent
    }

    /// Source symbols of all blocks.
    pub const fn needed(&self) -> u64 {
        self.needed
    }

    /// The rate at which symbols leave at most.
    pub const fn rate(&self) -> Rate {
        self.config.rate
    }

    /// Whether no symbol is to leave at present.
    pub fn is_idle(&self) -> bool {
        self.next_due().is_none()
    }

    /// Whether the stream has ended, and nobody waits for anything any more.
    pub fn is_over(&self, now: Time) -> bool {
        self.ended
            .is_some_and(|at| self.group.is_empty() || now >= at + self.config.latency + FAREWELL)
    }

    /// Bytes of a block, after which it is closed though its time is not over.
    pub fn block_bytes(&self) -> u32 {
        let bytes = self.config.rate.bytes_in(live_block_time(self.config.latency));
        bytes.clamp(u64::from(LIVE_SYMBOL), u64::from(super::LIVE_BLOCK)) as u32
    }

    /// Whether a block can be taken: what waits leaves within the time of one.
    pub fn has_room(&self) -> bool {
        let due: u64 = self.blocks.values().map(|block| u64::from(block.due)).sum();
        let most = self.config.rate.bytes_in(live_block_time(self.config.latency));
        due * u64::from(LIVE_SYMBOL) <= most
    }

    /// Takes a block of `len` bytes, whose first was read at `at`. Returns its number; none if
    /// there are no such blocks, or no more numbers.
    pub fn push(&mut self, len: u32, at: Time) -> Option<u32> {
        let shape = live_shape(len)?;
        let block = self.closed;
        self.closed = self.closed.checked_add(1)?;
        self.needed += u64::from(shape.source_symbols());
        if self.group.is_empty() {
            // Nobody hears it.
            return Some(block);
        }
        let first = self.first_visit(shape);
        self.blocks.insert(block, LiveBlock { shape, at, sent: Vec::new(), due: first, first });
        Some(block)
    }

    /// No block follows.
    pub fn end(&mut self, now: Time) {
        self.ended = Some(now);
        self.speak_soon(now);
    }

    /// Blocks below it are given up.
    pub fn first_kept(&self) -> u32 {
        self.blocks.first_key_value().map_or(self.closed, |(block, _)| *block)
    }

    /// Symbols of a block before anybody reports. If repairs come in time, as many as suffice on
    /// average; else as many as suffice where most is lost.
    fn first_visit(&self, shape: BlockShape) -> u32 {
        let k = shape.source_symbols();
        let left = self.config.latency - live_block_time(self.config.latency);
        let count = match left >= self.round() * ROUNDS {
            true => symbols_to_send(k, self.group.usual_loss(), 0.0).max(k),
            false => {
                let worst = self.group.worst_loss().unwrap_or(FIRST_LOSS).min(MOST_LOSS);
                symbols_for(shape, worst, FAILURE)
            }
        };
        count.min(most_of(shape))
    }

    /// The time of a repair, from its cause to its coming.
    fn round(&self) -> Duration {
        self.group.longest_round_trip() + REPORT_TAKES
    }

    /// Takes a report of a receiver that has joined; others are ignored.
    pub fn report(&mut self, id: u32, report: &CastReport, now: Time) {
        let left = self.departures.of(report.newest);
        let Some(member) = self.group.heard(id, report, left, now) else { return };
        let (loss, caused) = (member.loss, member.caused);
        let usual = self.group.usual_loss();
        // Whoever asks for more than a path explains delays the others: it has gaps instead.
        let most = most_caused(self.needed, usual);
        let (round, was_idle) = (self.round(), self.is_idle());
        let (mut names, mut more) = (MOST_NEEDS, 0);
        for need in &report.needs {
            let end = need.first.saturating_add(need.blocks.min(names));
            names -= need.blocks.min(names);
            for (_, block) in self.blocks.range_mut(need.first..end.max(need.first)) {
                if caused + more > most {
                    break;
                }
                let (k, most_of_block) = (block.shape.source_symbols(), most_of(block.shape));
                let is_last = now + round * 2 > block.at + self.config.latency;
                let (margin, extra) = if is_last { (LAST_MARGIN, LAST_EXTRA) } else { (MARGIN, 0) };
                let lacking = need.symbols.min(k + LAST_EXTRA);
                let count = symbols_to_send(lacking, loss, margin) + extra;
                // What has left since, and what is to leave, comes without being asked for.
                let known = block.sent.partition_point(|number| *number <= report.newest);
                let coming = (block.sent.len() - known) as u32 + block.due;
                let count = count.saturating_sub(coming);
                let room = most_of_block.saturating_sub(block.sent.len() as u32 + block.due);
                let count = count.min(room);
                block.due += count;
                more += u64::from(count);
            }
        }
        self.group.blame(id, more, more);
        if was_idle && more > 0 {
            self.resume(now);
        }
        if more > 0 && self.group.is_large() {
            // Others who are about to say the same hear that it is known.
            self.speak_soon(now);
        }
    }

    /// When [`poll`](Self::poll) has something to send; `Time::MAX` if never.
    pub fn timeout(&self) -> Time {
        if self.group.is_empty() {
            return Time::MAX;
        }
        match self.is_idle() {
            true => self.state_at,
            false => self.state_at.min(self.pacer.free_at()),
        }
    }

    /// The number of the next packet, and the packet, if one is due.
    pub fn poll(&mut self, now: Time) -> Option<(u64, LiveTransmit)> {
        self.give_up(now);
        let transmit = self.transmit(now)?;
        let number = self.departures.note(now);
        if let LiveTransmit::Symbol { block, .. } = transmit
            && let Some(block) = self.blocks.get_mut(&block)
        {
            block.sent.push(number);
        }
        Some((number, transmit))
    }

    /// The number of a packet that the driver adds.
    pub fn number(&mut self, now: Time) -> u64 {
        self.departures.note(now)
    }

    /// Blocks whose latency is over are of use to nobody: what leaves now comes too late.
    fn give_up(&mut self, now: Time) {
        let latency = self.config.latency;
        while self.blocks.first_key_value().is_some_and(|(_, block)| now >= block.at + latency) {
            self.blocks.pop_first();
        }
    }

    fn next_due(&self) -> Option<u32> {
        let mut due = self.blocks.iter().filter(|(_, block)| block.due > 0);
        due.next().map(|(block, _)| *block)
    }

    fn transmit(&mut self, now: Time) -> Option<LiveTransmit> {
        if self.group.is_empty() {
            return None;
        }
        if self.state_at <= now {
            return Some(LiveTransmit::State(self.state(now)));
        }
        let number = self.next_due()?;
        if self.pacer.free_at() > now {
            return None;
        }
        let late = Time::from_nanos(now.as_nanos().saturating_sub(CATCH_UP.as_nanos()));
        let block = self.blocks.get_mut(&number)?;
        let esi = block.sent.len() as u32;
        self.pacer.send(
            self.pacer.free_at().max(late),
            u64::from(block.shape.symbol_size()).min(u64::from(block.shape.len())),
        );
        block.due -= 1;
        self.sent += 1;
        let age = now.since(block.at).as_millis().min(u64::from(u16::MAX)) as u16;
        let at = block.at.as_nanos() / 1_000_000;
        let transmit =
            LiveTransmit::Symbol { block: number, esi, len: block.shape.len(), at: at as u32, age };
        if self.is_idle() {
            // Who lacks something learns at once that nothing else comes.
            self.speak_soon(now);
        }
        Some(transmit)
    }

    fn resume(&mut self, now: Time) {
        let mut pacer = Serializer::new(self.config.rate);
        pacer.send(now, 0);
        self.pacer = pacer;
    }

    fn speak_soon(&mut self, now: Time) {
        let least = self.last_state.map_or(now, |last| last + STATE_LEAST);
        self.state_at = self.state_at.min(least.max(now));
    }

    /// The first block that has not been sent whole.
    fn edge(&self) -> u32 {
        let is_open = |block: &&LiveBlock| (block.sent.len() as u32) < block.first;
        let mut open = self.blocks.iter().filter(|(_, block)| is_open(block));
        open.next().map_or(self.closed, |(block, _)| *block)
    }

    fn state(&mut self, now: Time) -> CastState {
        self.last_state = Some(now);
        let is_end = self.ended.is_some();
        self.state_at = now + if is_end { END_EVERY } else { STATE_EVERY };
        let repairs = self
            .blocks
            .iter()
            .filter(|(_, block)| block.due > 0 && block.sent.len() as u32 >= block.first);
        let planned = repairs.map(|(block, of)| Planned { block: *block, count: of.due });
        let planned: Vec<Planned> = planned.take(MOST_PLANNED).collect();
        let timing = self.group.timing(self.config.rate);
        CastState {
            visit: self.edge(),
            pass: self.first_kept(),
            idle: is_end && self.edge() == self.closed,
            law: None,
            rate: self.config.rate.as_bps() / 8,
            members: timing.members,
            round_trip: timing.round_trip,
            report_every: timing.report_every,
            status_every: timing.status_every,
            limiting: None,
            friendly: false,
            soon: planned.len() as u32,
            planned,
            round_trips: self.group.take_round_trips(),
        }
    }
}
