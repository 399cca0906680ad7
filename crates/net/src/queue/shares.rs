use fontis_base::{FlowId, Packet};

use crate::queue::options::QueueOptions;

/// Who takes turns at a line, and the part of it that each has beside others.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    /// Traffic classes take turns, and the flows of one stand in one queue.
    by_class: bool,
    /// Shares of traffic classes from the lowest; those above the last are like it. None: all
    /// have the same.
    classes: Vec<u64>,
    /// Those of flows that have their own, by their numbers.
    flows: Vec<Option<u64>>,
}

/// The share of weight 1, and the parts of a byte in which queues count, so that shares of it are
/// exact enough.
pub(super) const ONE: u64 = 1 << 16;
/// Bounds of shares, relative to [`ONE`].
const LEAST: f64 = 1e-3;
const MOST: f64 = 1e6;

/// The share of a weight under α-fairness beside that of weight 1: p^(1/α) (Mo and Walrand,
/// 2000). `None` if it lies outside of 0.001 to 1,000,000, where taking turns would take too long.
fn share_of(weight: f64, alpha: f64) -> Option<f64> {
    let share = libm::pow(weight, alpha.recip());
    (alpha > 0.0 && (LEAST..=MOST).contains(&share)).then_some(share)
}

impl QueueOptions {
    /// A weight p whose part of the line, p^(1/α), is less than a thousandth or more than a
    /// million times that of weight 1; `None` if all weights can be served.
    pub fn unserved_weight(&self) -> Option<f64> {
        let classes = self.class_weights.iter().flat_map(|weights| weights.named());
        let flows = self.flows.iter().filter_map(|flow| flow.weight.as_ref());
        classes.chain(flows).copied().find(|weight| share_of(*weight, self.alpha).is_none())
    }
}

impl Shares {
    /// Those that the options describe.
    pub(super) fn new(options: &QueueOptions) -> Self {
        let QueueOptions { by_class, alpha, .. } = *options;
        let fixed = |weight: f64| {
            let share = share_of(weight, alpha).unwrap_or(1.0);
            (share * ONE as f64) as u64
        };
        let classes = options.class_weights.as_ref().map_or(&[][..], |weights| weights.named());
        let has_own = options.flows.iter().any(|flow| flow.weight.is_some());
        let flows: Vec<_> = match has_own && !by_class {
            true => options.flows.iter().map(|flow| flow.weight.map(fixed)).collect(),
            false => Vec::new(),
        };
        Self { by_class, classes: classes.iter().map(|weight| fixed(*weight)).collect(), flows }
    }

    /// The weights themselves, where α has another place.
    pub(super) fn plain(options: &QueueOptions) -> Self {
        Self::new(&QueueOptions { alpha: 1.0, ..options.clone() })
    }

    /// In whose turn a packet leaves.
    pub(super) fn turn<P>(&self, packet: &Packet<P>) -> FlowId {
        if self.by_class { FlowId(packet.class.into()) } else { packet.flow }
    }

    /// The share of those in whose turn a packet leaves.
    pub(super) fn of<P>(&self, packet: &Packet<P>) -> u64 {
        if let Some(Some(share)) = self.flows.get(packet.flow.0 as usize) {
            return *share;
        }
        let class = usize::from(packet.class).min(self.classes.len().saturating_sub(1));
        self.classes.get(class).copied().unwrap_or(ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::facts::FlowFacts;
    use crate::queue::testing::packet;

    #[test]
    fn a_flows_own_weight_goes_before_that_of_its_class_and_alpha_is_its_root() {
        let own = FlowFacts { weight: Some(81.0), ..FlowFacts::default() };
        let options = QueueOptions {
            class_weights: "1:16".parse().ok(),
            alpha: 4.0,
            flows: [own, FlowFacts::default()].into(),
            ..QueueOptions::default()
        };
        let shares = Shares::new(&options);
        let of = |flow, class| shares.of(&Packet { class, ..packet(1, flow, 100) });
        assert_eq!([of(0, 1), of(1, 1), of(1, 0), of(7, 9)], [3 * ONE, 2 * ONE, ONE, 2 * ONE]);
        let by_class = Shares::new(&QueueOptions { by_class: true, ..options });
        let packet = Packet { class: 1, ..packet(1, 0, 100) };
        assert_eq!((by_class.turn(&packet), by_class.of(&packet)), (FlowId(1), 2 * ONE));
    }

    #[test]
    fn shares_that_turns_cannot_express_are_refused() {
        assert_eq!(share_of(2.0, 0.5), Some(4.0));
        assert_eq!(share_of(20.0, f64::INFINITY), Some(1.0));
        for (weight, alpha) in [(20.0, 0.1), (1e-2, 0.5), (2.0, 0.0), (2.0, f64::NAN)] {
            assert_eq!(share_of(weight, alpha), None);
        }
    }
}
