//! The wire format of `docs/multicast.md`: fixed-width integers are big-endian, `varint` is RFC
//! 9000's.

use bytes::{Buf, BufMut, Bytes};
use thiserror::Error;

use super::config::CastLaw;
use super::live::{LiveSymbol, live_shape};
use super::packet::{
    CastNeed, CastReceipt, CastReport, CastState, CastSymbol, MemberRoundTrip, Planned,
};
use super::receipt::MOST_DIGESTS;
use crate::rate::PathDeparture;
use crate::wire::{take_varint, varint};

/// Bytes before a symbol that has no timing: visit, block and ESI.
pub const SYMBOL_HEADER: usize = 11;
/// Bytes of a symbol's timing, and the bit of its visit that says that they follow.
pub const SYMBOL_TIMING: usize = 8;
const IS_TIMED: u32 = 1 << 31;
/// Bytes before a symbol of a stream.
const LIVE_HEADER: usize = 16;
const MOST_PLANNED: u64 = 256;
const MOST_ROUND_TRIPS: u64 = 32;
const MOST_NEEDS: u64 = 256;
const MILLION: u32 = 1_000_000;

/// Bytes that are no such packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CastWireError {
    /// They end too early, or go on where they should end.
    #[error("a packet of a cast has {0} bytes too few or too many")]
    Length(&'static str),
    /// A field has a value that it cannot have.
    #[error("the field '{0}' of a packet of a cast is out of range")]
    Range(&'static str),
}

/// Writes a symbol.
pub fn encode_symbol(symbol: &CastSymbol, out: &mut impl BufMut) {
    out.put_u32(symbol.visit | if symbol.timing.is_some() { IS_TIMED } else { 0 });
    out.put_u32(symbol.block);
    // RFC 6330: an ESI has 24 bits.
    out.put_uint(u64::from(symbol.esi), 3);
    if let Some(PathDeparture { sent, pace }) = symbol.timing {
        out.put_u32(sent);
        out.put_u32(pace);
    }
    out.put_slice(&symbol.data);
}

/// Reads a symbol.
pub fn decode_symbol(mut bytes: Bytes) -> Result<CastSymbol, CastWireError> {
    if bytes.len() < SYMBOL_HEADER {
        return Err(CastWireError::Length("symbol"));
    }
    let (visit, block, esi) = (bytes.get_u32(), bytes.get_u32(), bytes.get_uint(3) as u32);
    let timing = match visit & IS_TIMED {
        0 => None,
        _ if bytes.len() < SYMBOL_TIMING => return Err(CastWireError::Length("symbol")),
        _ => Some(PathDeparture { sent: bytes.get_u32(), pace: bytes.get_u32() }),
    };
    Ok(CastSymbol { visit: visit & !IS_TIMED, block, esi, timing, data: bytes })
}

/// Writes a symbol of a stream.
pub fn encode_live_symbol(symbol: &LiveSymbol, out: &mut impl BufMut) {
    out.put_u32(symbol.block);
    out.put_uint(u64::from(symbol.esi), 3);
    out.put_uint(u64::from(symbol.len), 3);
    out.put_u32(symbol.at);
    out.put_u16(symbol.age);
    out.put_slice(&symbol.data);
}

/// Reads a symbol of a stream.
pub fn decode_live_symbol(mut bytes: Bytes) -> Result<LiveSymbol, CastWireError> {
    if bytes.len() < LIVE_HEADER {
        return Err(CastWireError::Length("symbol of a stream"));
    }
    let (block, esi) = (bytes.get_u32(), bytes.get_uint(3) as u32);
    let len = bytes.get_uint(3) as u32;
    if live_shape(len).is_none() {
        return Err(CastWireError::Range("length of a block"));
    }
    let (at, age) = (bytes.get_u32(), bytes.get_u16());
    Ok(LiveSymbol { block, esi, len, at, age, data: bytes })
}

/// Writes a state.
pub fn encode_state(state: &CastState, out: &mut impl BufMut) {
    for value in [state.visit, state.pass] {
        put(out, u64::from(value));
    }
    out.put_u8(u8::from(state.idle));
    out.put_u8(match state.law {
        None => 0,
        Some(CastLaw::Tfmcc) => 1,
        Some(CastLaw::Auto) => 2,
    });
    put(out, state.rate);
    for value in [state.members, state.round_trip, state.report_every, state.status_every] {
        put(out, u64::from(value));
    }
    put(out, state.limiting.map_or(0, |member| u64::from(member) + 1));
    out.put_u8(u8::from(state.friendly));
    put(out, u64::from(state.soon));
    put(out, state.planned.len() as u64);
    for Planned { block, count } in &state.planned {
        put(out, u64::from(*block));
        put(out, u64::from(*count));
    }
    put(out, state.round_trips.len() as u64);
    for MemberRoundTrip { member, round_trip } in &state.round_trips {
        put(out, u64::from(*member));
        put(out, u64::from(*round_trip));
    }
}

/// Reads a state.
pub fn decode_state(mut bytes: Bytes) -> Result<CastState, CastWireError> {
    let from = &mut bytes;
    let (visit, pass) = (small(from, "visit")?, small(from, "pass")?);
    let idle = flag(from, "idle")?;
    let law = match from.try_get_u8().map_err(|_| CastWireError::Length("law"))? {
        0 => None,
        1 => Some(CastLaw::Tfmcc),
        2 => Some(CastLaw::Auto),
        _ => return Err(CastWireError::Range("law")),
    };
    let rate = take(from, "rate")?;
    let (members, round_trip) = (small(from, "members")?, small(from, "round trip")?);
    let (report_every, status_every) = (small(from, "interval")?, small(from, "interval")?);
    let limiting = match take(from, "limiting")? {
        0 => None,
        member => Some(u32::try_from(member - 1).map_err(|_| CastWireError::Range("limiting"))?),
    };
    let friendly = flag(from, "friendly")?;
    let soon = small(from, "soon")?;
    let mut planned = Vec::new();
    for _ in 0..count(from, MOST_PLANNED, "planned")? {
        planned.push(Planned { block: small(from, "block")?, count: small(from, "count")? });
    }
    let mut round_trips = Vec::new();
    for _ in 0..count(from, MOST_ROUND_TRIPS, "round trips")? {
        let member = small(from, "member")?;
        round_trips.push(MemberRoundTrip { member, round_trip: small(from, "round trip")? });
    }
    end(from, "state")?;
    Ok(CastState {
        visit,
        pass,
        idle,
        law,
        rate,
        members,
        round_trip,
        report_every,
        status_every,
        limiting,
        friendly,
        soon,
        planned,
        round_trips,
    })
}

/// Writes a report.
pub fn encode_report(report: &CastReport, out: &mut impl BufMut) {
    for value in [report.sequence, report.visit, report.loss, report.loss_events] {
        put(out, u64::from(value));
    }
    put(out, report.received);
    put(out, report.allowed);
    out.put_u8(u8::from(report.friendly));
    put(out, report.newest);
    put(out, u64::from(report.held));
    out.put_u8(u8::from(report.is_done));
    put(out, report.lacking);
    put(out, report.needs.len() as u64);
    for CastNeed { first, blocks, symbols } in &report.needs {
        for value in [first, blocks, symbols] {
            put(out, u64::from(*value));
        }
    }
}

/// Reads a report.
pub fn decode_report(mut bytes: Bytes) -> Result<CastReport, CastWireError> {
    let from = &mut bytes;
    let (sequence, visit) = (small(from, "sequence")?, small(from, "visit")?);
    let (loss, loss_events) = (share(from, "loss")?, share(from, "loss events")?);
    let (received, allowed) = (take(from, "received")?, take(from, "allowed")?);
    let friendly = flag(from, "friendly")?;
    let (newest, held) = (take(from, "newest")?, small(from, "held")?);
    let is_done = flag(from, "done")?;
    let lacking = take(from, "lacking")?;
    let mut needs = Vec::new();
    for _ in 0..count(from, MOST_NEEDS, "needs")? {
        let (first, blocks) = (small(from, "block")?, small(from, "blocks")?);
        needs.push(CastNeed { first, blocks, symbols: small(from, "symbols")? });
    }
    end(from, "report")?;
    Ok(CastReport {
        sequence,
        visit,
        loss,
        loss_events,
        received,
        allowed,
        friendly,
        newest,
        held,
        is_done,
        lacking,
        needs,
    })
}

/// Writes a receipt.
pub fn encode_receipt(receipt: &CastReceipt, out: &mut impl BufMut) {
    out.put_u64(receipt.first);
    receipt.digests.iter().for_each(|digest| out.put_u64(*digest));
}

/// Reads a receipt.
pub fn decode_receipt(mut bytes: Bytes) -> Result<CastReceipt, CastWireError> {
    let first = bytes.try_get_u64().map_err(|_| CastWireError::Length("receipt"))?;
    if bytes.is_empty() || !bytes.len().is_multiple_of(8) {
        return Err(CastWireError::Length("receipt"));
    }
    let count = bytes.len() / 8;
    // Numbers end before those of all packets do, so that the one after the last is one, too.
    if count > MOST_DIGESTS || first.checked_add(count as u64).is_none() {
        return Err(CastWireError::Range("digests"));
    }
    let digests = (0..count).map(|_| bytes.get_u64()).collect();
    Ok(CastReceipt { first, digests })
}

fn put(out: &mut impl BufMut, value: u64) {
    varint(value, 1, |bytes| out.put_slice(bytes));
}

fn take(from: &mut Bytes, field: &'static str) -> Result<u64, CastWireError> {
    take_varint(from).ok_or(CastWireError::Length(field))
}

fn small(from: &mut Bytes, field: &'static str) -> Result<u32, CastWireError> {
    u32::try_from(take(from, field)?).map_err(|_| CastWireError::Range(field))
}

fn share(from: &mut Bytes, field: &'static str) -> Result<u32, CastWireError> {
    let share = small(from, field)?;
    if share <= MILLION { Ok(share) } else { Err(CastWireError::Range(field)) }
}

fn count(from: &mut Bytes, most: u64, field: &'static str) -> Result<u64, CastWireError> {
    let count = take(from, field)?;
    if count <= most { Ok(count) } else { Err(CastWireError::Range(field)) }
}

fn flag(from: &mut Bytes, field: &'static str) -> Result<bool, CastWireError> {
    match from.try_get_u8().map_err(|_| CastWireError::Length(field))? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(CastWireError::Range(field)),
    }
}

fn end(from: &Bytes, packet: &'static str) -> Result<(), CastWireError> {
    if from.is_empty() { Ok(()) } else { Err(CastWireError::Length(packet)) }
}
