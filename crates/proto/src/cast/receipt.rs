use std::collections::VecDeque;

use fontis_base::{Duration, Rate, Time};

use super::packet::CastReceipt;

/// Packets after which a receipt is due, and the digests that one has room for.
const EACH: usize = 64;
pub(super) const MOST_DIGESTS: usize = 140;
/// Bounds of the time after which one is due, and the packets that it then covers: at a low rate
/// few packets must not cost a receipt.
const SOONEST: Duration = Duration::from_millis(20);
const LATEST: Duration = Duration::from_millis(500);
const FEWEST: u64 = 16;
/// The time after which the last receipt is said once more when nothing else follows.
const AGAIN: Duration = Duration::from_millis(5);

/// What a sender has sent and not yet vouched for. Each packet stands in two receipts: one of them
/// may be lost.
#[derive(Debug, Default)]
pub struct ReceiptBook {
    /// The number of the first of the digests.
    first: u64,
    digests: VecDeque<u64>,
    /// How many of them, at the end, stand in no receipt yet.
    fresh: usize,
    /// Whether something but receipts is among those.
    has_news: bool,
    due: Option<Time>,
    /// When to say the last one again.
    again: Option<Time>,
}

impl ReceiptBook {
    /// Notes the digest of packet `number`, which has just left; numbers rise. Symbols leave at
    /// `rate`.
    pub fn note(&mut self, number: u64, digest: u64, rate: Rate, now: Time) {
        self.push(number, digest);
        if !self.has_news {
            self.has_news = true;
            let bits = (FEWEST * 8 * 1200) as f64;
            let fill = Duration::from_secs_f64(bits / (rate.as_bps().max(1)) as f64);
            self.due = Some(now + fill.clamp(SOONEST, LATEST));
        }
    }

    /// When [`poll`](Self::poll) has a receipt; `Time::MAX` if never.
    pub fn timeout(&self) -> Time {
        self.due.or(self.again).unwrap_or(Time::MAX)
    }

    /// A receipt, if one is due. `is_idle` says that no symbol follows soon.
    pub fn poll(&mut self, now: Time, is_idle: bool) -> Option<CastReceipt> {
        if !self.has_news && self.again.is_some_and(|at| at <= now) {
            self.again = None;
            return Some(self.receipt());
        }
        let is_due = self.due.is_some_and(|at| at <= now);
        if !(is_due || self.fresh >= EACH || is_idle && self.has_news) {
            return None;
        }
        self.again = is_idle.then_some(now + AGAIN);
        let receipt = self.receipt();
        // The next one begins where what is new in this one does.
        let old = self.digests.len() - self.fresh.min(self.digests.len());
        self.digests.drain(..old);
        self.first += old as u64;
        (self.fresh, self.has_news, self.due) = (0, false, None);
        Some(receipt)
    }

    fn receipt(&self) -> CastReceipt {
        CastReceipt { first: self.first, digests: self.digests.iter().copied().collect() }
    }

    /// Notes the receipt itself: a later one vouches for its number, and none is made for it.
    pub fn note_receipt(&mut self, number: u64, digest: u64) {
        self.push(number, digest);
    }

    fn push(&mut self, number: u64, digest: u64) {
        let next = self.first + self.digests.len() as u64;
        let skipped = number.saturating_sub(next);
        if self.digests.is_empty() || skipped > EACH as u64 {
            (self.first, self.fresh) = (number, 0);
            self.digests.clear();
        } else {
            // A number that no packet got has a digest that no packet has.
            self.digests.extend((0..skipped).map(|_| 0));
            self.fresh += skipped as usize;
        }
        self.digests.push_back(digest);
        self.fresh += 1;
        while self.digests.len() > MOST_DIGESTS {
            self.digests.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_stands_in_two_receipts_and_the_last_is_not_waited_for() {
        let (mut book, mut stands, mut number) = (ReceiptBook::default(), vec![0; 1100], 0_u64);
        let rate = Rate::from_mbps(100);
        let mut count = |receipt: CastReceipt| {
            for (number, digest) in (receipt.first..).zip(&receipt.digests) {
                assert_eq!(*digest, number * 3);
                stands[number as usize] += 1;
            }
            assert!(receipt.digests.len() <= MOST_DIGESTS);
        };
        while number < 1000 {
            book.note(number, number * 3, rate, Time::ZERO);
            number += 1;
            if let Some(receipt) = book.poll(Time::ZERO, false) {
                count(receipt);
                book.note_receipt(number, number * 3);
                number += 1;
            }
        }
        assert_eq!(book.timeout(), Time::ZERO + SOONEST);
        count(book.poll(Time::ZERO, true).unwrap());
        assert_eq!(book.poll(Time::ZERO, true), None, "nothing is new");
        let again = book.poll(Time::ZERO + AGAIN, true).unwrap();
        assert!(again.first + again.digests.len() as u64 >= 1000, "the last is said twice");
        assert_eq!(book.timeout(), Time::MAX);
        assert!(stands[..900].iter().all(|stands| *stands == 2), "{stands:?}");
        assert!(stands[900..number as usize].iter().all(|stands| *stands >= 1));
    }
}
