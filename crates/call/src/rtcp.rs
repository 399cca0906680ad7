//! Reports of RTP (RFC 3550 section 6) with metrics of voice (RFC 3611 section 4.7): how the ends
//! of a call without encryption tell each other how they hear.

use bytes::{BufMut, Bytes, BytesMut};

use crate::bursts::{GMIN, LossBursts};
use crate::heard::Heard;

pub(crate) const SENDER_REPORT: u8 = 200;
pub(crate) const RECEIVER_REPORT: u8 = 201;
const DESCRIPTION: u8 = 202;
const EXTENDED_REPORT: u8 = 207;
/// The block with metrics of voice, and its words behind the first.
const VOICE_METRICS: u8 = 7;
const METRICS_WORDS: u16 = 8;
/// What stands for no value: a level, a rating factor.
const NONE: u8 = 127;
/// The receiver conceals well, and its buffer adapts.
const CONFIGURATION: u8 = 0b1011_0000;
/// The longest delay of the playout buffer, in milliseconds.
const LONGEST_BUFFER: u16 = 1000;

/// What an end tells of the voice that it hears.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VoiceReport {
    /// The sources of this end and of the peer.
    pub(crate) own: u32,
    pub(crate) peer: u32,
    /// The greatest number of the peer's packets, with how often it began anew.
    pub(crate) newest: u32,
    pub(crate) bursts: LossBursts,
    pub(crate) heard: Heard,
    /// The round trip, and the delay of the buffer, in milliseconds.
    pub(crate) round_trip: f64,
    pub(crate) buffer: f64,
}

/// Whether a packet is of RTCP and not of RTP (RFC 5761 section 4).
pub(crate) fn is_control(packet: &[u8]) -> bool {
    matches!(packet, [first, 192..=223, ..] if first >> 6 == 2)
}

/// A share in 256 parts.
fn parts(share: f64) -> u8 {
    (share * 256.0).clamp(0.0, 255.0) as u8
}

fn millis(value: f64) -> u16 {
    value.clamp(0.0, 65_535.0) as u16
}

/// Appends the first word of a packet: a count, its kind, and the words behind this one.
pub(crate) fn head(out: &mut BytesMut, count: u8, kind: u8, words: u16) {
    out.put_u8(2 << 6 | count);
    out.put_u8(kind);
    out.put_u16(words);
}

/// Appends the description of a source: its name (RFC 3550 section 6.5).
pub(crate) fn put_name(out: &mut BytesMut, own: u32) {
    // The name is as long as with its two bytes before and a zero behind it fills words.
    let name = format!("{own:08x}@fontis");
    let padding = 4 - (2 + name.len()) % 4;
    head(out, 1, DESCRIPTION, ((4 + 2 + name.len() + padding) / 4) as u16);
    out.put_u32(own);
    out.put_u8(1);
    out.put_u8(name.len() as u8);
    out.put_slice(name.as_bytes());
    out.put_bytes(0, padding);
}

impl VoiceReport {
    /// A compound packet: a receiver report, the name of this end, and the metrics.
    pub(crate) fn encode(&self) -> Bytes {
        let Self { own, peer, newest, bursts, heard, round_trip, buffer } = *self;
        let mut out = BytesMut::new();
        head(&mut out, 1, RECEIVER_REPORT, 7);
        out.put_u32(own);
        out.put_u32(peer);
        let lost = (heard.network_loss * f64::from(newest)).clamp(0.0, 8_388_607.0) as u32;
        out.put_u32(u32::from(parts(heard.network_loss)) << 24 | lost);
        out.put_u32(newest);
        // Jitter in units of timestamps of 8000 a second; no sender report came.
        out.put_u32((heard.jitter * 8.0) as u32);
        out.put_u64(0);
        put_name(&mut out, own);
        head(&mut out, 0, EXTENDED_REPORT, METRICS_WORDS + 2);
        out.put_u32(own);
        out.put_u8(VOICE_METRICS);
        out.put_u8(0);
        out.put_u16(METRICS_WORDS);
        out.put_u32(peer);
        let sent = (heard.played + heard.missed).max(1) as f64;
        let discarded = heard.late as f64 / sent;
        let shares = [heard.loss - discarded, discarded, bursts.burst_density, bursts.gap_density];
        shares.into_iter().for_each(|share| out.put_u8(parts(share)));
        let own_delay = buffer + 20.0;
        for value in [bursts.burst_millis, bursts.gap_millis, round_trip, own_delay] {
            out.put_u16(millis(value));
        }
        out.put_slice(&[NONE, NONE, NONE, GMIN]);
        let score = (heard.mos * 10.0).clamp(10.0, 50.0) as u8;
        out.put_slice(&[heard.r.clamp(0.0, 100.0) as u8, NONE, NONE, score]);
        out.put_slice(&[CONFIGURATION, 0]);
        for value in [buffer, buffer] {
            out.put_u16(millis(value));
        }
        out.put_u16(LONGEST_BUFFER);
        out.freeze()
    }
}

/// How the peer hears this end, as far as a compound packet tells.
pub(crate) fn heard_there(packet: &[u8]) -> Option<Heard> {
    let mut rest = packet;
    while let [first, kind, a, b, ..] = *rest {
        let len = 4 * (usize::from(u16::from_be_bytes([a, b])) + 1);
        if first >> 6 != 2 || len > rest.len() {
            return None;
        }
        let (one, others) = rest.split_at(len);
        rest = others;
        if kind == EXTENDED_REPORT
            && let Some(heard) = metrics(one.get(8..)?)
        {
            return Some(heard);
        }
    }
    None
}

/// The metrics among the blocks of an extended report.
fn metrics(mut blocks: &[u8]) -> Option<Heard> {
    while let [kind, _, a, b, ..] = *blocks {
        let len = 4 * (usize::from(u16::from_be_bytes([a, b])) + 1);
        let block = blocks.get(..len)?;
        blocks = &blocks[len..];
        if kind != VOICE_METRICS || len < 4 * (usize::from(METRICS_WORDS) + 1) {
            continue;
        }
        let share = |at: usize| f64::from(block[at]) / 256.0;
        let number = |at: usize| f64::from(u16::from_be_bytes([block[at], block[at + 1]]));
        let (round_trip, own_delay) = (number(16), number(18));
        let r = f64::from(block[24]);
        return Some(Heard {
            loss: (share(8) + share(9)).min(1.0),
            network_loss: share(8),
            delay: round_trip / 2.0 + own_delay,
            r: if r > 100.0 { 0.0 } else { r },
            mos: (f64::from(block[27]) / 10.0).clamp(1.0, 4.5),
            // It tells shares alone.
            played: 1,
            ..Heard::default()
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn report() -> VoiceReport {
        let heard = Heard {
            played: 950,
            missed: 50,
            late: 10,
            loss: 0.05,
            network_loss: 0.04,
            delay: 361.0,
            jitter: 12.0,
            r: 62.4,
            mos: 3.25,
            ..Heard::default()
        };
        let bursts = LossBursts {
            burst_density: 0.5,
            gap_density: 0.01,
            burst_millis: 80.0,
            gap_millis: 2000.0,
        };
        let (round_trip, buffer) = (600.0, 41.0);
        VoiceReport { own: 0x1234_5678, peer: 77, newest: 1000, bursts, heard, round_trip, buffer }
    }

    #[test]
    fn the_peer_reads_what_was_written() {
        let bytes = report().encode();
        assert!(is_control(&bytes) && bytes.len().is_multiple_of(4));
        let there = heard_there(&bytes).expect("metrics");
        assert_eq!((there.r, there.mos, there.delay), (62.0, 3.2, 361.0));
        assert!((there.loss - 0.05).abs() < 0.01 && (there.network_loss - 0.04).abs() < 0.005);
        for cut in 0..bytes.len() {
            assert!(heard_there(&bytes[..cut]).is_none());
        }
        let rtp = [0x80, 0, 0, 0];
        assert!(!is_control(&rtp));
    }

    #[test]
    fn bytes_of_any_kind_are_read_without_harm() {
        let good = report().encode();
        for seed in 0..5000_u32 {
            let mut bytes = good.to_vec();
            let hash = blake3::hash(&seed.to_be_bytes());
            for pair in hash.as_bytes()[..8].chunks_exact(2) {
                let at = usize::from(pair[0]) % bytes.len();
                bytes[at] = pair[1];
            }
            let _ = heard_there(&bytes);
        }
    }

    #[test]
    fn tshark_reads_the_metrics() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.pcap");
        let packet = report().encode();
        let len = 28 + packet.len() as u32;
        let fields = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 101, 0, 0, len, len];
        let mut bytes: Vec<u8> =
            fields.iter().flat_map(|field: &u32| field.to_le_bytes()).collect();
        bytes.extend([0x45, 0, 0, len as u8, 0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        bytes.extend([0x13, 0x8d, 0x13, 0x8d, 0, len as u8 - 20, 0, 0]);
        bytes.extend(&packet);
        std::fs::write(&path, bytes).expect("a file");
        let words = ["-d", "udp.port==5005,rtcp", "-T", "fields", "-E", "separator=,"];
        let names = ["rfactor", "moscq", "rtdelay", "esdelay", "gmin", "burstdensity"];
        let names = names.map(|name| format!("rtcp.xr.voipmetrics.{name}"));
        let mut command = Command::new("tshark");
        command.arg("-r").arg(&path).args(words);
        for name in &names {
            command.args(["-e", name]);
        }
        let Ok(output) = command.output() else {
            eprintln!("skipped: there is no tshark here");
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(text, "62,3.2,600,61,16,128", "{errors}");
    }
}
