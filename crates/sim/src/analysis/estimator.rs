//! The bandwidth estimator of the DFCP works: the rate of a link from probes.

/// Algorithm 1 of the dissertation (section 6.3): the rate of a link from small probe packets that
/// are sent at equal distances and queue behind other traffic. While they find a queue, the link is
/// busy, and what arrives meanwhile is its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimator {
    /// d, the distance at which probes are sent, in seconds.
    pub distance: f64,
    /// th, the queueing delay from which on the link is busy, in seconds. The text leaves the unit
    /// open.
    pub threshold: f64,
    /// gap, the distance of two arrivals that says that there is no queue to be known any more, in
    /// seconds.
    pub gap: f64,
    /// How far two probes' distance may be from d to say that the queue is empty (D-38; on paper it
    /// is exactly d).
    pub tolerance: f64,
    /// Which form.
    pub form: EstimatorForm,
}

/// Which form of the algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EstimatorForm {
    /// As it is printed: a busy period begins with the probe before the one that was delayed, ends
    /// with the one before the first that is not, and all count the same.
    #[default]
    Printed,
    /// A busy period is what lies between two probes that were both delayed, queueing delay is
    /// never less than none, and periods count as long as they are: what idles before the first is
    /// no part of it, and short ones decide little.
    Improved,
}

/// A time in which the link was busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BusyPeriod {
    /// When it began, in seconds.
    pub begin: f64,
    /// When it ended.
    pub end: f64,
    /// Bytes that arrived in it, both ends included.
    pub bytes: u64,
}

impl BusyPeriod {
    /// Bits per second.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 * 8.0 / (self.end - self.begin)
    }
}

/// What an estimation found.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Bits per second; `None` if there was no busy period, which says nothing about the link.
    pub rate: Option<f64>,
    /// The busy periods.
    pub periods: Vec<BusyPeriod>,
}

impl Default for Estimator {
    fn default() -> Self {
        Self {
            distance: 0.1,
            threshold: 0.05,
            gap: 1.0,
            tolerance: 0.005,
            form: EstimatorForm::default(),
        }
    }
}

impl Estimator {
    /// The estimate from the arrival times of probes and of the other packets with their bytes,
    /// both in order.
    pub fn estimate(&self, probes: &[f64], traffic: &[(f64, u32)]) -> Estimate {
        let mut monitor = Monitor::new(*self);
        let mut traffic = traffic.iter().peekable();
        for probe in probes {
            while let Some((at, bytes)) = traffic.next_if(|(at, _)| at <= probe) {
                monitor.packet(*at, *bytes);
            }
            monitor.probe(*probe);
        }
        monitor.estimate()
    }
}

/// The algorithm while packets arrive. What it keeps does not grow but by the busy periods that it
/// has found.
#[derive(Clone, Debug)]
pub struct Monitor {
    estimator: Estimator,
    /// Whether the queue's length is known, and what it is, in seconds.
    queue: Option<f64>,
    /// Where the present busy period began, if there is one.
    begin: Option<Mark>,
    /// The latest probe.
    last: Option<Mark>,
    /// Bytes that have arrived.
    total: u64,
    /// When the latest packet arrived, and what had arrived before that time.
    latest: (f64, u64),
    periods: Vec<BusyPeriod>,
}

/// The arrival of a probe.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: f64,
    /// Bytes that had arrived before it, without and with what came at the same time.
    before: u64,
    until: u64,
}

impl Monitor {
    /// Before anything has arrived.
    pub const fn new(estimator: Estimator) -> Self {
        let latest = (f64::NEG_INFINITY, 0);
        Self {
            estimator,
            queue: None,
            begin: None,
            last: None,
            total: 0,
            latest,
            periods: Vec::new(),
        }
    }

    /// Takes the arrival of a packet that is no probe: when, in seconds, no earlier than the one
    /// before, and how many bytes.
    pub fn packet(&mut self, at: f64, bytes: u32) {
        if at > self.latest.0 {
            self.latest = (at, self.total);
        }
        self.total += u64::from(bytes);
    }

    /// Takes the arrival of a probe, and gives the busy period that has come to its end by it.
    pub fn probe(&mut self, at: f64) -> Option<BusyPeriod> {
        let before = if self.latest.0 < at { self.total } else { self.latest.1 };
        let next = Mark { at, before, until: self.total };
        let now = self.last.replace(next)?;
        let Estimator { distance, threshold, gap, tolerance, form } = self.estimator;
        let apart = at - now.at;
        let Some(queue) = &mut self.queue else {
            self.queue = ((apart - distance).abs() <= tolerance).then_some(0.0);
            return None;
        };
        if apart > gap {
            // Something else happened: an open busy period is worth nothing.
            (self.queue, self.begin) = (None, None);
            return None;
        }
        *queue += apart - distance;
        if form == EstimatorForm::Improved {
            *queue = queue.max(0.0);
        }
        // Rounding must not decide.
        let is_busy = *queue >= threshold - 1e-9;
        match (is_busy, self.begin) {
            (true, None) => {
                self.begin = Some(if form == EstimatorForm::Printed { now } else { next });
            }
            (false, Some(since)) => {
                self.begin = None;
                if now.at > since.at {
                    let bytes = now.until - since.before;
                    let period = BusyPeriod { begin: since.at, end: now.at, bytes };
                    self.periods.push(period);
                    return Some(period);
                }
            }
            _ => {}
        }
        None
    }

    /// The estimate from what has arrived.
    pub fn estimate(&self) -> Estimate {
        let periods = self.periods.clone();
        let (seconds, bits) = periods.iter().fold((0.0, 0.0), |(seconds, bits), period| {
            (seconds + period.end - period.begin, bits + period.bytes as f64 * 8.0)
        });
        let mean = match self.estimator.form {
            EstimatorForm::Printed => {
                periods.iter().map(BusyPeriod::rate).sum::<f64>() / periods.len() as f64
            }
            EstimatorForm::Improved => bits / seconds,
        };
        Estimate { rate: (!periods.is_empty()).then_some(mean), periods }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::cellular::{Cellular, Web};

    #[test]
    fn busy_periods_of_the_specification_s_vector() {
        let probes = [
            0, 100, 200, 360, 500, 600, 700, 760, 800, 900, 1030, 1130, 2330, 2430, 2610, 2710,
            2730, 2830,
        ];
        let probes: Vec<f64> = probes.iter().map(|at| f64::from(*at) * 1e-3).collect();
        let user = (210..=690).step_by(10).chain((2000..=2680).step_by(20));
        let user: Vec<(f64, u32)> = user.map(|at| (f64::from(at) * 1e-3, 1500)).collect();
        let estimate = Estimator::default().estimate(&probes, &user);
        let periods: Vec<(f64, f64, u64)> =
            estimate.periods.iter().map(|p| (p.begin, p.end, p.bytes)).collect();
        assert_eq!(periods, [(0.2, 0.76, 73_500), (2.43, 2.71, 19_500)]);
        assert!((estimate.periods[0].rate() - 1_050_000.0).abs() < 1.0);
        assert!((estimate.periods[1].rate() - 557_142.9).abs() < 1.0);
        assert!((estimate.rate.expect("two periods") - 803_571.4).abs() < 1.0);
    }

    #[test]
    fn without_a_busy_period_there_is_no_estimate() {
        let probes: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.1).collect();
        let traffic: Vec<(f64, u32)> = (0..1000).map(|i| (f64::from(i) * 0.01, 1000)).collect();
        for form in [EstimatorForm::Printed, EstimatorForm::Improved] {
            let estimator = Estimator { form, ..Estimator::default() };
            assert_eq!(estimator.estimate(&probes, &traffic).rate, None);
            assert_eq!(estimator.estimate(&[], &[]).rate, None);
        }
    }

    #[test]
    fn a_constant_link_s_rate_is_found_within_three_percent() {
        for (seed, mbps) in [(1, 1.0), (2, 3.0), (3, 8.0)] {
            let link = Cellular::constant(mbps * 1e6, 1800.0);
            let web = Web::default();
            let (probes, traffic) = link.carry(seed, &web, 0.1);
            for (form, within) in [(EstimatorForm::Printed, 0.12), (EstimatorForm::Improved, 0.03)]
            {
                let estimate =
                    Estimator { form, ..Estimator::default() }.estimate(&probes, &traffic);
                let rate = estimate.rate.expect("web pages fill the link") * 1e-6;
                assert!((rate / mbps - 1.0).abs() < within, "{form:?}: {rate} for {mbps}");
            }
        }
    }
}
