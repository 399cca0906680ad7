use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fontis_base::{Rate, Time};
use fontis_proto::cast::{Carousel, CarouselConfig, CarouselTransmit, CastSymbol};
use mio::{Events, Interest, Poll, Token};
use ring::signature::Ed25519KeyPair;

use super::announcement::{Announcement, signing_key, signing_public};
use super::group::CastGroup;
use super::object::CastObject;
use super::seal::{CastId, CastSecret, GroupPacket};
use super::writer::GroupWriter;
use crate::identity::{Identity, PublicKey};
use crate::random::random;
use crate::source::SourceOptions;
use crate::transfer::TransferError;
use crate::udp::{Alarm, Clock, group_sender};
use crate::url::Secret;

/// How an object is sent to receivers that cannot answer.
#[derive(Clone, Copy, Debug)]
pub struct OneWayOptions {
    /// The group.
    pub group: CastGroup,
    /// Bytes of symbols that leave in a second, as a rate.
    pub rate: Rate,
    /// The share of packets that a receiver may lose and still have everything after one round.
    pub loss: f64,
    /// Rounds; none for no end.
    pub rounds: Option<u32>,
}

/// The probability that a receiver that loses as much as was stated lacks something after a round.
const FAILURE: f64 = 5e-5;

/// Sends one object to a group, and takes no answers.
pub struct OneWaySender {
    object: CastObject,
    options: OneWayOptions,
    id: CastId,
    secret: CastSecret,
    key: Ed25519KeyPair,
    carousel: Carousel,
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
}

const SOCKET: Token = Token(0);
const ALARM: Token = Token(1);
/// The longest time until a stop is seen.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(100);

/// The secret of a group from that of its URL.
pub(super) fn group_secret(secret: &Secret) -> CastSecret {
    blake3::derive_key("fontis cast 1 one way", secret.as_bytes())
}

impl OneWaySender {
    /// Opens the file or folder at `path`, hashes it, and is ready to send it to those who know
    /// `secret`, signed by `identity`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn new(
        path: &Path,
        source_options: &SourceOptions,
        options: OneWayOptions,
        secret: &Secret,
        identity: &Identity,
    ) -> Result<Self, TransferError> {
        let object = CastObject::open(path, source_options)?;
        let id: CastId = random();
        let config = CarouselConfig {
            rate: options.rate,
            loss: options.loss,
            failure: FAILURE,
            rounds: options.rounds,
        };
        Ok(Self {
            carousel: Carousel::new(config, object.content.shape),
            object,
            options,
            id,
            secret: group_secret(secret),
            key: signing_key(identity),
            stop: Arc::default(),
            sent: Arc::default(),
        })
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        self.object.source.manifest().name()
    }

    /// The key that receivers check signatures with, for their URL.
    ///
    /// # Errors
    /// Never but by a chance of 2⁻²⁵⁰.
    pub fn public(&self) -> Result<PublicKey, TransferError> {
        signing_public(&self.key).ok_or(TransferError::Worker)
    }

    /// Symbols of a round, for each source symbol.
    pub fn symbols_for_each(&self) -> f64 {
        self.carousel.symbols_for_each()
    }

    /// The time of a round.
    pub fn round_time(&self) -> std::time::Duration {
        let symbols = self.symbols_for_each() * self.object.content.shape.all_symbols() as f64;
        let bits = symbols * f64::from(self.object.content.shape.symbol_size()) * 8.0;
        std::time::Duration::from_secs_f64(bits / self.options.rate.as_bps() as f64)
    }

    /// A flag that ends [`run`](Self::run), and a counter of the symbols that have left.
    pub fn handles(&self) -> (Arc<AtomicBool>, Arc<AtomicU64>) {
        (self.stop.clone(), self.sent.clone())
    }

    /// Sends until all rounds are over, or it is stopped. It blocks.
    ///
    /// # Errors
    /// If the group cannot be sent to, or the source changes.
    pub fn run(self) -> Result<(), TransferError> {
        let CastGroup { address: group, interface, hops } = self.options.group;
        let failed = |source: io::Error| TransferError::Group { group, source };
        let socket = group_sender(group, interface, hops);
        let mut socket = socket.map_err(failed)?;
        let mut poll = Poll::new().map_err(failed)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(socket.source(), SOCKET, interest).map_err(failed)?;
        let mut alarm = Alarm::new(poll.registry(), ALARM).map_err(failed)?;
        let Self { object, options, id, secret, key, mut carousel, stop, sent } = self;
        let mut writer = GroupWriter::new(id, &secret, key, &socket);
        let mut blocks = object.blocks();
        let (clock, mut events) = (Clock::start(), Events::with_capacity(8));
        let mut number = 0;
        while !(carousel.is_over() && writer.is_empty()) {
            let at = Some(carousel.timeout().min(writer.timeout()));
            let at = at.filter(|at| *at < Time::MAX && writer.is_empty());
            let timeout = alarm.set(clock.now(), at).map_err(failed)?;
            let timeout = timeout.unwrap_or(LOOK_EVERY).min(LOOK_EVERY);
            match poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(failed(error));
                }
                _ => {}
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let now = clock.now();
            while writer.flush(&socket, group) {
                let mut is_more = false;
                while !writer.is_full()
                    && let Some(transmit) = carousel.poll(now)
                {
                    is_more = true;
                    let (is_last, packet) = match transmit {
                        CarouselTransmit::Announcement(state) => {
                            let head_size = object.head.len() as u64;
                            let content = object.content;
                            let announcement = Announcement { content, head_size, state };
                            let (id, key) = writer.signing();
                            let bytes = announcement.sign(id, key);
                            (state.is_end, GroupPacket::Announcement(bytes.into()))
                        }
                        CarouselTransmit::Symbol { round: visit, block, esi } => {
                            let Some(data) = blocks.symbol(block, esi)? else { continue };
                            sent.fetch_add(1, Ordering::Relaxed);
                            let symbol = CastSymbol { visit, block, esi, timing: None, data };
                            (false, GroupPacket::Symbol(symbol))
                        }
                    };
                    // What nobody has vouched for must be vouched for before the end.
                    let mut next = number;
                    let mut take = || {
                        next += 1;
                        next - 1
                    };
                    writer.vouch(now, is_last, &mut take);
                    writer.add(take(), &packet, options.rate, now);
                    writer.vouch(now, false, take);
                    number = next;
                }
                writer.vouch(now, false, || {
                    number += 1;
                    number - 1
                });
                if !is_more && writer.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }
}
