use std::collections::BTreeSet;

use fontis_base::Stream;

use super::spec::SwarmSpec;

/// The neighbours of each node, on both sides: random ones.
pub(super) fn edges(spec: &SwarmSpec, stream: &mut Stream) -> Vec<BTreeSet<u32>> {
    let count = spec.peers.len() + 1;
    let degree = spec.neighbours;
    let mut edges = Edges(vec![BTreeSet::new(); count]);
    if spec.relays > 0 {
        let relays = spec.relays.min(count - 1);
        edges.fill(0, degree.min(relays), stream, 1, relays);
        for one in relays + 1..count {
            edges.fill(one, degree.min(relays), stream, 1, relays);
        }
        return edges.0;
    }
    edges.fill(0, degree.min(count - 1), stream, 1, count - 1);
    // Each chooses half of its neighbours, and the others choose it.
    let is_complete = degree >= count - 1;
    let (wanted, first) = if is_complete { (count - 1, 0) } else { (degree.div_ceil(2), 1) };
    for one in 1..count {
        edges.fill(one, wanted, stream, first, count - first);
    }
    edges.0
}

struct Edges(Vec<BTreeSet<u32>>);

impl Edges {
    /// Adds random neighbours among the `count` nodes from `first` on until there are `wanted`.
    fn fill(&mut self, one: usize, wanted: usize, stream: &mut Stream, first: usize, count: usize) {
        let inside = (first..first + count).contains(&one);
        let possible = count - usize::from(inside);
        let known = self.0[one].iter().filter(|other| **other as usize >= first).count();
        let others = self.0[one].len() - known;
        let wanted = wanted.min(possible + others);
        while self.0[one].len() < wanted {
            let other = first + stream.below(count as u64) as usize;
            if other != one {
                self.0[one].insert(other as u32);
                self.0[other].insert(one as u32);
            }
        }
    }
}
