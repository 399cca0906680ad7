//! The events of `fontis get --share --json`, of one node or of several one after another: who
//! gave each block to whom.

use std::collections::BTreeMap;
use std::io::BufRead;

use fontis_base::{Duration, Time};
use serde_json::Value;

use crate::kept::Detail;
use crate::swarm::{BlockWay, MOST_NODES, of_swarm};
use crate::trace::Trace;

/// Seconds since 1970 that no clock shows: later times do not fit a trace.
const LATEST: f64 = 1e10;

/// A block that came, as its receiver said.
struct Came {
    from: u16,
    to: u16,
    block: u32,
    bytes: u64,
    /// Seconds since 1970.
    ended: f64,
    took: f64,
}

/// The nodes by their keys, in the order in which they are named.
#[derive(Default)]
struct Nodes {
    places: BTreeMap<String, u16>,
    /// Of each its key, and the address at which others saw it.
    names: Vec<(String, Option<String>)>,
}

impl Nodes {
    fn place(&mut self, key: &str) -> u16 {
        if let Some(place) = self.places.get(key) {
            return *place;
        }
        let place = self.names.len().min(MOST_NODES - 1) as u16;
        if usize::from(place) == self.names.len() {
            self.names.push((key.to_owned(), None));
        }
        self.places.insert(key.to_owned(), place);
        place
    }
}

/// Whether a line is such an event.
pub(crate) fn is_event(line: &str) -> bool {
    line.trim_start().starts_with("{\"") && line.contains("\"event\":")
}

/// Reads the events; lines that are none are skipped, as those of other programs.
pub fn read(input: impl BufRead, title: &str, detail: Detail) -> std::io::Result<Trace> {
    let (mut nodes, mut all) = (Nodes::default(), Vec::new());
    for line in input.lines() {
        let Ok(event) = serde_json::from_str::<Value>(&line?) else { continue };
        all.extend(came(&event, &mut nodes));
    }
    Ok(trace(title, &nodes, all, detail))
}

fn came(event: &Value, nodes: &mut Nodes) -> Option<Came> {
    if event["event"] != "block" {
        return None;
    }
    let (ended, took) = (event["time"].as_f64()?, event["seconds"].as_f64()?);
    let (from, to) = (nodes.place(event["from"].as_str()?), nodes.place(event["to"].as_str()?));
    if let Some(remote) = event["remote"].as_str() {
        nodes.names[usize::from(from)].1.get_or_insert_with(|| remote.to_owned());
    }
    let block = u32::try_from(event["block"].as_u64()?).ok()?;
    let usable = (0.0..=LATEST).contains(&took) && (took..=LATEST).contains(&ended);
    usable.then(|| Came {
        from,
        to,
        block,
        bytes: event["bytes"].as_u64().unwrap_or(0),
        ended,
        took,
    })
}

fn trace(title: &str, nodes: &Nodes, all: Vec<Came>, detail: Detail) -> Trace {
    // Who had the object takes nothing; of several such nodes the one that sent first.
    let mut takes = vec![false; nodes.names.len()];
    all.iter().for_each(|one| takes[usize::from(one.to)] = true);
    let begins = |one: &Came| one.ended - one.took;
    let senders = all.iter().filter(|one| !takes[usize::from(one.from)]);
    let origin = senders.min_by(|a, b| begins(a).total_cmp(&begins(b))).map_or(0, |one| one.from);
    let mut order: Vec<u16> = (0..nodes.names.len() as u16).collect();
    order.sort_by_key(|node| *node != origin);
    let mut new = vec![0; order.len()];
    (0..).zip(&order).for_each(|(to, from)| new[usize::from(*from)] = to);
    let first = all.iter().map(begins).fold(f64::INFINITY, f64::min);
    let at = |seconds: f64| Time::ZERO + Duration::from_secs_f64((seconds - first).max(0.0));
    let size = all.iter().map(|one| one.bytes).max().unwrap_or(0);
    let ways = all.iter().map(|one| BlockWay {
        from: new[usize::from(one.from)],
        to: new[usize::from(one.to)],
        block: one.block,
        begun: at(begins(one)),
        ended: at(one.ended),
        came: true,
        wrong: false,
    });
    let name = |node: &u16| {
        let (key, address) = &nodes.names[usize::from(*node)];
        address.clone().unwrap_or_else(|| key.chars().take(8).collect())
    };
    let names: Vec<String> = order.iter().map(name).collect();
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    let mut trace = of_swarm(title, &names, size, ways.collect(), detail);
    trace.notes.push(
        "Of nodes whose events are not in the file only what they sent is known; their clocks are \
         taken for the same."
            .to_owned(),
    );
    trace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_events_of_two_nodes_say_who_fed_whom() {
        let text = r#"{"event":"met","remote":"10.8.0.250:4435"}
{"event":"block","block":1,"bytes":1000,"from":"O","to":"A","remote":"10.8.0.250:4435","seconds":1.0,"time":101.0}
{"event":"block","block":0,"bytes":900,"from":"B","to":"A","remote":"10.8.0.2:9","seconds":0.5,"time":102.5}
{"event":"block","block":0,"bytes":900,"from":"O","to":"B","remote":"10.8.0.250:4435","seconds":1.5,"time":101.5}
said by another program
{"event":"block","block":1,"bytes":1000,"from":"A","to":"B","remote":"10.8.0.1:9","seconds":0.5,"time":102.0}
"#;
        let trace = read(text.as_bytes(), "t", Detail::default()).unwrap();
        let names: Vec<&str> = trace.lanes.iter().map(|lane| &*lane.name).collect();
        assert_eq!(names, ["10.8.0.250:4435", "10.8.0.1:9", "10.8.0.2:9"]);
        let ways: Vec<(u16, u16, u32)> =
            trace.packets.iter().map(|one| (one.from, one.to, one.block)).collect();
        assert_eq!(ways, [(0, 1, 1), (0, 2, 0), (1, 2, 1), (2, 1, 0)]);
        assert_eq!(trace.end, Time::from_nanos(2_500_000_000));
        assert!(trace.findings.iter().any(|one| one.text.contains("sent the object 1.00 times")));
    }

    #[test]
    fn what_makes_no_sense_is_skipped() {
        for text in
            ["", "{}", r#"{"event":"block","block":-1}"#, r#"{"event":"block","time":1e999}"#]
        {
            assert_eq!(read(text.as_bytes(), "t", Detail::default()).unwrap().packets.len(), 0);
        }
    }
}
