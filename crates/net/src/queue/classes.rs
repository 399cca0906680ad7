use fontis_base::{Observer, Packet, Probability, Time};

use crate::queue::drr::Drr;
use crate::queue::fifo::Fifo;
use crate::queue::limit::Limit;
use crate::queue::options::QueueOptions;

/// Strict priority between traffic classes: of what waits, the highest class goes first, in the
/// order of arrival.
///
/// Every class has the whole limit as its own, so that a flood of the lowest cannot push out the
/// others.
#[derive(Clone, Debug)]
pub struct Priority<P> {
    /// By class, the lowest first; made as classes appear.
    classes: Vec<Fifo<P>>,
    limit: Limit,
}

impl<P> Priority<P> {
    /// An empty queue.
    pub fn new(limit: Limit) -> Self {
        Self { classes: Vec::new(), limit }
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: Packet<P>,
        observer: &mut impl Observer<P>,
    ) {
        let class = usize::from(packet.class);
        while self.classes.len() <= class {
            self.classes.push(Fifo::new(self.limit));
        }
        self.classes[class].enqueue(now, packet, observer);
    }

    pub(crate) fn dequeue(
        &mut self,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Packet<P>> {
        self.classes.iter_mut().rev().find_map(|class| class.dequeue(now, observer))
    }

    pub(crate) fn len(&self) -> usize {
        self.classes.iter().map(Fifo::len).sum()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.classes.iter().map(Fifo::bytes).sum()
    }
}

/// A line and a buffer divided between two traffic classes: class 0 in a FIFO, as TCP is used to,
/// all others in deficit round robin between flows. What one class leaves unused of the line, the
/// other gets.
#[derive(Clone, Debug)]
pub struct TwoClass<P> {
    first: Fifo<P>,
    second: Drr<P>,
    share: f64,
    /// How much more than its share the first class was served, in bytes, while both had something
    /// to send.
    ahead: f64,
}

impl<P> TwoClass<P> {
    /// An empty queue.
    pub fn new(limit: Limit, options: &QueueOptions) -> Self {
        let share = options.share.get();
        Self {
            first: Fifo::new(part(limit, share)),
            second: Drr::new(part(limit, 1.0 - share)).with_options(options),
            share,
            ahead: 0.0,
        }
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: Packet<P>,
        observer: &mut impl Observer<P>,
    ) {
        if packet.class == 0 {
            self.first.enqueue(now, packet, observer);
        } else {
            self.second.enqueue(now, packet, observer);
        }
    }

    pub(crate) fn dequeue(
        &mut self,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Packet<P>> {
        match (self.first.len(), self.second.len()) {
            (0, 0) => None,
            (_, 0) => {
                self.ahead = 0.0;
                self.first.dequeue(now, observer)
            }
            (0, _) => {
                self.ahead = 0.0;
                self.second.dequeue(now, observer)
            }
            _ if self.ahead <= 0.0 => {
                let packet = self.first.dequeue(now, observer)?;
                self.ahead += f64::from(packet.size) * (1.0 - self.share);
                Some(packet)
            }
            _ => {
                let packet = self.second.dequeue(now, observer)?;
                self.ahead -= f64::from(packet.size) * self.share;
                Some(packet)
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.first.bytes() + self.second.bytes()
    }
}

/// A share of a limit.
fn part(limit: Limit, share: f64) -> Limit {
    let share = Probability::new(share).get();
    match limit {
        Limit::Packets(packets) => Limit::Packets((packets as f64 * share) as u64),
        Limit::Bytes(size) if size.as_bytes() == u64::MAX => limit,
        Limit::Bytes(size) => {
            Limit::Bytes(fontis_base::Size::from_bytes((size.as_bytes() as f64 * share) as u64))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{Log, packet};

    fn of_class(class: u8, id: u64, flow: u32, size: u32) -> Packet<()> {
        Packet { class, ..packet(id, flow, size) }
    }

    #[test]
    fn the_highest_class_goes_first() {
        let mut queue = Priority::new(Limit::Packets(2));
        let mut log = Log::default();
        for (id, class) in [(1, 0), (2, 2), (3, 1), (4, 2), (5, 2), (6, 0)] {
            queue.enqueue(Time::ZERO, of_class(class, id, 0, 100), &mut log);
        }
        let order: Vec<u64> =
            core::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut log)).map(|p| p.id.0).collect();
        assert_eq!(order, [2, 4, 3, 1, 6]);
        assert_eq!(log.dropped, [(5, "queue overflow")]);
    }

    #[test]
    fn two_classes_share_the_line_as_they_should_whatever_their_packets() {
        for share in [0.2, 0.5, 0.9] {
            let options =
                QueueOptions { share: Probability::new(share), ..QueueOptions::default() };
            let mut queue = TwoClass::new(Limit::Packets(100), &options);
            let mut served = [0.0, 0.0];
            for id in 0..100_000 {
                queue.enqueue(Time::ZERO, of_class(0, id, 1, 1500), &mut ());
                queue.enqueue(Time::ZERO, of_class(1, id, 2, 700), &mut ());
                queue.enqueue(Time::ZERO, of_class(1, id, 3, 700), &mut ());
                let packet = queue.dequeue(Time::ZERO, &mut ()).unwrap();
                served[usize::from(packet.class)] += f64::from(packet.size);
            }
            let got = served[0] / (served[0] + served[1]);
            assert!((got / share - 1.0).abs() < 0.01, "{got}, not {share}");
        }
    }

    #[test]
    fn a_flood_of_one_class_leaves_the_other_its_buffer() {
        let mut queue = TwoClass::new(Limit::Packets(10), &QueueOptions::default());
        let mut log = Log::default();
        for id in 0..20 {
            queue.enqueue(Time::ZERO, of_class(1, id, 2, 1500), &mut log);
        }
        assert_eq!(log.dropped.len(), 15);
        queue.enqueue(Time::ZERO, of_class(0, 100, 1, 1500), &mut log);
        assert_eq!((log.dropped.len(), queue.len()), (15, 6));
    }
}
