//! Sources of traffic, whatever transport carries it.
//!
//! Start here: an [`Application`] describes the traffic of a flow. [`Application::pair`] makes the
//! two [`App`]s of the flow's ends. An app acts through an [`AppSocket`], which every
//! transport's host implements as far as the transport can.

pub mod message;
pub mod requests;
pub mod socket;
pub mod source;
pub mod video;

use fontis_base::{Duration, Stream, Time};

use crate::app::message::{MessageLog, MessageSink, MessageSource, Messages};
use crate::app::requests::{Client, Requests, Server};
use crate::app::socket::AppSocket;
use crate::app::source::{Pattern, PieceSource};

/// The traffic of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Application {
    /// Bytes in the rhythm of a pattern.
    Source(Pattern),
    /// Requests and responses.
    Requests(Requests),
    /// Messages, each with a deadline.
    Messages(Messages),
}

/// One end of an application.
#[derive(Clone, Debug)]
pub enum App {
    /// Writes bytes in the rhythm of a pattern.
    Source(PieceSource),
    /// Makes requests.
    Client(Client),
    /// Answers them.
    Server(Server),
    /// Sends messages.
    Sender(MessageSource),
    /// Notes when messages arrive.
    Receiver(MessageSink),
}

/// Both ends of a flow's application.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The end that sends the flow's data.
    pub sender: Option<App>,
    /// The ends that receive it; `None` takes whatever arrives.
    pub receivers: Vec<Option<App>>,
    /// When the sender connects; `None` if the receiver does.
    pub sender_connects: Option<Time>,
    /// When the receiver connects; `None` if the sender does.
    pub receiver_connects: Option<Time>,
    /// The messages, of an application that sends messages.
    pub log: Option<MessageLog>,
}

impl Application {
    /// Bytes that it sends in all, if that is known before.
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::Source(Pattern::Object { size }) => Some(*size),
            _ => None,
        }
    }

    /// The two ends of the application, for a flow that begins at `start` and has `receivers`
    /// receivers. Random draws come from `stream`.
    pub fn pair(&self, start: Time, receivers: usize, stream: Stream) -> Pair {
        let mut pair = Pair {
            sender: None,
            receivers: vec![None; receivers],
            sender_connects: Some(start),
            receiver_connects: None,
            log: None,
        };
        match *self {
            Self::Source(pattern) => {
                pair.sender = Some(App::Source(PieceSource::new(pattern, start, stream)));
            }
            Self::Requests(requests) => {
                // The client is the receiver of the flow's data: it asks the sender.
                pair.sender = Some(App::Server(Server::new(requests)));
                pair.receivers = vec![Some(App::Client(Client::new(requests, stream)))];
                (pair.sender_connects, pair.receiver_connects) = (None, Some(start));
            }
            Self::Messages(messages) => {
                let log = MessageLog::new(receivers);
                let source = MessageSource::new(messages, start, stream, log.clone());
                pair.sender = Some(App::Sender(source));
                let sink = |receiver| Some(App::Receiver(MessageSink::new(log.clone(), receiver)));
                pair.receivers = (0..receivers).map(sink).collect();
                pair.log = Some(log);
            }
        }
        pair
    }

    /// Whether it ends by itself.
    pub const fn has_end(&self) -> bool {
        match self {
            Self::Source(pattern) => matches!(pattern, Pattern::Object { .. }),
            Self::Requests(requests) => requests.count.is_some(),
            Self::Messages(_) => false,
        }
    }

    /// Whether it needs a stream in both directions.
    pub const fn needs_answers(&self) -> bool {
        matches!(self, Self::Requests(_))
    }

    /// The deadline of its messages, if it has messages.
    pub const fn deadline(&self) -> Option<Duration> {
        match self {
            Self::Messages(messages) => Some(messages.deadline),
            _ => None,
        }
    }
}

impl App {
    /// When it next acts without being called; [`Time::MAX`] if never.
    pub fn due(&self) -> Time {
        let due = match self {
            Self::Source(source) => source.due(),
            Self::Client(client) => client.due(),
            Self::Sender(sender) => sender.due(),
            Self::Server(_) | Self::Receiver(_) => None,
        };
        due.unwrap_or(Time::MAX)
    }

    /// Whether it acts by the clock alone, so that nothing need be done when data arrives.
    pub const fn ignores_arrivals(&self) -> bool {
        matches!(self, Self::Source(_) | Self::Sender(_))
    }

    /// Acts: after data has arrived, and when it is due. False if it will never act again.
    pub fn act(&mut self, now: Time, socket: &mut impl AppSocket) -> bool {
        match self {
            Self::Source(source) => source.act(now, socket),
            Self::Client(client) => client.act(now, socket),
            Self::Server(server) => server.act(now, socket),
            Self::Sender(sender) => sender.act(now, socket),
            Self::Receiver(sink) => {
                if !socket.keeps_messages() {
                    sink.delivered(now, socket.delivered());
                }
                true
            }
        }
    }

    /// Notes that message `number` has arrived.
    pub fn on_message(&mut self, now: Time, number: u64) {
        if let Self::Receiver(sink) = self {
            sink.arrived(now, number);
        }
    }
}
