//! The graph of a network, by which ways and trees are found.

use std::collections::BTreeSet;

use crate::world::switch::NodeIndex;

/// Names a router or a machine of a network: both are counted together.
pub type VertexIndex = usize;

/// A link of a network: where it begins, where it leads, and its node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphLink {
    pub(crate) from: VertexIndex,
    pub(crate) to: VertexIndex,
    pub(crate) node: NodeIndex,
}

/// The vertices of a network and its links, by which ways are found.
#[derive(Clone, Debug)]
pub struct Graph {
    /// By vertex, whether packets may pass it.
    pub forwards: Vec<bool>,
    /// Where each link begins and leads.
    pub links: Vec<(VertexIndex, VertexIndex)>,
}

impl Graph {
    /// For each vertex, the first link of the way that leads there from `from`.
    pub fn first_links(&self, from: VertexIndex) -> Vec<Option<usize>> {
        let mut first: Vec<Option<usize>> = vec![None; self.forwards.len()];
        let mut reached = vec![from];
        let mut next = 0;
        while let Some(&at) = reached.get(next) {
            next += 1;
            if at != from && !self.forwards[at] {
                continue;
            }
            for (link, &(begin, end)) in self.links.iter().enumerate() {
                if begin == at && end != from && first[end].is_none() {
                    first[end] = first[at].or(Some(link));
                    reached.push(end);
                }
            }
        }
        first
    }

    /// For each vertex, the last link of the way that leads there from `from`: a tree.
    fn last_links(&self, from: VertexIndex) -> Vec<Option<usize>> {
        let mut last: Vec<Option<usize>> = vec![None; self.forwards.len()];
        let mut reached = vec![from];
        let mut next = 0;
        while let Some(&at) = reached.get(next) {
            next += 1;
            if at != from && !self.forwards[at] {
                continue;
            }
            for (link, &(begin, end)) in self.links.iter().enumerate() {
                if begin == at && end != from && last[end].is_none() {
                    last[end] = Some(link);
                    reached.push(end);
                }
            }
        }
        last
    }

    /// The tree of shortest ways from a router to the ends of the links `leaves`, which are its
    /// last links: what a packet to a group crosses, each link once. A leaf that no way leads to is
    /// not in it.
    pub fn tree(&self, router: VertexIndex, leaves: &[usize]) -> BTreeSet<usize> {
        let last = self.last_links(router);
        let mut tree = BTreeSet::new();
        for &leaf in leaves {
            let mut branch = vec![leaf];
            let mut at = self.links[leaf].0;
            while at != router {
                let Some(link) = last[at] else { break };
                branch.push(link);
                at = self.links[link].0;
            }
            if at == router {
                tree.extend(branch);
            }
        }
        tree
    }

    /// The links that packets from one vertex to another cross, in their order; `None` if no way
    /// leads there.
    pub fn route(&self, from: VertexIndex, to: VertexIndex) -> Option<Vec<usize>> {
        let (mut at, mut way) = (from, Vec::new());
        while at != to {
            // Each router decides by itself; with every link the way that is left is shorter by
            // one.
            let link = self.first_links(at)[to]?;
            way.push(link);
            at = self.links[link].1;
        }
        Some(way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(vertices: usize, links: &[(usize, usize)]) -> Graph {
        Graph { forwards: vec![true; vertices], links: links.to_vec() }
    }

    #[test]
    fn packets_take_the_way_with_the_fewest_links() {
        let links = [(0, 1), (1, 2), (0, 3), (2, 3), (3, 0)];
        let net = graph(4, &links);
        assert_eq!(net.first_links(0), [None, Some(0), Some(0), Some(2)]);
        // Nothing leads from 3 to 2 but by way of 0 and 1.
        assert_eq!(net.first_links(3)[2], Some(4));
        assert_eq!(net.route(3, 2), Some(vec![4, 0, 1]));
        assert_eq!(graph(5, &links).route(0, 4), None);
        assert_eq!(net.route(1, 1), Some(vec![]));
    }

    #[test]
    fn a_tree_crosses_each_link_once_and_leaves_out_what_no_way_leads_to() {
        // 0 leads to 1; 1 leads to 2 and 3; nothing leads to 4, from which a link leads to 5.
        let net = graph(6, &[(0, 1), (1, 2), (1, 3), (4, 5)]);
        assert_eq!(Vec::from_iter(net.tree(0, &[1, 2, 3])), [0, 1, 2]);
        assert_eq!(Vec::from_iter(net.tree(1, &[2])), [2]);
        assert!(net.tree(0, &[]).is_empty());
    }

    #[test]
    fn no_way_leads_through_a_machine() {
        // The short way from 0 to 2 passes 1, which is a machine with two interfaces.
        let links = vec![(0, 1), (1, 2), (0, 3), (3, 4), (4, 2)];
        let net = Graph { forwards: vec![true, false, true, true, true], links };
        assert_eq!(net.route(0, 2), Some(vec![2, 3, 4]));
        assert_eq!(net.route(0, 1), Some(vec![0]));
        assert_eq!(net.route(1, 2), Some(vec![1]), "it may begin there");
    }
}
