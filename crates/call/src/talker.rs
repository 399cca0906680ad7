use bytes::Bytes;

use crate::codec::{Encoder, VoiceCodec};
use crate::copies::{CopySender, FrameCopies};
use crate::error::CallError;
use crate::pauses::{Pauses, Uttered};
use crate::repair::RepairSender;
use crate::rtp::{NOISE_TYPE, RtpFrame};

/// Bytes of RTP's header.
const RTP_HEADER: usize = 12;

/// The talking end of a call.
pub struct Talker {
    codec: VoiceCodec,
    encoder: Encoder,
    repair: RepairSender,
    copies: Option<CopySender>,
    /// Finds the pauses that are not sent.
    pauses: Option<Pauses>,
    source: u32,
    seq: u32,
    timestamp: u32,
    /// The packet before this one held a pause.
    was_silent: bool,
    stats: TalkerStats,
}

/// What a talking end has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TalkerStats {
    /// Packets of voice.
    pub packets: u64,
    /// Their bytes, headers of RTP included.
    pub bytes: u64,
    /// Repair packets.
    pub repair_packets: u64,
    /// Their bytes, headers of RTP included, and those of copies of earlier frames.
    pub repair_bytes: u64,
}

impl Talker {
    /// The talking end of call number `source` of a connection.
    ///
    /// # Errors
    /// If the codec does not start.
    pub fn new(codec: VoiceCodec, source: u32) -> Result<Self, CallError> {
        Self::with_copies(codec, source, None)
    }

    /// The same, whose packets hold copies of earlier frames while the peer loses packets.
    ///
    /// # Errors
    /// If a codec does not start.
    pub fn with_copies(
        codec: VoiceCodec,
        source: u32,
        copies: Option<FrameCopies>,
    ) -> Result<Self, CallError> {
        let copies = copies.map(|copies| CopySender::new(copies, codec)).transpose()?;
        Ok(Self {
            copies,
            codec,
            encoder: Encoder::new(codec)?,
            repair: RepairSender::new(codec.most_bytes()),
            pauses: None,
            source,
            seq: 0,
            timestamp: 0,
            was_silent: true,
            stats: TalkerStats::default(),
        })
    }

    /// The same, which sends a description of the noise once a second in pauses (RFC 3389), and no
    /// voice. Opus leaves pauses out by itself.
    #[must_use]
    pub fn without_pauses(self) -> Self {
        let pauses = match self.codec {
            VoiceCodec::Opus { .. } => None,
            codec => Some(Pauses::new(codec.sample_rate())),
        };
        Self { pauses, ..self }
    }

    /// The packets of the next frame: voice unless it is silence that need not be sent, and a
    /// repair packet if one is due.
    ///
    /// # Errors
    /// If the codec fails.
    pub fn talk(&mut self, pcm: &[i16]) -> Result<Vec<Bytes>, CallError> {
        let timestamp = self.timestamp;
        self.timestamp = timestamp.wrapping_add(self.codec.ticks());
        let uttered = self.pauses.as_mut().map_or(Uttered::Voice, |pauses| pauses.take(pcm));
        let voice = self.codec.payload_type();
        let (payload_type, payload) = match uttered {
            Uttered::Voice => (voice, self.encoder.encode(pcm)?),
            Uttered::Noise(_) if let Some(payload) = self.codec.pause() => (voice, Some(payload)),
            Uttered::Noise(payload) => (NOISE_TYPE, Some(payload)),
            Uttered::Nothing => (voice, None),
        };
        let Some(payload) = payload else {
            self.was_silent = true;
            return Ok(Vec::new());
        };
        let frame = RtpFrame {
            payload_type,
            marker: std::mem::take(&mut self.was_silent) && payload_type == voice,
            seq: self.seq as u16,
            timestamp,
            source: self.source,
            payload,
        };
        self.seq += 1;
        Ok(self.forward(frame))
    }

    /// The packets of a frame that was coded elsewhere, and a repair packet if one is due.
    pub(crate) fn forward(&mut self, frame: RtpFrame) -> Vec<Bytes> {
        let frame = RtpFrame { source: self.source, ..frame };
        let packet = match &mut self.copies {
            Some(copies) if frame.payload_type == self.codec.payload_type() => {
                copies.add(&frame).encode()
            }
            Some(copies) => {
                copies.leave_out();
                frame.encode()
            }
            None => frame.encode(),
        };
        let alone = (RTP_HEADER + frame.payload.len()) as u64;
        self.stats.packets += 1;
        self.stats.bytes += alone;
        self.stats.repair_bytes += packet.len() as u64 - alone;
        let mut packets = vec![packet];
        if let Some(repair) = self.repair.add(&frame) {
            let packet = repair.encode();
            self.stats.repair_packets += 1;
            self.stats.repair_bytes += packet.len() as u64;
            packets.push(packet);
        }
        packets
    }

    /// Sets how many repair packets follow each packet, and tells the codec what is lost.
    pub fn set_repair(&mut self, share: f64, loss: f64) {
        self.repair.set_share(share);
        if let Some(copies) = &mut self.copies {
            copies.is_on = loss > 0.0;
        }
        self.encoder.expect_loss(loss);
    }

    /// Tells whether the path is so long that late repairs are of no use.
    pub fn set_far(&mut self, is_far: bool) {
        self.repair.set_far(is_far);
    }

    /// What has been sent.
    pub const fn stats(&self) -> TalkerStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use fontis_base::Time;

    use super::*;
    use crate::codec::FRAME;
    use crate::hearer::Hearer;
    use crate::noise::ComfortNoise;
    use crate::pauses::level;

    /// Frames of a second of a loud tone, then three of noise 52 dB below the loudest sound, over
    /// again.
    fn sound(frames: usize) -> Vec<[i16; 160]> {
        let mut noise = ComfortNoise::decode(&[52]).expect("a level");
        let tone = |at: usize| 8000.0 * (std::f64::consts::TAU * 400.0 * at as f64 / 8000.0).sin();
        let frame = |frame: usize| {
            let mut pcm = std::array::from_fn(|at| tone(frame * 160 + at) as i16);
            if frame % 200 >= 50 {
                noise.sound(&mut pcm);
            }
            pcm
        };
        (0..frames).map(frame).collect()
    }

    #[test]
    fn pauses_are_not_sent_and_sound_as_they_are() {
        let mut talker = Talker::new(VoiceCodec::Mulaw, 0).expect("a codec").without_pauses();
        let mut hearer = Hearer::new(VoiceCodec::Mulaw, 0).expect("a codec");
        let mut heard = Vec::new();
        for (frame, said) in (0..).zip(sound(800)) {
            let now = Time::ZERO + FRAME * frame;
            for packet in talker.talk(&said).expect("it is coded") {
                hearer.hear(now, &packet);
            }
            let mut pcm = vec![0; 160];
            hearer.play(now + FRAME / 2, &mut pcm);
            heard.extend(pcm);
        }
        // A quarter is voice, each with up to 400 ms behind it, and noise is told once a second.
        let packets = talker.stats().packets;
        assert!((240..=300).contains(&packets), "{packets} of 800 packets");
        let end = hearer.heard();
        assert!(end.missed <= 3, "{end:?}");
        // In the middle of each part, the buffer's delay is no matter.
        for second in 1..16_usize {
            let middle = &heard[second * 8000 + 3200..second * 8000 + 4800];
            let expected = if second.is_multiple_of(4) { 8000.0 / 2_f64.sqrt() } else { 58.0 };
            let share = level(middle) / expected;
            assert!((0.8..1.25).contains(&share), "second {second}: {share}");
        }
    }

    #[test]
    fn loads_have_the_pauses_of_their_codecs() {
        for (codec, len) in [(VoiceCodec::G729Sized, 2), (VoiceCodec::SpeexSized, 1)] {
            let mut talker = Talker::new(codec, 0).expect("a codec").without_pauses();
            let packets: Vec<Bytes> =
                sound(200).iter().flat_map(|said| talker.talk(said).expect("coded")).collect();
            let short = packets.iter().filter(|packet| packet.len() == RTP_HEADER + len).count();
            assert_eq!(short, 3, "{codec}: {} packets", packets.len());
            assert!(packets.len() < 70, "{codec}: {} packets", packets.len());
        }
    }
}
