//! Reports between a bridge and its telephone by RTCP (RFC 3550 section 6): each tells what it has
//! sent, and how the other's packets come.

use bytes::{BufMut, Bytes, BytesMut};
use fontis_base::{Duration, Time};

use crate::rtcp::{RECEIVER_REPORT, SENDER_REPORT, head, put_name};
use crate::rtp::{RtpFrame, extend};

/// The time between two reports (section 6.2).
const INTERVAL: Duration = Duration::from_secs(5);
/// The packet that ends a source, and how it is named in a report of times.
const GOODBYE: u8 = 203;
/// Seconds from the epoch of NTP to that of Unix.
const EPOCH: u64 = 2_208_988_800;

/// One end of the reports.
pub(crate) struct PhoneControl {
    /// Units of timestamps in a second.
    clock: u32,
    own: u32,
    heard: Option<PhoneSource>,
    /// Packets and bytes that went to the telephone, and the last one's timestamp and time.
    sent: (u32, u32),
    last: Option<(u32, Time)>,
    due: Time,
}

/// The packets of a telephone.
struct PhoneSource {
    ssrc: u32,
    first: u32,
    newest: u32,
    received: u32,
    /// Packets that were expected and received when the last report left.
    before: (u32, u32),
    /// The arrival of the last packet against its timestamp, and the spread of these.
    transit: u32,
    jitter: f64,
    /// The middle of the last sender report's time, and when it came.
    report: Option<(u32, Time)>,
}

impl PhoneControl {
    /// Reports of the source `own` from `now` on.
    pub(crate) fn new(now: Time, clock: u32, own: u32) -> Self {
        Self { clock, own, heard: None, sent: (0, 0), last: None, due: now + INTERVAL }
    }

    fn ticks(&self, time: Time) -> u32 {
        (u128::from(time.as_nanos()) * u128::from(self.clock) / 1_000_000_000) as u32
    }

    /// Notes a packet of the telephone. The times of keys are those at which they were pressed, and
    /// no measure.
    pub(crate) fn hear(&mut self, now: Time, packet: &RtpFrame, is_key: bool) {
        let transit = self.ticks(now).wrapping_sub(packet.timestamp);
        let known = self.heard.as_mut().filter(|heard| heard.ssrc == packet.source);
        let Some(heard) = known else {
            // Numbers may go below the first one, which comes late.
            let first = 1 << 16 | u32::from(packet.seq);
            let (ssrc, newest, received, before) = (packet.source, first, 1, (0, 0));
            let (jitter, report) = (0.0, None);
            self.heard = Some(PhoneSource {
                ssrc,
                first,
                newest,
                received,
                before,
                transit,
                jitter,
                report,
            });
            return;
        };
        heard.received = heard.received.wrapping_add(1);
        let Some(seq) = extend(heard.newest, packet.seq) else { return };
        let is_newest = seq > heard.newest;
        heard.newest = heard.newest.max(seq);
        if is_newest && !is_key {
            let change = f64::from((transit.wrapping_sub(heard.transit) as i32).unsigned_abs());
            heard.transit = transit;
            heard.jitter += (change - heard.jitter) / 16.0;
        }
    }

    /// Notes a packet that goes to the telephone, with `len` bytes behind its header.
    pub(crate) fn say(&mut self, now: Time, timestamp: u32, len: usize) {
        let (packets, bytes) = self.sent;
        self.sent = (packets.wrapping_add(1), bytes.wrapping_add(len as u32));
        self.last = Some((timestamp, now));
    }

    /// Takes a compound packet of the telephone.
    pub(crate) fn take(&mut self, now: Time, packet: &[u8]) {
        let [first, SENDER_REPORT, _, _, rest @ ..] = packet else { return };
        let Some(fields) = rest.first_chunk::<12>() else { return };
        let word =
            |at: usize| fields[at..at + 4].iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        if first >> 6 == 2
            && let Some(heard) = self.heard.as_mut().filter(|heard| heard.ssrc == word(0))
        {
            heard.report = Some((word(4) << 16 | word(8) >> 16, now));
        }
    }

    /// When the next report leaves.
    pub(crate) const fn due(&self) -> Time {
        self.due
    }

    /// The next report, if it is due; `since_1970` is the time of the machine.
    pub(crate) fn poll(&mut self, now: Time, since_1970: Duration) -> Option<Bytes> {
        if now < self.due {
            return None;
        }
        self.due = now + INTERVAL;
        Some(self.report(now, since_1970).freeze())
    }

    /// The last packet: this end sends no more.
    pub(crate) fn goodbye(&mut self, now: Time, since_1970: Duration) -> Bytes {
        let mut out = self.report(now, since_1970);
        head(&mut out, 1, GOODBYE, 1);
        out.put_u32(self.own);
        out.freeze()
    }

    fn report(&mut self, now: Time, since_1970: Duration) -> BytesMut {
        let mut out = BytesMut::new();
        let blocks = u8::from(self.heard.is_some());
        let words = 1 + 6 * u16::from(blocks);
        if let Some((timestamp, at)) = self.last {
            head(&mut out, blocks, SENDER_REPORT, words + 5);
            out.put_u32(self.own);
            let nanos = u128::from(since_1970.as_nanos());
            let (seconds, rest) = ((nanos / 1_000_000_000) as u64, nanos % 1_000_000_000);
            out.put_u32((seconds + EPOCH) as u32);
            out.put_u32(((rest << 32) / 1_000_000_000) as u32);
            out.put_u32(timestamp.wrapping_add(self.ticks(Time::ZERO + now.since(at))));
            out.put_u32(self.sent.0);
            out.put_u32(self.sent.1);
        } else {
            head(&mut out, blocks, RECEIVER_REPORT, words);
            out.put_u32(self.own);
        }
        if let Some(heard) = &mut self.heard {
            heard.put(now, &mut out);
        }
        put_name(&mut out, self.own);
        out
    }
}

impl PhoneSource {
    /// Appends a report block (RFC 3550 section 6.4.1, appendix A.3).
    fn put(&mut self, now: Time, out: &mut BytesMut) {
        let expected = self.newest - self.first + 1;
        let (expected_before, received_before) = self.before;
        self.before = (expected, self.received);
        let since = expected.wrapping_sub(expected_before);
        let lost_since = i64::from(since) - i64::from(self.received.wrapping_sub(received_before));
        let share = match since {
            0 => 0,
            since => (lost_since.max(0) * 256 / i64::from(since)).min(255) as u32,
        };
        let lost = (i64::from(expected) - i64::from(self.received)).clamp(-0x80_0000, 0x7f_ffff);
        out.put_u32(self.ssrc);
        out.put_u32(share << 24 | (lost as u32 & 0xff_ffff));
        out.put_u32(self.newest - (1 << 16));
        out.put_u32(self.jitter as u32);
        let (report, delay) = match self.report {
            Some((report, at)) => {
                let delay = u128::from(now.since(at).as_nanos()) * 65_536 / 1_000_000_000;
                (report, delay as u32)
            }
            None => (0, 0),
        };
        out.put_u32(report);
        out.put_u32(delay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn word(bytes: &[u8], number: usize) -> u32 {
        let four = bytes[4 * number..][..4].try_into().expect("four bytes");
        u32::from_be_bytes(four)
    }

    #[test]
    fn reports_tell_what_came_and_what_was_sent() {
        let mut control = PhoneControl::new(at(0), 8000, 5);
        let unix = Duration::from_millis(1_000_000_500);
        assert_eq!(control.poll(at(4999), unix), None);
        let first = control.poll(at(5000), unix).expect("a report");
        assert_eq!((first[0], first[1], word(&first, 1)), (0x80, RECEIVER_REPORT, 5));
        // The numbers begin anew; a quarter is lost, and one comes late.
        for step in (0..400_u32).filter(|step| step % 4 != 1) {
            let seq = 65_500_u16.wrapping_add(step as u16);
            let timestamp = step * 160;
            let payload = Bytes::new();
            let (payload_type, marker, source) = (0, false, 77);
            let packet = RtpFrame { payload_type, marker, seq, timestamp, source, payload };
            control.hear(
                at(5000 + 20 * u64::from(step) + u64::from(step % 2) * 10),
                &packet,
                false,
            );
        }
        let mut sender = vec![0x80, SENDER_REPORT, 0, 6];
        for field in [77_u32, 0x1234_5678, 0x9abc_def0, 0, 0, 0] {
            sender.extend(field.to_be_bytes());
        }
        control.take(at(12_500), &sender);
        control.take(at(12_600), &sender[..10]);
        control.say(at(12_980), 9000, 160);
        let second = control.poll(at(13_000), unix).expect("a report");
        assert_eq!((second[0], second[1]), (0x81, SENDER_REPORT));
        assert_eq!((word(&second, 2), word(&second, 3)), (2_209_988_800, 1 << 31));
        assert_eq!((word(&second, 4), word(&second, 5), word(&second, 6)), (9160, 1, 160));
        assert_eq!(word(&second, 7), 77);
        assert_eq!((second[32], word(&second, 8) & 0xff_ffff), (64, 100), "a quarter was lost");
        assert_eq!(word(&second, 9), 65_500 + 399);
        assert!((20..=60).contains(&word(&second, 10)), "10 ms are 80: {}", word(&second, 10));
        assert_eq!((word(&second, 11), word(&second, 12)), (0x5678_9abc, 32_768));
        let last = control.goodbye(at(14_000), unix);
        assert_eq!(last[last.len() - 8..], [0x81, GOODBYE, 0, 1, 0, 0, 0, 5]);
        assert!(last.len().is_multiple_of(4));
    }

    #[test]
    fn packets_of_any_kind_do_no_harm() {
        let mut control = PhoneControl::new(at(0), 48_000, 5);
        for number in 0..5000_u32 {
            let mixed = number.wrapping_mul(2_654_435_761);
            let (payload_type, marker, payload) = (0, false, Bytes::new());
            let (seq, timestamp, source) = ((mixed >> 7) as u16, mixed, mixed >> 31);
            let packet = RtpFrame { payload_type, marker, seq, timestamp, source, payload };
            control.hear(at(u64::from(number)), &packet, number % 5 == 0);
            control.take(at(u64::from(number)), &mixed.to_be_bytes());
            let _ = control.poll(at(u64::from(number) * 100), Duration::ZERO);
        }
    }
}
