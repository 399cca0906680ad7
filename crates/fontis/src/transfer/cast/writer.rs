use std::net::SocketAddr;

use fontis_base::{Rate, Time};
use fontis_proto::cast::ReceiptBook;
use ring::signature::Ed25519KeyPair;

use super::seal::{CastId, CastSecret, GroupPacket, GroupSeal};
use crate::udp::Socket;
use crate::udp::outbox::GroupOutbox;

/// What a sender writes to its group: packets, and signed receipts of them.
pub(super) struct GroupWriter {
    id: CastId,
    seal: GroupSeal,
    key: Ed25519KeyPair,
    book: ReceiptBook,
    outbox: GroupOutbox,
}

impl GroupWriter {
    /// One for a cast, which signs with `key`.
    pub(super) fn new(
        id: CastId,
        secret: &CastSecret,
        key: Ed25519KeyPair,
        socket: &Socket,
    ) -> Self {
        let (seal, outbox) = (GroupSeal::new(id, secret), GroupOutbox::new(socket));
        Self { id, seal, key, book: ReceiptBook::default(), outbox }
    }

    /// The cast, and the key that its sender signs with.
    pub(super) const fn signing(&self) -> (CastId, &Ed25519KeyPair) {
        (self.id, &self.key)
    }

    /// Whether the system has taken everything.
    pub(super) fn is_empty(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Whether nothing more should be added at present.
    pub(super) fn is_full(&self) -> bool {
        self.outbox.is_full()
    }

    /// When a receipt is due; `Time::MAX` if never.
    pub(super) fn timeout(&self) -> Time {
        self.book.timeout()
    }

    /// Adds packet `number`. Symbols leave at `rate`.
    pub(super) fn add(&mut self, number: u64, packet: &GroupPacket, rate: Rate, now: Time) {
        let mut digest = 0;
        self.outbox.add(|out| digest = self.seal.seal(number, packet, out));
        self.book.note(number, digest, rate, now);
    }

    /// Adds a receipt, if one is due; `number` gives it its number. `is_idle` says that no symbol
    /// follows soon.
    pub(super) fn vouch(&mut self, now: Time, is_idle: bool, number: impl FnOnce() -> u64) {
        let Some(receipt) = self.book.poll(now, is_idle) else { return };
        let number = number();
        let packet = GroupPacket::receipt(self.id, number, receipt, &self.key);
        let mut digest = 0;
        self.outbox.add(|out| digest = self.seal.seal(number, &packet, out));
        self.book.note_receipt(number, digest);
    }

    /// Hands everything to the system; false if it takes no more at present.
    pub(super) fn flush(&mut self, socket: &Socket, group: SocketAddr) -> bool {
        self.outbox.flush(socket, group)
    }
}
