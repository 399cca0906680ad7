/// Algorithm 1 of the dissertation (section 6.3): the rate of a link from small probe packets that are sent at equal distances
/// and queue behind other traffic. While they find a queue, the link is busy, and what arrives meanwhile is its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimator {
    /// d, the distance at which probes are sent, in seconds.
    pub distance: f64,
    /// th, the queueing delay from which on the link is busy, in seconds. The text leaves the unit open.
    pub threshold: f64,
    /// gap, the distance of two arrivals that says that there is no queue to be known any more, in seconds.
    pub gap: f64,
    /// How far two probes' distance may be from d to say that the queue is empty (D-38; on paper it is exactly d).
    pub tolerance: f64,
    /// Which form.
    pub form: Form,
}

/// Which form of the algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As it is printed: a busy period begins with the probe before the one that was delayed, ends with the one before the
    /// first that is not, and all count the same.
    #[default]
    Printed,
    /// A busy period is what lies between two probes that were both delayed, queueing delay is never less than none, and
    /// periods count as long as they are: what idles before the first is no part of it, and short ones decide little.
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
        Self { distance: 0.1, threshold: 0.05, gap: 1.0, tolerance: 0.005, form: Form::default() }
    }
}

impl Estimator {
    /// The estimate from the arrival times of probes and of the other packets with their bytes, both in order.
    pub fn estimate(&self, probes: &[f64], traffic: &[(f64, u32)]) -> Estimate {
        let (mut knows_queue, mut queue) = (false, 0.0);
        let mut begin: Option<f64> = None;
        let mut periods = Vec::new();
        for pair in probes.windows(2) {
            let (now, next) = (pair[0], pair[1]);
            let apart = next - now;
            if !knows_queue {
                if (apart - self.distance).abs() <= self.tolerance {
                    (knows_queue, queue) = (true, 0.0);
                }
                continue;
            }
            if apart > self.gap {
                // Something else happened: an open busy period is worth nothing.
                (knows_queue, begin) = (false, None);
                continue;
            }
            queue += apart - self.distance;
            if self.form == Form::Improved {
                queue = queue.max(0.0);
            }
            // Rounding must not decide.
            let is_busy = queue >= self.threshold - 1e-9;
            match (is_busy, begin) {
                (true, None) => {
                    begin = Some(if self.form == Form::Printed { now } else { next });
                }
                (false, Some(since)) => {
                    begin = None;
                    if now > since {
                        periods.push(period(since, now, traffic));
                    }
                }
                _ => {}
            }
        }
        let (seconds, bits) = periods.iter().fold((0.0, 0.0), |(seconds, bits), period| {
            (seconds + period.end - period.begin, bits + period.bytes as f64 * 8.0)
        });
        let mean = match self.form {
            Form::Printed => {
                periods.iter().map(BusyPeriod::rate).sum::<f64>() / periods.len() as f64
            }
            Form::Improved => bits / seconds,
        };
        Estimate { rate: (!periods.is_empty()).then_some(mean), periods }
    }
}

fn period(begin: f64, end: f64, traffic: &[(f64, u32)]) -> BusyPeriod {
    let first = traffic.partition_point(|(at, _)| *at < begin);
    let inside = traffic[first..].iter().take_while(|(at, _)| *at <= end);
    BusyPeriod { begin, end, bytes: inside.map(|(_, bytes)| u64::from(*bytes)).sum() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cellular::{Cellular, Web};

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
        for form in [Form::Printed, Form::Improved] {
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
            for (form, within) in [(Form::Printed, 0.12), (Form::Improved, 0.03)] {
                let estimate =
                    Estimator { form, ..Estimator::default() }.estimate(&probes, &traffic);
                let rate = estimate.rate.expect("web pages fill the link") * 1e-6;
                assert!((rate / mbps - 1.0).abs() < within, "{form:?}: {rate} for {mbps}");
            }
        }
    }
}
