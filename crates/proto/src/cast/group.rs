use std::collections::BTreeMap;

use fontis_base::{Duration, Rate, Time};

use super::member::CastMember;
use super::packet::{CastReport, MemberRoundTrip};

/// Bytes of a report with its headers, for the budget of all.
const REPORT: u64 = 120;
/// Receivers that are expected to speak about one need when many could.
const SPEAKERS: u64 = 32;
const MOST_ROUND_TRIPS: usize = 16;
/// The least time between two reports of a receiver; none that is sound comes sooner.
const REPORTS_APART: Duration = Duration::from_millis(2);
/// The longest round trip that all wait for, in medians.
const FAR: u64 = 4;

/// The receivers of a cast.
#[derive(Debug)]
pub(super) struct Group {
    members: BTreeMap<u32, CastMember>,
    first_round_trip: Duration,
    report_share: f64,
    /// Symbols of all that is cast; 0 of a stream, which has no end.
    all: u64,
}

/// How receivers are to speak, as a state says it: milliseconds, and microseconds of the round
/// trip.
pub(super) struct Timing {
    pub(super) members: u32,
    pub(super) round_trip: u32,
    pub(super) report_every: u32,
    pub(super) status_every: u32,
}

impl Group {
    /// One without members, which gets so many symbols in `all`. Until a round trip is measured it
    /// is the first; reports may be this share of what is sent.
    pub(super) const fn new(first_round_trip: Duration, report_share: f64, all: u64) -> Self {
        Self { members: BTreeMap::new(), first_round_trip, report_share, all }
    }

    pub(super) fn join(&mut self, member: u32) {
        self.members.entry(member).or_insert_with(|| CastMember::new(self.all));
    }

    pub(super) fn leave(&mut self, member: u32) {
        self.members.remove(&member);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether receivers keep quiet if others have said what they would.
    pub(super) fn is_large(&self) -> bool {
        self.members.len() as u64 > SPEAKERS
    }

    /// Whether nobody lacks anything.
    pub(super) fn is_done(&self) -> bool {
        self.members.values().all(|member| member.is_done)
    }

    /// Those who lack something.
    pub(super) fn open(&self) -> usize {
        self.members.values().filter(|member| !member.is_done).count()
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (u32, &CastMember)> {
        self.members.iter().map(|(id, member)| (*id, member))
    }

    /// Takes what a report of a member says about itself; none if it says nothing new. Its newest
    /// packet had `left` then.
    pub(super) fn heard(
        &mut self,
        id: u32,
        report: &CastReport,
        left: Option<Time>,
        now: Time,
    ) -> Option<&CastMember> {
        let member = self.members.get_mut(&id)?;
        // An old one that comes late, or twice, would ask for what has been sent.
        if member.sequence.is_some_and(|newest| report.sequence <= newest) {
            return None;
        }
        // Reading one costs work for each block that it names.
        if member.heard.is_some_and(|heard| now < heard + REPORTS_APART) && !report.is_done {
            return None;
        }
        member.sequence = Some(report.sequence);
        member.heard = Some(now);
        member.loss = f64::from(report.loss.min(950_000)) / 1e6;
        member.lacking = report.lacking.min(self.all.saturating_mul(2));
        member.is_done = report.is_done;
        if let Some(left) = left {
            let held = Duration::from_micros(u64::from(report.held));
            member.measured(now.since(left + held));
        }
        Some(member)
    }

    /// Notes that a member has caused so many symbols, so many of them before first visits.
    pub(super) fn blame(&mut self, id: u32, caused: u64, soon: u64) {
        if let Some(member) = self.members.get_mut(&id) {
            member.caused += caused;
            member.caused_soon += soon;
        }
    }

    /// The losses of those who are not done and have said it.
    fn losses(&self) -> Vec<f64> {
        let heard = self.members.values().filter(|one| one.heard.is_some() && !one.is_done);
        heard.map(|member| member.loss).collect()
    }

    /// Their median.
    pub(super) fn usual_loss(&self) -> f64 {
        let mut losses = self.losses();
        if losses.is_empty() {
            return 0.0;
        }
        let middle = (losses.len() - 1) / 2;
        *losses.select_nth_unstable_by(middle, f64::total_cmp).1
    }

    /// The largest; none if nobody has said it.
    pub(super) fn worst_loss(&self) -> Option<f64> {
        self.losses().into_iter().max_by(f64::total_cmp)
    }

    /// The longest round trip of those who are not done. One that says far more than the others
    /// must not make them wait.
    pub(super) fn longest_round_trip(&self) -> Duration {
        let open = self.members.values().filter(|member| !member.is_done);
        let mut all: Vec<Duration> = open.filter_map(|member| member.round_trip).collect();
        let Some(longest) = all.iter().max().copied() else {
            return self.first_round_trip;
        };
        let middle = (all.len() - 1) / 2;
        let median = *all.select_nth_unstable(middle).1;
        longest.min(median * FAR + Duration::from_millis(100)).max(Duration::from_millis(1))
    }

    /// How receivers are to speak while symbols leave at `rate`.
    pub(super) fn timing(&self, rate: Rate) -> Timing {
        let open = self.open() as u64;
        let budget = rate.as_bps() as f64 / 8.0 * self.report_share;
        let each = |speakers: u64| (speakers * REPORT) as f64 / budget.max(1.0) * 1000.0;
        let round_trip = self.longest_round_trip().as_micros();
        Timing {
            members: open.min(u64::from(u32::MAX)) as u32,
            round_trip: round_trip.min(u64::from(u32::MAX)) as u32,
            report_every: each(open.min(SPEAKERS)).clamp(20.0, 5000.0) as u32,
            status_every: each(open).clamp(1000.0, 600_000.0) as u32,
        }
    }

    /// The round trips to members that are to be told theirs.
    pub(super) fn take_round_trips(&mut self) -> Vec<MemberRoundTrip> {
        let mut round_trips = Vec::new();
        for (id, member) in &mut self.members {
            if round_trips.len() == MOST_ROUND_TRIPS {
                break;
            }
            if let Some(round_trip) = member.round_trip.filter(|_| member.is_curious) {
                member.is_curious = false;
                let round_trip = round_trip.as_micros().min(u64::from(u32::MAX)) as u32;
                round_trips.push(MemberRoundTrip { member: *id, round_trip });
            }
        }
        round_trips
    }
}
