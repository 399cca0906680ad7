//! Keys of telephones that cross a call as events of RTP (RFC 4733), beside the voice.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use fontis_base::{Duration, Time};

use crate::rtp::RtpFrame;

/// Units of durations in a second, within a call.
pub(crate) const KEY_CLOCK: u32 = 8000;
/// Bytes of an event.
const LEN: usize = 4;
/// Packets that may wait for their turn: three seconds.
const MOST_WAITING: usize = 150;
/// The amplitude of each of a key's two tones: together they are some 10 dB below the loudest.
const AMPLITUDE: f64 = 5000.0;
/// The tones of the rows and columns of keys in Hz (ITU-T Q.23).
const ROWS: [f64; 4] = [697.0, 770.0, 852.0, 941.0];
const COLUMNS: [f64; 4] = [1209.0, 1336.0, 1477.0, 1633.0];
/// The keys' numbers (RFC 4733 section 3.2) by rows: `10` is the star, `11` the hash sign.
const KEYS: [[u8; 4]; 4] = [[1, 2, 3, 12], [4, 5, 6, 13], [7, 8, 9, 14], [10, 0, 11, 15]];

/// What a packet tells of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPress {
    pub(crate) event: u8,
    pub(crate) is_end: bool,
    /// The level in dB below the loudest, and a reserved bit.
    level: u8,
    /// How long it has been pressed.
    pub(crate) duration: u16,
}

impl KeyPress {
    /// Reads an event; `None` if it is none. Others behind it are not read.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let [event, flags, a, b] = *payload.first_chunk::<LEN>()?;
        let (is_end, level) = (flags & 128 != 0, flags & 127);
        Some(Self { event, is_end, level, duration: u16::from_be_bytes([a, b]) })
    }

    pub(crate) fn encode(self) -> Bytes {
        let mut out = BytesMut::with_capacity(LEN);
        out.put_u8(self.event);
        out.put_u8(u8::from(self.is_end) << 7 | self.level);
        out.put_u16(self.duration);
        out.freeze()
    }

    /// The same, with a duration in other units. One that is too long stays at the longest.
    pub(crate) fn scaled(self, from: u32, to: u32) -> Self {
        let duration = u64::from(self.duration) * u64::from(to) / u64::from(from.max(1));
        Self { duration: duration.min(u64::from(u16::MAX)) as u16, ..self }
    }
}

/// Packets with keys on their way to the ear, and the key that sounds.
#[derive(Default)]
pub(crate) struct KeyQueue {
    /// Packets by their numbers, with the times at which they came.
    waiting: BTreeMap<u32, (Time, RtpFrame)>,
    /// The last key that was due.
    last: Option<PressedKey>,
}

struct PressedKey {
    timestamp: u32,
    /// Its timestamp as it goes on.
    passed: u32,
    event: u8,
    is_end: bool,
    /// How long it has been pressed, and has sounded, in seconds.
    told: f64,
    sounded: f64,
}

impl KeyQueue {
    /// Takes the packet with number `seq`, whose timestamp goes on as `passed`.
    pub(crate) fn insert(&mut self, now: Time, seq: u32, frame: RtpFrame) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.insert(seq, (now, frame));
        }
    }

    /// The next packet that is due: one that the voice has passed, or that has waited as long as
    /// voice does. Those that tell nothing new are dropped. `passed` turns its timestamp into that
    /// with which it goes on, which is one for a key.
    pub(crate) fn next(
        &mut self,
        now: Time,
        delay: Duration,
        voice: Option<u32>,
        passed: impl Fn(u32) -> u32,
    ) -> Option<(u32, RtpFrame)> {
        loop {
            let (&seq, (at, _)) = self.waiting.first_key_value()?;
            if voice.is_none_or(|voice| seq > voice) && now < *at + delay {
                return None;
            }
            let (_, frame) = self.waiting.remove(&seq)?;
            let Some(key) = KeyPress::decode(&frame.payload) else { continue };
            let told = f64::from(key.duration) / f64::from(KEY_CLOCK);
            let timestamp = match &mut self.last {
                Some(last) if last.timestamp == frame.timestamp => {
                    if last.is_end && !key.is_end {
                        continue;
                    }
                    last.told = last.told.max(told);
                    last.is_end = key.is_end;
                    last.passed
                }
                Some(last) if (frame.timestamp.wrapping_sub(last.timestamp) as i32) < 0 => continue,
                _ => {
                    let passed = passed(frame.timestamp);
                    let (event, is_end, timestamp) = (key.event, key.is_end, frame.timestamp);
                    let sounded = 0.0;
                    let last = PressedKey { timestamp, passed, event, is_end, told, sounded };
                    self.last = Some(last);
                    passed
                }
            };
            return Some((seq, RtpFrame { timestamp, ..frame }));
        }
    }

    /// Fills `pcm`, with `rate` samples a second, with the tones of the key that is pressed. False
    /// if none is.
    pub(crate) fn sound(&mut self, rate: u32, pcm: &mut [i16]) -> bool {
        let Some(key) = &mut self.last else { return false };
        let Some((row, column)) = tones(key.event) else { return false };
        // Sums of fractions are not exact.
        if key.sounded + 1e-6 >= key.told {
            return false;
        }
        let begin = key.sounded;
        for (at, sample) in pcm.iter_mut().enumerate() {
            let time = begin + at as f64 / f64::from(rate);
            let wave = |hertz: f64| (std::f64::consts::TAU * hertz * time).sin();
            *sample = (AMPLITUDE * (wave(row) + wave(column))) as i16;
        }
        key.sounded += pcm.len() as f64 / f64::from(rate);
        true
    }
}

/// The two tones of a key in Hz.
fn tones(event: u8) -> Option<(f64, f64)> {
    ROWS.iter().zip(KEYS).find_map(|(row, keys)| {
        let column = keys.iter().position(|key| *key == event)?;
        Some((*row, COLUMNS[column]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(seq: u16, timestamp: u32, bytes: [u8; 4]) -> RtpFrame {
        let payload = Bytes::copy_from_slice(&bytes);
        RtpFrame { payload_type: 101, marker: false, seq, timestamp, source: 0, payload }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn events_are_what_they_were_in_other_units_too() {
        let bytes = [11, 128 | 10, 3, 32];
        let key = KeyPress::decode(&bytes).expect("an event");
        assert_eq!((key.event, key.is_end, key.duration), (11, true, 800));
        assert_eq!(key.encode(), &bytes[..]);
        assert_eq!(key.scaled(8000, 48_000).duration, 4800);
        assert_eq!(KeyPress { duration: 20_000, ..key }.scaled(8000, 48_000).duration, 65_535);
        assert_eq!(KeyPress::decode(&bytes[..3]), None);
    }

    #[test]
    fn keys_wait_as_long_as_voice_and_tell_nothing_twice() {
        let mut queue = KeyQueue::default();
        let delay = Duration::from_millis(60);
        queue.insert(at(0), 5, packet(5, 800, [1, 10, 0, 160]));
        queue.insert(at(20), 7, packet(7, 800, [1, 138, 1, 64]));
        // It comes again, behind the end, and so does one of an earlier key.
        queue.insert(at(25), 8, packet(8, 800, [1, 10, 0, 240]));
        queue.insert(at(26), 9, packet(9, 640, [2, 10, 0, 160]));
        queue.insert(at(27), 10, packet(10, 1600, [3, 10, 0, 160]));
        let mut next = |millis, voice, base: u32| {
            let (seq, frame) =
                queue.next(at(millis), delay, voice, |timestamp| timestamp + base)?;
            Some((seq, frame.timestamp))
        };
        assert_eq!(next(30, Some(4), 7), None);
        assert_eq!(next(30, Some(6), 7), Some((5, 807)));
        assert_eq!(next(30, Some(6), 7), None);
        assert_eq!(next(80, Some(6), 9), Some((7, 807)), "one key has one timestamp");
        assert_eq!(next(90, Some(6), 9), Some((10, 1609)));
        assert_eq!(next(900, None, 9), None);
    }

    #[test]
    fn a_key_sounds_with_its_two_tones_as_long_as_it_was_pressed() {
        let mut queue = KeyQueue::default();
        let mut pcm = [0; 160];
        assert!(!queue.sound(8000, &mut pcm));
        queue.insert(at(0), 0, packet(0, 0, [5, 138, 1, 144]));
        assert!(queue.next(at(0), Duration::ZERO, None, |timestamp| timestamp).is_some());
        let mut heard = Vec::new();
        while queue.sound(8000, &mut pcm) {
            heard.extend(pcm);
        }
        assert_eq!(heard.len(), 480, "400 samples are three frames");
        let strength = |hertz: f64| {
            let (mut cosine, mut sine) = (0.0, 0.0);
            for (at, sample) in heard.iter().enumerate() {
                let (s, c) = (std::f64::consts::TAU * hertz * at as f64 / 8000.0).sin_cos();
                (cosine, sine) = (cosine + c * f64::from(*sample), sine + s * f64::from(*sample));
            }
            2.0 * f64::hypot(cosine, sine) / heard.len() as f64
        };
        for hertz in [770.0, 1336.0] {
            assert!((strength(hertz) - AMPLITUDE).abs() < 700.0, "{hertz}: {}", strength(hertz));
        }
        for hertz in [697.0, 852.0, 1209.0, 1477.0] {
            assert!(strength(hertz) < 1000.0, "{hertz}: {}", strength(hertz));
        }
    }
}
