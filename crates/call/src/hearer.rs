use std::collections::BTreeSet;

use bytes::Bytes;
use fontis_base::{Duration, Time};

use crate::codec::{Decoder, Encoder, FRAME, VoiceCodec};
use crate::copies::{CopyReceiver, WithCopies};
use crate::error::CallError;
use crate::heard::Heard;
use crate::keys::KeyQueue;
use crate::noise::ComfortNoise;
use crate::playout::{Playout, Turn, Waiting};
use crate::quality::{Impairment, mos, r_factor};
use crate::repair::RepairReceiver;
use crate::rtcp::VoiceReport;
use crate::rtp::{COPIES_TYPE, KEYS_TYPE, NOISE_TYPE, REPAIR_TYPE, RtpFrame, SideFormats, extend};

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
    keys: KeyQueue,
    /// The noise of a pause, if the peer has described it.
    noise: Option<ComfortNoise>,
    /// What codes the tones of keys for a telephone that takes no others.
    tones: Option<Box<Encoder>>,
    /// The last number that went to a telephone, and what is added to numbers for it.
    passed: u16,
    added: u16,
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
            keys: KeyQueue::default(),
            noise: None,
            tones: None,
            passed: 0,
            added: 0,
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
        } else if self.is_known(frame.payload_type) {
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

    fn is_known(&self, payload_type: u8) -> bool {
        [self.codec.payload_type(), KEYS_TYPE, NOISE_TYPE].contains(&payload_type)
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
        let is_key = frame.payload_type == KEYS_TYPE;
        // A key has the time at which it was pressed, which is no measure for others.
        if self.newest.is_none_or(|(newest, ..)| seq > newest && !is_key) {
            self.newest = Some((seq, place, frame.timestamp));
        }
        let is_new = self.seen.insert(seq);
        while self.seen.len() > MOST_SEEN {
            self.seen.pop_first();
        }
        if !is_new {
            return false;
        }
        if is_key {
            self.playout.leave_out(seq);
            self.keys.insert(now, seq, frame.clone());
            return true;
        }
        let is_noise = frame.payload_type == NOISE_TYPE;
        let voice = Waiting { seq, marker: frame.marker, is_noise, voice: frame.payload.clone() };
        self.playout.insert(now, place, voice);
        true
    }

    /// Fills `pcm` with what is heard from `now` on. It is called once in each 20 ms, with as many
    /// samples as the codec has in a packet.
    pub fn play(&mut self, now: Time, pcm: &mut [i16]) {
        match self.playout.turn(now) {
            Turn::Quiet => pcm.fill(0),
            Turn::Play(_, frame) if frame.is_noise => {
                match (&mut self.noise, ComfortNoise::decode(&frame.voice)) {
                    (Some(noise), Some(newer)) => noise.follow(newer),
                    (noise, newer) => *noise = newer,
                }
                self.rest(pcm);
            }
            Turn::Play(_, frame) => {
                self.is_silent = false;
                self.noise = None;
                self.decoder.decode(&frame.voice, pcm);
            }
            Turn::Conceal(next) => {
                let is_restored = next.is_some_and(|next| self.decoder.restore(&next, pcm));
                self.rebuilt += u64::from(is_restored);
                if !is_restored {
                    self.rest(pcm);
                }
            }
        }
        while self.next_key(now).is_some() {}
        self.keys.sound(self.codec.sample_rate(), pcm);
    }

    /// Fills `pcm` where there is no voice.
    fn rest(&mut self, pcm: &mut [i16]) {
        match &mut self.noise {
            Some(noise) => noise.sound(pcm),
            None if self.is_silent => pcm.fill(0),
            None => self.decoder.conceal(pcm),
        }
    }

    /// The next packet with a key that is due.
    fn next_key(&mut self, now: Time) -> Option<(u32, RtpFrame)> {
        let delay = Duration::from_nanos((self.playout.delay().max(0.0) * 1e6) as u64);
        let ticks = self.codec.ticks();
        let newest = self.newest;
        let passed = |timestamp: u32| {
            let (_, place, newest) = newest.unwrap_or_default();
            (place as u32).wrapping_mul(ticks).wrapping_add(timestamp.wrapping_sub(newest))
        };
        self.keys.next(now, delay, self.playout.last(), passed)
    }

    /// The packets that are to be heard from `now` on elsewhere: in the place of [`Hearer::play`].
    /// Keys that the telephone does not take are tones in the place of voice.
    pub(crate) fn pass(&mut self, now: Time, takes: SideFormats) -> Vec<RtpFrame> {
        let turn = self.playout.turn(now);
        let (mut packets, mut behind) = (Vec::new(), Vec::new());
        let voice = match &turn {
            Turn::Play(_, frame) => Some(frame.seq),
            Turn::Quiet | Turn::Conceal(_) => None,
        };
        while let Some((seq, key)) = self.next_key(now) {
            if takes.keys.is_some() && voice.is_some_and(|voice| seq > voice) {
                behind.push((seq, key));
            } else if takes.keys.is_some() {
                packets.push(self.number(seq, key));
            } else {
                // Its number is free.
                self.added = self.added.wrapping_sub(1);
            }
        }
        let mut frame = match turn {
            Turn::Play(_, frame) if frame.is_noise && !takes.has_noise => {
                self.added = self.added.wrapping_sub(1);
                None
            }
            Turn::Play(place, frame) => {
                let of = if frame.is_noise { NOISE_TYPE } else { self.codec.payload_type() };
                let packet = RtpFrame {
                    payload_type: of,
                    marker: frame.marker,
                    seq: 0,
                    timestamp: (place as u32).wrapping_mul(self.codec.ticks()),
                    source: 0,
                    payload: frame.voice,
                };
                Some(self.number(frame.seq, packet))
            }
            Turn::Quiet | Turn::Conceal(_) => None,
        };
        if takes.keys.is_none()
            && let Some(payload) = self.tone()
        {
            let payload_type = self.codec.payload_type();
            frame = Some(match frame {
                Some(frame) => RtpFrame { payload_type, payload, ..frame },
                None => {
                    self.added = self.added.wrapping_add(1);
                    self.passed = self.passed.wrapping_add(1);
                    let place = self.playout.place().unwrap_or_default();
                    let timestamp = (place as u32).wrapping_mul(self.codec.ticks());
                    let (marker, seq) = (false, self.passed);
                    RtpFrame { payload_type, marker, seq, timestamp, source: 0, payload }
                }
            });
        }
        packets.extend(frame);
        packets.extend(behind.into_iter().map(|(seq, key)| self.number(seq, key)));
        packets
    }

    /// Numbers a packet for a telephone.
    fn number(&mut self, seq: u32, packet: RtpFrame) -> RtpFrame {
        let seq = (seq as u16).wrapping_add(self.added);
        self.passed = seq;
        RtpFrame { seq, ..packet }
    }

    /// The next packet of the tones of a key, if one is pressed.
    fn tone(&mut self) -> Option<Bytes> {
        let mut pcm = vec![0; self.codec.samples()];
        if !self.keys.sound(self.codec.sample_rate(), &mut pcm) {
            return None;
        }
        let encoder = match &mut self.tones {
            Some(encoder) => encoder,
            None => self.tones.insert(Box::new(Encoder::new(self.codec).ok()?)),
        };
        encoder.encode(&pcm).ok()?
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::FRAME;
    use crate::keys::KeyPress;
    use crate::rtp::KeyFormat;
    use crate::talker::Talker;

    const ALL: SideFormats =
        SideFormats { keys: Some(KeyFormat { payload_type: 101, clock: 8000 }), has_noise: true };

    fn packet(payload_type: u8, seq: u16, timestamp: u32, payload: &[u8]) -> RtpFrame {
        let payload = Bytes::copy_from_slice(payload);
        RtpFrame { payload_type, marker: false, seq, timestamp, source: 0, payload }
    }

    /// Two seconds of voice in which the key 5 is pressed for 200 ms, told in each frame and thrice
    /// at its end, as a telephone says it; numbers are those of packets.
    fn spoken() -> Vec<(u64, RtpFrame)> {
        let (mut packets, mut seq) = (Vec::new(), 0);
        let mut add = |frame: u64, payload_type, timestamp, payload: &[u8]| {
            packets.push((frame, packet(payload_type, seq, timestamp, payload)));
            seq += 1;
        };
        for frame in 0..100_u32 {
            add(frame.into(), 0, frame * 160, &[0x55; 160]);
            if (40..53).contains(&frame) {
                let steps = (frame - 39).min(10) as u16;
                let [a, b] = (160 * steps).to_be_bytes();
                let end = if frame >= 50 { 128 } else { 0 };
                add(frame.into(), KEYS_TYPE, 40 * 160, &[5, end | 10, a, b]);
            }
        }
        packets
    }

    /// What a telephone gets of `packets`, each of which comes with its frame.
    fn passed(packets: &[(u64, RtpFrame)], takes: SideFormats) -> (Hearer, Vec<RtpFrame>) {
        let mut hearer = Hearer::new(VoiceCodec::Mulaw, 0).expect("a codec");
        let mut got = Vec::new();
        for frame in 0..130 {
            let now = Time::ZERO + FRAME * frame;
            for (_, packet) in packets.iter().filter(|(at, _)| *at == frame) {
                hearer.hear_frame(now, packet);
            }
            got.extend(hearer.pass(now + Duration::from_millis(3), takes));
        }
        (hearer, got)
    }

    #[test]
    fn keys_reach_a_telephone_among_the_voice_and_are_no_losses() {
        let (hearer, got) = passed(&spoken(), ALL);
        let keys: Vec<&RtpFrame> =
            got.iter().filter(|packet| packet.payload_type == KEYS_TYPE).collect();
        assert_eq!(keys.len(), 13);
        assert!(keys.iter().all(|key| key.timestamp == 40 * 160), "one key has one timestamp");
        let ends = keys.iter().filter_map(|key| KeyPress::decode(&key.payload));
        assert_eq!(ends.filter(|key| key.is_end && key.duration == 1600).count(), 3);
        let is_in_order = |pair: &[RtpFrame]| pair[0].seq < pair[1].seq;
        assert!(got.windows(2).all(is_in_order), "they are in the order of their numbers");
        // The buffer gets shorter by two frames at the begin.
        assert!(hearer.heard().missed <= 3, "{:?}", hearer.heard());
    }

    #[test]
    fn a_telephone_that_takes_no_keys_hears_their_tones() {
        let packets = spoken();
        // Voice that goes on, and voice that rests while a key is pressed.
        let rests: Vec<_> = packets
            .iter()
            .filter(|(frame, packet)| packet.payload_type != 0 || !(40..53).contains(frame))
            .cloned()
            .collect();
        for packets in [packets, rests] {
            let (_, got) = passed(&packets, SideFormats::default());
            assert!(got.iter().all(|packet| packet.payload_type == 0));
            let tones = got.iter().filter(|packet| packet.payload[..] != [0x55; 160]);
            assert_eq!(tones.count(), 10, "200 ms");
            let times = |pair: &[RtpFrame]| pair[0].timestamp < pair[1].timestamp;
            assert!(got.windows(2).all(times));
            let numbers = got.windows(2).filter(|pair| pair[1].seq != pair[0].seq + 1).count();
            assert!(numbers <= 4, "{numbers} gaps");
        }
    }

    #[test]
    fn lost_keys_are_restored_as_keys() {
        let mut talker = Talker::new(VoiceCodec::Mulaw, 0).expect("a codec");
        talker.set_repair(0.5, 0.05);
        let mut hearer = Hearer::new(VoiceCodec::Mulaw, 0).expect("a codec");
        let mut keys = 0;
        for (frame, packet) in spoken() {
            let now = Time::ZERO + FRAME * frame;
            let is_lost = packet.payload_type == KEYS_TYPE && packet.seq % 4 == 1;
            for datagram in talker.forward(packet).iter().skip(usize::from(is_lost)) {
                hearer.hear(now, datagram);
            }
            let got = hearer.pass(now, ALL);
            keys += got.iter().filter(|packet| packet.payload_type == KEYS_TYPE).count();
        }
        assert!(hearer.heard().restored > 0);
        // One that comes behind a packet that ends its key tells nothing.
        assert!(keys >= 12, "{keys}");
    }

    #[test]
    fn noise_is_heard_in_a_pause_and_passes_to_those_that_take_it() {
        let mut packets: Vec<(u64, RtpFrame)> =
            (0..20).map(|at| (at, packet(0, at as u16, at as u32 * 160, &[0x55; 160]))).collect();
        packets.push((20, packet(NOISE_TYPE, 20, 20 * 160, &[40])));
        packets.push((60, packet(0, 21, 60 * 160, &[0x55; 160])));
        let (_, got) = passed(&packets, ALL);
        assert!(got.iter().any(|one| one.payload_type == NOISE_TYPE && one.payload[..] == [40]));
        let (_, got) = passed(&packets, SideFormats::default());
        assert!(got.iter().all(|packet| packet.payload_type == 0));
        let last: Vec<u16> = got.iter().rev().take(2).map(|packet| packet.seq).collect();
        assert_eq!(last[0], last[1] + 1, "what is not sent leaves no gap");
        let mut hearer = Hearer::new(VoiceCodec::Mulaw, 0).expect("a codec");
        let mut pcm = [0; 160];
        let mut loudness = Vec::new();
        for frame in 0..50 {
            let now = Time::ZERO + FRAME * frame;
            for (_, packet) in packets.iter().filter(|(at, _)| *at == frame) {
                hearer.hear_frame(now, packet);
            }
            hearer.play(now + Duration::from_millis(3), &mut pcm);
            let energy = pcm.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / 160.0;
            loudness.push(20.0 * (energy.sqrt() / 23_170.0).max(1e-9).log10());
        }
        // Long after the last voice, where concealment has faded.
        assert!(loudness[40..].iter().all(|db| (db + 40.0).abs() < 2.0), "{loudness:?}");
    }
}
