//! A cellular downlink as a trace of delivery opportunities, and web traffic over it: what the
//! bandwidth estimator is judged on, with a truth that is known.

use fontis_base::{Duration, Stream, Time};
use fontis_net::{DeliveryLine, DeliveryTrace};

use crate::analysis::exponential::exponential;

/// The times at which a link can deliver 1500 bytes, as mahimahi's traces have them.
///
/// The rate is that of an HSDPA phone: the logarithm of the mean rate of each 100 ms follows a
/// first-order autoregressive process with a time constant of 5 s, so that the rate's coefficient
/// of variation is the one that is asked for; within 100 ms opportunities lie evenly.
#[derive(Clone, Debug, PartialEq)]
pub struct Cellular {
    /// In milliseconds, ascending.
    opportunities: Vec<u64>,
    /// How long it lasts, in milliseconds.
    length: u64,
}

/// Bytes that an opportunity carries.
const OPPORTUNITY: u32 = 1500;
/// Bytes of a probe.
pub const PROBE: u32 = 60;
const STEP: f64 = 0.1;
const MEMORY: f64 = 5.0;

/// Page loads as a person makes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Web {
    /// Mean bytes of a page; sizes have a Pareto distribution of shape 1.5, and none is above fifty
    /// times the mean.
    pub page: f64,
    /// Mean seconds between a page and the next, exponentially distributed.
    pub think: f64,
    /// How fast servers send a page, in bit/s: faster than the link, so that it queues.
    pub server: f64,
}

impl Default for Web {
    fn default() -> Self {
        Self { page: 400_000.0, think: 8.0, server: 20e6 }
    }
}

/// Arrival times of probes, and of other packets with their bytes, in seconds.
pub type Arrivals = (Vec<f64>, Vec<(f64, u32)>);

impl Cellular {
    /// A link of this mean rate (bit/s) and coefficient of variation for so many seconds.
    pub fn varying(seed: u64, mean: f64, variation: f64, seconds: f64) -> Self {
        let mut stream = Stream::new(seed, "cellular");
        // Of a log-normal: σ² = ln(1 + cv²), and a mean of one needs −σ²/2.
        let sigma2 = libm::log1p(variation * variation);
        let keep = libm::exp(-STEP / MEMORY);
        let fresh = libm::sqrt((1.0 - keep * keep) * sigma2);
        let mut normal = move || (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0;
        let mut level = libm::sqrt(sigma2) * normal();
        let (mut opportunities, mut credit) = (Vec::new(), 0.0);
        for millisecond in 0..(seconds * 1e3) as u64 {
            if millisecond > 0 && millisecond.is_multiple_of((STEP * 1e3) as u64) {
                level = keep * level + fresh * normal();
            }
            let rate = mean * libm::exp(level - sigma2 / 2.0);
            credit += rate * 1e-3 / (8.0 * f64::from(OPPORTUNITY));
            while credit >= 1.0 {
                credit -= 1.0;
                opportunities.push(millisecond);
            }
        }
        Self { opportunities, length: (seconds * 1e3) as u64 }
    }

    /// A link of constant rate (bit/s) for so many seconds.
    pub fn constant(rate: f64, seconds: f64) -> Self {
        Self::varying(0, rate, 0.0, seconds)
    }

    /// The trace for a link, whose opportunities come at the end of their milliseconds. An error
    /// says what is wrong if there is none.
    pub fn trace(&self) -> Result<DeliveryTrace, (usize, &'static str)> {
        DeliveryTrace::new(self.opportunities.iter().map(|at| at + 1).collect())
    }

    /// What it carries at most, in bit/s.
    pub fn mean_rate(&self) -> f64 {
        self.opportunities.len() as f64 * f64::from(OPPORTUNITY) * 8e3 / self.length.max(1) as f64
    }

    /// Lets web traffic and probes of [`PROBE`] bytes, one in `distance` seconds, pass it through a
    /// queue without end.
    pub fn carry(&self, seed: u64, web: &Web, distance: f64) -> Arrivals {
        let (mut probes, mut traffic) = (Vec::new(), Vec::new());
        let Ok(trace) = self.trace() else { return (probes, traffic) };
        let mut line = DeliveryLine::new(trace);
        for (sent, size) in self.offered(seed, web, distance) {
            let sent = Time::ZERO + Duration::from_secs_f64(sent);
            let arrived = line.send(sent, u64::from(size)).as_secs_f64();
            if arrived > self.length as f64 * 1e-3 {
                break;
            }
            if size == PROBE {
                probes.push(arrived);
            } else {
                traffic.push((arrived, size));
            }
        }
        (probes, traffic)
    }

    /// Packets in the order in which they come to the link: when, and how many bytes.
    fn offered(&self, seed: u64, web: &Web, distance: f64) -> Vec<(f64, u32)> {
        let mut stream = Stream::new(seed, "web");
        let end = self.length as f64 * 1e-3;
        let count = (end / distance) as u32;
        let mut packets: Vec<(f64, u32)> =
            (0..count).map(|i| (f64::from(i) * distance, PROBE)).collect();
        let mut at = 0.0;
        loop {
            let think = Duration::from_secs_f64(web.think);
            at += exponential(&mut stream, think).as_secs_f64();
            if at >= end {
                break;
            }
            // Pareto of shape 1.5: the mean is three times the least.
            let size = web.page / 3.0 / libm::pow(1.0 - stream.unit(), 1.0 / 1.5);
            let mut left = size.min(50.0 * web.page) as u32;
            while left > 0 {
                let part = left.min(OPPORTUNITY);
                left -= part;
                // Nothing but probes has a probe's size.
                packets.push((at, if part == PROBE { part + 1 } else { part }));
                at += f64::from(part) * 8.0 / web.server;
            }
        }
        packets.sort_by(|a, b| a.0.total_cmp(&b.0));
        packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_the_rate_that_was_asked_for_and_is_the_same_for_the_same_seed() {
        let link = Cellular::constant(3e6, 100.0);
        assert!((link.mean_rate() / 3e6 - 1.0).abs() < 1e-3);
        let varying = Cellular::varying(1, 3e6, 0.25, 3600.0);
        assert!((varying.mean_rate() / 3e6 - 1.0).abs() < 0.05, "{}", varying.mean_rate());
        assert_eq!(varying, Cellular::varying(1, 3e6, 0.25, 3600.0));
        let trace = Cellular::constant(12e6, 0.003).trace().expect("three opportunities");
        assert_eq!(
            (trace.opportunities(), trace.mean_rate().as_bps()),
            (&[1, 2, 3][..], 12_000_000)
        );
    }

    #[test]
    fn what_is_carried_is_what_was_offered_and_no_faster_than_the_link() {
        let link = Cellular::constant(3e6, 600.0);
        let (probes, traffic) = link.carry(1, &Web::default(), 0.1);
        assert!((5900..=6000).contains(&probes.len()), "{}", probes.len());
        for window in traffic.windows(100) {
            let bits: f64 = window.iter().skip(1).map(|(_, bytes)| f64::from(*bytes) * 8.0).sum();
            let seconds = window[99].0 - window[0].0;
            assert!(bits <= 3e6 * (seconds + 0.01), "{bits} in {seconds}");
        }
    }
}
