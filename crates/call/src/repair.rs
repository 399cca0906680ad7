//! A window code over the packets of a call: repair packets restore lost ones a few frames later,
//! without a round trip.

use std::collections::BTreeSet;

use bytes::{BufMut, Bytes, BytesMut};
use fontis_codes::window::{RepairSymbol, WindowCode, WindowDecoder, WindowEncoder};

use crate::rtp::{REPAIR_TYPE, RtpFrame, extend};

/// The most packets that a repair packet may be the sum of.
const LIMIT: u16 = 64;
const CODE: WindowCode = WindowCode::Tetrys { limit: LIMIT };
/// Bytes of a symbol before its voice: payload type and marker, timestamp, length.
const HEAD: usize = 1 + 4 + 2;
/// Bytes of a repair packet before its symbol: the first packet, the number of packets, the number
/// of the repair packet.
const PREFIX: usize = 4 + 1 + 4;

/// Makes repair packets.
pub(crate) struct RepairSender {
    encoder: WindowEncoder,
    symbol: usize,
    /// Repair packets a packet.
    share: f64,
    credit: f64,
    sent: u16,
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
            sent: 0,
        }
    }

    pub(crate) fn set_share(&mut self, share: f64) {
        self.share = share.clamp(0.0, 1.0);
    }

    /// Takes the next packet. Returns the repair packet that is due behind it, if any.
    pub(crate) fn add(&mut self, frame: &RtpFrame) -> Option<RtpFrame> {
        let mut symbol = BytesMut::with_capacity(self.symbol);
        symbol.put_u8(frame.payload_type << 1 | u8::from(frame.marker));
        symbol.put_u32(frame.timestamp);
        symbol.put_u16(frame.payload.len() as u16);
        symbol.put_slice(&frame.payload);
        symbol.resize(self.symbol, 0);
        let number = self.encoder.add(symbol.freeze()).ok()?;
        if self.share == 0.0 {
            return None;
        }
        self.credit += self.share;
        if self.credit < 1.0 {
            return None;
        }
        self.credit -= 1.0;
        // Two repair packets cover each packet: more would restore it too late to be heard.
        let window = ((2.0 / self.share).round() as u32).clamp(2, u32::from(LIMIT));
        self.encoder.retire((number + 1).saturating_sub(window));
        let repair = self.encoder.repair()?;
        let mut payload = BytesMut::with_capacity(PREFIX + repair.data.len());
        payload.put_u32(repair.first);
        payload.put_u8(repair.count as u8);
        payload.put_u32(repair.id);
        // Packets shorter than the longest leave zeros at the end, which need not be sent.
        let len = repair.data.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        payload.put_slice(&repair.data[..len]);
        self.sent = self.sent.wrapping_add(1);
        Some(RtpFrame {
            payload_type: REPAIR_TYPE,
            marker: false,
            seq: self.sent,
            payload: payload.freeze(),
            ..*frame
        })
    }
}

/// Restores packets.
pub(crate) struct RepairReceiver {
    decoder: WindowDecoder,
    symbol: usize,
    source: u32,
    /// One beyond the greatest number that was seen, and the numbers before it that are missing.
    end: u32,
    missing: BTreeSet<u32>,
}

impl RepairReceiver {
    pub(crate) fn new(most: usize, source: u32) -> Self {
        let symbol = HEAD + most;
        let decoder = WindowDecoder::new(CODE, symbol as u16);
        Self { decoder, symbol, source, end: 0, missing: BTreeSet::new() }
    }

    /// Takes a packet. Returns those that it restores with what is there.
    pub(crate) fn add(&mut self, frame: &RtpFrame) -> Vec<RtpFrame> {
        let Some(number) = extend(self.end.saturating_sub(1), frame.seq) else { return Vec::new() };
        let voice = frame.payload.len();
        if HEAD + voice > self.symbol {
            return Vec::new();
        }
        let mut symbol = vec![0; self.symbol];
        symbol[0] = frame.payload_type << 1 | u8::from(frame.marker);
        symbol[1..5].copy_from_slice(&frame.timestamp.to_be_bytes());
        symbol[5..HEAD].copy_from_slice(&(voice as u16).to_be_bytes());
        symbol[HEAD..HEAD + voice].copy_from_slice(&frame.payload);
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
    pub(crate) fn repair(&mut self, payload: &Bytes) -> Vec<RtpFrame> {
        let Some((prefix, symbol)) = payload.split_first_chunk::<PREFIX>() else {
            return Vec::new();
        };
        if symbol.len() > self.symbol {
            return Vec::new();
        }
        let mut data = symbol.to_vec();
        data.resize(self.symbol, 0);
        let [a, b, c, d, count, e, f, g, h] = *prefix;
        let repair = RepairSymbol {
            first: u32::from_be_bytes([a, b, c, d]),
            count: u16::from(count),
            id: u32::from_be_bytes([e, f, g, h]),
            data: data.into(),
        };
        match self.decoder.add_repair(&repair) {
            Ok(_) => {
                self.reach(repair.first + u32::from(count));
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
            let len = usize::from(u16::from_be_bytes([symbol[5], symbol[6]]));
            if HEAD + len > symbol.len() {
                return None;
            }
            Some(RtpFrame {
                payload_type: symbol[0] >> 1,
                marker: symbol[0] & 1 == 1,
                seq: number as u16,
                timestamp: u32::from_be_bytes([symbol[1], symbol[2], symbol[3], symbol[4]]),
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
            payload_type: 0,
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
        let mut receiver = RepairReceiver::new(160, 0);
        let mut restored = 0;
        for number in 0..180_000_u32 {
            let repair = sender.add(&frame(number));
            let mut back = Vec::new();
            let is_lost = number % 25 == 7;
            if !is_lost {
                back.extend(receiver.add(&frame(number)));
            }
            if let Some(repair) = repair {
                back.extend(receiver.repair(&repair.payload));
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
            let mut receiver = RepairReceiver::new(160, 0);
            let mut restored = 0;
            for number in 0..outage + 1000 {
                let repair = sender.add(&frame(number));
                if (100..100 + outage).contains(&number) {
                    continue;
                }
                if number % 25 != 7 {
                    receiver.add(&frame(number));
                }
                let back = repair.map(|repair| receiver.repair(&repair.payload));
                restored += back.map_or(0, |back| back.len());
            }
            // One in 25 of a thousand, but for those beside the outage.
            assert!(restored >= 30, "{outage}: {restored}");
        }
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm() {
        let mut receiver = RepairReceiver::new(160, 0);
        for seed in 0..2000_u32 {
            let len = (seed * 31 % 300) as usize;
            let bytes: Bytes =
                (0..len).map(|at| (at as u32).wrapping_mul(seed).to_be_bytes()[3]).collect();
            assert!(receiver.repair(&bytes).iter().all(|frame| frame.payload.len() <= 160));
            let frame = RtpFrame { seq: (seed * 7919) as u16, ..frame(seed) };
            receiver.add(&RtpFrame { payload: bytes, ..frame });
        }
        assert!(receiver.missing.len() <= usize::from(LIMIT));
    }
}
