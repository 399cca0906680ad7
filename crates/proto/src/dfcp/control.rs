use std::collections::{BTreeMap, BTreeSet};

use fontis_base::{Duration, Time};

use super::message_run::MessageRun;
use super::packet::Frame;

/// Identifies a control frame until it is known to have arrived.
pub(super) type ControlId = u32;

/// Copies of a control frame that are sent without waiting for a timeout, and when after the first:
/// so little is saved by not sending them, and so much waits for them.
const COPIES: [Duration; 2] = [Duration::from_millis(8), Duration::from_millis(24)];

/// Frames that wait for others leave in a packet together, this share of a timeout apart and within
/// these bounds.
const GATHERINGS: u64 = 8;
const GATHERING: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(25));

/// Frames about messages that are so far apart are not worth waiting.
const FAR: Duration = Duration::from_millis(100);

/// Of those that are due, and of the runs of messages, so many are looked at.
const LATEST: usize = 8;

/// How soon a frame leaves, and again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Haste {
    /// At once, with [`COPIES`].
    Prompt,
    /// With others of its kind, and so often again with packets that leave anyway. There is one for
    /// each message: with packets of their own they would cost more than the messages.
    Gathered { copies: u32 },
}

struct Entry {
    frame: Frame,
    haste: Haste,
    first: Option<Time>,
    sent: u32,
    /// When it leaves with a packet that leaves anyway, and when by itself.
    due: Time,
    alone: Time,
}

impl Entry {
    /// It leaves now.
    fn leaves(&mut self, now: Time, timeout: Duration, pause: Duration) {
        let first = *self.first.get_or_insert(now);
        let soonest = now + Duration::from_millis(1);
        let again = |copies: u32| {
            let backoff = self.sent.saturating_sub(copies).min(5);
            now + (timeout * (1 << backoff)).min(Duration::from_secs(3))
        };
        (self.due, self.alone) = match self.haste {
            Haste::Prompt => {
                let copy = COPIES.get(self.sent as usize).filter(|offset| **offset < timeout);
                let due = copy.map_or_else(|| again(COPIES.len() as u32), |at| first + *at);
                (due.max(soonest), due.max(soonest))
            }
            Haste::Gathered { copies } if self.sent < copies => {
                (soonest.max(now + pause / 2), again(copies))
            }
            Haste::Gathered { copies } => (again(copies), again(copies)),
        };
        self.sent += 1;
    }
}

/// Frames by the time of something, the earliest first.
type Agenda = BTreeSet<(Time, ControlId)>;

/// Those of an agenda that are due.
fn due(agenda: &Agenda, now: Time) -> impl Iterator<Item = ControlId> {
    agenda.iter().take_while(move |(at, _)| *at <= now).map(|(_, id)| *id)
}

/// Frames that must arrive: sent again until a packet that carried them is reported as received.
///
/// A peer that reports nothing makes them many, so that none is looked for among all.
#[derive(Default)]
pub(super) struct Control {
    entries: BTreeMap<ControlId, Entry>,
    /// Prompt ones, by when they leave.
    prompt: Agenda,
    /// Gathered ones, by when they leave with a packet that leaves anyway, and by themselves.
    riding: Agenda,
    alone: Agenda,
    /// Those that tell of messages that were given up.
    runs: BTreeSet<ControlId>,
    next: ControlId,
    /// When frames that wait for others last left, and when they may again.
    gathered: Option<Time>,
    gathering: Time,
    /// When the last frame about a message came to be.
    last: Option<Time>,
}

impl Control {
    /// A frame that leaves at once.
    pub(super) fn push(&mut self, now: Time, frame: Frame) {
        self.insert(now, frame, Haste::Prompt);
    }

    /// A frame about a message. Where there are many it leaves with others, and so often again.
    pub(super) fn gather(&mut self, now: Time, frame: Frame, copies: u32) {
        let last = self.last.replace(now);
        let is_near = last.is_some_and(|last| now.since(last) < FAR);
        self.insert(now, frame, if is_near { Haste::Gathered { copies } } else { Haste::Prompt });
    }

    /// Messages were given up. What waits to be known of others before them joins them if it ends
    /// at number `after` or later, since all from there on have ended: however many are given up,
    /// and however often the frame is lost, it stays one, and small.
    pub(super) fn give_up(&mut self, now: Time, run: MessageRun, after: u32) {
        let joins = |id: &ControlId| match self.entries.get(id)?.frame {
            Frame::GivenUp(earlier) if earlier.is_ordered() == run.is_ordered() => {
                (after..=run.first()).contains(&earlier.end()).then_some((*id, earlier))
            }
            _ => None,
        };
        let found = self.runs.iter().rev().take(LATEST).find_map(joins);
        // Ordered messages behind it wait for it.
        let haste = Haste::Gathered { copies: u32::from(run.is_ordered()) };
        let Some((id, earlier)) = found else {
            return self.insert(now, Frame::GivenUp(run), haste);
        };
        // A packet on its way tells of the earlier ones only.
        if let Some(entry) = self.remove(id) {
            self.add(Entry { frame: Frame::GivenUp(earlier.through(run)), due: now, ..entry });
        }
    }

    fn insert(&mut self, now: Time, frame: Frame, haste: Haste) {
        self.add(Entry { frame, haste, first: None, sent: 0, due: now, alone: now });
    }

    fn add(&mut self, entry: Entry) {
        self.put(self.next, entry);
        self.next += 1;
    }

    fn put(&mut self, id: ControlId, entry: Entry) {
        match entry.haste {
            Haste::Prompt => {
                self.prompt.insert((entry.due, id));
            }
            Haste::Gathered { .. } => {
                self.riding.insert((entry.due, id));
                self.alone.insert((entry.alone, id));
            }
        }
        if let Frame::GivenUp(_) = entry.frame {
            self.runs.insert(id);
        }
        self.entries.insert(id, entry);
    }

    fn remove(&mut self, id: ControlId) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.prompt.remove(&(entry.due, id));
        self.riding.remove(&(entry.due, id));
        self.alone.remove(&(entry.alone, id));
        self.runs.remove(&id);
        Some(entry)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// When frames that wait for others may leave by themselves, if another packet leaves at
    /// `other`, which takes them along.
    pub(super) fn gathering(&self, other: Option<Time>) -> Time {
        other.map_or(self.gathering, |at| at.max(self.gathering))
    }

    /// When the next frame leaves by itself, if those that wait for others do so until `gathering`.
    pub(super) fn due(&self, gathering: Time) -> Option<Time> {
        let prompt = self.prompt.first().map(|(at, _)| *at);
        let alone = self.alone.first().map(|(at, _)| gathering.max(*at));
        prompt.into_iter().chain(alone).min()
    }

    /// The next frame of at most `room` bytes that leaves by itself; it is taken to be sent now.
    /// With it others leave that are due.
    pub(super) fn take(
        &mut self,
        now: Time,
        timeout: Duration,
        room: usize,
        gathering: Time,
    ) -> Option<(ControlId, Frame)> {
        if self.gathered == Some(now) {
            return self.ride(now, timeout, room);
        }
        let alone = due(&self.alone, now).take_while(|_| gathering <= now);
        let id = self.fitting(due(&self.prompt, now).chain(alone), room)?;
        self.send(now, timeout, id)
    }

    /// The next frame of at most `room` bytes that leaves with a packet that leaves anyway.
    pub(super) fn ride(
        &mut self,
        now: Time,
        timeout: Duration,
        room: usize,
    ) -> Option<(ControlId, Frame)> {
        let id = self.fitting(due(&self.prompt, now).chain(due(&self.riding, now)), room)?;
        self.send(now, timeout, id)
    }

    /// The first frame of at most `room` bytes.
    fn fitting(&self, due: impl Iterator<Item = ControlId>, room: usize) -> Option<ControlId> {
        let fits = |id: &ControlId| {
            let length = |entry: &Entry| super::wire::frame_len(&entry.frame);
            self.entries.get(id).is_some_and(|entry| length(entry) <= room)
        };
        due.take(LATEST).find(fits)
    }

    fn send(&mut self, now: Time, timeout: Duration, id: ControlId) -> Option<(ControlId, Frame)> {
        let mut entry = self.remove(id)?;
        let pause = (timeout / GATHERINGS).clamp(GATHERING.0, GATHERING.1);
        if entry.haste != Haste::Prompt {
            (self.gathered, self.gathering) = (Some(now), now + pause);
        }
        entry.leaves(now, timeout, pause);
        let frame = entry.frame.clone();
        self.put(id, entry);
        Some((id, frame))
    }

    /// The frame arrived.
    pub(super) fn delivered(&mut self, id: ControlId) {
        self.remove(id);
    }

    /// A packet that carried the frame was lost on a path that carries packets: it goes out again
    /// at once, and the patience that silence has taught is forgotten.
    pub(super) fn lost(&mut self, now: Time, id: ControlId) {
        if let Some(mut entry) = self.remove(id) {
            (entry.due, entry.alone) = (entry.due.min(now), entry.alone.min(now));
            entry.sent = entry.sent.min(COPIES.len() as u32);
            self.put(id, entry);
        }
    }

    /// Drops every frame that `useless` says is.
    pub(super) fn retract(&mut self, useless: impl Fn(&Frame) -> bool) {
        let is_useless = |(id, entry): (&ControlId, &Entry)| useless(&entry.frame).then_some(*id);
        let found: Vec<_> = self.entries.iter().filter_map(is_useless).collect();
        for id in found {
            self.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_frame_is_sent_until_it_is_delivered() {
        let mut control = Control::default();
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let timeout = Duration::from_millis(100);
        control.push(at(0), Frame::Fin);
        let mut sent = Vec::new();
        for ms in 0..1000 {
            while control.take(at(ms), timeout, 100, at(ms)).is_some() {
                sent.push(ms);
            }
        }
        assert_eq!(sent, [0, 8, 24, 124, 324, 724]);
        control.lost(at(1000), 0);
        assert!(control.take(at(1000), timeout, 100, at(1000)).is_some());
        assert_eq!(control.due(Time::ZERO), Some(at(1100)), "no longer backed off");
        control.delivered(0);
        assert!(control.is_empty() && control.due(Time::ZERO).is_none());
    }

    #[test]
    fn frames_of_messages_leave_together() {
        let mut control = Control::default();
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let (timeout, mut packets) = (Duration::from_millis(200), 0);
        for ms in 0..1000 {
            if ms % 5 == 0 {
                control.gather(at(ms), Frame::Done { channel: ms as u32 }, 2);
            }
            let mut count = 0;
            let gathering = control.gathering(None);
            while let Some((id, _)) = control.take(at(ms), timeout, 100, gathering) {
                count += 1;
                if ms % 2 == 0 {
                    control.delivered(id);
                }
            }
            packets += usize::from(count > 0);
            assert!(control.due(control.gathering(None)).is_none_or(|due| due > at(ms)));
        }
        assert!(packets <= 42, "{packets}: one each 25 ms, and those of the first");
    }

    #[test]
    fn frames_of_messages_wait_for_feedback() {
        let mut control = Control::default();
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let timeout = Duration::from_millis(200);
        control.last = Some(at(0));
        control.gather(at(0), Frame::Done { channel: 0 }, 2);
        let gathering = control.gathering(Some(at(10)));
        assert_eq!(control.due(gathering), Some(at(10)));
        assert!(control.take(at(5), timeout, 100, gathering).is_none());
        assert!(control.ride(at(6), timeout, 100).is_some());
    }
}
