//! A path of a race.

use std::str::FromStr;

use fontis_base::{Duration, Rate};
use fontis_net::{Limit, LinkConfig, Loss, QueueKind};

/// A path between a sender and a receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RacePath {
    /// Its rate, both ways.
    pub rate: Rate,
    /// The round-trip time without queues.
    pub rtt: Duration,
    /// Random loss towards the receiver, before the queue.
    pub loss: Loss,
}

/// What is no path of a race.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no path: {problem}; write RATE,RTT or RATE,RTT,LOSS, as in 50mbit,20ms,1%")]
pub struct UnknownRacePath {
    text: String,
    problem: String,
}

impl RacePath {
    /// The share of its rate that arrives.
    pub(super) fn goodput(&self) -> f64 {
        self.rate.as_mbps_f64() * (1.0 - self.loss.stationary_rate())
    }

    /// The links there and back.
    pub(super) fn links(&self, buffer: Option<Limit>, queue: QueueKind) -> [LinkConfig; 2] {
        let back = LinkConfig {
            rate: self.rate,
            delay: self.rtt / 2,
            buffer: buffer.unwrap_or_else(|| Limit::one_bdp(self.rate, self.rtt)),
            queue,
            ..LinkConfig::default()
        };
        [LinkConfig { loss: self.loss, ..back.clone() }, back]
    }
}

impl FromStr for RacePath {
    type Err = UnknownRacePath;

    fn from_str(text: &str) -> Result<Self, UnknownRacePath> {
        let wrong = |problem: String| UnknownRacePath { text: text.to_owned(), problem };
        // A loss has commas of its own.
        let mut parts = text.splitn(3, ',').map(str::trim);
        let (Some(rate), Some(rtt)) = (parts.next(), parts.next()) else {
            return Err(wrong("it has no round-trip time".to_owned()));
        };
        let rate: Rate = rate.parse().map_err(|error| wrong(format!("{error}")))?;
        let rtt = rtt.parse().map_err(|error| wrong(format!("{error}")))?;
        let loss = parts.next().map_or(Ok(Loss::None), str::parse);
        let loss = loss.map_err(|error| wrong(format!("{error}")))?;
        if rate == Rate::ZERO || rate == Rate::MAX {
            return Err(wrong("its rate must be more than zero".to_owned()));
        }
        Ok(Self { rate, rtt, loss })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_and_what_is_none_is_named() {
        let path: RacePath = "30mbit, 40ms, gilbert:1%,25%".parse().unwrap();
        assert_eq!((path.rate, path.rtt), (Rate::from_mbps(30), Duration::from_millis(40)));
        assert!((path.loss.stationary_rate() - 1.0 / 26.0).abs() < 1e-9);
        assert!((path.goodput() - 30.0 * 25.0 / 26.0).abs() < 1e-6);
        assert_eq!("8mbit,1s".parse::<RacePath>().unwrap().loss, Loss::None);
        for text in ["", "50mbit", "x,20ms", "50mbit,x", "50mbit,20ms,x", "0mbit,20ms"] {
            let error = text.parse::<RacePath>().unwrap_err().to_string();
            assert!(error.contains("RATE,RTT,LOSS"), "{error}");
        }
    }
}
