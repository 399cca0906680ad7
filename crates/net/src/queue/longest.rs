use core::ops::Bound::{Excluded, Unbounded};
use std::collections::BTreeMap;

/// Which flow loses a packet when a shared buffer overflows: the longest in bytes, and of equally
/// long ones the next in the circle of flow numbers after the one that lost last. So flows that
/// always tie lose equally often, up to one packet.
///
/// "The longest queue" (McKenney, 1990; Shreedhar and Varghese, 1996; RFC 8290 section 4.1.3)
/// leaves open which of several is meant, but a fixed choice starves a flow: with fewer places than
/// flows all tie at one packet. ns-2's DRR takes the first from the flow in turn on, Linux's
/// `sch_sfq` the one that grew as long last. Both depend on when packets come; a circle does not,
/// and it draws nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Longest<K> {
    last: K,
    /// No flow is longer than this, so a search ends at the first that is as long.
    ceiling: u64,
}

impl<K: Ord + Copy> Longest<K> {
    /// The circle, at its beginning.
    pub(super) fn new(last: K) -> Self {
        Self { last, ceiling: 0 }
    }

    /// A flow has become so many bytes long.
    pub(super) fn grown(&mut self, bytes: u64) {
        self.ceiling = self.ceiling.max(bytes);
    }

    /// The flow that loses now; `bytes` is its length.
    pub(super) fn choose<F>(
        &mut self,
        flows: &BTreeMap<K, F>,
        bytes: impl Fn(&F) -> u64,
    ) -> Option<K> {
        let from = flows.range((Excluded(self.last), Unbounded));
        let mut longest = None;
        for (id, flow) in from.chain(flows.range(..=self.last)) {
            let bytes = bytes(flow);
            if longest.is_none_or(|(_, most)| bytes > most) {
                longest = Some((*id, bytes));
                if bytes == self.ceiling {
                    break;
                }
            }
        }
        let (id, most) = longest?;
        (self.last, self.ceiling) = (id, most);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_that_always_tie_lose_in_turn() {
        let flows = BTreeMap::from([(0, 5), (3, 9), (7, 9), (u32::MAX, 9)]);
        let mut longest = Longest::new(0);
        longest.grown(20);
        let lost: Vec<_> = (0..7).filter_map(|_| longest.choose(&flows, |bytes| *bytes)).collect();
        assert_eq!(lost, [3, 7, u32::MAX, 3, 7, u32::MAX, 3]);
    }

    #[test]
    fn no_flow_means_no_choice() {
        assert_eq!(Longest::new(0).choose(&BTreeMap::<u32, u64>::new(), |bytes| *bytes), None);
    }
}
