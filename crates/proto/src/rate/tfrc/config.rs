use fontis_base::Duration;

use super::equation::throughput;

/// The rules of a TFRC connection. Both ends have the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TfrcConfig {
    /// The standard that it follows.
    pub rules: TfrcRules,
    /// Whether packets are small by nature, as of voice (TFRC-SP, RFC 4828, CCID 4).
    pub small_packets: bool,
    /// The rate of slow start.
    pub slow_start: SlowStart,
    /// Whether the rate quadruples after a pause, up to what it was before (Faster Restart, draft
    /// ietf-dccp-tfrc-faster-restart).
    pub faster_restart: bool,
    /// What the first report allows in a round trip.
    pub initial: InitialRate,
    /// The rate in bytes a second, headers included, that every router of the path approves of in
    /// the handshake (Quick-Start, RFC 5634); zero without.
    pub approved: f64,
    /// Reports in a round trip.
    pub feedback: FeedbackCount,
    /// Bytes of headers that a small packet is charged for: 36 in RFC 5622 section 5, 40 in RFC
    /// 4828 section 4.2.
    pub header: u32,
    /// The packet size of TCP, in bytes, that small packets are compared with.
    pub nominal: u32,
}

/// The standard that a TFRC sender follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TfrcRules {
    /// RFC 3448, of 2003.
    Rfc3448,
    /// RFC 5348, of 2008.
    Rfc5348,
}

/// The rate of slow start. All but the first are proposals of Sarwar's thesis, section 4.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStart {
    /// That of the standard.
    Standard,
    /// That of packets of nominal size, corrected for headers (CCID4-N, equation 4.7).
    Equivalent,
    /// The same over a round trip of 100 ms, whatever the path's is (CCID4-N100, equation 4.13).
    Nominal,
}

/// What the first report allows in a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialRate {
    /// One packet (RFC 3448 section 4.2).
    Packet,
    /// The initial window of RFC 3390: up to four packets (RFC 5348 section 4.2).
    Window,
    /// That of RFC 6928: up to ten packets.
    Ten,
}

/// Reports in a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackCount {
    /// This many; one in the standard.
    Fixed(u32),
    /// One for each of these times that the round trip has, but no more than packets arrive (Sarwar
    /// 2014, equation 4.8).
    Dynamic {
        /// The round trip that one report is enough for.
        reference: Duration,
    },
}

/// The round-trip time of CCID4-N100.
const NOMINAL_RTT: f64 = 0.1;
/// Bytes that an initial window may have (RFC 3390).
const INITIAL_WINDOW: f64 = 4380.0;
/// The same of RFC 6928.
const TEN: f64 = 14_600.0;

impl Default for TfrcConfig {
    fn default() -> Self {
        Self {
            rules: TfrcRules::Rfc5348,
            small_packets: false,
            slow_start: SlowStart::Standard,
            faster_restart: false,
            initial: InitialRate::Window,
            approved: 0.0,
            feedback: FeedbackCount::Fixed(1),
            header: 36,
            nominal: 1460,
        }
    }
}

impl TfrcConfig {
    /// The share of a packet of `size` bytes that is not headers.
    fn header_correction(&self, size: f64) -> f64 {
        size / (size + f64::from(self.header))
    }

    /// The size that the packets count as in the equation, in bytes (thesis, equation 4.6).
    pub fn equation_size(&self, size: f64) -> f64 {
        match self.small_packets {
            true => f64::from(self.nominal) * self.header_correction(size),
            false => size,
        }
    }

    /// The rate that a loss event rate allows, in bytes a second (equations 4.5 and 4.6).
    pub fn equation_rate(&self, size: f64, rtt: f64, loss: f64) -> f64 {
        throughput(self.equation_size(size), rtt, 4.0 * rtt, loss)
    }

    /// The rate before the first report, in bytes a second: the one that routers approve of (RFC
    /// 5634 section 3.2.3), or the usual one.
    pub fn first_rate(&self, size: f64) -> f64 {
        (self.approved * self.header_correction(size)).max(self.unapproved_rate(size))
    }

    /// The rate before the first report without any router's word, in bytes a second: one packet a
    /// second.
    pub fn unapproved_rate(&self, size: f64) -> f64 {
        match self.slow_start {
            SlowStart::Standard => size,
            SlowStart::Equivalent | SlowStart::Nominal => {
                f64::from(self.nominal) * self.header_correction(size)
            }
        }
    }

    /// The rate after the first report, in bytes a second (equations 4.3, 4.7 and 4.13).
    pub fn initial_rate(&self, size: f64, rtt: f64) -> f64 {
        let corrected = INITIAL_WINDOW * self.header_correction(size);
        match self.slow_start {
            SlowStart::Standard if self.initial == InitialRate::Packet => size / rtt,
            SlowStart::Standard => self.window(size) / rtt,
            SlowStart::Equivalent => corrected / rtt,
            // A path shorter than the nominal one is no reason to be slower.
            SlowStart::Nominal => corrected / rtt.min(NOMINAL_RTT),
        }
    }

    /// The least rate of slow start, in bytes a second.
    pub fn slow_start_floor(&self, size: f64, rtt: f64) -> f64 {
        match (self.slow_start, self.rules) {
            (SlowStart::Standard, TfrcRules::Rfc3448) => size / rtt,
            _ => self.initial_rate(size, rtt),
        }
    }

    /// The rate that a pause does not reduce, in bytes a second.
    pub fn recover_rate(&self, size: f64, rtt: f64) -> f64 {
        let standard = match self.rules {
            TfrcRules::Rfc3448 => 2.0 * size / rtt,
            TfrcRules::Rfc5348 => self.window(size) / rtt,
        };
        let faster = match self.faster_restart {
            true => (8.0 * size).min(INITIAL_WINDOW.max(4.0 * size)) / rtt,
            false => 0.0,
        };
        let floor = match self.slow_start {
            SlowStart::Standard => 0.0,
            _ => self.initial_rate(size, rtt),
        };
        standard.max(faster).max(floor)
    }

    /// The initial window of RFC 3390 or 6928 in bytes.
    fn window(&self, size: f64) -> f64 {
        let (packets, bytes) = match self.initial {
            InitialRate::Ten => (10.0, TEN),
            InitialRate::Packet | InitialRate::Window => (4.0, INITIAL_WINDOW),
        };
        (packets * size).min(bytes.max(2.0 * size))
    }

    /// Reports in a round trip of `rtt` seconds in which `received` bytes a second arrive.
    pub fn reports(&self, rtt: f64, received: f64, size: f64) -> f64 {
        match self.feedback {
            FeedbackCount::Fixed(count) => f64::from(count.max(1)),
            FeedbackCount::Dynamic { reference } => {
                let wanted = libm::round(rtt / reference.as_secs_f64().max(1e-3)).max(1.0);
                wanted.min(rtt * received / size.max(1.0)).max(1.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(slow_start: SlowStart) -> TfrcConfig {
        TfrcConfig { small_packets: true, slow_start, ..TfrcConfig::default() }
    }

    #[test]
    fn initial_rates_are_those_of_the_thesis() {
        // Payload bytes, round trip in s, rates of equations 4.3, 4.7 and 4.13 in bytes/s.
        let rows = [
            (160.0, 0.1, [6400.0, 35755.1, 35755.1]),
            (160.0, 0.5, [1280.0, 7151.0, 35755.1]),
            (160.0, 1.0, [640.0, 3575.5, 35755.1]),
            (160.0, 1.3, [492.3, 2750.4, 35755.1]),
            (20.0, 1.0, [80.0, 1564.3, 15642.9]),
        ];
        let kinds = [SlowStart::Standard, SlowStart::Equivalent, SlowStart::Nominal];
        for (size, rtt, rates) in rows {
            for (kind, rate) in kinds.into_iter().zip(rates) {
                let got = config(kind).initial_rate(size, rtt);
                assert!((got - rate).abs() < 0.06, "{kind:?} {size} {rtt}: {got} {rate}");
            }
        }
        let first = |size| config(SlowStart::Equivalent).first_rate(size);
        assert!((first(160.0) - 1191.8).abs() < 0.1 && (first(20.0) - 521.4).abs() < 0.1);
    }

    #[test]
    fn an_initial_window_of_ten_packets_is_that_of_rfc_6928() {
        let ten = TfrcConfig { initial: InitialRate::Ten, ..TfrcConfig::default() };
        assert_eq!(ten.initial_rate(160.0, 1.0), 1600.0);
        assert_eq!(ten.initial_rate(1460.0, 0.5), 29_200.0);
        assert_eq!(ten.initial_rate(9000.0, 1.0), 18_000.0);
        assert_eq!(ten.recover_rate(160.0, 1.0), 1600.0);
    }

    #[test]
    fn the_number_of_reports_follows_the_round_trip_and_the_packets_in_it() {
        let feedback = FeedbackCount::Dynamic { reference: Duration::from_millis(100) };
        let config = TfrcConfig { feedback, ..TfrcConfig::default() };
        let reports = |rtt, packets: f64| config.reports(rtt, packets * 100.0 / rtt, 100.0);
        assert_eq!(reports(0.02, 50.0), 1.0);
        assert_eq!(reports(1.04, 50.0), 10.0);
        assert_eq!(reports(1.0, 4.0), 4.0);
        assert_eq!(reports(1.0, 0.0), 1.0);
    }
}
