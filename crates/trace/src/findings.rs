use fontis_base::{Duration, Time};

use super::direction::FlowDirection;
use super::finding::Finding;
use super::flow::FlowState;
use super::packet::NOWHERE;
use crate::lane::Lane;
use crate::packet::Marks;

/// Spans of one kind that are told one by one; what is beyond is summed up.
const TOLD: usize = 3;
/// Windows are full for a moment all the time: what is shorter than this share of the flow's time
/// is no finding.
const SHORT: f64 = 0.02;
/// Round trips this much longer than the shortest mean that queues stand.
const STANDING: f64 = 2.0;

/// In seconds: within a machine, scheduling takes longer than this, and no queue stands.
const SHORTEST_ROUND: f64 = 1e-3;

/// What stands out, the weightiest first.
pub(crate) fn of(flows: &[FlowState], lanes: &[Lane], end: Time) -> Vec<Finding> {
    let mut all = Vec::new();
    for (index, flow) in (0u16..).zip(flows) {
        for side in [0, 1] {
            let mut about = About { index, flow, side, lanes, end, all: &mut all };
            if flow.has_data(side) {
                about.losses();
                about.retransmissions();
                about.windows();
                about.stalls();
                about.held_back();
                about.queueing();
                about.order();
            }
            about.blocks();
        }
    }
    all.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    all
}

struct About<'a> {
    index: u16,
    flow: &'a FlowState,
    side: usize,
    lanes: &'a [Lane],
    end: Time,
    all: &'a mut Vec<Finding>,
}

impl About<'_> {
    fn half(&self) -> &FlowDirection {
        &self.flow.halves[self.side]
    }

    /// The whole of the flow's time.
    fn whole(&self) -> (Time, Time) {
        (self.flow.begun.unwrap_or(Time::ZERO), self.flow.ended)
    }

    fn tell(&mut self, text: String, (from, until): (Time, Time), marks: Marks, weight: f64) {
        let back = if self.side == 1 { " ←" } else { "" };
        let text = format!("{}{back}: {text}", self.flow.name);
        let flow = self.index;
        self.all.push(Finding { text, flow, from, until, marks, lost: false, weight });
    }

    fn share_of_time(&self, span: Duration) -> f64 {
        let all = self.flow.span().as_secs_f64();
        if all > 0.0 { span.as_secs_f64() / all } else { 0.0 }
    }

    fn losses(&mut self) {
        let counts = self.half().counts;
        if counts.lost == 0 {
            return;
        }
        let share = share(counts.lost, counts.packets);
        let most = self.flow.lost_at.iter().max_by_key(|(_, lost)| **lost);
        let place = match most {
            Some((place, lost)) if *place != NOWHERE => {
                let name = self.lanes.get(usize::from(*place)).map_or("", |lane| &*lane.name);
                let all = if *lost == counts.lost { "all of them" } else { "most of them" };
                format!(", {all} at {name}")
            }
            _ => String::new(),
        };
        let (lost, packets) = (counts.lost, counts.packets);
        let text = format!("{} of packets were lost ({lost} of {packets}){place}", percent(share));
        self.tell(text, self.whole(), Marks(0), share);
        if let Some(last) = self.all.last_mut() {
            last.lost = true;
        }
    }

    fn retransmissions(&mut self) {
        let counts = self.half().counts;
        if counts.spurious > 0 {
            let text = format!(
                "spurious retransmissions: {} of {}",
                counts.spurious,
                counts.retransmitted.max(counts.spurious)
            );
            self.tell(text, self.whole(), Marks::SPURIOUS, share(counts.spurious, counts.data));
        }
    }

    fn windows(&mut self) {
        let window = self.half().window.unwrap_or(0);
        let limited = self.half().window_limited.longest_first(self.flow.ended);
        let closed = self.half().window_closed.longest_first(self.flow.ended);
        self.spans(&limited, |from, until| {
            format!(
                "window-limited from {} to {}: the receiver's window was full ({} at the end)",
                seconds(from),
                seconds(until),
                bytes(window)
            )
        });
        self.spans(&closed, |from, until| {
            format!("the receiver's window was closed from {} to {}", seconds(from), seconds(until))
        });
    }

    /// Tells the longest spans of a kind, and how much the others are.
    fn spans(&mut self, spans: &[(Time, Time)], text: impl Fn(Time, Time) -> String) {
        let long = |(from, until): &&(Time, Time)| self.share_of_time(until.since(*from)) >= SHORT;
        let long: Vec<(Time, Time)> = spans.iter().filter(long).copied().collect();
        for (index, (from, until)) in long.iter().enumerate().take(TOLD) {
            let weight = self.share_of_time(until.since(*from));
            let mut text = text(*from, *until);
            if index + 1 == TOLD && long.len() > TOLD {
                text += &format!("; and {} times more", long.len() - TOLD);
            }
            self.tell(text, (*from, *until), Marks(0), weight);
        }
    }

    fn stalls(&mut self) {
        let mut stalls = self.half().stalls.clone();
        stalls.sort_by_key(|(from, until)| core::cmp::Reverse(until.since(*from)));
        for (from, until) in stalls.into_iter().take(TOLD) {
            let span = until.since(from);
            let text = format!(
                "nothing was sent for {} from {} on: the sender waited for its retransmission timer",
                duration(span),
                seconds(from)
            );
            let weight = self.share_of_time(span);
            self.tell(text, (from, until), Marks::RETRANSMITTED, weight);
        }
    }

    fn held_back(&mut self) {
        for (path, (sum, longest)) in self.half().held.clone() {
            let share = self.share_of_time(sum);
            if share < SHORT {
                continue;
            }
            let by = match self.flow.paths.get(usize::from(path)) {
                Some(name) if self.flow.paths.len() > 1 => format!("path {} ({name})", path + 1),
                _ => "packets that came late or again".to_owned(),
            };
            let text = format!("receiver blocked {} of the time by {by}", percent(share));
            self.tell(text, longest, Marks(0), share);
        }
    }

    fn queueing(&mut self) {
        let half = self.half();
        let Some(least) = half.smallest_rtt.filter(|rtt| *rtt > Duration::ZERO) else { return };
        if half.rtt_samples < 10 {
            return;
        }
        let mean = half.rtt_sum / half.rtt_samples as f64;
        let times = mean / least.as_secs_f64();
        if times >= STANDING && mean >= SHORTEST_ROUND {
            let text = format!(
                "round trips took {:.1} ms in the mean, {times:.1} times the shortest: queues stand",
                mean * 1e3
            );
            self.tell(text, self.whole(), Marks(0), (1.0 - 1.0 / times) * 0.5);
        }
    }

    fn order(&mut self) {
        let counts = self.half().counts;
        if counts.reordered > 0 {
            let share = share(counts.reordered, counts.packets);
            let text = format!(
                "{} of packets arrived after one sent later ({})",
                percent(share),
                counts.reordered
            );
            self.tell(text, self.whole(), Marks::REORDERED, share * 0.5);
        }
        if counts.marked > 0 {
            let share = share(counts.marked, counts.packets);
            let text = format!("{} of packets were marked: congestion experienced", percent(share));
            self.tell(text, self.whole(), Marks::CONGESTION, share * 0.5);
        }
    }

    fn blocks(&mut self) {
        let blocks = &self.flow.blocks[self.side].blocks;
        let (mut received, mut useless) = (0u64, 0u64);
        let mut worst: Option<(u32, Time, Time)> = None;
        for block in blocks.values() {
            received += u64::from(block.received);
            useless += u64::from(block.useless);
            let done = if block.done == Time::MAX { self.end } else { block.done };
            if worst.is_none_or(|(_, from, until)| done.since(block.begun) > until.since(from)) {
                worst = Some((block.block, block.begun, done));
            }
        }
        if received > 0 && useless > 0 {
            let share = share(useless, received);
            let text = format!(
                "{} of symbols were useless ({useless} of {received}): their block was complete",
                percent(share)
            );
            self.tell(text, self.whole(), Marks::USELESS, share);
        }
        let mut spans: Vec<Duration> = self.flow.blocks[self.side]
            .blocks
            .values()
            .filter(|block| block.done < Time::MAX)
            .map(|block| block.done.since(block.begun))
            .collect();
        spans.sort_unstable();
        if let (Some(median), Some((block, from, until)), true) =
            (spans.get(spans.len() / 2).copied(), worst, spans.len() > 2)
            && until.since(from) > median * 3
        {
            let text = format!(
                "block {block} took {}, where the median is {}",
                duration(until.since(from)),
                duration(median)
            );
            let weight = self.share_of_time(until.since(from)) * 0.5;
            self.tell(text, (from, until), Marks(0), weight);
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = if percent >= 10.0 {
        0
    } else if percent >= 0.1 {
        1
    } else {
        3
    };
    format!("{percent:.decimals$} %")
}

fn seconds(at: Time) -> String {
    duration(at.since(Time::ZERO))
}

fn duration(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    if seconds >= 1.0 { format!("{seconds:.1} s") } else { format!("{:.1} ms", seconds * 1e3) }
}

fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..1_048_576 => format!("{:.0} KiB", count as f64 / 1024.0),
        _ => format!("{:.1} MiB", count as f64 / 1_048_576.0),
    }
}
