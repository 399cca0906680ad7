use fontis_base::{Duration, Packet, Port, Prefetch, Rate, Serializer, Stream, Time, prefetch};

use crate::config::LinkConfig;
use crate::delivery::Delivery;
use crate::flight::Flight;
use crate::stats::Count;

/// The lines of many hosts that lead to one place, side by side. They are of one rate, one delay
/// and one jitter; nothing is lost on them, and any number of packets may wait for each.
///
/// Each line does what a [`Link`](crate::Link) of that configuration does. But what travels on all
/// of them stands in one order, so that a packet of thousands of hosts costs little more than one
/// of ten: nothing is touched of its line but when it is free.
#[derive(Clone, Debug)]
pub struct Bundle<P> {
    rate: Rate,
    delay: Duration,
    jitter: Duration,
    /// Empty if the lines are infinitely fast and without jitter: then nothing is to be known of
    /// them.
    lines: Vec<Line>,
    ports: Port,
    flight: Flight<P>,
    entered: Count,
    delivered: Count,
}

/// One of the lines: as many bytes as a line of the cache.
#[derive(Clone, Debug)]
struct Line {
    serializer: Serializer,
    /// When its last packet is or was due, before which none of the next is.
    due: Time,
    jitter: Stream,
}

impl<P> Bundle<P> {
    /// A bundle of no lines yet, if lines of this configuration can be in one.
    pub fn new(config: &LinkConfig) -> Option<Self> {
        let LinkConfig { rate, delay, jitter, .. } = *config;
        let plain = LinkConfig { rate, delay, jitter, ..LinkConfig::default() };
        (*config == plain && rate != Rate::ZERO).then(|| Self {
            rate,
            delay,
            jitter,
            lines: Vec::new(),
            ports: 0,
            flight: Flight::new(),
            entered: Count::default(),
            delivered: Count::default(),
        })
    }

    /// Adds a line; the port by which packets enter it. Its jitter comes from the run's seed and
    /// its name.
    pub fn add(&mut self, name: &str, seed: u64) -> Port {
        if self.remembers() {
            self.lines.push(Line {
                serializer: Serializer::new(self.rate),
                due: Time::ZERO,
                jitter: Stream::new(seed, &format!("{name}/jitter")),
            });
        }
        self.ports += 1;
        self.ports - 1
    }

    /// Whether anything is to be known of a line.
    fn remembers(&self) -> bool {
        self.rate != Rate::MAX || self.jitter > Duration::ZERO
    }

    /// How many packets have entered, and how many were delivered. The others wait or are in
    /// flight: none is ever dropped.
    pub fn counts(&self) -> (Count, Count) {
        (self.entered, self.delivered)
    }

    /// How many packets wait or are in flight.
    pub fn held(&self) -> usize {
        self.flight.len()
    }

    /// Takes a packet that enters a line at `now`, which never goes backwards; whether it is now
    /// the next to be delivered.
    #[inline]
    pub fn enter(&mut self, now: Time, port: Port, packet: Packet<P>) -> bool {
        self.entered.add(&packet);
        let at = match self.lines.get_mut(port as usize) {
            None => now + self.delay,
            Some(line) => {
                let mut at = line.serializer.send(now, packet.size.into()) + self.delay;
                if self.jitter > Duration::ZERO {
                    at += Duration::from_nanos(line.jitter.below(self.jitter.as_nanos() + 1));
                    at = at.max(line.due);
                    line.due = at;
                }
                at
            }
        };
        let is_next = at < self.flight.next_at();
        self.flight.insert(at, packet);
        is_next
    }

    /// The next packet that is due at `now`, and when it was due: in the order of due times, and of
    /// those in the order in which the packets entered.
    #[inline]
    pub fn deliver(&mut self, now: Time) -> Option<Delivery<P>> {
        let delivery = self.flight.pop(now)?;
        self.delivered.add(&delivery.packet);
        Some(delivery)
    }

    /// When the next packet is delivered; [`Time::MAX`] if there is none.
    #[inline]
    pub fn next_delivery(&self) -> Time {
        self.flight.next_at()
    }

    /// The packet before which so many others will be delivered; `None` if that is not known yet.
    pub fn coming(&self, after: usize) -> Option<&Packet<P>> {
        self.flight.get(after)
    }
}

impl<P> Prefetch for Bundle<P> {
    /// The line of a port.
    type Part = Port;

    fn prefetch(&self, port: Port) {
        self.lines.get(port as usize).into_iter().for_each(prefetch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Link;
    use crate::queue::testing::packet;
    use proptest::prelude::*;

    #[test]
    fn lines_that_do_more_than_send_and_delay_are_in_no_bundle() {
        let config = LinkConfig { rate: Rate::from_mbps(1), ..LinkConfig::default() };
        assert!(Bundle::<()>::new(&config).is_some());
        let loss = "1%".parse().unwrap();
        assert!(Bundle::<()>::new(&LinkConfig { loss, ..config.clone() }).is_none());
        let buffer = crate::Limit::Packets(9);
        assert!(Bundle::<()>::new(&LinkConfig { buffer, ..config.clone() }).is_none());
        assert!(Bundle::<()>::new(&LinkConfig { rate: Rate::ZERO, ..config }).is_none());
    }

    proptest! {
        /// Slow lines make packets wait so long that they are due behind hundreds that come later.
        #[test]
        fn every_line_delivers_when_a_link_would(
            rate in prop::sample::select(vec![Rate::MAX, Rate::from_mbps(1000), Rate::from_mbps(1)]),
            delay in 0u64..3_000_000,
            jitter in prop::sample::select(vec![0u64, 20_000, 1_000_000]),
            packets in prop::collection::vec((0u32..5, 0u64..20_000, 40u32..1500), 1..600),
        ) {
            let [delay, jitter] = [delay, jitter].map(Duration::from_nanos);
            let config = LinkConfig { rate, delay, jitter, ..LinkConfig::default() };
            let mut bundle = Bundle::new(&config).unwrap();
            let mut links = Vec::new();
            for line in 0..5 {
                let name = format!("line {line}");
                prop_assert_eq!(bundle.add(&name, 7), line);
                links.push(Link::new(name, 7, config.clone()));
            }
            let (mut now, mut got) = (Time::ZERO, Vec::new());
            for (id, (line, later, size)) in (0..).zip(packets) {
                now += Duration::from_nanos(later);
                got.extend(core::iter::from_fn(|| bundle.deliver(now)));
                let next = bundle.next_delivery();
                let is_next = bundle.enter(now, line, packet(id, line, size));
                prop_assert_eq!(is_next, bundle.next_delivery() < next);
                links[line as usize].enter(now, packet(id, line, size));
            }
            let (entered, delivered) = bundle.counts();
            prop_assert_eq!(entered.packets, delivered.packets + bundle.held() as u64);
            got.extend(core::iter::from_fn(|| bundle.deliver(Time::MAX)));
            prop_assert!(got.is_sorted_by_key(|delivery| delivery.at));
            prop_assert_eq!(bundle.counts(), (entered, entered));
            for (line, link) in (0..).zip(&mut links) {
                let of_line = got.iter().filter(|delivery| delivery.packet.flow.0 == line);
                let want: Vec<_> = core::iter::from_fn(|| link.deliver(Time::MAX)).collect();
                prop_assert!(of_line.eq(&want));
            }
        }
    }
}
