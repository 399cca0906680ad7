//! Streams of RTP that others make, and what is made for them.
//!
//! Within a call a packet names its call as its source, and numbers begin at zero. Others choose
//! sources, numbers and payload types as they like, and change them during a call.

use bytes::Bytes;
use fontis_base::{Duration, Time};

use crate::codec::{FRAME, VoiceCodec};
use crate::keys::{KEY_CLOCK, KeyPress};
use crate::rtp::{KEYS_TYPE, NOISE_TYPE, RtpFrame, SideFormats};

/// Numbers that a stream may leave out, and how far a packet may come late (RFC 3550 appendix A.1):
/// beyond that it has begun anew.
const MOST_LEFT_OUT: i16 = 3000;
const MOST_LATE: i16 = -100;
/// The time by which timestamps and arrivals may differ before timestamps have begun anew.
const MOST_DRIFT: i64 = 5;
/// Packets of the source before are late ones for this time.
const HANDOVER: Duration = Duration::from_secs(1);

/// Turns the packets of one peer into those of one call: one source, whose numbers and timestamps
/// go on where the peer begins anew.
pub(crate) struct Inlet {
    codec: VoiceCodec,
    /// The payload type of the peer's packets, and those of others than voice.
    payload_type: u8,
    side: SideFormats,
    source: Option<ForeignSource>,
    /// The source before, until when its packets are late ones.
    before: Option<(u32, Time)>,
    /// Packets of other payload types, and the last one.
    strange: u64,
    strange_type: u8,
}

/// The source that is heard.
struct ForeignSource {
    ssrc: u32,
    /// The newest packet as the peer sent it, and the time at which it came.
    seq: u16,
    timestamp: u32,
    at: Time,
    /// What is added to its numbers and timestamps.
    seq_step: u16,
    timestamp_step: u32,
}

impl Inlet {
    pub(crate) const fn new(codec: VoiceCodec, payload_type: u8, side: SideFormats) -> Self {
        let (source, before) = (None, None);
        Self { codec, payload_type, side, source, before, strange: 0, strange_type: 0 }
    }

    /// The payload type of packets that were not understood, if there were this many of them and
    /// no others.
    pub(crate) fn strange(&self, many: u64) -> Option<u8> {
        (self.source.is_none() && self.strange >= many).then_some(self.strange_type)
    }

    /// The source that is heard.
    pub(crate) fn source(&self) -> Option<u32> {
        Some(self.source.as_ref()?.ssrc)
    }

    /// Takes a packet that came at `now`; `None` if it is not to be heard.
    pub(crate) fn take(&mut self, now: Time, packet: &RtpFrame) -> Option<RtpFrame> {
        let Some(packet) = self.kind(packet) else {
            self.strange += 1;
            self.strange_type = packet.payload_type;
            return None;
        };
        let packet = &packet;
        let is_key = packet.payload_type == KEYS_TYPE;
        let ticks = self.codec.ticks();
        let Some(source) = &mut self.source else {
            self.source = Some(ForeignSource {
                ssrc: packet.source,
                seq: packet.seq,
                timestamp: packet.timestamp,
                at: now,
                seq_step: 0_u16.wrapping_sub(packet.seq),
                timestamp_step: 0_u32.wrapping_sub(packet.timestamp),
            });
            return Some(self.pass(packet, true));
        };
        if packet.source != source.ssrc {
            if self.before.is_some_and(|(ssrc, until)| ssrc == packet.source && now < until) {
                return None;
            }
            self.before = Some((source.ssrc, now + HANDOVER));
        }
        let step = packet.seq.wrapping_sub(source.seq) as i16;
        let is_new = packet.source != source.ssrc || !(MOST_LATE..MOST_LEFT_OUT).contains(&step);
        let passed = now.since(source.at);
        let clock = i64::from(ticks) * 1_000_000_000 / FRAME.as_nanos() as i64;
        let told = i64::from(packet.timestamp.wrapping_sub(source.timestamp) as i32) / clock;
        let drift = told - passed.as_nanos() as i64 / 1_000_000_000;
        let mut begins = false;
        if is_new {
            // The next number; losses meanwhile are not known.
            let next = source.seq.wrapping_add(source.seq_step).wrapping_add(1);
            source.seq_step = next.wrapping_sub(packet.seq);
            source.ssrc = packet.source;
        }
        // A key has the time at which it was pressed until it is released.
        if is_new || (drift.abs() > MOST_DRIFT && !is_key) {
            let frames = (passed.as_nanos() / FRAME.as_nanos()).max(1) as u32;
            let last = source.timestamp.wrapping_add(source.timestamp_step);
            let next = last.wrapping_add(frames.wrapping_mul(ticks));
            source.timestamp_step = next.wrapping_sub(packet.timestamp);
            begins = true;
        }
        if is_key && !begins && step > 0 {
            source.seq = packet.seq;
        } else if begins || step > 0 {
            (source.seq, source.timestamp, source.at) = (packet.seq, packet.timestamp, now);
        }
        Some(self.pass(packet, begins))
    }

    /// The packet with the payload type that it has within a call; `None` if it is not understood.
    fn kind(&self, packet: &RtpFrame) -> Option<RtpFrame> {
        let SideFormats { keys, has_noise } = self.side;
        if packet.payload_type == self.payload_type {
            let payload_type = self.codec.payload_type();
            return Some(RtpFrame { payload_type, ..packet.clone() });
        }
        if has_noise && packet.payload_type == NOISE_TYPE {
            return Some(packet.clone());
        }
        let keys = keys.filter(|keys| packet.payload_type == keys.payload_type)?;
        let key = KeyPress::decode(&packet.payload)?.scaled(keys.clock, KEY_CLOCK);
        Some(RtpFrame { payload_type: KEYS_TYPE, payload: key.encode(), ..packet.clone() })
    }

    fn pass(&self, packet: &RtpFrame, begins: bool) -> RtpFrame {
        let (seq, timestamp) =
            self.source.as_ref().map_or((0, 0), |source| (source.seq_step, source.timestamp_step));
        RtpFrame {
            payload_type: packet.payload_type,
            marker: packet.marker || begins,
            seq: packet.seq.wrapping_add(seq),
            timestamp: packet.timestamp.wrapping_add(timestamp),
            source: 0,
            payload: packet.payload.clone(),
        }
    }
}

/// Turns the packets of one call into those of a source of its own.
pub(crate) struct Outlet {
    payload_type: u8,
    side: SideFormats,
    ssrc: u32,
    seq: u16,
    timestamp: u32,
}

impl Outlet {
    /// A source with a random identifier, whose numbers begin at random (RFC 3550 section 5.1).
    ///
    /// # Errors
    /// If the system has no randomness.
    pub(crate) fn new(payload_type: u8, side: SideFormats) -> std::io::Result<Self> {
        let mut bytes = [0; 10];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        let [a, b, c, d, e, f, g, h, i, j] = bytes;
        Ok(Self {
            payload_type,
            side,
            ssrc: u32::from_be_bytes([a, b, c, d]),
            seq: u16::from_be_bytes([e, f]) >> 1,
            timestamp: u32::from_be_bytes([g, h, i, j]),
        })
    }

    /// Its identifier.
    pub(crate) const fn source(&self) -> u32 {
        self.ssrc
    }

    /// The timestamp of a packet of the call as the peer sees it.
    pub(crate) const fn timestamp(&self, timestamp: u32) -> u32 {
        timestamp.wrapping_add(self.timestamp)
    }

    /// The packets without voice that the peer takes.
    pub(crate) const fn side(&self) -> SideFormats {
        self.side
    }

    /// The bytes of a packet of the call; `None` if the peer does not take its kind.
    pub(crate) fn put(&self, packet: &RtpFrame) -> Option<Bytes> {
        let mut payload = packet.payload.clone();
        let payload_type = match packet.payload_type {
            NOISE_TYPE if self.side.has_noise => NOISE_TYPE,
            NOISE_TYPE => return None,
            KEYS_TYPE => {
                let keys = self.side.keys?;
                payload = KeyPress::decode(&payload)?.scaled(KEY_CLOCK, keys.clock).encode();
                keys.payload_type
            }
            _ => self.payload_type,
        };
        let packet = RtpFrame {
            payload_type,
            payload,
            seq: packet.seq.wrapping_add(self.seq),
            timestamp: self.timestamp(packet.timestamp),
            source: self.ssrc,
            ..*packet
        };
        Some(packet.encode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::KeyFormat;

    const SIDE: SideFormats =
        SideFormats { keys: Some(KeyFormat { payload_type: 110, clock: 48_000 }), has_noise: true };

    fn packet(source: u32, seq: u16, timestamp: u32) -> RtpFrame {
        let payload = Bytes::from_static(b"voice");
        RtpFrame { payload_type: 0, marker: false, seq, timestamp, source, payload }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn pauses_and_changes_of_the_source_survive() {
        let mut inlet = Inlet::new(VoiceCodec::Mulaw, 0, SIDE);
        let mut take = |millis, packet: RtpFrame| {
            inlet.take(at(millis), &packet).map(|got| (got.seq, got.timestamp, got.marker))
        };
        let begin = u32::MAX - 100;
        assert_eq!(take(0, packet(7, 65_535, begin)), Some((0, 0, true)));
        assert_eq!(take(20, packet(7, 0, begin.wrapping_add(160))), Some((1, 160, false)));
        // One was lost, and the next ones come in the wrong order.
        assert_eq!(take(60, packet(7, 2, begin.wrapping_add(480))), Some((3, 480, false)));
        assert_eq!(take(61, packet(7, 1, begin.wrapping_add(320))), Some((2, 320, false)));
        // A pause of eight seconds, in which nothing is sent.
        let later = begin.wrapping_add(480 + 64_000);
        assert_eq!(take(8060, packet(7, 3, later)), Some((4, 64_480, false)));
        // Another source, whose numbers are its own.
        assert_eq!(take(8100, packet(9, 500, 12)), Some((5, 64_800, true)));
        assert_eq!(take(8101, packet(7, 4, later.wrapping_add(160))), None, "it comes late");
        assert_eq!(take(8120, packet(9, 501, 172)), Some((6, 64_960, false)));
        // It begins anew, and then its clock alone does.
        assert_eq!(take(8140, packet(9, 40_000, 7000)), Some((7, 65_120, true)));
        assert_eq!(take(8160, packet(9, 40_001, 90_000_000)), Some((8, 65_280, true)));
        assert_eq!(take(8180, packet(9, 40_002, 90_000_160)), Some((9, 65_440, false)));
    }

    #[test]
    fn other_payload_types_are_not_heard_and_are_named() {
        let mut inlet = Inlet::new(VoiceCodec::OPUS, 96, SIDE);
        for _ in 0..3 {
            assert_eq!(inlet.take(at(0), &packet(1, 1, 1)), None);
        }
        assert_eq!((inlet.strange(3), inlet.strange(4)), (Some(0), None));
        let opus = RtpFrame { payload_type: 96, ..packet(1, 1, 1) };
        let heard = inlet.take(at(0), &opus).expect("it is heard");
        assert_eq!(heard.payload_type, VoiceCodec::OPUS.payload_type());
        assert_eq!(inlet.strange(3), None);
    }

    #[test]
    fn keys_and_noise_pass_in_the_forms_of_each_peer() {
        let mut inlet = Inlet::new(VoiceCodec::OPUS, 96, SIDE);
        let of = |payload_type, seq, timestamp, bytes: &'static [u8]| {
            let payload = Bytes::from_static(bytes);
            RtpFrame { payload_type, payload, ..packet(1, seq, timestamp) }
        };
        inlet.take(at(0), &of(96, 9, 9600, b"voice")).expect("voice");
        // A key that is held for ten seconds, which is told with the time of its begin.
        for step in 1..500 {
            let key = of(110, 9 + step, 10_560, &[7, 10, 0x12, 0xc0]);
            let got = inlet.take(at(20 * u64::from(step)), &key).expect("a key");
            assert_eq!((got.payload_type, got.seq, got.timestamp), (KEYS_TYPE, step, 960));
            assert_eq!(got.payload, &[7, 10, 3, 32][..], "4800 at 48,000 are 800 at 8000");
        }
        let voice = inlet.take(at(10_000), &of(96, 509, 489_600, b"voice")).expect("voice");
        assert_eq!((voice.seq, voice.timestamp, voice.marker), (500, 480_000, false));
        assert!(inlet.take(at(10_020), &of(13, 510, 490_560, &[40])).is_some());
        assert!(inlet.take(at(10_020), &of(110, 511, 490_560, &[7])).is_none(), "no event");
        let none = SideFormats::default();
        let mut deaf = Inlet::new(VoiceCodec::Mulaw, 0, none);
        assert!(deaf.take(at(0), &of(13, 1, 1, &[40])).is_none());
        let outlet = Outlet::new(96, none).expect("randomness");
        for payload_type in [KEYS_TYPE, NOISE_TYPE] {
            assert_eq!(outlet.put(&of(payload_type, 1, 1, &[7, 10, 3, 32])), None);
        }
        let outlet = Outlet::new(96, SIDE).expect("randomness");
        let key = outlet.put(&of(KEYS_TYPE, 1, 1, &[7, 10, 3, 32])).expect("it is taken");
        assert_eq!((key[1] & 127, &key[12..]), (110, &[7, 10, 0x12, 0xc0][..]));
    }

    #[test]
    fn packets_of_any_kind_do_no_harm() {
        let mut inlet = Inlet::new(VoiceCodec::Mulaw, 0, SIDE);
        for number in 0..5000_u32 {
            let mixed = number.wrapping_mul(2_654_435_761);
            let strange = packet(mixed >> 30, (mixed >> 7) as u16, mixed.wrapping_mul(97));
            let _ = inlet.take(at(u64::from(number % 977) * 7), &strange);
        }
    }

    #[test]
    fn what_goes_out_has_a_source_of_its_own_and_the_steps_of_the_call() {
        let outlet = Outlet::new(96, SIDE).expect("randomness");
        let of = |seq, timestamp| {
            let bytes = outlet.put(&packet(0, seq, timestamp));
            RtpFrame::decode(&bytes.expect("it is taken")).expect("a packet")
        };
        let (first, second) = (of(0, 0), of(2, 640));
        assert_eq!((first.payload_type, first.source), (96, second.source));
        assert_eq!(second.seq.wrapping_sub(first.seq), 2);
        assert_eq!(second.timestamp.wrapping_sub(first.timestamp), 640);
    }
}
