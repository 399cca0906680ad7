//! The search for the largest packet that a path carries (RFC 4340 section 14), by padded Syncs, in
//! the manner of RFC 8899. Sizes are those of whole packets of IP.

use fontis_base::{Duration, Time};

use super::number::DccpSeq;

/// The size that a search begins with, unless it is to find less: Ethernet's.
const ETHERNET: u32 = 1500;
/// The size that is tried next if a path does not carry that; IPv6 demands it of every link.
const BASE: u32 = 1280;
/// The size that every path carries, as far as this protocol cares.
pub(super) const LEAST: u32 = 576;
/// Sizes nearer than this are not told apart.
const STEP: u32 = 16;
/// Probes of one size.
const TRIES: u32 = 3;
/// How long a probe may take: this, or two round trips.
const PATIENCE: Duration = Duration::from_secs(1);
/// Until a size that carries data is tried again: paths change.
const CONFIRM: Duration = Duration::from_secs(10);
/// The same after a sign that packets are lost.
const HURRY: Duration = Duration::from_secs(1);
/// Until sizes are tried again that a path did not carry.
const RAISE: Duration = Duration::from_secs(600);

/// The search of one connection.
#[derive(Clone, Debug)]
pub(super) struct PacketSize {
    /// The greatest size that is tried; zero if none is.
    most: u32,
    /// The size that packets keep to.
    size: u32,
    /// Whether the path has carried it.
    is_sure: bool,
    /// The least size that the path has not carried.
    bad: u32,
    /// The probe under way, and whether it is one without padding.
    probe: Option<(DccpSeq, u32)>,
    /// The size of the last probes, and how many there were.
    tried: (u32, u32),
    next: Time,
    /// Whether a packet of the peer came since the first of these.
    has_heard: bool,
    /// When the size was last shown to pass, and whether it has been used since.
    sure_at: Time,
    is_used: bool,
    is_suspect: bool,
    raise_at: Time,
}

impl PacketSize {
    /// Begins at the size of Ethernet; nothing beyond `most` is tried.
    pub(super) fn new(most: u32) -> Self {
        Self {
            most,
            size: most.min(ETHERNET),
            is_sure: false,
            bad: most.saturating_add(1),
            probe: None,
            tried: (0, 0),
            next: Time::ZERO,
            has_heard: false,
            sure_at: Time::ZERO,
            is_used: false,
            is_suspect: false,
            raise_at: Time::MAX,
        }
    }

    /// The size that packets keep to; `None` if there is no limit.
    pub(super) fn size(&self) -> Option<u32> {
        (self.most > 0).then_some(self.size)
    }

    /// The size to be tried next.
    fn wanted(&self) -> Option<u32> {
        if !self.is_sure {
            return Some(self.size);
        }
        if self.bad > self.size + STEP {
            // What was never refused is tried at its greatest first.
            let is_open = self.bad > self.most;
            return Some(if is_open { self.most } else { u32::midpoint(self.size, self.bad) });
        }
        None
    }

    /// When the next probe is due.
    pub(super) fn due(&self) -> Time {
        if self.most == 0 {
            return Time::MAX;
        }
        if self.wanted().is_some() {
            return self.next;
        }
        let after = if self.is_suspect { HURRY } else { CONFIRM };
        let confirm = if self.is_used { self.sure_at + after } else { Time::MAX };
        confirm.min(self.raise_at).max(self.next)
    }

    /// The size of the probe that leaves at `now`, if one is due: its number follows with
    /// [`PacketSize::sent`]. Zero is one without padding, which shows whether the peer is there.
    pub(super) fn probe(&mut self, now: Time) -> Option<u32> {
        if self.most == 0 || self.due() > now {
            return None;
        }
        if self.wanted().is_none() {
            if self.raise_at <= now {
                self.bad = self.most + 1;
                self.raise_at = Time::MAX;
            } else {
                self.is_sure = false;
            }
        }
        let mut size = self.wanted()?;
        if self.tried.0 == size && self.tried.1 >= TRIES {
            if !self.has_heard {
                // Nothing comes at all: that tells nothing of sizes.
                return Some(0);
            }
            self.failed(now, size);
            size = self.wanted()?;
        }
        Some(size)
    }

    /// Notes the number of a probe that leaves at `now`.
    pub(super) fn sent(&mut self, now: Time, seq: DccpSeq, size: u32, rtt: Option<Duration>) {
        self.next = now + rtt.map_or(PATIENCE, |rtt| (rtt * 2).max(PATIENCE));
        if size == 0 {
            return;
        }
        if self.tried.0 != size {
            self.tried = (size, 0);
            self.has_heard = false;
        }
        self.tried.1 += 1;
        self.probe = Some((seq, size));
    }

    /// The path does not carry `size`.
    fn failed(&mut self, now: Time, size: u32) {
        self.tried = (0, 0);
        self.bad = size;
        if size == self.size {
            self.size = if size > BASE { BASE } else { LEAST };
            // Less is not tried: what does not pass then never does.
            self.is_sure = self.size == LEAST;
            self.sure_at = now;
        }
        if self.raise_at == Time::MAX {
            self.raise_at = now + RAISE;
        }
    }

    /// Takes a packet of the peer; `answer` is the number of the Sync that it answers.
    pub(super) fn heard(&mut self, now: Time, answer: Option<DccpSeq>) {
        self.has_heard = true;
        let Some((_, size)) = self.probe.filter(|(seq, _)| Some(*seq) == answer) else { return };
        self.probe = None;
        self.tried = (0, 0);
        self.next = now;
        if size >= self.size {
            (self.size, self.is_sure, self.sure_at) = (size, true, now);
            (self.is_used, self.is_suspect) = (false, false);
            if size >= self.bad {
                self.bad = self.most + 1;
            }
        }
    }

    /// Notes that a packet of this size leaves.
    pub(super) const fn used(&mut self, size: u32) {
        self.is_used |= size > LEAST;
    }

    /// Notes a sign of losses: large packets may vanish where small ones pass.
    pub(super) const fn suspect(&mut self) {
        self.is_suspect = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size that is found on a path that carries `path`, and the probes that took.
    fn found(search: &mut PacketSize, now: &mut Time, path: u32) -> (u32, u32) {
        let mut probes = 0;
        for _ in 0..100 {
            let due = search.due();
            if due > *now + Duration::from_secs(60) {
                break;
            }
            *now = (*now).max(due);
            let Some(size) = search.probe(*now) else { break };
            probes += 1;
            let seq = DccpSeq::new(u64::from(probes));
            search.sent(*now, seq, size, None);
            // Others come meanwhile.
            search.heard(*now, (size <= path).then_some(seq));
        }
        (search.size, probes)
    }

    #[test]
    fn a_search_finds_what_paths_carry_with_few_probes() {
        for (most, path, most_probes) in
            [(1500, 9000, 1), (9000, 9000, 2), (1500, 1420, 20), (9000, 4000, 32), (1500, 600, 24)]
        {
            let mut search = PacketSize::new(most);
            let (size, probes) = found(&mut search, &mut Time::from_nanos(1), path);
            let best = path.min(most);
            assert!(size <= best && size + STEP >= best, "{most}, {path}: {size}");
            assert!(probes <= most_probes, "{most}, {path}: {probes} probes");
        }
    }

    #[test]
    fn a_path_that_carries_less_is_noticed_and_one_that_carries_more_later() {
        let (mut search, mut now) = (PacketSize::new(1500), Time::from_nanos(1));
        assert_eq!(found(&mut search, &mut now, 1500).0, 1500);
        assert_eq!(search.due(), Time::MAX, "nothing is tried while nothing large leaves");
        search.used(1400);
        let (size, _) = found(&mut search, &mut now, 1400);
        assert!((1384..=1400).contains(&size), "{size}");
        now += RAISE;
        assert_eq!(found(&mut search, &mut now, 1500).0, 1500);
    }

    #[test]
    fn silence_tells_nothing_of_sizes() {
        let (mut search, mut now) = (PacketSize::new(1500), Time::from_nanos(1));
        for count in 0..20_u64 {
            now = now.max(search.due());
            let size = search.probe(now).expect("a probe");
            assert_eq!(size, if count < 3 { 1500 } else { 0 });
            search.sent(now, DccpSeq::new(count), size, None);
        }
        assert_eq!(search.size(), Some(1500));
        // An answer without padding shows that the size was the reason.
        search.heard(now, Some(DccpSeq::new(19)));
        now = now.max(search.due());
        assert_eq!(search.probe(now), Some(1280));
    }

    #[test]
    fn without_a_search_there_is_no_limit() {
        let mut search = PacketSize::new(0);
        assert_eq!((search.size(), search.due()), (None, Time::MAX));
        assert_eq!(search.probe(Time::MAX), None);
    }
}
