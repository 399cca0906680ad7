use std::collections::BTreeMap;

use fontis_base::{Duration, Time};

use super::packet::Frame;

/// Identifies a control frame until it is known to have arrived.
pub(super) type ControlId = u32;

/// Copies of a control frame that are sent without waiting for a timeout, and when after the first:
/// so little is saved by not sending them, and so much waits for them.
const COPIES: [Duration; 2] = [Duration::from_millis(8), Duration::from_millis(24)];

struct Entry {
    frame: Frame,
    first: Option<Time>,
    sent: u32,
    due: Time,
}

/// Frames that must arrive: sent again until a packet that carried them is reported as received.
#[derive(Default)]
pub(super) struct Control {
    entries: BTreeMap<ControlId, Entry>,
    next: ControlId,
}

impl Control {
    pub(super) fn push(&mut self, now: Time, frame: Frame) {
        self.entries.insert(self.next, Entry { frame, first: None, sent: 0, due: now });
        self.next += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// When the next frame is due.
    pub(super) fn due(&self) -> Option<Time> {
        self.entries.values().map(|entry| entry.due).min()
    }

    /// The next frame that is due and no longer than `room` bytes; it is taken to be sent now.
    pub(super) fn take(
        &mut self,
        now: Time,
        timeout: Duration,
        room: usize,
    ) -> Option<(ControlId, Frame)> {
        let (id, entry) = self
            .entries
            .iter_mut()
            .find(|(_, entry)| entry.due <= now && super::wire::frame_len(&entry.frame) <= room)?;
        let first = *entry.first.get_or_insert(now);
        entry.due = match COPIES.get(entry.sent as usize) {
            Some(offset) if *offset < timeout => first + *offset,
            _ => {
                let backoff = entry.sent.saturating_sub(COPIES.len() as u32).min(5);
                now + (timeout * (1 << backoff)).min(Duration::from_secs(3))
            }
        };
        entry.due = entry.due.max(now + Duration::from_millis(1));
        entry.sent += 1;
        Some((*id, entry.frame.clone()))
    }

    /// The frame arrived.
    pub(super) fn delivered(&mut self, id: ControlId) {
        self.entries.remove(&id);
    }

    /// A packet that carried the frame was lost on a path that carries packets: it goes out again
    /// at once, and the patience that silence has taught is forgotten.
    pub(super) fn lost(&mut self, now: Time, id: ControlId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.due = entry.due.min(now);
            entry.sent = entry.sent.min(COPIES.len() as u32);
        }
    }

    /// Drops every frame that `useless` says is.
    pub(super) fn retract(&mut self, useless: impl Fn(&Frame) -> bool) {
        self.entries.retain(|_, entry| !useless(&entry.frame));
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
            while control.take(at(ms), timeout, 100).is_some() {
                sent.push(ms);
            }
        }
        assert_eq!(sent, [0, 8, 24, 124, 324, 724]);
        control.lost(at(1000), 0);
        assert!(control.take(at(1000), timeout, 100).is_some());
        assert_eq!(control.due(), Some(at(1100)), "no longer backed off");
        control.delivered(0);
        assert!(control.is_empty() && control.due().is_none());
    }
}
