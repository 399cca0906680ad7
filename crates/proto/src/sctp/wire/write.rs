use core::net::IpAddr;

use crate::sctp::chunk::{
    AuthChunk, DataChunk, InitChunk, Reconfig, RepairChunk, RepairFactors, SackChunk, SctpCause,
    SctpChunk, Stamp,
};
use crate::sctp::data::SctpData;
use crate::sctp::offer::AuthOffer;
use crate::sctp::packet::{COMMON_HEADER, SctpPacket};

use super::asconf::{asconf_ack_size, asconf_size, offer_size, write_asconf, write_asconf_ack};
use super::parts::{address_size, pad, write_causes, write_parameter};
use super::{kind, padded, parameter};

impl SctpPacket {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(self.size());
        out.extend_from_slice(&self.source.to_be_bytes());
        out.extend_from_slice(&self.destination.to_be_bytes());
        out.extend_from_slice(&self.tag.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        self.chunks.iter().for_each(|chunk| write(chunk, out));
        // The bits of the sum leave in the order of its polynomial (RFC 9260 appendix A).
        let sum = crc32c::crc32c(&out[start..]).to_le_bytes();
        out[start + 8..start + 12].copy_from_slice(&sum);
    }

    /// Its bytes, beginning with the common header.
    pub fn size(&self) -> usize {
        COMMON_HEADER + self.chunks.iter().map(SctpChunk::size).sum::<usize>()
    }
}

impl SctpChunk {
    /// Its bytes, with its padding.
    pub fn size(&self) -> usize {
        4 + padded(content_size(self))
    }

    /// Its type.
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Data(data) if data.is_interleaved => kind::I_DATA,
            Self::Data(_) => kind::DATA,
            Self::Init(_) => kind::INIT,
            Self::InitAck(_) => kind::INIT_ACK,
            Self::Sack(sack) if sack.kept.is_some() => kind::NR_SACK,
            Self::Sack(_) => kind::SACK,
            Self::Heartbeat(_) => kind::HEARTBEAT,
            Self::HeartbeatAck(_) => kind::HEARTBEAT_ACK,
            Self::Abort { .. } => kind::ABORT,
            Self::Shutdown { .. } => kind::SHUTDOWN,
            Self::ShutdownAck => kind::SHUTDOWN_ACK,
            Self::ShutdownComplete { .. } => kind::SHUTDOWN_COMPLETE,
            Self::Error(_) => kind::ERROR,
            Self::CookieEcho(_) => kind::COOKIE_ECHO,
            Self::CookieAck => kind::COOKIE_ACK,
            Self::EcnEcho(_) => kind::ECNE,
            Self::WindowReduced(_) => kind::CWR,
            Self::Forward(forward) if forward.is_interleaved => kind::I_FORWARD,
            Self::Forward(_) => kind::FORWARD,
            Self::Stamp(_) => kind::STAMP,
            Self::Echo(_) => kind::ECHO,
            Self::Repair(repair) => repair_kind(repair),
            Self::Restored(_) => kind::RESTORED,
            Self::Reconfig(_) => kind::RECONFIG,
            Self::Auth(_) => kind::AUTH,
            Self::Asconf(_) => kind::ASCONF,
            Self::AsconfAck(_) => kind::ASCONF_ACK,
            Self::Unknown { kind, .. } => *kind,
        }
    }
}

/// The bytes of chunks that follow each other.
pub(in crate::sctp) fn encode_chunks(chunks: &[SctpChunk]) -> Vec<u8> {
    let mut out = Vec::with_capacity(chunks.iter().map(SctpChunk::size).sum());
    chunks.iter().for_each(|chunk| write(chunk, &mut out));
    out
}

fn content_size(chunk: &SctpChunk) -> usize {
    let causes =
        |causes: &[SctpCause]| causes.iter().map(|cause| padded(4 + cause.details.len())).sum();
    match chunk {
        SctpChunk::Data(data) => DataChunk::header(data.is_interleaved) - 4 + data.data.len(),
        SctpChunk::Init(init) | SctpChunk::InitAck(init) => init_size(init),
        SctpChunk::Sack(sack) => {
            let kept = sack.kept.as_ref().map_or(0, |kept| 4 + kept.len() * 4);
            12 + (sack.gaps.len() + sack.duplicates.len()) * 4 + kept
        }
        SctpChunk::Heartbeat(info) | SctpChunk::HeartbeatAck(info) => 4 + info.len(),
        SctpChunk::Abort { causes: list, .. } | SctpChunk::Error(list) => causes(list),
        SctpChunk::Shutdown { .. } | SctpChunk::EcnEcho(_) | SctpChunk::WindowReduced(_) => 4,
        SctpChunk::ShutdownAck | SctpChunk::ShutdownComplete { .. } | SctpChunk::CookieAck => 0,
        SctpChunk::CookieEcho(cookie) => cookie.len(),
        SctpChunk::Forward(forward) => {
            4 + forward.skipped.len() * if forward.is_interleaved { 8 } else { 4 }
        }
        SctpChunk::Stamp(_) => 12,
        SctpChunk::Echo(_) => 32,
        SctpChunk::Restored(tsns) => 4 * tsns.len(),
        SctpChunk::Repair(repair) => RepairChunk::HEADER - 4 + repair.data.len(),
        SctpChunk::Reconfig(all) => all.iter().map(|one| padded(4 + reconfig_size(one))).sum(),
        SctpChunk::Auth(auth) => AuthChunk::HEADER - 4 + auth.code.len(),
        SctpChunk::Asconf(asconf) => asconf_size(asconf),
        SctpChunk::AsconfAck(ack) => asconf_ack_size(ack),
        SctpChunk::Unknown { value, .. } => value.len(),
    }
}

fn reconfig_size(parameter: &Reconfig) -> usize {
    match parameter {
        Reconfig::ResetOutgoing { streams, .. } => 12 + 2 * streams.len(),
        Reconfig::ResetIncoming { streams, .. } => 4 + 2 * streams.len(),
        Reconfig::Answer { details, .. } => 8 + details.len(),
        Reconfig::Other { details, .. } => 4 + details.len(),
    }
}

fn init_size(init: &InitChunk) -> usize {
    let cookie = init.cookie.as_ref().map_or(0, |cookie| padded(4 + cookie.len()));
    let extensions = match init.extensions.len() {
        0 => 0,
        len => padded(4 + len),
    };
    let flags = [init.forwards, init.ecn].into_iter().filter(|flag| *flag).count() * 4;
    let unknown = |(_, value): &(u16, bytes::Bytes)| 4 + padded(4 + value.len());
    16 + init.addresses.iter().map(|address| address_size(*address)).sum::<usize>()
        + cookie
        + extensions
        + flags
        + offer_size(&init.auth)
        + init.unknown.iter().map(unknown).sum::<usize>()
}

fn write(chunk: &SctpChunk, out: &mut Vec<u8>) {
    match chunk {
        SctpChunk::Data(data) => write_data(data, out),
        SctpChunk::Init(init) => framed(out, kind::INIT, 0, |out| write_init(init, out)),
        SctpChunk::InitAck(init) => framed(out, kind::INIT_ACK, 0, |out| write_init(init, out)),
        SctpChunk::Sack(sack) => write_sack(sack, out),
        SctpChunk::Heartbeat(info) => {
            framed(out, kind::HEARTBEAT, 0, |out| write_parameter(1, info, out));
        }
        SctpChunk::HeartbeatAck(info) => {
            framed(out, kind::HEARTBEAT_ACK, 0, |out| write_parameter(1, info, out));
        }
        SctpChunk::Abort { is_reflected, causes } => {
            framed(out, kind::ABORT, u8::from(*is_reflected), |out| write_causes(causes, out));
        }
        SctpChunk::Shutdown { cumulative } => number(out, kind::SHUTDOWN, *cumulative),
        SctpChunk::ShutdownAck => framed(out, kind::SHUTDOWN_ACK, 0, |_| {}),
        SctpChunk::ShutdownComplete { is_reflected } => {
            framed(out, kind::SHUTDOWN_COMPLETE, u8::from(*is_reflected), |_| {});
        }
        SctpChunk::Error(causes) => framed(out, kind::ERROR, 0, |out| write_causes(causes, out)),
        SctpChunk::CookieEcho(cookie) => {
            framed(out, kind::COOKIE_ECHO, 0, |out| out.extend_from_slice(cookie));
        }
        SctpChunk::CookieAck => framed(out, kind::COOKIE_ACK, 0, |_| {}),
        SctpChunk::EcnEcho(tsn) => number(out, kind::ECNE, *tsn),
        SctpChunk::WindowReduced(tsn) => number(out, kind::CWR, *tsn),
        SctpChunk::Forward(forward) => {
            let kind = if forward.is_interleaved { kind::I_FORWARD } else { kind::FORWARD };
            framed(out, kind, 0, |out| {
                out.extend_from_slice(&forward.cumulative.to_be_bytes());
                for skipped in &forward.skipped {
                    out.extend_from_slice(&skipped.stream.to_be_bytes());
                    if forward.is_interleaved {
                        out.extend_from_slice(&u16::from(skipped.is_unordered).to_be_bytes());
                        out.extend_from_slice(&skipped.message.to_be_bytes());
                    } else {
                        out.extend_from_slice(&(skipped.message as u16).to_be_bytes());
                    }
                }
            });
        }
        SctpChunk::Stamp(stamp) => framed(out, kind::STAMP, 0, |out| write_stamp(*stamp, out)),
        SctpChunk::Echo(echo) => framed(out, kind::ECHO, 0, |out| {
            write_stamp(echo.stamp, out);
            out.extend_from_slice(&echo.received.to_be_bytes());
            out.extend_from_slice(&echo.held.to_be_bytes());
            out.extend_from_slice(&echo.number.to_be_bytes());
        }),
        SctpChunk::Repair(repair) => write_repair(repair, out),
        SctpChunk::Restored(tsns) => framed(out, kind::RESTORED, 0, |out| {
            tsns.iter().for_each(|tsn| out.extend_from_slice(&tsn.to_be_bytes()));
        }),
        SctpChunk::Reconfig(all) => framed(out, kind::RECONFIG, 0, |out| {
            let start = out.len();
            for one in all {
                pad(start, out);
                write_reconfig(one, out);
            }
        }),
        SctpChunk::Auth(auth) => framed(out, kind::AUTH, 0, |out| {
            out.extend_from_slice(&auth.key.to_be_bytes());
            out.extend_from_slice(&auth.hash.to_be_bytes());
            out.extend_from_slice(&auth.code);
        }),
        SctpChunk::Asconf(asconf) => framed(out, kind::ASCONF, 0, |out| write_asconf(asconf, out)),
        SctpChunk::AsconfAck(ack) => {
            framed(out, kind::ASCONF_ACK, 0, |out| write_asconf_ack(ack, out));
        }
        SctpChunk::Unknown { kind, flags, value } => {
            framed(out, *kind, *flags, |out| out.extend_from_slice(value));
        }
    }
}

/// Writes a chunk's header, its content and its padding.
fn framed(out: &mut Vec<u8>, kind: u8, flags: u8, content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[kind, flags, 0, 0]);
    content(out);
    let len = (out.len() - start) as u16;
    out[start + 2..start + 4].copy_from_slice(&len.to_be_bytes());
    out.resize(start + padded(len.into()), 0);
}

fn number(out: &mut Vec<u8>, kind: u8, value: u32) {
    framed(out, kind, 0, |out| out.extend_from_slice(&value.to_be_bytes()));
}

fn write_stamp(stamp: Stamp, out: &mut Vec<u8>) {
    out.extend_from_slice(&[stamp.path, 0, 0, 0]);
    out.extend_from_slice(&stamp.sent.to_be_bytes());
}

fn write_data(data: &DataChunk, out: &mut Vec<u8>) {
    let flags = u8::from(data.is_last)
        | u8::from(data.is_first) << 1
        | u8::from(data.is_unordered) << 2
        | u8::from(data.is_immediate) << 3;
    let kind = if data.is_interleaved { kind::I_DATA } else { kind::DATA };
    framed(out, kind, flags, |out| {
        out.extend_from_slice(&data.tsn.to_be_bytes());
        out.extend_from_slice(&data.stream.to_be_bytes());
        if data.is_interleaved {
            out.extend_from_slice(&[0, 0]);
            out.extend_from_slice(&data.message.to_be_bytes());
            let last = if data.is_first { data.protocol } else { data.fragment };
            out.extend_from_slice(&last.to_be_bytes());
        } else {
            out.extend_from_slice(&(data.message as u16).to_be_bytes());
            out.extend_from_slice(&data.protocol.to_be_bytes());
        }
        write_content(&data.data, out);
    });
}

fn write_content(data: &SctpData, out: &mut Vec<u8>) {
    match data {
        SctpData::Bytes(bytes) => out.extend_from_slice(bytes),
        SctpData::Counted(len) => out.resize(out.len() + *len as usize, 0),
    }
}

const fn repair_kind(repair: &RepairChunk) -> u8 {
    match repair.factors {
        RepairFactors::Window => kind::REPAIR,
        RepairFactors::RaptorQ => kind::RAPTORQ_REPAIR,
    }
}

fn write_repair(repair: &RepairChunk, out: &mut Vec<u8>) {
    framed(out, repair_kind(repair), 0, |out| {
        out.extend_from_slice(&repair.first.to_be_bytes());
        out.extend_from_slice(&repair.count.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&repair.id.to_be_bytes());
        out.extend_from_slice(&repair.head);
        write_content(&repair.data, out);
    });
}

fn write_reconfig(parameter: &Reconfig, out: &mut Vec<u8>) {
    let mut value = Vec::with_capacity(reconfig_size(parameter));
    let mut add = |bytes: &[u8]| value.extend_from_slice(bytes);
    let kind = match parameter {
        Reconfig::ResetOutgoing { number, answers, last, streams } => {
            [number, answers, last].into_iter().for_each(|word| add(&word.to_be_bytes()));
            streams.iter().for_each(|stream| add(&stream.to_be_bytes()));
            parameter::RESET_OUTGOING
        }
        Reconfig::ResetIncoming { number, streams } => {
            add(&number.to_be_bytes());
            streams.iter().for_each(|stream| add(&stream.to_be_bytes()));
            parameter::RESET_INCOMING
        }
        Reconfig::Answer { number, result, details } => {
            [number, result].into_iter().for_each(|word| add(&word.to_be_bytes()));
            add(details);
            parameter::ANSWER
        }
        Reconfig::Other { kind, number, details } => {
            add(&number.to_be_bytes());
            add(details);
            *kind
        }
    };
    write_parameter(kind, &value, out);
}

fn write_init(init: &InitChunk, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&init.tag.to_be_bytes());
    out.extend_from_slice(&init.window.to_be_bytes());
    out.extend_from_slice(&init.outbound.to_be_bytes());
    out.extend_from_slice(&init.inbound.to_be_bytes());
    out.extend_from_slice(&init.tsn.to_be_bytes());
    let mut add = |kind, value: &[u8]| {
        pad(start, out);
        write_parameter(kind, value, out);
    };
    if let Some(cookie) = &init.cookie {
        add(parameter::COOKIE, cookie);
    }
    for address in &init.addresses {
        match address {
            IpAddr::V4(address) => add(parameter::IPV4, &address.octets()),
            IpAddr::V6(address) => add(parameter::IPV6, &address.octets()),
        }
    }
    if init.ecn {
        add(parameter::ECN, &[]);
    }
    if init.forwards {
        add(parameter::FORWARDS, &[]);
    }
    if !init.extensions.is_empty() {
        add(parameter::EXTENSIONS, &init.extensions);
    }
    if let AuthOffer::Given(parameters) = &init.auth {
        parameters.each(&mut add);
    }
    for (kind, value) in &init.unknown {
        let mut inner = Vec::with_capacity(4 + value.len());
        write_parameter(*kind, value, &mut inner);
        add(parameter::UNKNOWN, &inner);
    }
}

fn write_sack(sack: &SackChunk, out: &mut Vec<u8>) {
    let kind = if sack.kept.is_some() { kind::NR_SACK } else { kind::SACK };
    framed(out, kind, sack.packets << 6, |out| {
        out.extend_from_slice(&sack.cumulative.to_be_bytes());
        out.extend_from_slice(&sack.window.to_be_bytes());
        out.extend_from_slice(&(sack.gaps.len() as u16).to_be_bytes());
        if let Some(kept) = &sack.kept {
            out.extend_from_slice(&(kept.len() as u16).to_be_bytes());
        }
        out.extend_from_slice(&(sack.duplicates.len() as u16).to_be_bytes());
        if sack.kept.is_some() {
            out.extend_from_slice(&[0, 0]);
        }
        for (first, last) in sack.gaps.iter().chain(sack.kept.iter().flatten()) {
            out.extend_from_slice(&first.to_be_bytes());
            out.extend_from_slice(&last.to_be_bytes());
        }
        for duplicate in &sack.duplicates {
            out.extend_from_slice(&duplicate.to_be_bytes());
        }
    });
}
