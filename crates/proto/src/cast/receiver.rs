mod needs;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use fontis_base::{Duration, IntervalSet, Stream, Time};
use fontis_codes::{BlockDecoder, DecodeJob, Decoded};

use super::backoff::backoff;
use super::config::{CastLaw, CastReceiverConfig};
use super::group_rate::HEADERS;
use super::loss::FadingLoss;
use super::packet::{CastNeed, CastReport, CastState, CastSymbol};
use super::shape::CastShape;
use crate::rate::tfrc::{self, TfrcArrival, TfrcConfig, TfrcReceiver};
use crate::rate::{PathArrival, PathDeparture, ReceivingRate};

/// Reports that say that all is there: one may be lost. Of many receivers none sends any; a sender
/// hears it when they leave.
const DONE_REPORTS: u32 = 3;
/// Receivers that need not be quiet because others speak.
const FEW: u32 = 32;
/// Reports on the rate in a row that the sender did not follow, as far as they count: a least rate
/// may keep it from that.
const MOST_UNHEEDED: u32 = 6;
/// The least time between two reports on a rate that the receiver finds out itself.
const REPORTS_APART: Duration = Duration::from_millis(10);
/// It says sooner what differs by more than this share, after this time.
const CHANGED: f64 = 0.1;
const ANEW: Duration = Duration::from_millis(3);
/// Whoever finds that out speaks if it allows less than this share of what is sent: what it finds
/// varies by chance.
const LESS: f64 = 0.93;
/// The longest round trip that is believed, in microseconds.
const LONGEST: u32 = 10_000_000;

/// A block that has been decoded, and waits to be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CastBlock {
    /// Its number.
    pub block: u32,
    /// Its bytes.
    pub data: Bytes,
}

/// A block of which something came.
struct OpenBlock {
    /// None while it is decoded or checked.
    decoder: Option<BlockDecoder>,
    /// The newest visit that brought a symbol.
    visit: u32,
}

/// One receiver of a cast.
pub struct CastReceiver {
    config: CastReceiverConfig,
    shape: CastShape,
    stream: Stream,
    member: u32,
    open: BTreeMap<u32, OpenBlock>,
    /// Bytes of symbols of open blocks.
    held: u64,
    done: IntervalSet,
    jobs: VecDeque<(u32, DecodeJob)>,
    loss: FadingLoss,
    state: CastState,
    /// The number of its packet.
    state_at: Option<u64>,
    /// The newest packet, and when it came.
    newest: Option<(u64, Time)>,
    newest_visit: u32,
    /// The block of the newest visit.
    visiting: Option<u32>,
    round_trip: Option<Duration>,
    /// The end of the wait before a report on what is lacking.
    report_at: Option<Time>,
    /// The newest visit when that wait began.
    report_visit: u32,
    /// When the last report left.
    reported_at: Option<Time>,
    status_at: Time,
    /// The time for which that was planned.
    status_within: Duration,
    sequence: u32,
    done_reports: u32,
    /// Loss events, if the sender's rate follows them.
    losses: TfrcReceiver,
    /// When to say what they allow.
    rate_at: Time,
    /// When to say it again at the soonest: after twice the time for each report in a row that the
    /// sender did not follow.
    rate_hold: Time,
    /// How many those are.
    unheeded: u32,
    /// What the path carries, if the sender's rate follows that.
    path: Option<Box<ReceivingRate>>,
    /// What it was said to carry.
    said: f64,
}

impl CastReceiver {
    /// A receiver of what `shape` says, whose number in the group is `member`.
    pub fn new(config: CastReceiverConfig, shape: CastShape, member: u32, seed: u64) -> Self {
        Self {
            config,
            shape,
            stream: Stream::new(seed, "cast receiver"),
            member,
            open: BTreeMap::new(),
            held: 0,
            done: IntervalSet::default(),
            jobs: VecDeque::new(),
            loss: FadingLoss::default(),
            state: CastState::default(),
            state_at: None,
            newest: None,
            newest_visit: 0,
            visiting: None,
            round_trip: None,
            report_at: None,
            report_visit: 0,
            reported_at: None,
            status_at: Time::MAX,
            status_within: Duration::ZERO,
            sequence: 0,
            done_reports: 0,
            losses: TfrcReceiver::new(TfrcConfig::default()),
            rate_at: Time::MAX,
            rate_hold: Time::ZERO,
            unheeded: 0,
            path: None,
            said: 0.0,
        }
    }

    /// Notes that a block is there already.
    pub fn hold(&mut self, block: u32) {
        if block < self.shape.blocks() {
            self.close(block);
            self.done.insert(u64::from(block), u64::from(block) + 1);
        }
    }

    /// Asks for none of the blocks that have been visited and of which nothing came: others send
    /// them.
    pub fn pass_over(&mut self) {
        let runs = self.lacking_runs().filter(|run| !self.open.contains_key(&run.first));
        let runs: Vec<_> = runs.map(|run| (run.first, run.first + run.blocks)).collect();
        for (start, end) in runs {
            self.done.insert(u64::from(start), u64::from(end));
        }
    }

    /// Bytes of symbols that leave the sender in a second, once it has begun to send any.
    pub fn pace(&self) -> Option<u64> {
        (self.state.pass > 0).then_some(self.state.rate)
    }

    /// Whether every block is there and right, or passed over.
    pub fn is_complete(&self) -> bool {
        self.done.total() == u64::from(self.shape.blocks())
    }

    /// Whether a block is there and right, or passed over.
    pub fn has(&self, block: u32) -> bool {
        self.done.find(u64::from(block)).is_some()
    }

    /// Takes packet `number` of the group, a symbol.
    pub fn symbol(&mut self, number: u64, symbol: &CastSymbol, now: Time) {
        let CastSymbol { visit, block, esi, timing, ref data } = *symbol;
        self.came(number, timing, now);
        self.visited(visit, Some(block), now);
        self.add(visit, block, esi, data);
    }

    /// Takes packet `number` of the group, a state.
    pub fn state(&mut self, number: u64, state: CastState, now: Time) {
        self.came(number, None, now);
        if self.state_at.is_some_and(|newest| number < newest) {
            return;
        }
        if let Some(own) = state.round_trips.iter().find(|one| one.member == self.member) {
            let round_trip = Duration::from_micros(u64::from(own.round_trip.min(LONGEST)));
            self.round_trip = Some(round_trip);
            if let Some(path) = &mut self.path {
                path.measured(round_trip);
            }
        }
        self.plan_status(&state, now);
        self.state_at = Some(number);
        let visit = state.visit;
        let is_same = state.rate == self.state.rate && state.limiting == self.state.limiting;
        if state.rate < self.state.rate || state.limiting == Some(self.member) {
            self.unheeded = 0;
        }
        if state.law != Some(CastLaw::Auto) {
            // What seemed to say when it left was not the sender's.
            self.path = None;
        }
        if let Some(path) = &mut self.path {
            let other = state.limiting.is_some_and(|member| member != self.member);
            path.set_receivers(state.members, other.then_some(state.friendly));
            if self.round_trip.is_none() {
                path.measured(Duration::from_micros(u64::from(state.round_trip.min(LONGEST))));
            }
        }
        let was_last = self.is_last();
        self.state = state;
        if self.is_last() && !was_last {
            // What waits for the budget of reports waits no longer.
            self.report_at = None;
        }
        let is_heard = self.state.limiting != Some(self.member) && self.allowed(now) >= 1.0;
        if self.rate_at < Time::MAX && !is_same && is_heard && self.state.members > FEW {
            // Somebody who allows less, or as much, has spoken.
            self.rate_at = Time::MAX;
        }
        if self.state.members > FEW && self.report_at.is_some() && self.due_needs().is_empty() {
            // Somebody else has spoken.
            self.report_at = None;
        }
        self.visited(visit, None, now);
    }

    /// Plans to say how it fares, at the first state and when the group has become much larger
    /// since then. The first time tells the sender the round trip and the loss.
    fn plan_status(&mut self, state: &CastState, now: Time) {
        let within = status_every(state);
        let within = if state.members <= FEW { within / 8 } else { within };
        if self.status_at == Time::MAX || within > self.status_within * 2 {
            self.status_within = within;
            self.status_at = now + backoff(&mut self.stream, within, 1);
        }
    }

    /// The round trip, as far as it is known.
    fn rtt(&self) -> Duration {
        self.round_trip.unwrap_or_else(|| self.longest_round_trip()).max(Duration::from_millis(1))
    }

    /// Takes packet `number` of the group, which says nothing about the object.
    pub fn arrived(&mut self, number: u64, now: Time) {
        self.came(number, None, now);
    }

    /// Forgets all that packets said but for what the sender has signed: some were forged.
    pub(super) fn distrust(&mut self) {
        let blocks: Vec<u32> = self.open.keys().copied().collect();
        blocks.into_iter().for_each(|block| self.close(block));
        self.jobs.clear();
        self.loss = FadingLoss::default();
        self.losses = TfrcReceiver::new(TfrcConfig::default());
        self.path = None;
        (self.newest, self.visiting) = (None, None);
        self.newest_visit = self.state.visit;
        (self.report_at, self.rate_at) = (None, Time::MAX);
    }

    /// Counts a packet.
    fn came(&mut self, number: u64, timing: Option<PathDeparture>, now: Time) {
        self.loss.came(number);
        if self.newest.is_none_or(|(newest, _)| number > newest) {
            self.newest = Some((number, now));
        }
        let bytes = u32::from(self.shape.symbol_size()) + HEADERS;
        // The first symbols tell much, and the first state may be lost.
        let may_be = self.state_at.is_none() && timing.is_some();
        if self.state.law == Some(CastLaw::Auto) || may_be {
            let round_trip = self.round_trip;
            let path = self.path.get_or_insert_with(|| {
                let mut path = Box::<ReceivingRate>::default();
                round_trip.into_iter().for_each(|time| path.measured(time));
                path
            });
            let arrival = PathArrival { number, bytes, departure: timing };
            path.came(arrival, self.loss.mean_run(), now);
        }
        if self.state.law.is_none() {
            return;
        }
        let rtt = Some(self.rtt());
        self.losses.handle(number, TfrcArrival { at: now, bytes, rtt, ..TfrcArrival::default() });
        if self.losses.due() <= now {
            // It keeps the rate at which packets come.
            let _ = self.losses.report(now);
        }
        self.plan_rate(now);
    }

    /// The rate that the path is found to carry, or that the loss events allow (RFC 4654, section
    /// 2.1), as a part of the sender's.
    fn allowed(&self, now: Time) -> f64 {
        if let Some(path) = &self.path {
            return path.allowed().map_or(f64::INFINITY, |allowed| allowed / path.pace().max(1.0));
        }
        let losses = self.losses.loss_event_rate(now);
        if losses <= 0.0 {
            return f64::INFINITY;
        }
        let rtt = self.rtt().as_secs_f64();
        let symbol = f64::from(self.shape.symbol_size());
        let packet = symbol + f64::from(HEADERS);
        let rate = self.state.rate as f64 * packet / symbol;
        tfrc::throughput(packet, rtt, 4.0 * rtt, losses) / rate.max(1.0)
    }

    /// Plans to say what the path allows: each round trip in which a packet comes if that bounds
    /// the rate. Else after a random wait that is the shorter the less it is (RFC 4654, section
    /// 2.5), if the loss events allow less than the rate, or if nobody bounds it and it grows with
    /// what arrives.
    fn plan_rate(&mut self, now: Time) {
        if self.state.limiting == Some(self.member) {
            let changed = self
                .path
                .as_ref()
                .and_then(|path| path.allowed())
                .is_some_and(|new| (new - self.said).abs() > CHANGED * self.said);
            let hold =
                if changed { self.reported_at.unwrap_or(now) + ANEW } else { self.rate_hold };
            self.rate_at = now.max(hold);
            return;
        }
        if self.rate_at < Time::MAX {
            return;
        }
        let arriving = self.losses.rate() / (self.state.rate as f64).max(1.0);
        let part = match self.allowed(now) {
            allowed if allowed < 1.0 && (allowed < LESS || self.path.is_none()) => allowed,
            _ if self.state.limiting.is_none() => arriving.min(1.0),
            _ => return,
        };
        let longest = match self.state.members {
            0..=FEW if part < 1.0 => Duration::from_millis(1),
            0..=FEW => self.rtt(),
            _ => self.longest_round_trip() * 4,
        };
        let wait = backoff(&mut self.stream, longest, self.state.members).as_secs_f64() * 0.75;
        let wait = wait + longest.as_secs_f64() * 0.25 * part;
        self.rate_at = (now + Duration::from_secs_f64(wait)).max(self.rate_hold);
    }

    fn visited(&mut self, visit: u32, block: Option<u32>, now: Time) {
        let is_newer = visit > self.newest_visit;
        if is_newer || self.visiting.is_none() || block.is_none() {
            self.newest_visit = self.newest_visit.max(visit);
            if is_newer || block.is_some() {
                self.visiting = block;
            }
            self.plan_report(now);
        }
    }

    /// Begins to wait before a report, if something may be lacking.
    fn plan_report(&mut self, now: Time) {
        if self.report_at.is_some() || self.state_at.is_none() || self.is_complete() {
            return;
        }
        let is_quiet = match self.state.members > FEW {
            true => self.uncovered().is_empty(),
            false => self.lacking_runs().next().is_none(),
        };
        if is_quiet {
            return;
        }
        let every = report_every(&self.state);
        let round_trip = self.longest_round_trip();
        let longest = match self.state.members {
            // Nobody has to be quiet for others, and time counts when nothing new is sent.
            0..=FEW if self.is_last() => Duration::from_millis(5),
            0..=FEW => every,
            _ if self.is_last() => round_trip * 4 + Duration::from_millis(40),
            _ => every.max(round_trip * 4),
        };
        let wait = backoff(&mut self.stream, longest, self.state.members);
        let held = self.reported_at.map_or(now, |at| at + self.between_reports());
        self.report_at = Some((now + wait).max(held));
        self.report_visit = self.newest_visit;
    }

    /// The least time between two reports on what is lacking: the answer takes a round trip to be
    /// seen. Before the end the budget of reports asks for more.
    fn between_reports(&self) -> Duration {
        let every = report_every(&self.state);
        let round_trip = self.rtt().max(self.longest_round_trip());
        let answered = round_trip + Duration::from_millis(20);
        match (self.is_last(), self.state.members) {
            (true, 0..=FEW) => answered,
            (true, _) => every.min(self.planned_time()).max(answered),
            (false, _) => every.max(round_trip),
        }
    }

    /// The round trip that covers most receivers, as the sender says.
    fn longest_round_trip(&self) -> Duration {
        Duration::from_micros(u64::from(self.state.round_trip.min(LONGEST)))
    }

    /// Whether every block has been visited: only repairs are sent.
    fn is_last(&self) -> bool {
        self.state.pass >= self.shape.blocks()
    }

    pub(super) fn add(&mut self, visit: u32, block: u32, esi: u32, data: &Bytes) {
        if block >= self.shape.blocks() || self.has(block) {
            return;
        }
        if !self.open.contains_key(&block) {
            let Some(shape) = self.shape.block(block) else { return };
            let in_head = block < self.shape.head_blocks();
            if self.held + u64::from(shape.len()) > self.config.memory && !in_head {
                return;
            }
            self.held += u64::from(shape.len());
            let decoder = Some(BlockDecoder::new(shape));
            self.open.insert(block, OpenBlock { decoder, visit });
        }
        let Some(open) = self.open.get_mut(&block) else { return };
        open.visit = open.visit.max(visit);
        // Nothing is added while it is decoded.
        let Some(decoder) = &mut open.decoder else { return };
        // A symbol of another size, or twice the same, is of no use.
        let _ = decoder.add(esi, data);
        if decoder.needed() == 0
            && let Some(decoder) = open.decoder.take()
        {
            self.jobs.push_back((block, decoder.decode_job()));
        }
    }

    /// A block to decode, on any thread. The outcome goes to [`decoded`](Self::decoded).
    pub fn take_job(&mut self) -> Option<(u32, DecodeJob)> {
        self.jobs.pop_front()
    }

    /// Takes the outcome of a job; a block is then to be checked, and [accepted](Self::accept) or
    /// [rejected](Self::reject).
    pub fn decoded(&mut self, block: u32, decoded: Decoded) -> Option<CastBlock> {
        match decoded {
            Decoded::Block(data) => Some(CastBlock { block, data }),
            Decoded::Failed(decoder) => {
                if let Some(open) = self.open.get_mut(&block) {
                    open.decoder = Some(decoder);
                }
                None
            }
        }
    }

    /// A decoded block is right.
    pub fn accept(&mut self, block: u32) {
        self.hold(block);
    }

    /// A symbol is there from before.
    pub fn keep(&mut self, block: u32, esi: u32, symbol: &Bytes) {
        self.add(0, block, esi, symbol);
    }

    /// A decoded block is wrong: somebody sent symbols that are not the sender's. It begins anew.
    pub fn reject(&mut self, block: u32) {
        self.close(block);
    }

    fn close(&mut self, block: u32) {
        if self.open.remove(&block).is_some() {
            self.held -= u64::from(self.shape.len(block));
        }
    }

    const fn says_done(&self) -> bool {
        self.done_reports < DONE_REPORTS && self.state.members <= FEW
    }

    /// When [`poll`](Self::poll) may have a report.
    pub fn timeout(&self) -> Time {
        if self.is_complete() {
            return if self.says_done() { self.status_at } else { Time::MAX };
        }
        self.report_at.unwrap_or(Time::MAX).min(self.status_at).min(self.rate_at)
    }

    /// A report, if one is due.
    pub fn poll(&mut self, now: Time) -> Option<CastReport> {
        self.state_at?;
        if self.is_complete() {
            let is_due = self.done_reports == 0 || self.status_at <= now;
            if !is_due || !self.says_done() {
                return None;
            }
            self.done_reports += 1;
            return Some(self.report(now, Vec::new()));
        }
        let is_due = self.report_at.is_some_and(|at| at <= now);
        let speaks = self.status_at <= now || self.rate_at <= now;
        if !is_due && !speaks {
            return None;
        }
        let needs = if is_due { self.due_needs() } else { self.uncovered() };
        if is_due {
            self.report_at = None;
            self.plan_report(now);
        }
        if needs.is_empty() && !speaks {
            return None;
        }
        Some(self.report(now, needs))
    }

    fn report(&mut self, now: Time, needs: Vec<CastNeed>) -> CastReport {
        self.rate_hold = match self.state.limiting == Some(self.member) {
            true if self.path.is_some() => now + (self.rtt() / 2).max(REPORTS_APART),
            true => now + self.rtt(),
            false => now + (self.rtt() + Duration::from_millis(20)) * (1 << self.unheeded),
        };
        if self.allowed(now) >= 1.0 {
            self.unheeded = 0;
        } else if self.rate_at <= now {
            self.unheeded = (self.unheeded + 1).min(MOST_UNHEEDED);
        }
        self.rate_at = Time::MAX;
        self.reported_at = Some(now);
        if !needs.is_empty() {
            // It may be lost.
            self.report_at = Some(now + self.between_reports() * 2);
        }
        let jitter = 0.5 + self.stream.unit();
        self.status_within = status_every(&self.state);
        let status = self.status_within.as_secs_f64() * jitter;
        self.status_at = now + Duration::from_secs_f64(status.max(0.05));
        if self.is_complete() {
            let round_trip = self.rtt().max(self.longest_round_trip());
            self.status_at = now + round_trip * 2 + Duration::from_millis(100);
        }
        self.sequence += 1;
        self.said = self.path.as_ref().and_then(|path| path.allowed()).unwrap_or(0.0);
        let (newest, came) = self.newest.unwrap_or((0, now));
        CastReport {
            sequence: self.sequence,
            visit: self.newest_visit,
            loss: (self.loss.share() * 1e6) as u32,
            loss_events: (self.losses.loss_event_rate(now) * 1e6).min(1e6) as u32,
            received: self.losses.rate() as u64,
            allowed: self.said as u64,
            friendly: self.path.as_ref().is_some_and(|path| path.is_friendly()),
            newest,
            held: now.since(came).as_micros().min(u64::from(u32::MAX)) as u32,
            is_done: self.is_complete(),
            lacking: self.lacking(),
            needs,
        }
    }

    /// Symbols that are lacking of all blocks.
    pub fn lacking(&self) -> u64 {
        let whole: u64 = self.shape.all_symbols();
        let done = self.done.descending();
        let done = done.map(|(start, end)| self.shape.symbols_of(start as u32, end as u32));
        let done: u64 = done.sum();
        let open = self.open.iter().map(|(block, open)| {
            let of = u64::from(self.shape.source_symbols(*block));
            of.saturating_sub(open.decoder.as_ref().map_or(0, |one| u64::from(one.needed())))
        });
        whole.saturating_sub(done).saturating_sub(open.sum())
    }
}

/// The time in which the budget has room for a report of a receiver on what it lacks.
fn report_every(state: &CastState) -> Duration {
    Duration::from_millis(u64::from(state.report_every.min(60_000)))
}

/// The same for one on how it fares.
fn status_every(state: &CastState) -> Duration {
    Duration::from_millis(u64::from(state.status_every.min(3_600_000)))
}
