use std::fmt;
use std::str::FromStr;

use audio_codec_algorithms::{decode_alaw, decode_ulaw, encode_alaw, encode_ulaw};
use bytes::Bytes;
use fontis_base::Duration;
use opus_pure::{Application, OpusDecoder, OpusEncoder, RateControl};
use thiserror::Error;

use crate::conceal::Concealer;
use crate::quality::Impairment;

/// The time that one packet holds.
pub const FRAME: Duration = Duration::from_millis(20);
/// Frames in a second.
const FRAMES: u32 = 50;
/// Samples in a second of Opus here: wideband speech.
const OPUS_RATE: u32 = 16_000;
/// RTP counts Opus at this rate, whatever the samples' is (RFC 7587 section 4.1).
const OPUS_CLOCK: u32 = 48_000;
/// The longest packet of Opus, so that a peer's cannot be of any size.
const OPUS_PACKET: usize = 400;

/// The form of voice in packets of 20 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoiceCodec {
    /// Opus (RFC 6716) with 16,000 samples a second, at this rate in bit/s. Written `opus` or
    /// `opus:RATE`.
    Opus {
        /// Bits a second, 6000 to 128,000.
        rate: u32,
        /// Whether packets also hold a rough form of the frame before (in-band FEC). Written
        /// `opus-fec`.
        fec: bool,
    },
    /// G.711 with the law of North America and Japan, 64 kbit/s. Written `g711`.
    Mulaw,
    /// G.711 with the law of the other continents. Written `g711-alaw`.
    Alaw,
    /// Packets of the size and the times of G.729, 8 kbit/s, without voice in them: a load to
    /// measure with. Written `g729-sized`.
    G729Sized,
    /// Packets of the size and the times of narrowband Speex, 9.2 kbit/s, without voice in them.
    /// Written `speex-sized`.
    SpeexSized,
}

/// A text that is no codec.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is no codec: write opus, opus:RATE with 6000 to 128000 bit/s, opus-fec, g711, g711-alaw, \
     g729-sized or speex-sized"
)]
pub struct UnknownCodec(pub String);

impl VoiceCodec {
    /// Opus at 24 kbit/s.
    pub const OPUS: Self = Self::Opus { rate: 24_000, fec: false };

    /// Samples a second.
    pub const fn sample_rate(self) -> u32 {
        match self {
            Self::Opus { .. } => OPUS_RATE,
            _ => 8000,
        }
    }

    /// Samples in a packet.
    pub const fn samples(self) -> usize {
        (self.sample_rate() / FRAMES) as usize
    }

    /// Units of RTP's timestamp in a packet.
    pub(crate) const fn ticks(self) -> u32 {
        match self {
            Self::Opus { .. } => OPUS_CLOCK / FRAMES,
            _ => 8000 / FRAMES,
        }
    }

    /// The payload type of RTP (RFC 3551, dynamic ones for Opus and Speex).
    pub(crate) const fn payload_type(self) -> u8 {
        match self {
            Self::Mulaw => 0,
            Self::Alaw => 8,
            Self::G729Sized => 18,
            Self::SpeexSized => 97,
            Self::Opus { .. } => 111,
        }
    }

    /// The most bytes of voice in a packet.
    pub(crate) const fn most_bytes(self) -> usize {
        match self {
            Self::Opus { rate, .. } => {
                // Four times the mean, for what is hard to code.
                let most = (rate / 8 / FRAMES) as usize * 4;
                if most < OPUS_PACKET { most } else { OPUS_PACKET }
            }
            Self::Mulaw | Self::Alaw => 160,
            Self::G729Sized => 20,
            Self::SpeexSized => 23,
        }
    }

    /// Bits of voice in a second, on average.
    pub const fn rate(self) -> u32 {
        match self {
            Self::Opus { rate, .. } => rate,
            _ => self.most_bytes() as u32 * 8 * FRAMES,
        }
    }

    /// Its parameters in the E-model: those of G.113 appendix I for G.711 with concealment and for
    /// G.729, which stands for Speex too. ITU-T lists none for Opus in narrowband mode; it is rated
    /// as G.711 with concealment, and a frame that in-band FEC restores, or a copy of a lower rate,
    /// as one of G.729.
    pub const fn impairment(self) -> Impairment {
        match self {
            Self::Opus { .. } | Self::Mulaw | Self::Alaw => {
                Impairment { equipment: 0.0, robustness: 25.1 }
            }
            Self::G729Sized | Self::SpeexSized => Impairment { equipment: 11.0, robustness: 19.0 },
        }
    }

    /// The packet that tells of a pause, for codecs that have one of their own: as long as that of
    /// G.729 (annex B, 15 bits) and of Speex (5 bits).
    pub(crate) fn pause(self) -> Option<Bytes> {
        match self {
            Self::G729Sized => Some(Bytes::from_static(&[0x55; 2])),
            Self::SpeexSized => Some(Bytes::from_static(&[0x55])),
            Self::Opus { .. } | Self::Mulaw | Self::Alaw => None,
        }
    }

    /// Whether its packets hold the frames before them once more.
    pub(crate) const fn rebuilds(self) -> bool {
        matches!(self, Self::Opus { fec: true, .. })
    }

    /// The number by which peers name it, and its rate.
    pub(crate) const fn to_wire(self) -> (u8, u32) {
        match self {
            Self::Mulaw => (0, 0),
            Self::Alaw => (1, 0),
            Self::G729Sized => (2, 0),
            Self::SpeexSized => (3, 0),
            Self::Opus { rate, fec: false } => (4, rate),
            Self::Opus { rate, fec: true } => (5, rate),
        }
    }

    /// The codec that a peer named.
    pub(crate) fn of_wire(number: u8, rate: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Mulaw),
            1 => Some(Self::Alaw),
            2 => Some(Self::G729Sized),
            3 => Some(Self::SpeexSized),
            4 | 5 if (6000..=128_000).contains(&rate) => {
                Some(Self::Opus { rate, fec: number == 5 })
            }
            _ => None,
        }
    }
}

impl fmt::Display for VoiceCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OPUS => f.write_str("opus"),
            Self::Opus { rate: 24_000, fec: true } => f.write_str("opus-fec"),
            Self::Opus { rate, fec } => {
                write!(f, "{}:{rate}", if fec { "opus-fec" } else { "opus" })
            }
            Self::Mulaw => f.write_str("g711"),
            Self::Alaw => f.write_str("g711-alaw"),
            Self::G729Sized => f.write_str("g729-sized"),
            Self::SpeexSized => f.write_str("speex-sized"),
        }
    }
}

impl FromStr for VoiceCodec {
    type Err = UnknownCodec;

    fn from_str(text: &str) -> Result<Self, UnknownCodec> {
        let unknown = || UnknownCodec(text.to_owned());
        let (name, rate) = match text.split_once(':') {
            Some((name, rate)) => (name, Some(rate.parse::<u32>().map_err(|_| unknown())?)),
            None => (text, None),
        };
        let number = match name {
            "g711" | "g711-ulaw" => 0,
            "g711-alaw" => 1,
            "g729-sized" => 2,
            "speex-sized" => 3,
            "opus" => 4,
            "opus-fec" => 5,
            _ => return Err(unknown()),
        };
        if rate.is_some() && number < 4 {
            return Err(unknown());
        }
        Self::of_wire(number, rate.unwrap_or(24_000)).ok_or_else(unknown)
    }
}

/// The reason why a codec failed, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the codec failed: {0}")]
pub(crate) struct CodecError(String);

impl CodecError {
    pub(crate) fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// Turns samples into packets.
pub(crate) struct Encoder {
    codec: VoiceCodec,
    opus: Option<Box<OpusEncoder>>,
}

impl Encoder {
    pub(crate) fn new(codec: VoiceCodec) -> Result<Self, CodecError> {
        let opus = match codec {
            VoiceCodec::Opus { rate, fec } => {
                let opus = OpusEncoder::new(OPUS_RATE as i32, 1, Application::Voip);
                let mut opus = opus.map_err(CodecError::of)?;
                opus.bitrate_bps = rate as i32;
                opus.rate_control = RateControl::ConstrainedVbr;
                opus.use_inband_fec = fec;
                opus.packet_loss_perc = if fec { 10 } else { 0 };
                opus.use_dtx = true;
                Some(Box::new(opus))
            }
            _ => None,
        };
        Ok(Self { codec, opus })
    }

    /// The packet of a frame; `None` if it is silence that need not be sent.
    pub(crate) fn encode(&mut self, pcm: &[i16]) -> Result<Option<Bytes>, CodecError> {
        let bytes: Vec<u8> = match self.codec {
            VoiceCodec::Mulaw => pcm.iter().map(|sample| encode_ulaw(*sample)).collect(),
            VoiceCodec::Alaw => pcm.iter().map(|sample| encode_alaw(*sample)).collect(),
            VoiceCodec::G729Sized | VoiceCodec::SpeexSized => {
                vec![0x55; self.codec.most_bytes()]
            }
            VoiceCodec::Opus { .. } => {
                let Some(opus) = &mut self.opus else { return Ok(None) };
                let mut packet = vec![0; self.codec.most_bytes()];
                let len = opus.encode_s16(pcm, pcm.len(), &mut packet).map_err(CodecError::of)?;
                // Two bytes or fewer say that nothing is said (RFC 7587 section 3.1.3).
                if len <= 2 {
                    return Ok(None);
                }
                packet.truncate(len);
                packet
            }
        };
        Ok(Some(bytes.into()))
    }

    /// Tells the encoder what is lost, so that in-band FEC is as strong as it must be.
    pub(crate) fn expect_loss(&mut self, loss: f64) {
        if let (Some(opus), VoiceCodec::Opus { fec: true, .. }) = (&mut self.opus, self.codec) {
            opus.packet_loss_perc = ((100.0 * loss).ceil() as i32).clamp(5, 30);
        }
    }
}

/// Turns packets into samples.
pub(crate) struct Decoder {
    codec: VoiceCodec,
    opus: Option<Box<OpusDecoder>>,
    concealer: Concealer,
}

impl Decoder {
    pub(crate) fn new(codec: VoiceCodec) -> Result<Self, CodecError> {
        let opus = match codec {
            VoiceCodec::Opus { .. } => {
                Some(Box::new(OpusDecoder::new(OPUS_RATE as i32, 1).map_err(CodecError::of)?))
            }
            _ => None,
        };
        Ok(Self { codec, opus, concealer: Concealer::default() })
    }

    /// The samples of a packet. What cannot be decoded is concealed.
    pub(crate) fn decode(&mut self, packet: &[u8], pcm: &mut [i16]) {
        let is_decoded = match self.codec {
            VoiceCodec::Mulaw | VoiceCodec::Alaw if packet.len() == pcm.len() => {
                let law = if self.codec == VoiceCodec::Mulaw { decode_ulaw } else { decode_alaw };
                pcm.iter_mut().zip(packet).for_each(|(sample, byte)| *sample = law(*byte));
                self.concealer.played(pcm);
                true
            }
            VoiceCodec::Opus { .. } => self.opus.as_mut().is_some_and(|opus| {
                let len = pcm.len();
                !packet.is_empty() && opus.decode_s16(packet, len, pcm).is_ok_and(|n| n == len)
            }),
            _ => false,
        };
        if !is_decoded {
            self.conceal(pcm);
        }
    }

    /// Samples for a frame that is missing.
    pub(crate) fn conceal(&mut self, pcm: &mut [i16]) {
        match (self.codec, &mut self.opus) {
            (VoiceCodec::Opus { .. }, Some(opus)) => {
                let len = pcm.len();
                if opus.decode_s16(&[], len, pcm).is_err() {
                    pcm.fill(0);
                }
            }
            (VoiceCodec::Mulaw | VoiceCodec::Alaw, _) => self.concealer.conceal(pcm),
            _ => pcm.fill(0),
        }
    }

    /// The frame before `next`, from the rough form of it that `next` holds; false if it has none.
    pub(crate) fn restore(&mut self, next: &[u8], pcm: &mut [i16]) -> bool {
        let VoiceCodec::Opus { fec: true, .. } = self.codec else { return false };
        if !holds_earlier(next) {
            return false;
        }
        let len = pcm.len();
        self.opus
            .as_mut()
            .is_some_and(|opus| opus.decode_fec_s16(next, len, pcm).is_ok_and(|n| n == len))
    }
}

/// Whether a packet of Opus with one frame of 20 ms and one channel holds a rough form of the frame
/// before: the second bit of its SILK part (RFC 6716 section 4.2.4).
fn holds_earlier(packet: &[u8]) -> bool {
    match packet {
        [toc, first, ..] => toc >> 3 < 16 && toc & 3 == 0 && first & 64 != 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vowel-like sound: a fundamental and its harmonics.
    fn tone(codec: VoiceCodec, frame: usize) -> Vec<i16> {
        let len = codec.samples();
        (0..len)
            .map(|at| {
                let time = (frame * len + at) as f64 / f64::from(codec.sample_rate());
                let wave = |harmonic: f64| {
                    (std::f64::consts::TAU * 400.0 * harmonic * time).sin() / harmonic
                };
                (6000.0 * (wave(1.0) + wave(2.0) + wave(4.0))) as i16
            })
            .collect()
    }

    fn energy(pcm: &[i16]) -> f64 {
        pcm.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / pcm.len() as f64
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in ["opus", "opus:32000", "opus-fec", "g711", "g711-alaw", "g729-sized"] {
            assert_eq!(text.parse::<VoiceCodec>().expect("a codec").to_string(), text);
        }
        for text in ["", "g711:8000", "opus:5", "opus:x", "mp3"] {
            assert!(text.parse::<VoiceCodec>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_codec_with_voice_gives_the_sound_back() {
        for codec in [VoiceCodec::Mulaw, VoiceCodec::Alaw, VoiceCodec::OPUS] {
            let mut encoder = Encoder::new(codec).expect("an encoder");
            let mut decoder = Decoder::new(codec).expect("a decoder");
            let mut pcm = vec![0; codec.samples()];
            for frame in 0..20 {
                let packet = encoder.encode(&tone(codec, frame)).expect("it is coded");
                let packet = packet.expect("it is no silence");
                assert!(packet.len() <= codec.most_bytes());
                decoder.decode(&packet, &mut pcm);
            }
            let (got, sent) = (energy(&pcm), energy(&tone(codec, 19)));
            // Opus takes the lowest tones out of voice.
            assert!((0.4..1.4).contains(&(got / sent)), "{codec}: {got} of {sent}");
        }
    }

    #[test]
    fn what_is_missing_sounds_like_what_was_and_fades() {
        for codec in [VoiceCodec::Mulaw, VoiceCodec::OPUS] {
            let mut encoder = Encoder::new(codec).expect("an encoder");
            let mut decoder = Decoder::new(codec).expect("a decoder");
            let mut pcm = vec![0; codec.samples()];
            for frame in 0..20 {
                let packet = encoder.encode(&tone(codec, frame)).expect("it is coded");
                decoder.decode(&packet.expect("no silence"), &mut pcm);
            }
            let before = energy(&pcm);
            decoder.conceal(&mut pcm);
            assert!(energy(&pcm) > 0.25 * before, "{codec}");
            for _ in 0..30 {
                decoder.conceal(&mut pcm);
            }
            assert!(energy(&pcm) < 0.05 * before, "{codec}");
        }
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm() {
        for codec in [VoiceCodec::Mulaw, VoiceCodec::OPUS, VoiceCodec::G729Sized] {
            let mut decoder = Decoder::new(codec).expect("a decoder");
            let mut pcm = vec![0; codec.samples()];
            for len in [0, 1, 2, 3, 160, 1000] {
                for seed in 0..50_u8 {
                    let bytes: Vec<u8> =
                        (0..len).map(|at| (at as u8).wrapping_mul(seed) ^ seed).collect();
                    decoder.decode(&bytes, &mut pcm);
                    decoder.restore(&bytes, &mut pcm);
                }
            }
        }
    }
}
