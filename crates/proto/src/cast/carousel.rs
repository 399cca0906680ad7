use fontis_base::{Duration, Rate, Serializer, Time};

use super::overhead::symbols_for;
use super::packet::CastAnnouncement;
use super::shape::CastShape;

/// The choices of a sender that gets no answers.
#[derive(Clone, Copy, Debug)]
pub struct CarouselConfig {
    /// Bytes of symbols that leave in a second, as a rate.
    pub rate: Rate,
    /// The share of packets that a receiver may lose and still have everything after one round.
    pub loss: f64,
    /// The probability that it does not.
    pub failure: f64,
    /// Rounds; none for no end.
    pub rounds: Option<u32>,
}

/// The next packet for receivers that cannot answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarouselTransmit {
    /// Symbol `esi` of `block`, in this round.
    Symbol {
        /// The round.
        round: u32,
        /// The block.
        block: u32,
        /// The symbol.
        esi: u32,
    },
    /// What is sent.
    Announcement(CastAnnouncement),
}

/// Blocks whose symbols leave in turn, so that a burst of losses takes little of each.
const INTERLEAVED: u32 = 16;
/// Symbols of the head follow one another at this distance at most, in time.
const HEAD_EVERY: Duration = Duration::from_millis(500);
/// Symbols of the head in a round, at least, for each that suffices: a receiver without the head
/// has nothing.
const HEAD_TIMES: u32 = 8;
const ANNOUNCE_EVERY: Duration = Duration::from_millis(500);
/// Before the first symbol so many announcements leave, at this distance, that one comes with a
/// probability of 1 − `UNHEARD`: without any, a receiver cannot use what comes.
const OPEN_EVERY: Duration = Duration::from_millis(2);
const UNHEARD: f64 = 1e-6;
/// Announcements that the last round is over: one may be lost.
const ENDS: u32 = 10;
/// What is not sent in time is made up for, if it is at most so late.
const CATCH_UP: Duration = Duration::from_millis(10);

fn openings(loss: f64) -> u32 {
    let count = libm::ceil(libm::log(UNHEARD) / libm::log(loss.clamp(1e-3, 0.9)));
    count as u32
}

/// A sender that gets no answers: it sends so many symbols of each block that enough arrive, in one
/// round or in one after another, each with other symbols.
#[derive(Debug)]
pub struct Carousel {
    config: CarouselConfig,
    shape: CastShape,
    pacer: Serializer,
    round: u32,
    /// The first of the blocks that are sent in turn, the next of them, and how often all had one.
    group: u32,
    within: u32,
    turn: u32,
    /// Symbols of blocks of the body and its last block in a round.
    each: u32,
    last: u32,
    /// The same of a block of the head.
    of_head: u32,
    /// Symbols of the body in a round, and those of body and head that have left in this one.
    body: u64,
    body_sent: u64,
    head_sent: u64,
    head_next: u32,
    head_at: Time,
    announce_at: Time,
    /// Announcements that are to leave before the first symbol.
    openings: u32,
    ends: u32,
}

impl Carousel {
    /// A sender of what `shape` says.
    pub fn new(config: CarouselConfig, shape: CastShape) -> Self {
        let blocks = f64::from(shape.blocks().max(1));
        let failure = (config.failure / blocks).max(1e-15);
        let of = |block: u32| {
            shape.block(block).map_or(0, |shape| symbols_for(shape, config.loss, failure))
        };
        let head = (0..shape.head_blocks()).map(&of).max().unwrap_or(0);
        let (each, last) = (of(shape.head_blocks()), of(shape.blocks().saturating_sub(1)));
        let mut pacer = Serializer::new(config.rate);
        pacer.send(Time::ZERO, 0);
        Self {
            config,
            shape,
            pacer,
            round: 0,
            group: shape.head_blocks(),
            within: 0,
            turn: 0,
            each,
            last,
            of_head: head * HEAD_TIMES,
            body: match u64::from(shape.blocks() - shape.head_blocks()) {
                0 => 0,
                blocks => (blocks - 1) * u64::from(each) + u64::from(last),
            },
            body_sent: 0,
            head_sent: 0,
            head_next: 0,
            head_at: Time::ZERO,
            announce_at: Time::ZERO,
            openings: openings(config.loss),
            ends: 0,
        }
    }

    /// Symbols of body and head in a round, for each source symbol.
    pub fn symbols_for_each(&self) -> f64 {
        let head = u64::from(self.of_head) * u64::from(self.shape.head_blocks());
        (self.body + head) as f64 / self.shape.all_symbols().max(1) as f64
    }

    /// Whether all rounds are over, and that was said.
    pub const fn is_over(&self) -> bool {
        self.ends >= ENDS
    }

    fn has_rounds(&self) -> bool {
        self.config.rounds.is_none_or(|rounds| self.round < rounds)
    }

    /// When [`poll`](Self::poll) has something to send; `Time::MAX` when it is over.
    pub fn timeout(&self) -> Time {
        match (self.is_over(), self.has_rounds()) {
            (true, _) => Time::MAX,
            (false, true) if self.openings > 0 => self.announce_at,
            (false, true) => self.pacer.free_at().min(self.announce_at),
            (false, false) => self.announce_at,
        }
    }

    /// The next packet, if one is due.
    pub fn poll(&mut self, now: Time) -> Option<CarouselTransmit> {
        if self.is_over() {
            return None;
        }
        if self.announce_at <= now {
            let is_end = !self.has_rounds();
            self.ends += u32::from(is_end);
            self.openings = self.openings.saturating_sub(1);
            self.announce_at = now
                + match (is_end, self.openings) {
                    (true, _) => ANNOUNCE_EVERY / 10,
                    (false, 0) => ANNOUNCE_EVERY,
                    (false, _) => OPEN_EVERY,
                };
            return Some(CarouselTransmit::Announcement(CastAnnouncement {
                round: self.round,
                is_end,
                rate: self.config.rate.as_bps() / 8,
                next: if is_end { self.shape.blocks() } else { self.group },
            }));
        }
        if !self.has_rounds() || self.openings > 0 || self.pacer.free_at() > now {
            return None;
        }
        let late = Time::from_nanos(now.as_nanos().saturating_sub(CATCH_UP.as_nanos()));
        self.pacer.send(self.pacer.free_at().max(late), u64::from(self.shape.symbol_size()));
        Some(self.symbol(now))
    }

    fn symbol(&mut self, now: Time) -> CarouselTransmit {
        let all_of_head = u64::from(self.of_head) * u64::from(self.shape.head_blocks());
        // The head is spread over the round.
        let is_behind = self.head_sent < all_of_head
            && self.head_sent * self.body <= self.body_sent * all_of_head;
        let transmit = if is_behind || self.head_at <= now || self.body == 0 {
            self.head_at = now + HEAD_EVERY;
            let heads = self.shape.head_blocks().max(1);
            let (block, esi) = (self.head_next % heads, self.head_next / heads);
            self.head_next = self.head_next.wrapping_add(1);
            self.head_sent += 1;
            self.of(block, esi)
        } else {
            let block = self.group + self.within;
            let esi = self.round.wrapping_mul(self.count(block)).wrapping_add(self.turn);
            let transmit = self.of(block, esi);
            self.body_sent += 1;
            self.advance();
            transmit
        };
        if self.body_sent >= self.body && self.head_sent >= all_of_head {
            self.end_round();
        }
        transmit
    }

    fn of(&self, block: u32, esi: u32) -> CarouselTransmit {
        let limit = self.shape.block(block).map_or(1, |shape| shape.esi_limit());
        CarouselTransmit::Symbol { round: self.round, block, esi: esi % limit }
    }

    fn count(&self, block: u32) -> u32 {
        if block + 1 == self.shape.blocks() { self.last } else { self.each }
    }

    /// The next block in turn that has symbols left in this round.
    fn advance(&mut self) {
        let end = (self.group + INTERLEAVED).min(self.shape.blocks());
        let most = (self.group..end).map(|block| self.count(block)).max().unwrap_or(0);
        while self.turn < most {
            self.within += 1;
            if self.group + self.within >= end {
                self.within = 0;
                self.turn += 1;
            }
            if self.turn < self.count(self.group + self.within) {
                return;
            }
        }
        (self.group, self.within, self.turn) = (end, 0, 0);
    }

    fn end_round(&mut self) {
        self.round += 1;
        self.group = self.shape.head_blocks();
        (self.within, self.turn, self.body_sent, self.head_sent) = (0, 0, 0, 0);
        if !self.has_rounds() {
            self.announce_at = Time::ZERO;
        }
    }
}
