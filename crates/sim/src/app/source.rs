//! Patterns of writes: bulk, objects, constant rate, Poisson, bursts.

use fontis_base::{Duration, Rate, Stream, Time};

use crate::analysis::exponential::exponential;
use crate::analysis::lognormal::log_normal;
use crate::app::socket::{AppMessage, AppSocket};

/// When an application has how much to send, whatever the transport makes of it.
#[derive(Clone, Debug)]
pub struct PieceSource {
    pattern: Pattern,
    /// When it has the next to send.
    due: Option<Time>,
    /// When the present burst ends, or the only one.
    burst_end: Time,
    stream: Stream,
}

/// What a source does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// More than can ever be sent.
    Bulk,
    /// So many bytes, and the end.
    Object {
        /// Bytes.
        size: u64,
    },
    /// Pieces at equal distances.
    ConstantRate {
        /// Bytes of payload per time.
        rate: Rate,
        /// Bytes of a piece.
        piece: u32,
        /// For how long, if there is an end.
        lasts: Option<Duration>,
    },
    /// Pieces at the distances of a Poisson process.
    Poisson {
        /// Bytes of payload per time in the mean.
        rate: Rate,
        /// Bytes of a piece.
        piece: u32,
    },
    /// Pieces of log-normally distributed sizes at the distances of a Poisson process.
    Spread {
        /// Bytes of payload per time in the mean.
        rate: Rate,
        /// Bytes of a piece in the mean.
        mean: u64,
        /// The standard deviation of the logarithm of a size.
        sigma: f64,
    },
    /// Bursts at a constant rate, and pauses; both exponentially distributed.
    OnOff {
        /// Bytes of payload per time in a burst.
        rate: Rate,
        /// Bytes of a piece.
        piece: u32,
        /// Mean length of a burst.
        on: Duration,
        /// Mean length of a pause.
        off: Duration,
    },
}

/// What a source has to send at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes.
    pub bytes: u64,
    /// Nothing follows.
    pub last: bool,
}

impl PieceSource {
    /// A source that begins at `start` and draws from `stream`.
    pub fn new(pattern: Pattern, start: Time, mut stream: Stream) -> Self {
        let burst_end = match pattern {
            Pattern::OnOff { on, .. } => start + exponential(&mut stream, on),
            Pattern::ConstantRate { lasts: Some(lasts), .. } => start + lasts,
            _ => Time::MAX,
        };
        Self { pattern, due: Some(start), burst_end, stream }
    }

    /// When the next piece is there.
    pub const fn due(&self) -> Option<Time> {
        self.due
    }

    /// The next piece, if it is there.
    pub fn next(&mut self, now: Time) -> Option<Piece> {
        let at = self.due.filter(|due| *due <= now)?;
        let whole = |bytes| Some(Piece { bytes, last: false });
        match self.pattern {
            Pattern::Bulk => {
                self.due = None;
                whole(u64::MAX / 4)
            }
            Pattern::Object { size } => {
                self.due = None;
                Some(Piece { bytes: size, last: true })
            }
            Pattern::ConstantRate { rate, piece, .. } => {
                self.due = later(at, rate.time_for(u64::from(piece)))
                    .filter(|next| *next < self.burst_end);
                Some(Piece { bytes: u64::from(piece), last: self.due.is_none() })
            }
            Pattern::Poisson { rate, piece } => {
                let gap = exponential(&mut self.stream, rate.time_for(u64::from(piece)));
                self.due = later(at, gap);
                whole(u64::from(piece))
            }
            Pattern::Spread { rate, mean, sigma } => {
                let gap = exponential(&mut self.stream, rate.time_for(mean));
                self.due = later(at, gap);
                whole(log_normal(&mut self.stream, mean, sigma))
            }
            Pattern::OnOff { rate, piece, on, off } => {
                let mut next = later(at, rate.time_for(u64::from(piece)));
                if next.is_some_and(|next| next >= self.burst_end) {
                    let begin = self.burst_end + exponential(&mut self.stream, off);
                    self.burst_end = begin + exponential(&mut self.stream, on);
                    next = Some(begin);
                }
                self.due = next;
                whole(u64::from(piece))
            }
        }
    }
}

impl PieceSource {
    /// Writes the pieces that are due. False once nothing follows.
    pub(super) fn act(&mut self, now: Time, socket: &mut impl AppSocket) -> bool {
        while let Some(piece) = self.next(now) {
            match socket.keeps_messages() {
                true => socket.send(now, AppMessage::of_size(piece.bytes)),
                false => socket.write(now, piece.bytes),
            }
            if piece.last {
                socket.finish(now);
            }
        }
        self.due().is_some()
    }
}

/// A time that is really later, or never: a source must not stand still.
fn later(at: Time, gap: Duration) -> Option<Time> {
    let next = at + gap.max(Duration::from_nanos(1));
    (next < Time::MAX).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a source in a time.
    fn bytes(pattern: Pattern, until: Duration) -> u64 {
        let mut source = PieceSource::new(pattern, Time::ZERO, Stream::new(3, "source"));
        let mut sum = 0;
        while let Some(due) = source.due().filter(|due| *due < Time::ZERO + until) {
            sum += source.next(due).expect("due").bytes;
        }
        sum
    }

    #[test]
    fn sources_send_at_their_mean_rates() {
        let rate = Rate::from_mbps(8);
        let span = Duration::from_secs(100);
        let constant = bytes(Pattern::ConstantRate { rate, piece: 1000, lasts: None }, span);
        assert_eq!(constant, 100_000_000);
        let poisson = bytes(Pattern::Poisson { rate, piece: 1000 }, span) as f64;
        // Four standard deviations of a Poisson count of 100 000.
        assert!((poisson / 1e8 - 1.0).abs() < 4.0 / 1e5f64.sqrt(), "{poisson}");
        let [on, off] = [Duration::from_millis(10), Duration::from_millis(30)];
        let bursts = bytes(Pattern::OnOff { rate, piece: 1000, on, off }, span) as f64;
        assert!((bursts / 25e6 - 1.0).abs() < 0.1, "{bursts}");
    }

    #[test]
    fn a_constant_source_ends_when_it_is_to() {
        let lasts = Some(Duration::from_secs(10));
        let pattern = Pattern::ConstantRate { rate: Rate::from_mbps(8), piece: 1000, lasts };
        let start = Time::ZERO + Duration::from_secs(20);
        let mut source = PieceSource::new(pattern, start, Stream::new(3, "source"));
        let mut pieces = Vec::new();
        while let Some(due) = source.due() {
            assert!(due >= start && due < start + Duration::from_secs(10));
            pieces.extend(source.next(due));
        }
        assert_eq!(pieces.iter().map(|piece| piece.bytes).sum::<u64>(), 10_000_000);
        assert_eq!(pieces.iter().filter(|piece| piece.last).count(), 1);
        assert!(pieces.last().is_some_and(|piece| piece.last));
    }

    #[test]
    fn an_object_is_there_at_once_and_ends() {
        let mut source =
            PieceSource::new(Pattern::Object { size: 5 }, Time::ZERO, Stream::new(3, "source"));
        assert_eq!(source.next(Time::ZERO), Some(Piece { bytes: 5, last: true }));
        assert_eq!((source.due(), source.next(Time::MAX)), (None, None));
    }

    #[test]
    fn a_source_of_infinite_rate_does_not_stand_still() {
        let pattern = Pattern::ConstantRate { rate: Rate::MAX, piece: 1, lasts: None };
        let mut source = PieceSource::new(pattern, Time::ZERO, Stream::new(3, "source"));
        source.next(Time::ZERO);
        assert!(source.due() > Some(Time::ZERO));
    }
}
