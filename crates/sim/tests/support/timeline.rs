use fontis_base::{Duration, Time};
use fontis_net::LinkStats;
use fontis_proto::dfcp::DfcpStats;

/// What the flows and the bottleneck of an experiment had counted, at fixed intervals.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The moments, in the order of their times.
    pub moments: Vec<Moment>,
}

/// What had been counted at one time.
#[derive(Clone, Debug)]
pub struct Moment {
    /// When.
    pub at: Time,
    /// Each flow's receiver.
    pub clients: Vec<DfcpStats>,
    /// Each flow's sender.
    pub servers: Vec<DfcpStats>,
    /// The bottleneck towards the receivers.
    pub down: LinkStats,
}

impl Timeline {
    /// The last moment that is no later than `at`.
    ///
    /// # Panics
    /// If there is none: nothing was counted before the beginning.
    pub fn at(&self, at: Time) -> &Moment {
        let after = self.moments.partition_point(|moment| moment.at <= at);
        &self.moments[after.checked_sub(1).expect("a moment after the beginning")]
    }

    /// Bits per second at the IP layer that a flow's receiver got between two times.
    pub fn throughput(&self, flow: usize, from: Time, to: Time) -> f64 {
        let (from, to) = (self.at(from), self.at(to));
        let bytes = to.clients[flow].bytes_received - from.clients[flow].bytes_received;
        let span = to.at.since(from.at).as_secs_f64();
        if span > 0.0 { bytes as f64 * 8.0 / span } else { 0.0 }
    }

    /// Jain's index of the flows' throughputs between two times: 1 if all are equal, 1/n if one of
    /// n has it all.
    pub fn jain(&self, from: Time, to: Time) -> f64 {
        let flows = self.moments.first().map_or(0, |moment| moment.clients.len());
        let shares: Vec<f64> = (0..flows).map(|flow| self.throughput(flow, from, to)).collect();
        let sum: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        if squares > 0.0 { sum * sum / (flows as f64 * squares) } else { 1.0 }
    }

    /// The first time not before `from` since which every window of length `window` that ends there
    /// or later was as `good` says of its beginning and end; `None` if the last was not.
    pub fn settled(
        &self,
        from: Time,
        window: Duration,
        mut good: impl FnMut(Time, Time) -> bool,
    ) -> Option<Time> {
        let ends = self.moments.iter().rev().map(|moment| moment.at);
        let ends = ends.take_while(|end| *end >= from + window);
        ends.take_while(|end| good(*end - window, *end)).last()
    }

    /// Packets that the bottleneck's queue dropped between two times, and packets that entered the
    /// bottleneck.
    pub fn queue_drops(&self, from: Time, to: Time) -> (u64, u64) {
        let (from, to) = (self.at(from).down, self.at(to).down);
        let dropped = to.dropped.queue.packets - from.dropped.queue.packets;
        (dropped, to.entered.packets - from.entered.packets)
    }

    /// How many packets of a flow were sent in vain for each that was of use, between two times:
    /// dropped by the network or not needed any more. Random loss counts too; whoever has some
    /// takes it into account.
    pub fn waste(&self, flow: usize, from: Time, to: Time) -> f64 {
        let (from, to) = (self.at(from), self.at(to));
        let (before, after) = (&from.clients[flow], &to.clients[flow]);
        let wasted = after.symbols_wasted - before.symbols_wasted;
        let useful = (after.symbols_received - before.symbols_received).saturating_sub(wasted);
        let dropped = to.down.dropped.total().packets - from.down.dropped.total().packets;
        (dropped + wasted) as f64 / useful.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(rates: &[[u64; 2]]) -> Timeline {
        let mut totals = [0; 2];
        let mut moments = Vec::new();
        for (second, rates) in rates.iter().enumerate() {
            for (total, rate) in totals.iter_mut().zip(rates) {
                *total += rate;
            }
            let clients = totals
                .map(|bytes_received| DfcpStats { bytes_received, ..DfcpStats::default() })
                .to_vec();
            let (servers, down) = (Vec::new(), LinkStats::default());
            moments.push(Moment { at: at(second as u64), clients, servers, down });
        }
        Timeline { moments }
    }

    fn at(second: u64) -> Time {
        Time::ZERO + Duration::from_secs(second)
    }

    #[test]
    fn equal_shares_have_index_one_and_a_monopoly_of_two_has_a_half() {
        let timeline = timeline(&[[0, 0], [5, 5], [8, 0], [9, 3]]);
        assert!((timeline.jain(at(0), at(1)) - 1.0).abs() < 1e-9);
        assert!((timeline.jain(at(1), at(2)) - 0.5).abs() < 1e-9);
        assert!((timeline.jain(at(2), at(3)) - 0.8).abs() < 1e-9);
        assert!((timeline.throughput(0, at(0), at(3)) - 22.0 * 8.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn what_settles_and_leaves_again_has_not_settled() {
        let timeline = timeline(&[[0, 0], [5, 5], [9, 0], [5, 5], [5, 5]]);
        let second = Duration::from_secs(1);
        let fair = |from, to| timeline.jain(from, to) > 0.9;
        assert_eq!(timeline.settled(at(0), second, fair), Some(at(3)));
        assert_eq!(timeline.settled(at(3), second, fair), Some(at(4)));
        assert_eq!(timeline.settled(at(0), second, |from, to| timeline.jain(from, to) > 2.0), None);
    }
}
