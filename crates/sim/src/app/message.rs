//! Messages with deadlines: voice and video.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fontis_base::{Duration, Rate, Stream, Time};

use crate::app::socket::{AppMessage, AppSocket};
use crate::app::source::{Pattern, PieceSource};
use crate::app::video::{Encoder, FrameKind, Video};

/// The messages of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Messages {
    /// What makes them.
    pub model: Model,
    /// How long after it was made a message is of use.
    pub deadline: Duration,
}

/// What makes messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// A message for each piece of a pattern: voice is [`Pattern::OnOff`].
    Pieces(Pattern),
    /// A message for each frame of a video encoder.
    Video(Video),
}

/// A message as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When it was made.
    pub at: Time,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where it ends in the stream of all messages.
    pub end: u64,
    /// The kind of frame, of a video.
    pub kind: Option<FrameKind>,
}

/// All messages of a flow: when each was made and when it arrived. The flow's ends share one log,
/// as a measurement with one clock does.
#[derive(Clone, Debug)]
pub struct MessageLog {
    entries: Arc<Mutex<Entries>>,
}

/// The entries of a log.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// The messages, by number.
    pub sent: Vec<Sent>,
    /// Of each receiver, the messages' times of arrival, by number. [`Time::MAX`] is never.
    pub arrivals: Vec<Vec<Time>>,
}

impl MessageLog {
    /// A log without messages.
    pub fn new(receivers: usize) -> Self {
        let entries = Entries { sent: Vec::new(), arrivals: vec![Vec::new(); receivers] };
        Self { entries: Arc::new(Mutex::new(entries)) }
    }

    /// Its entries.
    pub fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message that is made at `at`; gives its number.
    pub fn add(&self, at: Time, bytes: u64, kind: Option<FrameKind>) -> u64 {
        let mut entries = self.entries();
        let end = entries.sent.last().map_or(0, |last| last.end) + bytes;
        entries.sent.push(Sent { at, bytes, end, kind });
        entries.sent.len() as u64 - 1
    }

    /// Notes that a message has arrived at a receiver.
    pub fn arrived(&self, receiver: usize, number: u64, at: Time) {
        let mut entries = self.entries();
        let number = number as usize;
        if number >= entries.sent.len() {
            return;
        }
        let Some(arrivals) = entries.arrivals.get_mut(receiver) else { return };
        if arrivals.len() <= number {
            arrivals.resize(number + 1, Time::MAX);
        }
        arrivals[number] = arrivals[number].min(at);
    }
}

/// The end that sends messages.
#[derive(Clone, Debug)]
pub struct MessageSource {
    generator: Generator,
    deadline: Duration,
    log: MessageLog,
}

#[derive(Clone, Debug)]
enum Generator {
    Pieces(PieceSource),
    Video(Encoder),
}

impl MessageSource {
    /// A source that begins at `start`, draws from `stream` and writes to `log`.
    pub fn new(messages: Messages, start: Time, stream: Stream, log: MessageLog) -> Self {
        let generator = match messages.model {
            Model::Pieces(pattern) => Generator::Pieces(PieceSource::new(pattern, start, stream)),
            Model::Video(video) => Generator::Video(Encoder::new(video, start, stream)),
        };
        Self { generator, deadline: messages.deadline, log }
    }

    /// When it makes the next message.
    pub const fn due(&self) -> Option<Time> {
        match &self.generator {
            Generator::Pieces(source) => source.due(),
            Generator::Video(encoder) => Some(encoder.due()),
        }
    }

    /// The next message, if it is due; `rate` is what the path carries, if that is known.
    pub fn next(&mut self, now: Time, rate: Option<Rate>) -> Option<AppMessage> {
        let made = self.due().filter(|due| *due <= now)?;
        let (bytes, kind) = match &mut self.generator {
            Generator::Pieces(source) => (source.next(now)?.bytes, None),
            Generator::Video(encoder) => {
                let frame = encoder.next(rate);
                (frame.bytes, Some(frame.kind))
            }
        };
        let number = self.log.add(made, bytes, kind);
        Some(AppMessage { number: Some(number), bytes, deadline: Some(made + self.deadline) })
    }

    pub(super) fn act(&mut self, now: Time, socket: &mut impl AppSocket) -> bool {
        while let Some(message) = self.next(now, socket.rate()) {
            socket.send(now, message);
        }
        self.due().is_some()
    }
}

/// The end that notes when messages arrive.
#[derive(Clone, Debug)]
pub struct MessageSink {
    log: MessageLog,
    receiver: usize,
    /// The next message of a stream.
    next: usize,
}

impl MessageSink {
    /// The sink of receiver `receiver`, which writes to `log`.
    pub const fn new(log: MessageLog, receiver: usize) -> Self {
        Self { log, receiver, next: 0 }
    }

    /// Notes that message `number` has arrived.
    pub fn arrived(&self, now: Time, number: u64) {
        self.log.arrived(self.receiver, number, now);
    }

    /// Notes which messages have arrived, of a stream of which `bytes` were delivered in order.
    pub fn delivered(&mut self, now: Time, bytes: u64) {
        loop {
            let end = self.log.entries().sent.get(self.next).map(|sent| sent.end);
            if end.is_none_or(|end| end > bytes) {
                return;
            }
            self.log.arrived(self.receiver, self.next as u64, now);
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_stream_arrives_with_its_last_byte() {
        let log = MessageLog::new(1);
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        log.add(at(1), 100, None);
        log.add(at(2), 50, None);
        let mut sink = MessageSink::new(log.clone(), 0);
        sink.delivered(at(3), 99);
        assert!(log.entries().arrivals[0].is_empty());
        sink.delivered(at(4), 149);
        sink.delivered(at(5), 150);
        assert_eq!(log.entries().arrivals[0], [at(4), at(5)]);
    }

    #[test]
    fn a_copy_of_a_message_does_not_move_its_arrival_and_an_unknown_number_is_ignored() {
        let log = MessageLog::new(1);
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        log.add(at(1), 100, None);
        log.arrived(0, 0, at(5));
        log.arrived(0, 0, at(9));
        log.arrived(0, 7, at(9));
        log.arrived(3, 0, at(9));
        assert_eq!(log.entries().arrivals, [[at(5)]]);
    }
}
