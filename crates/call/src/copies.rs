//! Copies of earlier frames beside each frame (RFC 2198): what a lost packet held comes with the
//! next one.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use audio_codec_algorithms::{decode_alaw, decode_ulaw, encode_alaw, encode_ulaw};
use bytes::{BufMut, Bytes, BytesMut};
use opus_pure::{Application, OpusDecoder, OpusEncoder, RateControl};

use crate::codec::{CodecError, VoiceCodec};
use crate::rtp::{COPIES_TYPE, RtpFrame};

/// The most copies beside a frame.
const MOST: u8 = 4;
/// Samples a second and in a frame of copies by Opus, those of G.711.
const RATE: i32 = 8000;
const SAMPLES: usize = 160;
/// Bits a second of such copies.
const RATES: std::ops::RangeInclusive<u32> = 6000..=32_000;
/// Bytes of the header of a copy, and of the frame itself.
const HEADER: usize = 4;
const LAST_HEADER: usize = 1;

/// The copies that go with each packet. Written `N`, or `N:RATE` for copies of G.711 by Opus at
/// this rate in bit/s, which are far shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameCopies {
    /// Frames before each that go with it once more, 1 to 4.
    pub count: u8,
    /// The rate of Opus for copies of G.711; they are as the frames themselves otherwise.
    pub rate: Option<u32>,
}

impl fmt::Display for FrameCopies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(rate) => write!(f, "{}:{rate}", self.count),
            None => self.count.fmt(f),
        }
    }
}

impl FromStr for FrameCopies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no number of copies: write 1 to {MOST}, or N:RATE with {} to {} bit/s, as in 1:12000",
                RATES.start(),
                RATES.end()
            )
        };
        let (count, rate) = match text.split_once(':') {
            Some((count, rate)) => (count, Some(rate.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let count = count.parse().map_err(|_| wrong())?;
        let is_right = (1..=MOST).contains(&count) && rate.is_none_or(|rate| RATES.contains(&rate));
        is_right.then_some(Self { count, rate }).ok_or_else(wrong)
    }
}

/// Adds copies to packets.
pub(crate) struct CopySender {
    copies: FrameCopies,
    codec: VoiceCodec,
    opus: Option<Box<OpusEncoder>>,
    /// The last frames: payload types, timestamps, bytes.
    last: VecDeque<(u8, u32, Bytes)>,
    pub(crate) is_on: bool,
}

impl CopySender {
    pub(crate) fn new(copies: FrameCopies, codec: VoiceCodec) -> Result<Self, CodecError> {
        let is_g711 = matches!(codec, VoiceCodec::Mulaw | VoiceCodec::Alaw);
        let opus = match copies.rate.filter(|_| is_g711) {
            Some(rate) => {
                let opus = OpusEncoder::new(RATE, 1, Application::Voip);
                let mut opus = opus.map_err(CodecError::of)?;
                opus.bitrate_bps = rate as i32;
                opus.rate_control = RateControl::Cbr;
                Some(Box::new(opus))
            }
            None => None,
        };
        Ok(Self { copies, codec, opus, last: VecDeque::new(), is_on: false })
    }

    /// The packet of a frame, with its copies if they are wanted.
    pub(crate) fn add(&mut self, frame: &RtpFrame) -> RtpFrame {
        if !self.is_on {
            self.last.clear();
            return frame.clone();
        }
        let mut heads = BytesMut::new();
        let mut blocks = BytesMut::new();
        for (payload_type, timestamp, bytes) in &self.last {
            let offset = frame.timestamp.wrapping_sub(*timestamp);
            // Fourteen bits of time and ten of length: older and longer ones are not sent.
            if offset < 1 << 14 && bytes.len() < 1 << 10 {
                heads.put_u8(payload_type | 128);
                heads.put_slice(&(offset << 10 | bytes.len() as u32).to_be_bytes()[1..]);
                blocks.put_slice(bytes);
            }
        }
        heads.put_u8(frame.payload_type);
        heads.put_slice(&blocks);
        heads.put_slice(&frame.payload);
        if let Some((payload_type, bytes)) = self.copy(frame) {
            self.last.push_back((payload_type, frame.timestamp, bytes));
        }
        while self.last.len() > usize::from(self.copies.count) {
            self.last.pop_front();
        }
        RtpFrame { payload_type: COPIES_TYPE, payload: heads.freeze(), ..frame.clone() }
    }

    /// Notes that a packet without copies follows: numbers of copies are those before the packet
    /// that holds them.
    pub(crate) fn leave_out(&mut self) {
        self.last.clear();
    }

    /// A copy of a frame, and its payload type.
    fn copy(&mut self, frame: &RtpFrame) -> Option<(u8, Bytes)> {
        let Some(opus) = &mut self.opus else {
            return Some((frame.payload_type, frame.payload.clone()));
        };
        if frame.payload.len() != SAMPLES {
            return None;
        }
        let law = if self.codec == VoiceCodec::Alaw { decode_alaw } else { decode_ulaw };
        let pcm: Vec<i16> = frame.payload.iter().map(|byte| law(*byte)).collect();
        let mut bytes = vec![0; 1 << 10];
        let len = opus.encode_s16(&pcm, SAMPLES, &mut bytes).ok()?;
        bytes.truncate(len);
        Some((VoiceCodec::OPUS.payload_type(), bytes.into()))
    }
}

/// Takes packets with copies apart.
pub(crate) struct CopyReceiver {
    codec: VoiceCodec,
    opus: Option<Box<OpusDecoder>>,
    /// The number of the newest copy that was decoded.
    decoded: Option<u16>,
}

/// A packet without its copies, and these, each with whether it is of a lower rate.
pub(crate) struct WithCopies {
    pub(crate) frame: RtpFrame,
    pub(crate) copies: Vec<(RtpFrame, bool)>,
}

impl CopyReceiver {
    pub(crate) const fn new(codec: VoiceCodec) -> Self {
        Self { codec, opus: None, decoded: None }
    }

    /// Takes a packet; `None` if it is wrong.
    pub(crate) fn open(&mut self, packet: &RtpFrame) -> Option<WithCopies> {
        let (mut heads, mut at) = (Vec::new(), 0);
        loop {
            let first = *packet.payload.get(at)?;
            if first & 128 == 0 {
                at += LAST_HEADER;
                if first != self.codec.payload_type() {
                    return None;
                }
                break;
            }
            let [_, a, b, c] = *packet.payload.get(at..at + HEADER)?.first_chunk::<HEADER>()?;
            let word = u32::from_be_bytes([0, a, b, c]);
            heads.push((first & 127, word >> 10, (word & 0x3ff) as usize));
            at += HEADER;
            if heads.len() > usize::from(MOST) {
                return None;
            }
        }
        let mut copies = Vec::new();
        let count = heads.len();
        for (number, (payload_type, offset, len)) in heads.into_iter().enumerate() {
            let bytes = packet.payload.get(at..at + len)?;
            at += len;
            let seq = packet.seq.wrapping_sub((count - number) as u16);
            let copied = self.voice(payload_type, seq, packet.payload.slice_ref(bytes));
            let Some((payload, is_lower)) = copied else { continue };
            let frame = RtpFrame {
                payload_type: self.codec.payload_type(),
                marker: false,
                seq,
                timestamp: packet.timestamp.wrapping_sub(offset),
                source: packet.source,
                payload,
            };
            copies.push((frame, is_lower));
        }
        let payload_type = self.codec.payload_type();
        let payload = packet.payload.slice(at..);
        Some(WithCopies { frame: RtpFrame { payload_type, payload, ..packet.clone() }, copies })
    }

    /// The bytes of a copy as the codec itself has them, and whether they were of a lower rate.
    /// Copies by Opus are all decoded, so that each follows the one before.
    fn voice(&mut self, payload_type: u8, seq: u16, bytes: Bytes) -> Option<(Bytes, bool)> {
        if payload_type == self.codec.payload_type() {
            return Some((bytes, false));
        }
        let law = match self.codec {
            VoiceCodec::Mulaw => encode_ulaw,
            VoiceCodec::Alaw => encode_alaw,
            _ => return None,
        };
        let is_old = self.decoded.is_some_and(|last| seq.wrapping_sub(last) as i16 <= 0);
        if payload_type != VoiceCodec::OPUS.payload_type() || bytes.is_empty() || is_old {
            return None;
        }
        self.decoded = Some(seq);
        let opus = match &mut self.opus {
            Some(opus) => opus,
            None => self.opus.insert(Box::new(OpusDecoder::new(RATE, 1).ok()?)),
        };
        let mut pcm = [0; SAMPLES];
        let len = opus.decode_s16(&bytes, SAMPLES, &mut pcm).ok()?;
        (len == SAMPLES).then(|| (pcm.iter().map(|sample| law(*sample)).collect(), true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(codec: VoiceCodec, number: u32) -> RtpFrame {
        let tone = |at: u32| {
            let time = f64::from(number * 160 + at) / 8000.0;
            encode_ulaw((6000.0 * (std::f64::consts::TAU * 300.0 * time).sin()) as i16)
        };
        RtpFrame {
            payload_type: codec.payload_type(),
            marker: false,
            seq: number as u16,
            timestamp: number * 160,
            source: 0,
            payload: (0..160).map(tone).collect(),
        }
    }

    #[test]
    fn copies_are_read_and_written() {
        for text in ["1", "4", "2:16000"] {
            let copies: FrameCopies = text.parse().expect("copies");
            assert_eq!(copies.to_string(), text);
        }
        for text in ["0", "5", "1:1000", "1:x", "", "1:"] {
            assert!(text.parse::<FrameCopies>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_lost_frame_comes_with_the_next_one_exactly() {
        let codec = VoiceCodec::Mulaw;
        let copies = FrameCopies { count: 2, rate: None };
        let mut sender = CopySender::new(copies, codec).expect("a sender");
        let mut receiver = CopyReceiver::new(codec);
        assert_eq!(sender.add(&frame(codec, 0)), frame(codec, 0), "none are wanted yet");
        sender.is_on = true;
        for number in 1..200 {
            let packet = sender.add(&frame(codec, number));
            let got = receiver.open(&packet).expect("a packet");
            assert_eq!(got.frame, frame(codec, number));
            let of = |copy: &(RtpFrame, bool)| copy.0.clone();
            let copies: Vec<RtpFrame> = got.copies.iter().map(of).collect();
            let from = number.saturating_sub(2).max(1);
            assert_eq!(copies, (from..number).map(|at| frame(codec, at)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn copies_of_a_lower_rate_are_short_and_sound_alike() {
        let codec = VoiceCodec::Mulaw;
        let copies = FrameCopies { count: 1, rate: Some(12_000) };
        let mut sender = CopySender::new(copies, codec).expect("a sender");
        sender.is_on = true;
        let mut receiver = CopyReceiver::new(codec);
        let power = |bytes: &[u8]| {
            let squares = bytes.iter().map(|byte| f64::from(decode_ulaw(*byte)).powi(2));
            squares.sum::<f64>()
        };
        for number in 0..60 {
            let packet = sender.add(&frame(codec, number));
            let more = packet.payload.len() - 160;
            assert!(more <= 35, "{more} bytes");
            let got = receiver.open(&packet).expect("a packet");
            if number > 10 {
                let [(copy, true)] = &got.copies[..] else { panic!("one copy") };
                let before = frame(codec, number - 1);
                assert_eq!((copy.seq, copy.timestamp), (before.seq, before.timestamp));
                let share = power(&copy.payload) / power(&before.payload);
                assert!((0.25..2.0).contains(&share), "{number}: {share}");
            }
        }
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm() {
        let mut receiver = CopyReceiver::new(VoiceCodec::Mulaw);
        for seed in 0..3000_u32 {
            let hash = blake3::hash(&seed.to_be_bytes());
            let len = seed as usize % 33;
            let mut payload = hash.as_bytes()[..len].to_vec();
            if let Some(first) = payload.first_mut().filter(|_| seed % 3 == 0) {
                *first = 128 | 111;
            }
            let packet = RtpFrame { payload: payload.into(), ..frame(VoiceCodec::Mulaw, seed) };
            let _ = receiver.open(&packet);
        }
    }
}
