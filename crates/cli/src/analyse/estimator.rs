//! The accuracy of the bandwidth estimator on a link of known rate.

use fontis_base::{Duration, Probability, Rate};
use fontis_sim::analysis::cellular::{Cellular, Web};
use fontis_sim::analysis::estimator::{Estimator as Algorithm, EstimatorForm};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::text::round;

/// The accuracy of the bandwidth estimator on web pages over a cellular link of known rate
///
/// Prints, for each threshold and gap, the estimate ÷ the link's mean rate over several hours, as
/// published and improved (mean, least and most of all hours), and the number of busy periods an
/// hour. Link and pages are models: the rate of each 100 ms is log-normal with a memory of 5 s;
/// pages have Pareto-distributed sizes around 400 kB, 8 s apart.
#[derive(Debug, clap::Args)]
pub(super) struct Estimator {
    /// The link's mean rate
    #[arg(long, value_name = "RATE", default_value = "3Mbit/s")]
    rate: Rate,
    /// The standard deviation of its rate, as a share of the mean
    #[arg(long, value_name = "SHARE", default_value = "20%")]
    variation: Probability,
    /// Length of each run
    #[arg(long, value_name = "TIME", default_value = "60min")]
    length: Duration,
    /// Number of runs; their seeds count from 1
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: u64,
    /// The distance of probes
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    distance: Duration,
    /// Queueing delays above which the link is busy
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_values = ["25ms", "50ms", "100ms", "200ms", "300ms"])]
    threshold: Vec<Duration>,
    /// Distances of probes after which the queue is unknown
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_values = ["300ms", "1s", "3s"])]
    gap: Vec<Duration>,
}

/// The longest evaluation: a thousand probes a second for a day.
const MOST_PROBES: f64 = 8.64e7;

pub(super) fn evaluate(args: &Estimator) -> Result<(Value, Vec<String>), Failure> {
    let wrong = |text: &str| Err(Failure::Usage(text.to_owned()));
    let (seconds, distance) = (args.length.as_secs_f64(), args.distance.as_secs_f64());
    let times = args.threshold.iter().chain(&args.gap).chain([&args.distance, &args.length]);
    if times.copied().any(|time| time == Duration::ZERO) || args.rate == Rate::ZERO {
        return wrong("times and the rate must be more than zero");
    }
    if args.runs as f64 * seconds / distance > MOST_PROBES {
        return wrong(
            "that is more than a thousand probes a second for a day: give fewer or shorter runs",
        );
    }
    let runs = (1..=args.runs).map(|seed| {
        let rate = args.rate.as_bps() as f64;
        let link = Cellular::varying(seed, rate, args.variation.get(), seconds);
        (link.mean_rate(), link.carry(seed, &Web::default(), distance))
    });
    let runs: Vec<_> = runs.collect();
    let mut lines = vec![
        "threshold       gap   busy periods an hour   published ÷ truth      improved ÷ truth"
            .to_owned(),
    ];
    let mut cases = Vec::new();
    for (threshold, gap) in
        args.threshold.iter().flat_map(|threshold| args.gap.iter().map(move |gap| (threshold, gap)))
    {
        let of = |form| {
            let (threshold, gap) = (threshold.as_secs_f64(), gap.as_secs_f64());
            let algorithm = Algorithm { distance, threshold, gap, form, ..Algorithm::default() };
            let (mut ratios, mut periods) = (Vec::new(), 0);
            for (truth, (probes, traffic)) in &runs {
                let estimate = algorithm.estimate(probes, traffic);
                periods += estimate.periods.len();
                ratios.extend(estimate.rate.map(|rate| rate / truth));
            }
            (Ratios::of(&ratios), periods as f64 / (runs.len() as f64 * seconds / 3600.0))
        };
        let ((published, _), (improved, periods)) =
            (of(EstimatorForm::Printed), of(EstimatorForm::Improved));
        let text = |ratios: &Option<Ratios>| {
            ratios.as_ref().map_or("no estimate".to_owned(), Ratios::text)
        };
        lines.push(format!(
            "{:>9} {:>9}   {periods:>20.0}   {:<20}   {}",
            threshold.to_string(),
            gap.to_string(),
            text(&published),
            text(&improved)
        ));
        let as_json = |ratios: Option<Ratios>| ratios.map(|ratios| ratios.json());
        cases.push(json!({
            "threshold": threshold.as_secs_f64(), "gap": gap.as_secs_f64(), "busy_periods_an_hour": round(periods),
            "published": as_json(published), "improved": as_json(improved),
        }));
    }
    let truth: Vec<f64> = runs.iter().map(|(truth, _)| *truth).collect();
    Ok((json!({"mean_rates_bps": truth, "cases": cases}), lines))
}

/// Estimates ÷ true rates.
struct Ratios {
    mean: f64,
    least: f64,
    most: f64,
}

impl Ratios {
    fn of(ratios: &[f64]) -> Option<Self> {
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        (!ratios.is_empty()).then_some(Self { mean, least, most })
    }

    fn text(&self) -> String {
        format!("{:.3} [{:.3}–{:.3}]", self.mean, self.least, self.most)
    }

    fn json(&self) -> Value {
        json!({"mean": self.mean, "least": self.least, "most": self.most})
    }
}
