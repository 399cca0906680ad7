use std::collections::VecDeque;

use fontis_base::{Duration, Time};
use smallvec::SmallVec;

use super::control::ControlId;
use super::feedback::Feedback;
use super::packet::ChannelId;

/// Reordering below this many packets is not taken for loss; RFC 9002 has the same threshold.
const MIN_REORDERING: u64 = 3;

/// No reordering takes longer, unless an answer may.
const MOST_WAIT: Duration = Duration::from_millis(200);
/// How long the time that reordering took is remembered, at least.
const REORDERING_MEMORY: Duration = Duration::from_secs(10);

/// Symbols that a packet carried.
pub(super) type SentSymbols = (ChannelId, u32, u16);

/// A packet that was sent, until its fate is known.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) time: Time,
    pub(super) size: u16,
    pub(super) symbols: Option<SentSymbols>,
    pub(super) control: SmallVec<[ControlId; 1]>,
    /// Whether it was a probe for a larger packet size: its loss says nothing about the path.
    pub(super) mtu_probe: bool,
    /// Whether the receiver answers it at all: packets of nothing but feedback are not missed.
    pub(super) counted: bool,
    /// Why less was sent before it than the path's rate, if it was: when it arrives says nothing
    /// about the path's.
    pub(super) late: Option<Late>,
    fate: Fate,
}

/// Why a packet left later than it could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// There was no data to be sent.
    Starved,
    /// The host was busy with something else.
    Host,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Unknown,
    /// Reported as missing, but it may still be late.
    Missing,
    Received,
    Lost,
    /// No packet had the number.
    LeftOut,
}

/// What is wrong with a feedback frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Untrue {
    /// It speaks of packets that were never sent.
    NeverSent,
    /// It tells the arrival of a number that was left out: its sender does not go by what came.
    LeftOut,
}

impl Sent {
    pub(super) fn new(time: Time, size: u16) -> Self {
        Self {
            time,
            size,
            symbols: None,
            control: SmallVec::new(),
            mtu_probe: false,
            counted: true,
            late: None,
            fate: Fate::Unknown,
        }
    }
}

/// What a feedback frame tells about a packet that was unresolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Received,
    Lost,
    /// It had been taken for lost.
    Late,
    /// Too old to be reported on: nothing is known and nothing will be.
    Forgotten,
}

/// The packets sent on a path whose fate is unknown, or was decided not long ago.
#[derive(Default)]
pub(super) struct History {
    sent: VecDeque<Sent>,
    first: u64,
    largest: Option<u64>,
    in_flight: u64,
    unresolved: u64,
    /// None on a path that keeps the order of packets: strangers' connections are small.
    reordering: Option<Box<Reordering>>,
}

/// How far a path has moved packets out of their order.
#[derive(Debug, Default)]
struct Reordering {
    /// In packets.
    packets: u64,
    /// How much earlier a packet was sent, at most, than one that came before it: of late, and in
    /// the time before. When that began.
    overtaken: [Duration; 2],
    since: Time,
}

impl Reordering {
    /// Takes a packet that came after one that was sent `behind` later, at `sent`.
    fn observe(&mut self, sent: Time, behind: Duration) {
        if sent.since(self.since) > REORDERING_MEMORY {
            self.overtaken = [Duration::ZERO, self.overtaken[0]];
            self.since = sent;
        }
        self.overtaken[0] = self.overtaken[0].max(behind);
    }

    /// How long it may take when packets sent at `sent` have come.
    fn time(&self, sent: Time) -> Duration {
        if sent.since(self.since) > REORDERING_MEMORY * 2 {
            return Duration::ZERO;
        }
        let overtaken = self.overtaken[0].max(self.overtaken[1]);
        overtaken + overtaken / 4
    }
}

impl History {
    pub(super) fn next_number(&self) -> u64 {
        self.first + self.sent.len() as u64
    }

    /// Bytes sent whose fate is unknown.
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Counted packets whose fate is unknown.
    pub(super) const fn unresolved(&self) -> u64 {
        self.unresolved
    }

    pub(super) fn push(&mut self, sent: Sent) -> u64 {
        if sent.counted {
            self.in_flight += u64::from(sent.size);
            self.unresolved += 1;
        }
        let number = self.next_number();
        self.sent.push_back(sent);
        number
    }

    /// Leaves a number out.
    pub(super) fn leave_out(&mut self, now: Time) {
        let none = Sent { counted: false, fate: Fate::LeftOut, ..Sent::new(now, 0) };
        self.sent.push_back(none);
    }

    pub(super) fn get(&self, number: u64) -> Option<&Sent> {
        self.sent.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The number of packets that reordering may separate.
    pub(super) fn reordering(&self) -> u64 {
        self.reordering.as_ref().map_or(0, |seen| seen.packets).max(MIN_REORDERING)
    }

    /// Decides the fate of packets: a missing one is lost when as many later ones have come as
    /// reordering may separate, one of them sent so much later as reordering was seen to take, or
    /// one that was sent later by more than `patience`. `decide` is told of each newly decided one,
    /// from the highest down. Feedback on packets that were never sent changes nothing.
    pub(super) fn resolve(
        &mut self,
        feedback: &Feedback,
        patience: Duration,
        mut decide: impl FnMut(u64, &Sent, Outcome),
    ) -> Result<(), Untrue> {
        if feedback.largest >= self.next_number() {
            return Err(Untrue::NeverSent);
        }
        let largest =
            self.largest.map_or(feedback.largest, |largest| largest.max(feedback.largest));
        self.largest = Some(largest);
        let horizon = largest.saturating_sub(self.reordering());
        let latest_sent = self.get(largest).map_or(Time::ZERO, |sent| sent.time);
        // A path reorders by time, and the faster it is, the more packets that is.
        let wait = self.reordering.as_ref().map_or(Duration::ZERO, |seen| seen.time(latest_sent));
        let wait = wait.min(patience.max(MOST_WAIT));
        let mut lowest = feedback.largest;
        let mut latest = 0;
        for (first, last, received) in feedback.ranges() {
            lowest = first;
            if last < self.first {
                break;
            }
            for number in (first.max(self.first)..=last).rev() {
                let index = (number - self.first) as usize;
                let sent = &mut self.sent[index];
                let behind = latest_sent.since(sent.time);
                if received && matches!(sent.fate, Fate::Missing | Fate::Lost) {
                    self.reordering.get_or_insert_default().observe(latest_sent, behind);
                }
                let outcome = match (sent.fate, received) {
                    (Fate::Unknown | Fate::Missing, true) => Outcome::Received,
                    (Fate::Unknown | Fate::Missing, false)
                        if behind >= wait && (number <= horizon || behind > patience) =>
                    {
                        Outcome::Lost
                    }
                    (Fate::Lost, true) => Outcome::Late,
                    (Fate::LeftOut, true) => return Err(Untrue::LeftOut),
                    (Fate::Unknown, false) => {
                        sent.fate = Fate::Missing;
                        continue;
                    }
                    _ => continue,
                };
                if outcome == Outcome::Late {
                    latest = latest.max(largest - number + 1);
                } else if sent.counted {
                    self.in_flight -= u64::from(sent.size);
                    self.unresolved -= 1;
                }
                sent.fate = if outcome == Outcome::Lost { Fate::Lost } else { Fate::Received };
                decide(number, &self.sent[index], outcome);
            }
        }
        // A packet that was late must not be taken for lost next time. More than the packets of a
        // round trip is no reordering that waiting would help against.
        if latest > 0 {
            let seen = self.reordering.get_or_insert_default();
            seen.packets = seen.packets.max(latest.min(self.sent.len() as u64));
        }
        self.forget(lowest, largest, (latest_sent, patience), decide);
        Ok(())
    }

    /// Drops what needs no remembering: decided packets beyond reach of reordering, and whatever
    /// feedback no longer reports on, when a packet sent later by more than a patience has come.
    fn forget(
        &mut self,
        lowest: u64,
        largest: u64,
        (latest_sent, patience): (Time, Duration),
        mut decide: impl FnMut(u64, &Sent, Outcome),
    ) {
        let keep = largest.saturating_sub(4 * self.reordering() + 1024);
        while let Some(sent) = self.sent.front() {
            let decided = match sent.fate {
                Fate::Received => true,
                Fate::Lost | Fate::LeftOut => self.first < keep,
                Fate::Unknown | Fate::Missing => false,
            };
            let is_old = self.first < keep || latest_sent.since(sent.time) > patience;
            let unreachable = self.first < lowest && is_old;
            if !decided && !unreachable {
                break;
            }
            if matches!(sent.fate, Fate::Unknown | Fate::Missing) {
                if sent.counted {
                    self.in_flight -= u64::from(sent.size);
                    self.unresolved -= 1;
                }
                // On a fast path that reorders, feedback no longer reaches what it was too early to
                // give up.
                let missing = sent.fate == Fate::Missing;
                let outcome = if missing { Outcome::Lost } else { Outcome::Forgotten };
                decide(self.first, sent, outcome);
            }
            self.sent.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    fn history(packets: usize) -> History {
        let mut history = History::default();
        for i in 0..packets {
            history.push(Sent::new(Time::from_nanos(i as u64), 100));
        }
        history
    }

    fn outcomes(history: &mut History, largest: u64, runs: &[u32]) -> Vec<(u64, Outcome)> {
        let feedback = Feedback { largest, runs: runs.into(), ..Feedback::default() };
        let mut seen = Vec::new();
        let resolved = history
            .resolve(&feedback, Duration::MAX, |number, _, outcome| seen.push((number, outcome)));
        assert_eq!(resolved, Ok(()));
        seen
    }

    #[test]
    fn a_gap_is_a_loss_once_three_packets_are_beyond_it() {
        let mut history = history(20);
        let seen = outcomes(&mut history, 9, &[1, 1, 1, 1, 6]);
        // 8 and 6 are missing; 6 = 9 − 3 is at the horizon, 8 may still come.
        assert!(seen.contains(&(6, Outcome::Lost)));
        assert!(!seen.iter().any(|(number, _)| *number == 8));
        assert_eq!(history.unresolved(), 20 - 10 + 1);
        let seen = outcomes(&mut history, 12, &[3, 2, 1, 1, 6]);
        assert!(
            seen.contains(&(8, Outcome::Lost)) && !seen.contains(&(6, Outcome::Lost)),
            "{seen:?}"
        );
    }

    #[test]
    fn a_late_packet_widens_the_reordering_window() {
        let mut history = history(100);
        outcomes(&mut history, 50, &[10, 1, 40]);
        let seen = outcomes(&mut history, 51, &[52]);
        assert!(seen.contains(&(40, Outcome::Late)));
        assert_eq!(history.reordering(), 12);
        let seen = outcomes(&mut history, 70, &[10, 1, 60]);
        assert!(!seen.iter().any(|(_, outcome)| *outcome == Outcome::Lost), "{seen:?}");
    }

    #[test]
    fn on_a_path_that_reorders_a_gap_is_a_loss_after_the_time_that_that_takes() {
        let mut history = History::default();
        for ms in 0..100 {
            history.push(Sent::new(Time::ZERO + Duration::from_millis(ms), 100));
        }
        // Packet 0 comes after 21, which was sent 21 ms later.
        outcomes(&mut history, 20, &[20, 1]);
        outcomes(&mut history, 21, &[22]);
        let lost = |seen: Vec<(u64, Outcome)>| seen.contains(&(30, Outcome::Lost));
        assert!(!lost(outcomes(&mut history, 55, &[25, 1, 30])), "21 ms and a quarter");
        assert!(lost(outcomes(&mut history, 57, &[27, 1, 30])));
    }

    #[test]
    fn what_was_missing_is_lost_when_feedback_no_longer_reaches_it() {
        let mut history = history(10_000);
        history.reordering = Some(Box::new(Reordering { packets: 1000, ..Default::default() }));
        assert!(!outcomes(&mut history, 99, &[50, 1, 49]).contains(&(49, Outcome::Lost)));
        let seen = outcomes(&mut history, 9_000, &[10]);
        assert!(seen.contains(&(49, Outcome::Lost)), "it was seen to be missing");
        assert!(seen.contains(&(100, Outcome::Forgotten)), "it was never reported on");
        assert!(!seen.iter().any(|(number, _)| *number == 50), "it had arrived");
    }

    #[test]
    fn a_slow_flow_forgets_what_feedback_no_longer_reaches() {
        let mut history = History::default();
        for ms in 0..500 {
            history.push(Sent::new(Time::ZERO + Duration::from_millis(ms * 10), 100));
        }
        let feedback = Feedback { largest: 400, runs: smallvec![100], ..Feedback::default() };
        let mut forgotten = Vec::new();
        let resolved =
            history.resolve(&feedback, Duration::from_millis(100), |number, _, outcome| {
                if outcome == Outcome::Forgotten {
                    forgotten.push(number);
                }
            });
        assert_eq!(resolved, Ok(()));
        assert_eq!(forgotten, (0..=300).collect::<Vec<_>>());
        assert_eq!(history.unresolved(), 99);
    }

    #[test]
    fn a_gap_is_a_loss_when_something_much_later_has_come() {
        let mut history = history(2);
        history.push(Sent::new(Time::ZERO + Duration::from_secs(1), 100));
        let feedback = Feedback { largest: 2, runs: smallvec![1, 1, 1], ..Feedback::default() };
        let mut lost = Vec::new();
        let resolved =
            history.resolve(&feedback, Duration::from_millis(50), |number, _, outcome| {
                if outcome == Outcome::Lost {
                    lost.push(number);
                }
            });
        assert_eq!(resolved, Ok(()));
        assert_eq!(lost, [1]);
    }

    #[test]
    fn feedback_on_packets_never_sent_is_refused() {
        let mut history = history(5);
        let feedback = Feedback { largest: 5, runs: smallvec![1], ..Feedback::default() };
        let resolved = history.resolve(&feedback, Duration::MAX, |_, _, _| panic!());
        assert_eq!(resolved, Err(Untrue::NeverSent));
    }

    #[test]
    fn a_number_that_was_left_out_is_no_loss_and_cannot_arrive() {
        let mut history = history(5);
        history.leave_out(Time::ZERO);
        history.push(Sent::new(Time::ZERO, 100));
        for _ in 0..9 {
            history.push(Sent::new(Time::ZERO, 100));
        }
        let seen = outcomes(&mut history, 15, &[10, 1, 5]);
        assert!(seen.iter().all(|(_, outcome)| *outcome == Outcome::Received), "{seen:?}");
        assert_eq!((history.unresolved(), history.in_flight()), (0, 0));
        let all = Feedback { largest: 15, runs: smallvec![16], ..Feedback::default() };
        let resolved = history.resolve(&all, Duration::MAX, |_, _, _| {});
        assert_eq!(resolved, Err(Untrue::LeftOut));
    }
}
