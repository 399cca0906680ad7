use fontis_base::{Rate, Time};
use fontis_proto::cast::{CastConfig, CastRate, CastReport, CastSender, CastSymbol, CastTransmit};
use ring::signature::Ed25519KeyPair;

use super::blocks::Blocks;
use super::group::CastStatus;
use super::group_thread::Feed;
use super::object::CastObject;
use super::seal::{CastId, GroupPacket};

/// The symbols of an object.
pub(super) struct ObjectFeed {
    sender: CastSender,
    blocks: Blocks,
    needed: u64,
}

impl ObjectFeed {
    pub(super) fn new(object: &CastObject, rate: CastRate) -> Self {
        let shape = object.content.shape;
        Self {
            sender: CastSender::new(CastConfig::new(rate), shape),
            blocks: object.blocks(),
            needed: shape.all_symbols(),
        }
    }
}

impl Feed for ObjectFeed {
    fn join(&mut self, member: u32, now: Time) {
        self.sender.join(member, now);
    }

    fn start(&mut self, now: Time) {
        self.sender.start(now);
    }

    fn leave(&mut self, member: u32) {
        self.sender.leave(member);
    }

    fn report(&mut self, member: u32, report: &CastReport, now: Time) {
        self.sender.report(member, report, now);
    }

    fn timeout(&self) -> Time {
        self.sender.timeout()
    }

    fn poll(
        &mut self,
        now: Time,
        (id, key): (CastId, &Ed25519KeyPair),
    ) -> Result<Option<(u64, Option<GroupPacket>)>, String> {
        let Some((number, transmit)) = self.sender.poll(now) else { return Ok(None) };
        let packet = match transmit {
            CastTransmit::State(state) => Some(GroupPacket::state(id, number, state, key)),
            CastTransmit::Symbol { visit, block, esi, timing } => {
                let data = self.blocks.symbol(block, esi).map_err(|error| error.to_string())?;
                let symbol = |data| CastSymbol { visit, block, esi, timing, data };
                data.map(|data| GroupPacket::Symbol(symbol(data)))
            }
        };
        Ok(Some((number, packet)))
    }

    fn number(&mut self, now: Time) -> u64 {
        self.sender.number(now)
    }

    fn is_idle(&self) -> bool {
        self.sender.is_idle()
    }

    fn rate(&self) -> Rate {
        self.sender.rate()
    }

    fn status(&self, _now: Time) -> CastStatus {
        CastStatus {
            symbols: self.sender.symbols_sent(),
            needed: self.needed,
            rate: self.sender.rate(),
            limiting: self.sender.limiting(),
            is_idle: self.sender.is_idle(),
            is_over: false,
            members: self.sender.members().map(|(id, member)| (id, *member)).collect(),
            failure: None,
        }
    }
}
