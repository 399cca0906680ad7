use fontis_base::{Duration, Time};

use super::config::TcpConfig;

/// The retransmission timer's estimate (RFC 6298).
///
/// The floor stands where Linux has it: RTO = SRTT + max(floor, 4·RTTVAR), so that a long path with
/// a steady round-trip time does not time out on the first late acknowledgement. With a floor of 1
/// s this is never less than the RFC's own rule (2.4).
#[derive(Clone, Debug)]
pub(super) struct RttEstimator {
    /// [`Duration::MAX`] before the first sample.
    srtt: Duration,
    rttvar: Duration,
    min_rtt: Duration,
    latest: Duration,
    /// How often the timeout has been doubled since the last new acknowledgement.
    backoff: u32,
}

/// No timeout is longer (RFC 6298 rule 2.5 allows any maximum of at least 60 s; Linux has 120 s).
const MAX_RTO: Duration = Duration::from_secs(120);

impl RttEstimator {
    pub(super) fn new() -> Self {
        Self {
            srtt: Duration::MAX,
            rttvar: Duration::ZERO,
            min_rtt: Duration::MAX,
            latest: Duration::ZERO,
            backoff: 0,
        }
    }

    pub(super) fn srtt(&self) -> Option<Duration> {
        (self.srtt < Duration::MAX).then_some(self.srtt)
    }

    /// The least round-trip time seen; [`Duration::MAX`] before the first.
    pub(super) fn min_rtt(&self) -> Duration {
        self.min_rtt
    }

    /// The latest sample.
    pub(super) fn latest(&self) -> Duration {
        self.latest
    }

    /// Takes a sample for the timer; `fresh` is the one without the receiver's delay, which may be
    /// the same.
    pub(super) fn sample(&mut self, rtt: Duration, fresh: Duration) {
        self.min_rtt = self.min_rtt.min(fresh);
        self.latest = fresh;
        match self.srtt() {
            None => {
                self.srtt = rtt;
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                let error = Duration::from_nanos(srtt.as_nanos().abs_diff(rtt.as_nanos()));
                // Beta is 1/4 and alpha 1/8 (rule 2.3).
                self.rttvar = (self.rttvar * 3 + error) / 4;
                self.srtt = (srtt * 7 + rtt) / 8;
            }
        }
    }

    /// The timeout. What it begins with and the floor are the configuration's.
    pub(super) fn rto(&self, config: &TcpConfig) -> Duration {
        let base = match self.srtt() {
            None => config.initial_rto,
            Some(srtt) => srtt + (self.rttvar * 4).max(config.min_rto),
        };
        (base * (1 << self.backoff.min(20))).min(MAX_RTO)
    }

    /// The timer has expired: "back off the timer" (rule 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// New data were acknowledged.
    pub(super) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// When the timer that is started at `now` expires.
    pub(super) fn deadline(&self, now: Time, config: &TcpConfig) -> Time {
        now + self.rto(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_first_sample_and_the_next_follow_rules_2_2_and_2_3() {
        let config = TcpConfig { min_rto: ms(0), ..TcpConfig::default() };
        let mut rtt = RttEstimator::new();
        assert_eq!(rtt.rto(&config), Duration::from_secs(1));
        rtt.sample(ms(100), ms(100));
        assert_eq!((rtt.srtt(), rtt.rto(&config)), (Some(ms(100)), ms(300)));
        rtt.sample(ms(140), ms(140));
        // RTTVAR = 3/4 · 50 + 1/4 · 40 = 47.5, SRTT = 7/8 · 100 + 1/8 · 140 = 105.
        assert_eq!(rtt.rto(&config), Duration::from_micros(105_000 + 4 * 47_500));
    }

    #[test]
    fn the_timeout_doubles_until_new_data_are_acknowledged() {
        let config = TcpConfig::default();
        let mut rtt = RttEstimator::new();
        rtt.sample(ms(40), ms(40));
        assert_eq!(rtt.rto(&config), ms(240));
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(&config), ms(960));
        for _ in 0..40 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(&config), MAX_RTO);
        rtt.reset_backoff();
        assert_eq!(rtt.rto(&config), ms(240));
    }
}
