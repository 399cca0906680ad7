use bytes::Bytes;
use fontis_base::Time;

use crate::codec::{Decoder, VoiceCodec};
use crate::error::CallError;
use crate::playout::{Playout, Turn, Waiting};
use crate::quality::{mos, r_factor};
use crate::repair::RepairReceiver;
use crate::rtp::{REPAIR_TYPE, RtpFrame, extend};

/// The hearing end of a call.
pub struct Hearer {
    codec: VoiceCodec,
    decoder: Decoder,
    playout: Playout,
    repair: RepairReceiver,
    /// The greatest number that has come, and the place in time of that packet.
    newest: Option<(u32, i64, u32)>,
    way: f64,
    received: u64,
    restored: u64,
    is_silent: bool,
}

/// How a call is heard at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Heard {
    /// Packets of voice that arrived.
    pub received: u64,
    /// Packets that repair packets restored.
    pub restored: u64,
    /// Frames that were heard.
    pub played: u64,
    /// Frames that were sent and not heard: lost, or late.
    pub missed: u64,
    /// Frames that came too late, which are among these.
    pub late: u64,
    /// The share of the frames that was not heard.
    pub loss: f64,
    /// The share of the packets that did not arrive, restored ones among them.
    pub network_loss: f64,
    /// The estimated delay from mouth to ear, in milliseconds.
    pub delay: f64,
    /// The spread of arrivals, in milliseconds: nine tenths of the packets keep it.
    pub jitter: f64,
    /// The rating factor of the E-model (G.107).
    pub r: f64,
    /// The mean opinion score that follows from it.
    pub mos: f64,
}

impl Hearer {
    /// The hearing end of call number `source` of a connection.
    ///
    /// # Errors
    /// If the codec does not start.
    pub fn new(codec: VoiceCodec, source: u32) -> Result<Self, CallError> {
        Ok(Self {
            codec,
            decoder: Decoder::new(codec)?,
            playout: Playout::new(codec.impairment()),
            repair: RepairReceiver::new(codec.most_bytes(), source),
            newest: None,
            way: 50.0,
            received: 0,
            restored: 0,
            is_silent: true,
        })
    }

    /// Tells the path's delay in one direction, in milliseconds.
    pub fn set_way(&mut self, millis: f64) {
        self.way = millis;
        self.playout.set_way(millis);
    }

    /// Takes a datagram of the peer, which arrived at `now`. What is no packet of this call is
    /// dropped.
    pub fn hear(&mut self, now: Time, datagram: &Bytes) {
        let Some(frame) = RtpFrame::decode(datagram) else { return };
        self.hear_frame(now, &frame);
    }

    pub(crate) fn hear_frame(&mut self, now: Time, frame: &RtpFrame) {
        let restored = if frame.payload_type == REPAIR_TYPE {
            self.repair.repair(&frame.payload)
        } else if frame.payload_type == self.codec.payload_type() {
            self.received += 1;
            self.insert(now, frame);
            self.repair.add(frame)
        } else {
            return;
        };
        for frame in &restored {
            self.restored += 1;
            self.insert(now, frame);
        }
    }

    fn insert(&mut self, now: Time, frame: &RtpFrame) {
        let (seq, place) = match self.newest {
            None => (u32::from(frame.seq), 0),
            Some((seq, place, timestamp)) => {
                let Some(number) = extend(seq, frame.seq) else { return };
                let step = frame.timestamp.wrapping_sub(timestamp) as i32;
                (number, place + i64::from(step / self.codec.ticks() as i32))
            }
        };
        if self.newest.is_none_or(|(newest, ..)| seq > newest) {
            self.newest = Some((seq, place, frame.timestamp));
        }
        let voice = Waiting { seq, marker: frame.marker, voice: frame.payload.clone() };
        self.playout.insert(now, place, voice);
    }

    /// Fills `pcm` with what is heard from `now` on. It is called once in each 20 ms, with as many
    /// samples as the codec has in a packet.
    pub fn play(&mut self, now: Time, pcm: &mut [i16]) {
        match self.playout.turn(now) {
            Turn::Quiet => pcm.fill(0),
            Turn::Play(_, frame) => {
                self.is_silent = false;
                self.decoder.decode(&frame.voice, pcm);
            }
            Turn::Conceal(next) => {
                let is_restored = next.is_some_and(|next| self.decoder.restore(&next, pcm));
                if !is_restored && !self.is_silent {
                    self.decoder.conceal(pcm);
                } else if !is_restored {
                    pcm.fill(0);
                }
            }
        }
    }

    /// The packet that is to be heard from `now` on elsewhere, if it is there: in the place of
    /// [`Hearer::play`].
    pub(crate) fn pass(&mut self, now: Time) -> Option<RtpFrame> {
        let Turn::Play(place, frame) = self.playout.turn(now) else { return None };
        Some(RtpFrame {
            payload_type: self.codec.payload_type(),
            marker: frame.marker,
            seq: frame.seq as u16,
            timestamp: (place as u32).wrapping_mul(self.codec.ticks()),
            source: 0,
            payload: frame.voice,
        })
    }

    /// How the call is heard, from its begin.
    pub fn heard(&self) -> Heard {
        let stats = self.playout.stats();
        let sent = stats.played + stats.missed;
        let loss = if sent == 0 { 0.0 } else { stats.missed as f64 / sent as f64 };
        let sent_in_all = self.newest.map_or(0, |(newest, ..)| u64::from(newest) + 1);
        let arrived = self.received.min(sent_in_all);
        let network_loss = match sent_in_all {
            0 => 0.0,
            sent => 1.0 - arrived as f64 / sent as f64,
        };
        let buffer = match stats.played {
            0 => self.playout.delay(),
            played => stats.delays as f64 / played as f64 / 1e6,
        };
        // The voice of a packet waits until the packet is full.
        let delay = self.way + buffer + crate::codec::FRAME.as_secs_f64() * 1e3;
        let r = r_factor(delay, loss, self.codec.impairment());
        Heard {
            received: self.received,
            restored: self.restored,
            played: stats.played,
            missed: stats.missed,
            late: stats.late,
            loss,
            network_loss,
            delay,
            jitter: self.playout.jitter(),
            r,
            mos: mos(r),
        }
    }
}
