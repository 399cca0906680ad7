use std::collections::BTreeSet;

use bytes::Bytes;
use fontis_base::Time;

use crate::codec::{Decoder, FRAME, VoiceCodec};
use crate::copies::{CopyReceiver, WithCopies};
use crate::error::CallError;
use crate::heard::Heard;
use crate::playout::{Playout, Turn, Waiting};
use crate::quality::{Impairment, mos, r_factor};
use crate::repair::RepairReceiver;
use crate::rtcp::VoiceReport;
use crate::rtp::{COPIES_TYPE, REPAIR_TYPE, RtpFrame, extend};

/// Numbers of packets that are remembered.
const MOST_SEEN: usize = 256;
/// The equipment impairment of frames that are there as copies of a lower rate: that of G.729 at
/// 8 kbit/s (G.113 appendix I), as ITU-T lists none for Opus.
const LOWER_EQUIPMENT: f64 = 11.0;

/// The hearing end of a call.
pub struct Hearer {
    codec: VoiceCodec,
    decoder: Decoder,
    playout: Playout,
    repair: RepairReceiver,
    copies: CopyReceiver,
    /// The numbers of the last packets that are there.
    seen: BTreeSet<u32>,
    /// Frames that are there as copies of a lower rate.
    lower: u64,
    /// Frames that the codec rebuilt from the packets behind them.
    rebuilt: u64,
    /// The greatest number that has come, and the place in time of that packet.
    newest: Option<(u32, i64, u32)>,
    way: f64,
    received: u64,
    restored: u64,
    is_silent: bool,
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
            playout: Playout::new(codec.impairment()).with_rebuilding(codec.rebuilds()),
            repair: RepairReceiver::new(codec, source),
            copies: CopyReceiver::new(codec),
            seen: BTreeSet::new(),
            lower: 0,
            rebuilt: 0,
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
            self.repair.repair(frame)
        } else if frame.payload_type == COPIES_TYPE {
            let Some(WithCopies { frame, copies }) = self.copies.open(frame) else { return };
            self.hear_frame(now, &frame);
            for (copy, is_lower) in &copies {
                if self.insert(now, copy) {
                    self.restored += 1;
                    self.lower += u64::from(*is_lower);
                }
            }
            return;
        } else if frame.payload_type == self.codec.payload_type() {
            self.received += 1;
            self.insert(now, frame);
            self.repair.add(frame)
        } else {
            return;
        };
        for frame in &restored {
            self.restored += u64::from(self.insert(now, frame));
        }
    }

    /// Takes a packet. False if it was there already.
    fn insert(&mut self, now: Time, frame: &RtpFrame) -> bool {
        let (seq, place) = match self.newest {
            None => (u32::from(frame.seq), 0),
            Some((seq, place, timestamp)) => {
                let Some(number) = extend(seq, frame.seq) else { return false };
                let step = frame.timestamp.wrapping_sub(timestamp) as i32;
                (number, place + i64::from(step / self.codec.ticks() as i32))
            }
        };
        if self.newest.is_none_or(|(newest, ..)| seq > newest) {
            self.newest = Some((seq, place, frame.timestamp));
        }
        let is_new = self.seen.insert(seq);
        while self.seen.len() > MOST_SEEN {
            self.seen.pop_first();
        }
        if !is_new {
            return false;
        }
        let voice = Waiting { seq, marker: frame.marker, voice: frame.payload.clone() };
        self.playout.insert(now, place, voice);
        true
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
                self.rebuilt += u64::from(is_restored);
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

    /// The same for the peer, whose packets come from `peer`; this end is the source `own`.
    pub(crate) fn report(&self, own: u32, peer: u32) -> VoiceReport {
        let heard = self.heard();
        VoiceReport {
            own,
            peer,
            newest: self.newest.map_or(0, |(newest, ..)| newest),
            bursts: self.playout.bursts(),
            round_trip: 2.0 * self.way,
            buffer: (heard.delay - self.way - FRAME.as_secs_f64() * 1e3).max(0.0),
            heard,
        }
    }

    /// How the call is heard, from its begin.
    pub fn heard(&self) -> Heard {
        let stats = self.playout.stats();
        let sent = stats.played + stats.missed;
        // What the codec rebuilt was heard.
        let missed = stats.missed.saturating_sub(self.rebuilt);
        let loss = if sent == 0 { 0.0 } else { missed as f64 / sent as f64 };
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
        let delay = self.way + buffer + FRAME.as_secs_f64() * 1e3;
        let codec = self.codec.impairment();
        let lower = (self.lower + self.rebuilt) as f64 / (sent.max(1) as f64);
        let equipment = codec.equipment + LOWER_EQUIPMENT * lower.min(1.0);
        let r = r_factor(delay, loss, Impairment { equipment, ..codec });
        Heard {
            received: self.received,
            restored: self.restored + self.rebuilt,
            played: stats.played + (stats.missed - missed),
            missed,
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
