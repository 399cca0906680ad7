//! A trace of a swarm: nodes as lanes, and blocks in place of packets, from who has them to who
//! lacks them.

use std::collections::{BTreeMap, BTreeSet};

use fontis_base::Time;

use crate::counts::Counts;
use crate::finding::Finding;
use crate::kept::{Detail, Kept};
use crate::lane::{Lane, LaneKind};
use crate::packet::{Fate, Kind, Marks, TracePacket};
use crate::series::{Group, RateBins, Series};
use crate::trace::{Trace, TraceFlow};

/// A block's way from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockWay {
    /// The node that sent it, by its place among the nodes.
    pub from: u16,
    /// The node that it came to.
    pub to: u16,
    /// The block.
    pub block: u32,
    /// When it began to leave.
    pub begun: Time,
    /// When it was there, or came no more.
    pub ended: Time,
    /// Whether it came whole.
    pub came: bool,
    /// Whether it came, and was not what its hash says.
    pub wrong: bool,
}

/// The most nodes: what is beyond them is the last one's.
pub const MOST_NODES: usize = 65_000;

/// A node that fed so many times the mean share stands out; and so much of the time, a bottleneck.
const MUCH: f64 = 2.0;
const LONG: f64 = 0.05;

/// The trace of a swarm whose first node had the object at the beginning. Each node is a flow: what
/// it sent. `size` is that of a block.
pub fn of_swarm(
    title: &str,
    nodes: &[String],
    size: u32,
    mut ways: Vec<BlockWay>,
    detail: Detail,
) -> Trace {
    let count = nodes.len().clamp(1, MOST_NODES);
    let last = (count - 1) as u16;
    ways.sort_by_key(|way| (way.begun, way.ended, way.from, way.to));
    let mut kept = Kept::new(detail);
    let mut places = Places(vec![Vec::new(); count]);
    let mut counts = vec![Counts::default(); count];
    let mut end = Time::ZERO;
    for (number, way) in (1u64..).zip(&mut ways) {
        (way.from, way.to) = (way.from.min(last), way.to.min(last));
        end = end.max(way.ended);
        let counts = &mut counts[usize::from(way.from)];
        counts.packets += 1;
        counts.bytes += u64::from(size);
        counts.lost += u64::from(!way.came);
        counts.delivered += if way.came && !way.wrong { u64::from(size) } else { 0 };
        let packet = TracePacket {
            flow: way.from,
            path: places.take(way),
            kind: Kind::Data,
            fate: if way.came { Fate::Arrived } else { Fate::Lost },
            marks: if way.wrong { Marks::USELESS } else { Marks::default() },
            ended: way.ended,
            seq: u64::from(way.block),
            len: 1,
            block: way.block,
            ..TracePacket::sent(number, way.begun, way.from, way.to, size)
        };
        kept.push(number, packet, Vec::new());
    }
    let strides = kept.strides;
    let lane = |name: &String| Lane { name: name.clone(), kind: LaneKind::Node };
    let flow = |(name, counts): (&String, &Counts)| TraceFlow {
        name: name.clone(),
        protocol: "swarm".to_owned(),
        unit: "blocks".to_owned(),
        paths: Vec::new(),
        counts: [*counts, Counts::default()],
    };
    let findings = About { nodes, ways: &ways, end }.findings();
    ways.sort_by_key(|way| way.ended);
    Trace {
        title: title.to_owned(),
        origin: Time::ZERO,
        end,
        lanes: nodes.iter().take(count).map(lane).collect(),
        flows: nodes.iter().zip(&counts).map(flow).collect(),
        packets: kept.finish().0,
        hops: Vec::new(),
        blocks: Vec::new(),
        series: series(nodes, &ways, size),
        findings,
        notes: Vec::new(),
        total: ways.len() as u64,
        kept: strides,
    }
}

/// Blocks that come to a node at once have places beside each other.
struct Places(Vec<Vec<Time>>);

impl Places {
    /// The first place that is free.
    fn take(&mut self, way: &BlockWay) -> u8 {
        let places = &mut self.0[usize::from(way.to)];
        let at = places.iter().position(|free| *free <= way.begun).unwrap_or(places.len());
        match places.get_mut(at) {
            Some(free) => *free = way.ended,
            None => places.push(way.ended),
        }
        at.min(usize::from(u8::MAX)) as u8
    }
}

/// How fast blocks come: all, and those of the origin. `ways` are in the order of their ends.
fn series(nodes: &[String], ways: &[BlockWay], size: u32) -> Vec<Series> {
    let origin = nodes.first().map_or("", |name| &**name);
    let mut all = Vec::new();
    let mut came = 0u64;
    for (name, is_of) in [("all", None), (origin, Some(0))] {
        let mut delivered = Series::new(Group::Delivered, name, None);
        let mut bins = RateBins::default();
        let mut bytes = 0u64;
        let of = ways.iter().filter(|way| way.came && is_of.is_none_or(|from| way.from == from));
        for way in of {
            bytes += u64::from(size);
            came += 1;
            delivered.push(way.ended, bytes as f64);
            bins.add(way.ended, size.into());
        }
        delivered.finish();
        all.push(delivered);
        all.push(bins.into_series(Series::new(Group::Rate, name, None), came));
    }
    all.retain(|series| series.points.len() > 1);
    all.sort_by_key(|series| series.group);
    all
}

/// What stands out in a swarm.
struct About<'a> {
    nodes: &'a [String],
    ways: &'a [BlockWay],
    end: Time,
}

impl About<'_> {
    fn findings(&self) -> Vec<Finding> {
        let mut all = Vec::new();
        all.extend(self.beginning());
        all.extend(self.feeders());
        all.extend(self.wrong());
        all.extend(self.last());
        all.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        all
    }

    fn finding(&self, text: String, flow: u16, weight: f64) -> Finding {
        let (from, until) = (Time::ZERO, self.end);
        Finding { text, flow, from, until, marks: Marks(0), lost: false, weight }
    }

    fn name(&self, node: u16) -> &str {
        self.nodes.get(usize::from(node)).map_or("", |name| name)
    }

    fn share_of_time(&self, at: Time) -> f64 {
        let all = self.end.as_secs_f64();
        if all > 0.0 { at.as_secs_f64() / all } else { 0.0 }
    }

    /// Until when there was something that nobody but the origin had sent, and how often it sent
    /// the object.
    fn beginning(&self) -> Vec<Finding> {
        let blocks: BTreeSet<u32> = self.ways.iter().map(|way| way.block).collect();
        let mut first: BTreeMap<u32, Time> = BTreeMap::new();
        let mut sent = 0u64;
        for way in self.ways.iter().filter(|way| way.from == 0 && way.came) {
            sent += 1;
            let known = first.entry(way.block).or_insert(way.ended);
            *known = way.ended.min(*known);
        }
        let name = self.name(0);
        let mut all = Vec::new();
        if let Some(until) = first.values().max()
            && first.len() == blocks.len()
            && self.share_of_time(*until) >= LONG
        {
            let text = format!(
                "{name} was the bottleneck until {:.1} s: only then had every block left it once",
                until.as_secs_f64()
            );
            let weight = self.share_of_time(*until);
            all.push(Finding { until: *until, ..self.finding(text, 0, weight) });
        }
        let times = sent as f64 / blocks.len().max(1) as f64;
        let text = format!("{name} sent the object {times:.2} times");
        all.push(self.finding(text, 0, (times - 1.0).clamp(0.0, 1.0)));
        all
    }

    /// Who fed most, and who fed nobody.
    fn feeders(&self) -> Vec<Finding> {
        let mut fed = vec![0u64; self.nodes.len()];
        let mut has = vec![false; self.nodes.len()];
        let right = self.ways.iter().filter(|way| way.came && !way.wrong);
        for way in right {
            fed[usize::from(way.from)] += 1;
            has[usize::from(way.to)] = true;
        }
        let all: u64 = fed.iter().sum();
        let peers = self.nodes.len().saturating_sub(1).max(1);
        let mut findings = Vec::new();
        let most = (1..self.nodes.len()).max_by_key(|node| (fed[*node], self.nodes.len() - node));
        if let Some(node) = most.filter(|_| all > 0) {
            let share = fed[node] as f64 / all as f64;
            let text = format!("{} fed {} of all blocks", self.name(node as u16), percent(share));
            let is_much = share * peers as f64 >= MUCH;
            let weight = if is_much { share } else { 0.0 };
            findings.push(self.finding(text, node as u16, weight));
        }
        let idle: Vec<usize> =
            (1..self.nodes.len()).filter(|node| fed[*node] == 0 && has[*node]).collect();
        if let Some(first) = idle.first() {
            let share = idle.len() as f64 / peers as f64;
            let names: Vec<&str> =
                idle.iter().take(3).map(|node| self.name(*node as u16)).collect();
            let more = if idle.len() > 3 { " and others" } else { "" };
            let text =
                format!("{} of {peers} peers fed nobody: {}{more}", idle.len(), names.join(", "));
            findings.push(self.finding(text, *first as u16, share));
        }
        findings
    }

    /// Who sent what is wrong, and what was cut off.
    fn wrong(&self) -> Vec<Finding> {
        let mut liars = BTreeMap::new();
        for way in self.ways.iter().filter(|way| way.wrong) {
            let known = liars.entry(way.from).or_insert((0u64, way.ended, way.ended));
            (known.0, known.2) = (known.0 + 1, known.2.max(way.ended));
        }
        let mut all = Vec::new();
        for (node, (blocks, from, until)) in liars {
            let text = format!("{} sent {blocks} blocks that are wrong", self.name(node));
            let finding = self.finding(text, node, 1.0);
            all.push(Finding { from, until, marks: Marks::USELESS, ..finding });
        }
        let cut: Vec<&BlockWay> = self.ways.iter().filter(|way| !way.came).collect();
        if let Some(first) = cut.first() {
            let text = format!("{} transfers were cut off", cut.len());
            let weight = cut.len() as f64 / self.ways.len().max(1) as f64;
            all.push(Finding { lost: true, ..self.finding(text, first.from, weight) });
        }
        all
    }

    /// When the last node had its last block, and when half had.
    fn last(&self) -> Option<Finding> {
        let mut done = vec![None; self.nodes.len()];
        for way in self.ways.iter().filter(|way| way.came && !way.wrong) {
            let known: &mut Option<Time> = &mut done[usize::from(way.to)];
            *known = (*known).max(Some(way.ended));
        }
        let mut times: Vec<(Time, u16)> =
            (0..).zip(done).filter_map(|(node, at)| Some((at?, node))).collect();
        times.sort_unstable();
        let (at, node) = *times.last()?;
        let (half, _) = times[times.len() / 2];
        let late = at.since(half);
        let text = format!(
            "{} had its last block at {:.1} s, half of the nodes at {:.1} s",
            self.name(node),
            at.as_secs_f64(),
            half.as_secs_f64()
        );
        let weight = self.share_of_time(Time::ZERO + late);
        Some(Finding { from: half, ..self.finding(text, node, weight) })
    }
}

fn percent(share: f64) -> String {
    let decimals = if share >= 0.1 { 0 } else { 1 };
    format!("{:.decimals$} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(from: u16, to: u16, block: u32, [begun, ended]: [u64; 2]) -> BlockWay {
        let second = |at: u64| Time::from_nanos(at * 1_000_000_000);
        let (begun, ended) = (second(begun), second(ended));
        BlockWay { from, to, block, begun, ended, came: true, wrong: false }
    }

    fn trace(ways: Vec<BlockWay>, nodes: u16) -> Trace {
        let names: Vec<String> = (0..nodes).map(|node| format!("node {node}")).collect();
        of_swarm("t", &names, 1000, ways, Detail::default())
    }

    #[test]
    fn blocks_that_come_at_once_lie_beside_each_other() {
        let ways = vec![way(0, 1, 0, [0, 4]), way(0, 1, 1, [1, 3]), way(0, 1, 2, [3, 5])];
        let paths: Vec<u8> = trace(ways, 2).packets.iter().map(|packet| packet.path).collect();
        assert_eq!(paths, [0, 1, 1]);
    }

    #[test]
    fn the_findings_name_the_bottleneck_the_best_feeder_who_feeds_nobody_and_who_lies() {
        let mut wrong = way(4, 1, 0, [3, 4]);
        wrong.wrong = true;
        let ways = vec![
            way(0, 1, 0, [0, 2]),
            way(0, 1, 1, [2, 6]),
            way(1, 2, 0, [2, 4]),
            way(1, 3, 0, [4, 6]),
            way(1, 2, 1, [6, 8]),
            way(1, 3, 1, [8, 10]),
            wrong,
        ];
        let findings = trace(ways, 5).findings;
        let texts: Vec<&str> = findings.iter().map(|finding| &*finding.text).collect();
        let has = |text: &str| assert!(texts.contains(&text), "{text}: {texts:?}");
        has("node 0 was the bottleneck until 6.0 s: only then had every block left it once");
        has("node 0 sent the object 1.00 times");
        has("node 1 fed 67 % of all blocks");
        has("2 of 4 peers fed nobody: node 2, node 3");
        has("node 4 sent 1 blocks that are wrong");
        has("node 3 had its last block at 10.0 s, half of the nodes at 8.0 s");
    }
}
