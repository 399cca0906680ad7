//! Requests and responses, one after the other on one connection.

use fontis_base::{Duration, Stream, Time};

use crate::analysis::exponential::exponential;
use crate::app::socket::AppSocket;

/// Requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// Bytes of a request.
    pub request: u64,
    /// Bytes of a response.
    pub response: u64,
    /// Mean of the exponentially distributed time between a response and the next request.
    pub think: Duration,
    /// The number of requests; `None` is without end.
    pub count: Option<u64>,
}

/// The end that makes requests.
#[derive(Clone, Debug)]
pub struct Client {
    requests: Requests,
    asked: u64,
    next: Option<Time>,
    stream: Stream,
}

/// The end that answers them.
#[derive(Clone, Debug)]
pub struct Server {
    requests: Requests,
    answered: u64,
}

impl Client {
    /// A client; the times between its requests come from `stream`.
    pub const fn new(requests: Requests, stream: Stream) -> Self {
        Self { requests, asked: 0, next: None, stream }
    }

    /// When it makes the next request.
    pub const fn due(&self) -> Option<Time> {
        self.next
    }

    pub(super) fn act(&mut self, now: Time, socket: &mut impl AppSocket) -> bool {
        let Self { requests, asked, next, stream } = self;
        if next.is_none() && socket.delivered() >= *asked * requests.response {
            // The response is there: think, and ask again, or end.
            if requests.count.is_some_and(|count| *asked >= count) {
                socket.finish(now);
                return true;
            }
            let think =
                if *asked == 0 { Duration::ZERO } else { exponential(stream, requests.think) };
            *next = Some(now + think);
        }
        if next.is_some_and(|next| now >= next) {
            *next = None;
            *asked += 1;
            socket.write(now, requests.request);
        }
        true
    }
}

impl Server {
    /// A server.
    pub const fn new(requests: Requests) -> Self {
        Self { requests, answered: 0 }
    }

    pub(super) fn act(&mut self, now: Time, socket: &mut impl AppSocket) -> bool {
        while socket.delivered() >= (self.answered + 1) * self.requests.request.max(1) {
            self.answered += 1;
            socket.write(now, self.requests.response);
        }
        true
    }
}
