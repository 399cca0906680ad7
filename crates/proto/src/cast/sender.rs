use fontis_base::{Duration, Rate, Serializer, Time};

use super::agenda::{Agenda, Turn, Whose};
use super::config::{CastConfig, CastLaw};
use super::departures::Departures;
use super::group::Group;
use super::group_rate::{GroupRate, TRAIN};
use super::loss::symbols_to_send;
use super::member::CastMember;
use super::packet::{CastReport, CastState};
use super::shape::CastShape;
use crate::rate::PathDeparture;

/// The next packet for the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CastTransmit {
    /// Symbol `esi` of `block`, in this visit.
    Symbol {
        /// The visit.
        visit: u32,
        /// The block.
        block: u32,
        /// The symbol.
        esi: u32,
        /// When it leaves, if receivers are to find out what their paths carry.
        timing: Option<PathDeparture>,
    },
    /// The sender's state.
    State(CastState),
}

/// Repairs that a state lists.
const MOST_PLANNED: usize = 160;
/// Blocks of one report whose needs are taken; later reports tell of the others.
const MOST_NEEDS: u32 = 4096;
/// The whole head, this often, may be sent for one receiver before first visits.
const HEAD_TIMES: u64 = 2;
/// States after one another when nothing is left: a state may be lost.
const IDLE_STATES: u32 = 5;
/// The time between states while nothing happens.
const IDLE_EVERY: Duration = Duration::from_millis(500);
/// What is not sent in time is made up for, if it is at most so late.
const CATCH_UP: Duration = Duration::from_millis(10);
/// The longest visit of a block for stragglers only, and the fewest symbols of it.
const STRAGGLERS_TURN: Duration = Duration::from_millis(20);
const LEAST_TURN: u64 = 64;
/// A visit's number has 31 bits.
const MOST_VISITS: u32 = 1 << 31;
/// The time between two trains.
const TRAIN_EVERY: Duration = Duration::from_secs(10);
/// The least time between two states.
const STATE_LEAST: Duration = Duration::from_millis(20);

/// The sender of a cast.
#[derive(Debug)]
pub struct CastSender {
    config: CastConfig,
    shape: CastShape,
    agenda: Agenda,
    group: Group,
    /// The next visit's number.
    visits: u32,
    departures: Departures,
    /// The visit that goes on, and how many of its symbols have left.
    current: Option<(Turn, u32)>,
    pacer: Serializer,
    rate: GroupRate,
    state_at: Time,
    last_state: Option<Time>,
    idle_states: u32,
    round_trip: Duration,
    sent: u64,
    has_started: bool,
    /// Symbols that leave back to back, and when the next do so.
    train: u32,
    train_at: Time,
}

impl CastSender {
    /// A sender of what `shape` says; no symbol leaves before [`start`](Self::start), and nothing
    /// while nobody is there.
    pub fn new(config: CastConfig, shape: CastShape) -> Self {
        let rate = GroupRate::new(config.rate, shape.symbol_size(), config.first_round_trip);
        Self {
            agenda: Agenda::new(shape),
            group: Group::new(config.first_round_trip, config.report_share, shape.all_symbols()),
            visits: 0,
            departures: Departures::default(),
            current: None,
            pacer: Serializer::new(rate.rate()),
            rate,
            state_at: Time::ZERO,
            last_state: None,
            idle_states: 0,
            round_trip: config.first_round_trip,
            sent: 0,
            has_started: false,
            train: 0,
            train_at: Time::ZERO,
            config,
            shape,
        }
    }

    /// A receiver joins, at any time. What has been sent before will be sent again if it says that
    /// it lacks it.
    pub fn join(&mut self, member: u32, now: Time) {
        if !self.is_sending() {
            self.start_pacing(now);
        }
        self.group.join(member);
        self.speak_soon(now);
    }

    /// Begins to send: everybody who is to be there from the beginning is there.
    pub fn start(&mut self, now: Time) {
        if !self.has_started {
            self.has_started = true;
            self.start_pacing(now);
            self.speak_soon(now);
        }
    }

    /// A receiver is gone.
    pub fn leave(&mut self, member: u32) {
        self.group.leave(member);
        self.rate.forget(member);
        if self.group.is_done() {
            self.agenda.forget_repairs();
        }
    }

    /// The receivers.
    pub fn members(&self) -> impl Iterator<Item = (u32, &CastMember)> {
        self.group.members()
    }

    /// Symbols that have left.
    pub const fn symbols_sent(&self) -> u64 {
        self.sent
    }

    /// Whether nothing is left to send, as far as is known.
    pub fn is_idle(&self) -> bool {
        self.current.is_none() && self.agenda.is_empty()
    }

    /// The rate at which symbols leave.
    pub const fn rate(&self) -> Rate {
        self.pacer.rate()
    }

    /// The receiver that bounds the rate, if one does.
    pub fn limiting(&self) -> Option<u32> {
        self.rate.limiting()
    }

    /// Takes a report of a receiver that has joined; others are ignored.
    pub fn report(&mut self, id: u32, report: &CastReport, now: Time) {
        let left = self.departures.of(report.newest);
        let Some(member) = self.group.heard(id, report, left, now) else { return };
        let (loss, caused_soon) = (member.loss, member.caused_soon);
        let round_trip = member.round_trip.unwrap_or(self.config.first_round_trip);
        if report.is_done {
            self.rate.forget(id);
        } else {
            self.rate.heard(id, report, round_trip, now);
            self.pacer.set_rate(self.rate.rate());
        }
        self.round_trip = self.group.longest_round_trip();
        if report.is_done {
            return;
        }
        let was_idle = self.is_idle();
        let usual = self.group.usual_loss();
        // Whoever says more than a path explains gets its part when the others have theirs.
        let most_soon = self.agenda.most_soon(usual);
        let most_of_head = HEAD_TIMES * self.shape.symbols_of(0, self.shape.head_blocks());
        let (mut left, mut soon, mut later) = (MOST_NEEDS, 0, 0);
        for need in &report.needs {
            let blocks = need.blocks.min(left);
            left -= blocks;
            for block in need.first..need.first.saturating_add(blocks).min(self.shape.blocks()) {
                // Without the head a receiver cannot store anything.
                let in_head = block < self.shape.head_blocks();
                let waits = caused_soon + soon > most_soon + if in_head { most_of_head } else { 0 };
                let whose = Whose { loss, usual, waits };
                let more = self.agenda.need(block, need.symbols, report.visit, whose);
                soon += u64::from(more.soon);
                later += u64::from(more.later);
            }
        }
        self.group.blame(id, soon + later, soon);
        if was_idle && !self.is_idle() {
            self.start_pacing(now);
            self.speak_soon(now);
        } else if self.group.is_large() {
            // Others who are about to say the same hear that it is known.
            self.speak_soon(now);
        }
    }

    /// When [`poll`](Self::poll) has something to send; `Time::MAX` if never.
    pub fn timeout(&self) -> Time {
        let state = if self.group.is_empty() { Time::MAX } else { self.state_at };
        match self.is_sending() {
            true if self.train > 0 => Time::ZERO,
            true => state.min(self.pacer.free_at()),
            false => state,
        }
    }

    /// The number of the next packet, and the packet, if one is due.
    pub fn poll(&mut self, now: Time) -> Option<(u64, CastTransmit)> {
        let transmit = self.transmit(now)?;
        Some((self.departures.note(now), transmit))
    }

    /// The number of a packet that the driver adds.
    pub fn number(&mut self, now: Time) -> u64 {
        self.departures.note(now)
    }

    fn transmit(&mut self, now: Time) -> Option<CastTransmit> {
        if self.group.is_empty() {
            return None;
        }
        if self.is_sending() {
            if self.rate.law().is_some() {
                self.rate.pass(now, self.round_trip, || self.group.open());
                self.pacer.set_rate(self.rate.rate());
            }
            if self.current.is_none() {
                self.begin_visit();
            }
        }
        if self.state_at <= now {
            return Some(CastTransmit::State(self.state(now)));
        }
        if self.pacer.free_at() > now && self.train == 0 {
            return None;
        }
        let (turn, done) = self.current?;
        if self.train_at <= now && self.rate.law() == Some(CastLaw::Auto) {
            (self.train, self.train_at) = (TRAIN, now + TRAIN_EVERY);
        }
        let esi = self.agenda.symbol(turn, done);
        let visit = self.visits - 1;
        if self.train > 0 {
            self.train -= 1;
        } else {
            // A driver that wakes up late makes up for it, within bounds.
            let late = Time::from_nanos(now.as_nanos().saturating_sub(CATCH_UP.as_nanos()));
            self.pacer.send(self.pacer.free_at().max(late), u64::from(self.shape.symbol_size()));
        }
        self.sent += 1;
        self.current = (done + 1 < turn.count).then_some((turn, done + 1));
        if self.current.is_none() && self.agenda.is_empty() {
            // Who lacks something learns at once that nothing else comes.
            self.idle_states = 0;
            self.state_at = now;
        }
        Some(CastTransmit::Symbol { visit, block: turn.block, esi, timing: self.rate.timing(now) })
    }

    /// Whether symbols are to leave: to anybody who is not done.
    fn is_sending(&self) -> bool {
        // Visits have numbers for years of repairs; after the last one nothing more is sent.
        !self.group.is_done()
            && self.visits < MOST_VISITS
            && self.has_started
            && (self.current.is_some() || !self.agenda.is_empty())
    }

    fn begin_visit(&mut self) {
        let loss = self.group.usual_loss();
        // Somewhat fewer than suffice on average: what lacks can follow, what is too much was sent
        // in vain.
        let first = |k: u32| symbols_to_send(k, loss, -1.0).max(k);
        let most = self.rate().bytes_in(STRAGGLERS_TURN) / u64::from(self.shape.symbol_size());
        let most = most.clamp(LEAST_TURN, u64::from(u32::MAX)) as u32;
        if let Some(turn) = self.agenda.next(self.visits, most, first) {
            self.visits += 1;
            self.current = Some((turn, 0));
        }
    }

    /// What did not leave while nothing was to be sent is not made up for.
    fn start_pacing(&mut self, now: Time) {
        let mut pacer = Serializer::new(self.pacer.rate());
        pacer.send(now, 0);
        self.pacer = pacer;
        self.rate.resume(now);
    }

    fn speak_soon(&mut self, now: Time) {
        let least = self.last_state.map_or(now, |last| last + STATE_LEAST);
        self.state_at = self.state_at.min(least.max(now));
    }

    fn state(&mut self, now: Time) -> CastState {
        let is_idle = !self.is_sending();
        self.idle_states = if is_idle { self.idle_states + 1 } else { 0 };
        self.last_state = Some(now);
        let timing = self.group.timing(self.rate());
        let is_quiet = timing.members == 0 && self.idle_states > IDLE_STATES;
        let every = if is_quiet { IDLE_EVERY } else { self.config.state_every };
        self.state_at = now + every;
        CastState {
            visit: self.visits - u32::from(self.current.is_some()),
            pass: self.agenda.pass(),
            idle: is_idle,
            rate: self.rate().as_bps() / 8,
            members: timing.members,
            round_trip: timing.round_trip,
            report_every: timing.report_every,
            status_every: timing.status_every,
            law: self.rate.law(),
            limiting: self.rate.limiting(),
            friendly: self.rate.is_friendly(),
            soon: self.agenda.repairs() as u32,
            planned: self.agenda.planned(MOST_PLANNED),
            round_trips: self.group.take_round_trips(),
        }
    }
}
