//! A window code over the packets of a call: repair packets restore lost ones a few frames later,
//! without a round trip.

use std::collections::BTreeSet;

use bytes::{BufMut, Bytes, BytesMut};
use fontis_codes::window::{RepairSymbol, WindowCode, WindowDecoder, WindowEncoder};

use crate::codec::VoiceCodec;
use crate::rtp::{CALL_BITS, KEYS_TYPE, NOISE_TYPE, REPAIR_TYPE, RtpFrame, extend};

/// The most packets that a repair packet may be the sum of.
const LIMIT: u16 = 64;
const CODE: WindowCode = WindowCode::Tetrys { limit: LIMIT };
/// Bytes of a symbol before its voice: the timestamp, and the length with the marker and the kind.
const TIME: usize = 4;
const HEAD: usize = TIME + 2;
/// The bit of the marker.
const MARKER: u16 = 1 << 15;
/// The bits of packets that hold no voice: keys, and comfort noise.
const KEYS: u16 = 1 << 14;
const NOISE: u16 = 1 << 13;
/// Bits of a repair packet's source that tell the number of packets in its sum, and its own number.
/// The bits above come in the first byte of its payload. Its sequence number is that of the first
/// packet, and its timestamp the begin of the symbol: no byte more than a packet of voice need be
/// spent.
const COUNT_BITS: u32 = 6;
const ID_BITS: u32 = 32 - CALL_BITS - COUNT_BITS;
const ALL_ID_BITS: u32 = ID_BITS + 8;

/// Makes repair packets.
pub(crate) struct RepairSender {
    encoder: WindowEncoder,
    symbol: usize,
    /// Repair packets a packet.
    share: f64,
    credit: f64,
    /// Times that each packet is covered.
    coverage: f64,
}

impl RepairSender {
    /// For packets with at most `most` bytes of voice.
    pub(crate) fn new(most: usize) -> Self {
        let symbol = HEAD + most;
        Self {
            encoder: WindowEncoder::new(CODE, symbol as u16),
            symbol,
            share: 0.0,
            credit: 0.0,
            coverage: 2.0,
        }
    }

    pub(crate) fn set_share(&mut self, share: f64) {
        self.share = share.clamp(0.0, 1.0);
    }

    /// Over a long path a packet that is restored by a second repair packet comes too late.
    pub(crate) const fn set_far(&mut self, is_far: bool) {
        self.coverage = if is_far { 1.0 } else { 2.0 };
    }

    /// Takes the next packet. Returns the repair packet that is due behind it, if any.
    pub(crate) fn add(&mut self, frame: &RtpFrame) -> Option<RtpFrame> {
        let number = self.encoder.add(symbol_of(frame, self.symbol).into()).ok()?;
        if self.share == 0.0 {
            return None;
        }
        self.credit += self.share;
        if self.credit < 1.0 {
            return None;
        }
        self.credit -= 1.0;
        // More repair packets over each packet would restore it too late to be heard.
        let window = ((self.coverage / self.share).round() as u32).clamp(1, u32::from(LIMIT));
        self.encoder.retire((number + 1).saturating_sub(window));
        let repair = self.encoder.repair()?;
        let (time, rest) = repair.data.split_first_chunk::<TIME>()?;
        let mut payload = BytesMut::with_capacity(1 + rest.len());
        payload.put_u8((repair.id >> ID_BITS) as u8);
        // Packets shorter than the longest leave zeros at the end, which need not be sent.
        let len = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        payload.put_slice(&rest[..len]);
        let count = u32::from(repair.count.checked_sub(1)?) << CALL_BITS;
        let id = repair.id << (CALL_BITS + COUNT_BITS);
        Some(RtpFrame {
            payload_type: REPAIR_TYPE,
            marker: false,
            seq: repair.first as u16,
            timestamp: u32::from_be_bytes(*time),
            source: frame.call() | count | id,
            payload: payload.freeze(),
        })
    }
}

/// The symbol of a packet.
fn symbol_of(frame: &RtpFrame, size: usize) -> Vec<u8> {
    let mut symbol = Vec::with_capacity(size);
    symbol.extend(frame.timestamp.to_be_bytes());
    let marker = if frame.marker { MARKER } else { 0 };
    let kind = match frame.payload_type {
        KEYS_TYPE => KEYS,
        NOISE_TYPE => NOISE,
        _ => 0,
    };
    symbol.extend((frame.payload.len() as u16 | marker | kind).to_be_bytes());
    symbol.extend(&frame.payload);
    symbol.resize(size, 0);
    symbol
}

/// Restores packets.
pub(crate) struct RepairReceiver {
    decoder: WindowDecoder,
    symbol: usize,
    source: u32,
    payload_type: u8,
    /// The number of the last repair packet.
    id: u32,
    /// One beyond the greatest number that was seen, and the numbers before it that are missing.
    end: u32,
    missing: BTreeSet<u32>,
}

impl RepairReceiver {
    pub(crate) fn new(codec: VoiceCodec, source: u32) -> Self {
        let symbol = HEAD + codec.most_bytes();
        let decoder = WindowDecoder::new(CODE, symbol as u16);
        let payload_type = codec.payload_type();
        Self { decoder, symbol, source, payload_type, id: 0, end: 0, missing: BTreeSet::new() }
    }

    /// Takes a packet. Returns those that it restores with what is there.
    pub(crate) fn add(&mut self, frame: &RtpFrame) -> Vec<RtpFrame> {
        let Some(number) = extend(self.end.saturating_sub(1), frame.seq) else { return Vec::new() };
        if HEAD + frame.payload.len() > self.symbol {
            return Vec::new();
        }
        let symbol = symbol_of(frame, self.symbol);
        if number >= self.end.saturating_add(u32::from(LIMIT)) {
            // Nothing restores what an outage has swallowed.
            self.decoder.restart(number);
            self.missing.clear();
            self.end = number;
        }
        self.reach(number + 1);
        self.missing.remove(&number);
        match self.decoder.add_source(number, &symbol) {
            Ok(_) => self.harvest(),
            Err(_) => Vec::new(),
        }
    }

    /// Takes a repair packet. Returns those that it restores.
    pub(crate) fn repair(&mut self, packet: &RtpFrame) -> Vec<RtpFrame> {
        let Some(first) = extend(self.end.saturating_sub(1), packet.seq) else {
            return Vec::new();
        };
        let Some((high, symbol)) = packet.payload.split_first() else { return Vec::new() };
        if TIME + symbol.len() > self.symbol {
            return Vec::new();
        }
        let mut data = packet.timestamp.to_be_bytes().to_vec();
        data.extend(symbol);
        data.resize(self.symbol, 0);
        let count = (packet.source >> CALL_BITS & ((1 << COUNT_BITS) - 1)) + 1;
        let low = packet.source >> (CALL_BITS + COUNT_BITS) | u32::from(*high) << ID_BITS;
        // Of the numbers with these low bits it is the nearest to the last one.
        let step = low.wrapping_sub(self.id) << (32 - ALL_ID_BITS);
        let id = self.id.wrapping_add((step as i32 >> (32 - ALL_ID_BITS)) as u32);
        self.id = id;
        let repair = RepairSymbol { first, count: count as u16, id, data: data.into() };
        match self.decoder.add_repair(&repair) {
            Ok(_) => {
                self.reach(repair.first.saturating_add(count));
                self.harvest()
            }
            Err(_) => Vec::new(),
        }
    }

    /// Notes that packets before `end` were sent.
    fn reach(&mut self, end: u32) {
        if end > self.end {
            let oldest = end.saturating_sub(u32::from(LIMIT));
            self.missing.extend(self.end.max(oldest)..end);
            self.missing = self.missing.split_off(&oldest);
            self.end = end;
        }
    }

    fn harvest(&mut self) -> Vec<RtpFrame> {
        let known: Vec<(u32, Bytes)> = self
            .missing
            .iter()
            .filter_map(|number| Some((*number, self.decoder.get(*number)?)))
            .collect();
        // What is delivered elsewhere need not wait here.
        self.decoder.skip(self.end.saturating_sub(u32::from(LIMIT)));
        while self.decoder.pop().is_some() {}
        let frames = known.into_iter().filter_map(|(number, symbol)| {
            self.missing.remove(&number);
            let (time, rest) = symbol.split_first_chunk::<TIME>()?;
            let len = u16::from_be_bytes([rest[0], rest[1]]);
            let (marker, kind) = (len & MARKER != 0, len & (KEYS | NOISE));
            let payload_type = match kind {
                KEYS => KEYS_TYPE,
                NOISE => NOISE_TYPE,
                _ => self.payload_type,
            };
            let len = usize::from(len & !(MARKER | KEYS | NOISE));
            if HEAD + len > symbol.len() {
                return None;
            }
            Some(RtpFrame {
                payload_type,
                marker,
                seq: number as u16,
                timestamp: u32::from_be_bytes(*time),
                source: self.source,
                payload: symbol.slice(HEAD..HEAD + len),
            })
        });
        frames.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: u32) -> RtpFrame {
        RtpFrame {
            payload_type: match number % 7 {
                0 => KEYS_TYPE,
                1 => NOISE_TYPE,
                _ => 0,
            },
            marker: number.is_multiple_of(50),
            seq: number as u16,
            timestamp: number * 160,
            source: 0,
            payload: (0..20 + number % 140).map(|at| (at ^ number) as u8).collect(),
        }
    }

    #[test]
    fn isolated_losses_come_back_exactly_and_soon_for_an_hour() {
        let mut sender = RepairSender::new(160);
        sender.set_share(0.2);
        let mut receiver = RepairReceiver::new(VoiceCodec::Mulaw, 0);
        let mut restored = 0;
        for number in 0..180_000_u32 {
            let repair = sender.add(&frame(number));
            let mut back = Vec::new();
            let is_lost = number % 25 == 7;
            if !is_lost {
                back.extend(receiver.add(&frame(number)));
            }
            if let Some(repair) = repair {
                back.extend(receiver.repair(&repair));
            }
            for got in back {
                let lost = number - (number % 25) + 7;
                assert_eq!(got, frame(lost));
                assert!(number - lost <= 5, "{number}");
                restored += 1;
            }
        }
        assert_eq!(restored, 180_000 / 25);
    }

    #[test]
    fn an_outage_of_any_length_does_not_end_repair() {
        for outage in [1, 40, 63, 64, 65, 66, 500, 20_000] {
            let mut sender = RepairSender::new(160);
            sender.set_share(0.2);
            let mut receiver = RepairReceiver::new(VoiceCodec::Mulaw, 0);
            let mut restored = 0;
            for number in 0..outage + 1000 {
                let repair = sender.add(&frame(number));
                if (100..100 + outage).contains(&number) {
                    continue;
                }
                if number % 25 != 7 {
                    receiver.add(&frame(number));
                }
                let back = repair.map(|repair| receiver.repair(&repair));
                restored += back.map_or(0, |back| back.len());
            }
            // One in 25 of a thousand, but for those beside the outage.
            assert!(restored >= 30, "{outage}: {restored}");
        }
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm() {
        let mut receiver = RepairReceiver::new(VoiceCodec::Mulaw, 0);
        for seed in 0..2000_u32 {
            let len = (seed * 31 % 300) as usize;
            let bytes: Bytes =
                (0..len).map(|at| (at as u32).wrapping_mul(seed).to_be_bytes()[3]).collect();
            let mixed = seed.wrapping_mul(2_654_435_761);
            let frame = RtpFrame { seq: (seed * 7919) as u16, source: mixed, ..frame(seed) };
            let frame = RtpFrame { payload: bytes, ..frame };
            assert!(receiver.repair(&frame).iter().all(|frame| frame.payload.len() <= 160));
            receiver.add(&frame);
        }
        assert!(receiver.missing.len() <= usize::from(LIMIT));
    }
}
