//! What is to be said of a recording's course over time.

use fontis_base::{Duration, Rate, Time};

use crate::analysis::fountain;
use crate::experiment::spec::{Experiment, Subject};
use crate::recording::Recording;
use crate::recording::metrics::spread;
use crate::recording::metrics::{self, quantile};

/// Metrics of the samples since `begin`, each with its subject.
pub(crate) fn metrics(
    experiment: &Experiment,
    recording: &Recording,
    begin: Time,
) -> Vec<(String, String, f64)> {
    let series = Series::new(experiment, recording);
    let mut found = Vec::new();
    series.queues(recording, begin, &mut found);
    if series.flows.is_empty() || series.times.len() < 3 {
        return found;
    }
    let window = series.since(begin);
    series.goodputs(experiment, window.clone(), &mut found);
    series.windows(experiment, recording, &mut found);
    if series.flows.len() > 1 {
        series.fairness(experiment, window.clone(), &mut found);
    }
    series.adaptation(experiment, window, &mut found);
    if let Some(bytes) = experiment.measure {
        series.deliveries(experiment, begin, bytes as f64 * 8.0, &mut found);
    }
    found
}

type Found = Vec<(String, String, f64)>;

/// Goodputs by flow and sample, in bit/s: those of sample i are of the time from i−1 to i.
struct Series {
    times: Vec<f64>,
    subjects: Vec<Subject>,
    flows: Vec<Vec<f64>>,
}

/// Samples over which the published figures take means.
const SMOOTH: usize = 10;
/// Samples of the long scale.
const LONG: usize = 60;
/// Parts of a run.
const BINS: usize = 30;
/// Flows whose parts are recorded.
const MOST_BINNED: usize = 10;

impl Series {
    fn new(experiment: &Experiment, recording: &Recording) -> Self {
        let subjects = experiment.subjects();
        let count = subjects.len();
        let times = recording.flow.numbers("time");
        let received = recording.flow.numbers("received");
        if count == 0 {
            return Self { times: Vec::new(), subjects, flows: Vec::new() };
        }
        let times: Vec<f64> = times.into_iter().step_by(count).collect();
        let mut flows = vec![vec![0.0; times.len()]; count];
        for sample in 1..times.len() {
            let span = times[sample] - times[sample - 1];
            for (flow, goodputs) in flows.iter_mut().enumerate() {
                let at = |sample: usize| received[sample * count + flow];
                if span > 0.0 {
                    goodputs[sample] = (at(sample) - at(sample - 1)) * 8.0 / span;
                }
            }
        }
        Self { times, subjects, flows }
    }

    fn since(&self, begin: Time) -> std::ops::Range<usize> {
        let begin = begin.as_secs_f64();
        let first = self.times.iter().position(|time| *time > begin + 1e-9);
        first.unwrap_or(self.times.len())..self.times.len()
    }

    fn total(&self, sample: usize) -> f64 {
        self.flows.iter().map(|flow| flow[sample]).sum()
    }

    /// The mean goodput of a flow over the last ten samples.
    fn smooth(&self, flow: usize, sample: usize) -> f64 {
        let first = (sample + 1).saturating_sub(SMOOTH).max(1);
        let span = self.times[sample] - self.times[first - 1];
        let bits: f64 = (first..=sample)
            .map(|at| self.flows[flow][at] * (self.times[at] - self.times[at - 1]))
            .sum();
        if span > 0.0 { bits / span } else { 0.0 }
    }

    fn queues(&self, recording: &Recording, begin: Time, found: &mut Found) {
        let Some(names) = recording.queue.texts("queue") else { return };
        let column = |name| recording.queue.numbers(name);
        let (times, means) = (column("time"), column("mean_packets"));
        let (arrived, dropped) = (column("arrived"), column("dropped"));
        let mut bottlenecks: Vec<&str> = names.different().iter().map(|name| &**name).collect();
        bottlenecks.sort_unstable();
        for name in bottlenecks {
            let rows = (0..times.len()).filter(|row| names.get(*row) == Some(name));
            let rows: Vec<usize> = rows.collect();
            let first = rows.partition_point(|row| times[*row] <= begin.as_secs_f64() + 1e-9);
            let in_window = rows[first..].iter().map(|row| means[*row]);
            let (mean, deviation) = spread(&in_window.collect::<Vec<f64>>());
            if mean > 0.0 {
                found.push(("queue_variation".to_owned(), name.to_owned(), deviation / mean));
            }
            let counted = |row: usize| (times[row], arrived[row], dropped[row]);
            let since = rows[first.saturating_sub(1)..].iter().map(|row| counted(*row));
            if let Some((time, share)) = metrics::drop_peak(&since.collect::<Vec<_>>()) {
                found.push(("drop_peak".to_owned(), name.to_owned(), share));
                found.push(("drop_peak_time".to_owned(), name.to_owned(), time));
            }
        }
    }

    fn goodputs(&self, experiment: &Experiment, window: std::ops::Range<usize>, found: &mut Found) {
        let names = self.subjects.iter().map(|subject| subject.name(experiment).to_owned());
        let series = names.zip(self.flows.iter().map(|flow| flow[window.clone()].to_vec()));
        let all: Vec<f64> = window.clone().map(|sample| self.total(sample)).collect();
        let few = self.flows.len() <= MOST_BINNED;
        for (name, goodputs) in series.filter(|_| few).chain([("all".to_owned(), all)]) {
            let means = goodputs.chunks_exact(LONG).map(|part| spread(part).0);
            let long: Vec<f64> = means.collect();
            for (metric, values) in
                [("goodput_variation", &goodputs), ("goodput_variation_long", &long)]
            {
                let (mean, deviation) = spread(values);
                if mean > 0.0 && values.len() > 1 {
                    found.push((metric.to_owned(), name.clone(), deviation / mean));
                }
            }
        }
        if !few {
            return;
        }
        for (flow, subject) in self.flows.iter().zip(&self.subjects) {
            for bin in 0..BINS {
                let values: Vec<f64> = self.part(bin).map(|at| flow[at] * 1e-6).collect();
                if !values.is_empty() {
                    let name = format!("goodput_bin_{bin:02}");
                    found.push((name, subject.name(experiment).to_owned(), spread(&values).0));
                }
            }
        }
    }

    /// The samples of a part of the run.
    fn part(&self, bin: usize) -> impl Iterator<Item = usize> {
        let end = self.times.last().copied().unwrap_or(0.0);
        let edge = move |bin: usize| end * bin as f64 / BINS as f64;
        (1..self.times.len())
            .filter(move |at| self.times[*at] > edge(bin) && self.times[*at] <= edge(bin + 1))
    }

    /// The congestion windows of TCP's flows, and the copies that they sent, over the whole run.
    fn windows(&self, experiment: &Experiment, recording: &Recording, found: &mut Found) {
        let count = self.subjects.len();
        let column = |name: &str| recording.flow.numbers(name);
        let (windows, copies) = (column("window"), column("retransmitted"));
        for (flow, subject) in self.subjects.iter().enumerate() {
            let of = |column: &[f64]| column.iter().skip(flow).step_by(count).copied().collect();
            let (windows, copies): (Vec<f64>, Vec<f64>) = (of(&windows), of(&copies));
            let most = windows.iter().copied().fold(0.0, f64::max);
            // SCTP and DCCP have windows too, and count for themselves.
            if most == 0.0 || experiment.flows[subject.flow].transport.row().name != "TCP" {
                continue;
            }
            let name = subject.name(experiment);
            let mut put = |metric: &str, value: f64| {
                found.push((metric.to_owned(), name.to_owned(), value));
            };
            put("window_max", most * 1e-3);
            put("retransmissions", copies.iter().copied().fold(0.0, f64::max));
            if count > MOST_BINNED {
                continue;
            }
            // A sender keeps its window after the last of its data has come.
            let last = self.flows[flow].iter().rposition(|goodput| *goodput > 0.0).unwrap_or(0);
            for bin in 0..BINS {
                let open = self.part(bin).filter(|at| *at <= last);
                let open = open.map(|at| windows[at] * 1e-3).filter(|window| *window > 0.0);
                let values: Vec<f64> = open.collect();
                let mean = if values.is_empty() { 0.0 } else { spread(&values).0 };
                put(&format!("window_bin_{bin:02}"), mean);
            }
        }
    }

    /// How long each flow takes from `begin` to deliver so many bits; between samples it delivers
    /// evenly.
    fn deliveries(&self, experiment: &Experiment, begin: Time, bits: f64, found: &mut Found) {
        let window = self.since(begin);
        let mut longest = 0f64;
        for (flow, subject) in self.flows.iter().zip(&self.subjects) {
            let (mut left, mut time) = (bits, f64::INFINITY);
            for at in window.clone() {
                let span = self.times[at] - self.times[at - 1];
                if flow[at] * span >= left {
                    time = self.times[at - 1] - begin.as_secs_f64() + left / flow[at];
                    break;
                }
                left -= flow[at] * span;
            }
            let time = time.min(1e9);
            longest = longest.max(time);
            found.push(("delivery_time".to_owned(), subject.name(experiment).to_owned(), time));
        }
        found.push(("delivery_time".to_owned(), "all".to_owned(), longest));
        let (Some(link), Some(flow)) =
            (experiment.links.iter().find(|link| link.bottleneck), experiment.flows.first())
        else {
            return;
        };
        if link.config.rate < Rate::MAX && longest < 1e9 {
            let capacity = link.config.rate.as_bps() as f64 * flow.transport.efficiency();
            let flows = experiment.flows.len() as f64;
            let equivalent = fountain::equivalent_redundancy(longest, capacity, bits, flows);
            found.push(("equivalent_redundancy".to_owned(), "all".to_owned(), equivalent));
        }
    }

    fn fairness(&self, experiment: &Experiment, window: std::ops::Range<usize>, found: &mut Found) {
        let mut put = |metric: &str, value: f64| {
            found.push((metric.to_owned(), "all".to_owned(), value));
        };
        let indices = window.clone().map(|sample| {
            let shares: Vec<f64> = self.flows.iter().map(|flow| flow[sample]).collect();
            metrics::jain(&shares)
        });
        let (mean, deviation) = spread(&indices.collect::<Vec<f64>>());
        put("jain_mean", mean);
        put("jain_deviation", deviation);
        let smooth = |sample: usize| {
            let rates = (0..self.flows.len()).map(|flow| self.smooth(flow, sample));
            rates.fold((f64::INFINITY, 0f64), |(a, b), rate| (a.min(rate), b.max(rate)))
        };
        let spreads = window.map(|sample| {
            let (least, most) = smooth(sample);
            most - least
        });
        put("spread", spreads.fold(0.0, f64::max) * 1e-6);
        let starts = || experiment.flows.iter().map(|flow| flow.start.as_secs_f64());
        let last = starts().fold(0.0, f64::max);
        let settled = (1..self.times.len()).filter(|at| self.times[*at] > last).find(|at| {
            let mean = (0..self.flows.len()).map(|flow| self.smooth(flow, *at)).sum::<f64>()
                / self.flows.len() as f64;
            let (least, most) = smooth(*at);
            least >= 0.9 * mean && most <= 1.1 * mean
        });
        put("settling", settled.map_or(f64::INFINITY, |at| self.times[at] - last).min(1e9));
        let Some(link) = experiment.links.iter().find(|link| link.bottleneck) else { return };
        if link.config.rate == Rate::MAX {
            return;
        }
        let second = starts().nth(1).unwrap_or(0.0);
        let pairs = self.times.iter().enumerate();
        let pairs: Vec<(f64, f64, f64)> =
            pairs.map(|(at, time)| (*time, self.flows[0][at], self.flows[1][at])).collect();
        let capacity = link.config.rate.as_bps() as f64;
        for (name, delta) in [("01", 0.1), ("03", 0.3), ("05", 0.5)] {
            let found = metrics::delta_fair_convergence(&pairs, second, capacity, delta);
            put(&format!("convergence_{name}"), found.unwrap_or(1e9));
        }
    }

    /// How far goodputs are from fair shares of the first bottleneck, in goodput: its rate less
    /// headers and redundancy (D-27). Samples in which not all flows run do not count.
    fn adaptation(
        &self,
        experiment: &Experiment,
        window: std::ops::Range<usize>,
        found: &mut Found,
    ) {
        let Some(link) = experiment.links.iter().find(|link| link.bottleneck) else { return };
        if link.config.rate == Rate::MAX {
            return;
        }
        let efficiencies: Vec<f64> =
            self.subjects.iter().map(|s| experiment.flows[s.flow].transport.efficiency()).collect();
        let (mut each, mut all) = (Vec::new(), Vec::new());
        for sample in window {
            let time = |at: usize| Time::ZERO + Duration::from_secs_f64(self.times[at]);
            let (from, to) = (time(sample - 1), time(sample));
            if experiment.flows.iter().any(|flow| flow.start > from) || from >= to {
                continue;
            }
            let share = link.config.mean_rate(from, to) / self.flows.len() as f64;
            let fair: Vec<f64> = efficiencies.iter().map(|part| part * share).collect();
            let got: Vec<f64> = self.flows.iter().map(|flow| flow[sample]).collect();
            each.push(metrics::adaptation_error_per_flow(&got, &fair));
            all.push(metrics::adaptation_error_aggregate(&got, &fair));
        }
        if each.is_empty() {
            return;
        }
        let mut put = |metric: &str, value: f64| {
            found.push((metric.to_owned(), "all".to_owned(), value));
        };
        let (mean, deviation) = spread(&each);
        put("error", mean);
        put("error_deviation", deviation);
        put("error_p5", quantile(&each, 0.05));
        put("error_p95", quantile(&each, 0.95));
        let (mean, deviation) = spread(&all);
        put("aggregate_error", mean);
        put("aggregate_error_deviation", deviation);
        put("aggregate_error_median", quantile(&all, 0.5));
        let small = all.iter().filter(|error| **error < 0.1).count();
        put("aggregate_error_small", small as f64 / all.len() as f64);
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    #[test]
    fn a_change_of_capacity_is_followed_by_fair_queues_and_noted_in_the_errors() {
        let text = r#"
            [scenario]
            duration = "40 s"
            warmup = "5 s"
            sample = "1 s"
            [topology]
            rate = "20 Mbit/s"
            rtt = "10 ms"
            queue = "drr"
            access = "20 Mbit/s"
            rate_changes = ["20 s: 10 Mbit/s"]
            [[flow]]
            protocol = "dfcp-published"
            [[flow]]
            protocol = "dfcp-published"
            start = "2 s"
        "#;
        let runs = Scenario::parse(text).expect("it is right").runs().expect("one run");
        let recording = runs[0].experiment.run(|| false).expect("it ends");
        let metric = |name: &str| recording.metric(name, "all").expect(name);
        assert!(metric("jain_mean") > 0.97, "{}", metric("jain_mean"));
        assert!(metric("error") < 0.2 && metric("aggregate_error") < metric("error") + 1e-9);
        assert!(metric("settling") < 12.0, "{}", metric("settling"));
        assert!(metric("convergence_05") <= 4.0, "{}", metric("convergence_05"));
        let half = |bin: usize| {
            recording.metric(&format!("goodput_bin_{bin:02}"), "flow1").expect("a bin")
        };
        assert!((half(12) / half(25) - 2.0).abs() < 0.4, "{} and {}", half(12), half(25));
    }
    #[test]
    fn a_flow_has_no_window_before_it_begins_and_after_it_ends() {
        let text = r#"
            [scenario]
            duration = "30 s"
            sample = "100 ms"
            [topology]
            rate = "10 Mbit/s"
            rtt = "50 ms"
            [[flow]]
            protocol = "newreno"
            start = "10 s"
            app = "object"
            size = "2 MB"
            [[flow]]
            protocol = "newreno"
        "#;
        let runs = Scenario::parse(text).expect("it is right").runs().expect("one run");
        let recording = runs[0].experiment.run(|| false).expect("it ends");
        let window = |flow: &str, bin: usize| {
            recording.metric(&format!("window_bin_{bin:02}"), flow).expect("a bin")
        };
        let end = 10.0 + recording.metric("fct", "flow1").expect("it ends");
        assert!((11.0..20.0).contains(&end), "{end}");
        for (bin, window) in (0..30_u8).map(|bin| (bin, window("flow1", bin.into()))) {
            // It begins with the last sample of part 9.
            let is_open = bin >= 9 && f64::from(bin) < end;
            assert_eq!(window > 0.0, is_open, "part {bin}: {window}, end {end}");
        }
        assert!(window("flow2", 29) > 0.0);
    }
}
