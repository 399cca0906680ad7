use std::net::IpAddr;

use fontis_base::Time;
use fontis_proto::cast::{CastGate, CastOrigin, CastSymbol, GateKept, LiveSymbol};

use super::seal::{CastId, CastSecret, GroupPacket, GroupSeal, Opened, Signer};

/// Signatures that are checked in a second: a sixth of a processor. A sender makes a few hundred.
const MOST_CHECKS: u32 = 2000;

/// A symbol of one kind of cast.
pub(super) trait GroupSymbol: Clone {
    /// The symbol of a packet; none if it has none of this kind.
    fn of(packet: &GroupPacket) -> Option<&Self>;
}

impl GroupSymbol for CastSymbol {
    fn of(packet: &GroupPacket) -> Option<&Self> {
        match packet {
            GroupPacket::Symbol(symbol) => Some(symbol),
            _ => None,
        }
    }
}

impl GroupSymbol for LiveSymbol {
    fn of(packet: &GroupPacket) -> Option<&Self> {
        match packet {
            GroupPacket::Live(symbol) => Some(symbol),
            _ => None,
        }
    }
}

/// What a receiver reads from its group.
pub(super) struct GroupReader {
    id: CastId,
    seal: GroupSeal,
    signer: Signer,
    /// The second, and the signatures that were checked in it.
    checks: (u64, u32),
}

impl GroupReader {
    /// One for a cast, whose sender has this public key.
    pub(super) fn new(id: CastId, secret: &CastSecret, signer: Signer) -> Self {
        Self { id, seal: GroupSeal::new(id, secret), signer, checks: (0, 0) }
    }

    /// The cast.
    pub(super) const fn id(&self) -> CastId {
        self.id
    }

    /// Opens a datagram of a member of the group, the sender or another.
    pub(super) fn open(&self, datagram: &[u8]) -> Option<Opened> {
        self.seal.open(datagram.into())
    }

    /// Hands over a packet. Returns true if the sender has surely made it just now, or before.
    pub(super) fn give<R: GateKept<Symbol: GroupSymbol>>(
        &mut self,
        Opened { number, digest, packet }: Opened,
        source: IpAddr,
        at: Time,
        gate: &mut CastGate<R>,
    ) -> bool {
        let origin = CastOrigin { number, digest, source, at };
        if let Some(symbol) = R::Symbol::of(&packet) {
            gate.symbol(origin, symbol.clone());
            return false;
        }
        let second = at.as_nanos() / 1_000_000_000;
        if self.checks.0 != second {
            self.checks = (second, 0);
        }
        if self.checks.1 >= MOST_CHECKS {
            return false;
        }
        self.checks.1 += 1;
        if !packet.is_of(self.id, number, &self.signer) {
            gate.accuse(source);
            return false;
        }
        match packet {
            GroupPacket::State(state, _) => gate.state(origin, state),
            GroupPacket::Receipt(receipt, _) => gate.receipt(origin, &receipt),
            _ => return false,
        }
        true
    }
}
