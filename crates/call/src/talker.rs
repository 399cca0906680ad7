use bytes::Bytes;

use crate::codec::{Encoder, VoiceCodec};
use crate::copies::{CopySender, FrameCopies};
use crate::error::CallError;
use crate::repair::RepairSender;
use crate::rtp::RtpFrame;

/// Bytes of RTP's header.
const RTP_HEADER: usize = 12;

/// The talking end of a call.
pub struct Talker {
    codec: VoiceCodec,
    encoder: Encoder,
    repair: RepairSender,
    copies: Option<CopySender>,
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
            source,
            seq: 0,
            timestamp: 0,
            was_silent: true,
            stats: TalkerStats::default(),
        })
    }

    /// The packets of the next frame: voice unless it is silence that need not be sent, and a
    /// repair packet if one is due.
    ///
    /// # Errors
    /// If the codec fails.
    pub fn talk(&mut self, pcm: &[i16]) -> Result<Vec<Bytes>, CallError> {
        let voice = self.encoder.encode(pcm)?;
        let timestamp = self.timestamp;
        self.timestamp = timestamp.wrapping_add(self.codec.ticks());
        let Some(payload) = voice else {
            self.was_silent = true;
            return Ok(Vec::new());
        };
        let frame = RtpFrame {
            payload_type: self.codec.payload_type(),
            marker: std::mem::take(&mut self.was_silent),
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
