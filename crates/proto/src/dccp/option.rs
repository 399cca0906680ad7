//! Options (RFC 4340 section 5.8, RFC 4342 section 8, RFC 5622 section 8, RFC 6323).

use smallvec::SmallVec;

/// An option of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DccpOption {
    /// The next option must be understood, or the connection ends.
    Mandatory,
    /// The receiver has trouble with the rate.
    SlowReceiver,
    /// A step of a negotiation.
    Feature(FeatureOption),
    /// State that a server lets its client keep.
    InitCookie(Vec<u8>),
    /// Packets without data since the last one with data.
    NdpCount(u64),
    /// Packets received and not, from the acknowledgement number down.
    AckVector {
        /// The sum of the nonces of the packets that were received unmarked.
        nonce: bool,
        /// Runs: the state in two bits, the length less one in six.
        runs: Vec<u8>,
    },
    /// Data that arrived and did not reach the application, as runs.
    DataDropped(Vec<u8>),
    /// A time of its sender, in 10 µs.
    Timestamp(u32),
    /// The peer's last timestamp, and the time since it came in 10 µs.
    TimestampEcho {
        /// The timestamp.
        value: u32,
        /// The time since it came.
        elapsed: u32,
    },
    /// The time since the acknowledged packet came, in 10 µs.
    ElapsedTime(u32),
    /// A CRC-32c of the data.
    DataChecksum(u32),
    /// The sender's estimate of the round-trip time in µs; zero if it has none (RFC 6323).
    RttEstimate(u32),
    /// Data packets in a mean loss interval, rounded up; [`u32::MAX`] before the first loss.
    LossEventRate(u32),
    /// Loss intervals, the newest first.
    LossIntervals {
        /// Packets up to the acknowledged one that are in no interval yet.
        skip: u8,
        /// At most 28 intervals.
        intervals: Vec<IntervalReport>,
    },
    /// Data bytes received a second.
    ReceiveRate(u32),
    /// The losses of each loss interval, the newest first; at most 84 (CCID 4).
    DroppedPackets(Vec<u32>),
    /// Any other, or one whose length is not what its type has.
    Other {
        /// Its type.
        kind: u8,
        /// Its content.
        content: Vec<u8>,
    },
}

/// A step of the negotiation of a feature (RFC 4340 section 6.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureOption {
    /// Change or Confirm, and whose feature it is.
    pub step: FeatureStep,
    /// The feature's number.
    pub feature: u8,
    /// The values: bytes in the order of preference, or one number of several bytes.
    pub values: SmallVec<[u8; 8]>,
}

/// Change or Confirm, and whose feature it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureStep {
    /// The feature's owner proposes.
    ChangeL,
    /// The feature's owner agrees.
    ConfirmL,
    /// The other end proposes.
    ChangeR,
    /// The other end agrees.
    ConfirmR,
}

impl FeatureStep {
    const ALL: [Self; 4] = [Self::ChangeL, Self::ConfirmL, Self::ChangeR, Self::ConfirmR];
}

/// A loss interval in an option (RFC 4342 section 8.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalReport {
    /// Packets after the losses.
    pub lossless: u32,
    /// The nonce echo of those packets.
    pub nonce: bool,
    /// Packets from the first loss to the last of the event; 23 bits.
    pub loss: u32,
    /// Data packets in the interval.
    pub data: u32,
}

const PADDING: u8 = 0;
const MANDATORY: u8 = 1;
const SLOW_RECEIVER: u8 = 2;
/// Types below this one are a single byte.
const FIRST_LONG: u8 = 32;
const CHANGE_L: u8 = 32;
const CONFIRM_R: u8 = 35;
const INIT_COOKIE: u8 = 36;
const NDP_COUNT: u8 = 37;
const ACK_VECTOR: u8 = 38;
const ACK_VECTOR_NONCE: u8 = 39;
const DATA_DROPPED: u8 = 40;
const TIMESTAMP: u8 = 41;
const TIMESTAMP_ECHO: u8 = 42;
const ELAPSED_TIME: u8 = 43;
const DATA_CHECKSUM: u8 = 44;
const RTT_ESTIMATE: u8 = 128;
const LOSS_EVENT_RATE: u8 = 192;
const LOSS_INTERVALS: u8 = 193;
const RECEIVE_RATE: u8 = 194;
const DROPPED_PACKETS: u8 = 195;

/// The longest content of an option.
const LONGEST: usize = 253;
/// The most loss intervals in an option.
pub(super) const MOST_INTERVALS: usize = 28;
/// The most counts of losses in an option.
pub(super) const MOST_DROPS: usize = 84;
/// The largest number of three bytes.
const THREE_BYTES: u32 = 0xff_ffff;

/// Reads the options of a header. An option whose length is nonsensical ends the reading, as RFC
/// 4340 section 5.8 asks.
pub(super) fn decode(mut bytes: &[u8]) -> Vec<DccpOption> {
    let mut options = Vec::new();
    while let [kind, rest @ ..] = bytes {
        if *kind < FIRST_LONG {
            bytes = rest;
            match *kind {
                // A Mandatory before padding is padding, too.
                PADDING => {
                    options.pop_if(|last| *last == DccpOption::Mandatory);
                }
                MANDATORY => options.push(DccpOption::Mandatory),
                SLOW_RECEIVER => options.push(DccpOption::SlowReceiver),
                kind => options.push(DccpOption::Other { kind, content: Vec::new() }),
            }
            continue;
        }
        let Some((&length, content)) = rest.split_first() else { break };
        let Some(content) = usize::from(length).checked_sub(2).and_then(|len| content.get(..len))
        else {
            break;
        };
        bytes = &bytes[usize::from(length)..];
        let option = decode_one(*kind, content);
        options.push(
            option.unwrap_or_else(|| DccpOption::Other { kind: *kind, content: content.to_vec() }),
        );
    }
    options
}

fn decode_one(kind: u8, content: &[u8]) -> Option<DccpOption> {
    Some(match kind {
        CHANGE_L..=CONFIRM_R => {
            let (&feature, values) = content.split_first()?;
            let step = FeatureStep::ALL[usize::from(kind - CHANGE_L)];
            DccpOption::Feature(FeatureOption { step, feature, values: values.into() })
        }
        INIT_COOKIE if !content.is_empty() => DccpOption::InitCookie(content.to_vec()),
        NDP_COUNT if matches!(content.len(), 1..=6) => DccpOption::NdpCount(number(content)),
        ACK_VECTOR | ACK_VECTOR_NONCE => {
            DccpOption::AckVector { nonce: kind == ACK_VECTOR_NONCE, runs: content.to_vec() }
        }
        DATA_DROPPED => DccpOption::DataDropped(content.to_vec()),
        TIMESTAMP => DccpOption::Timestamp(word(content)?),
        TIMESTAMP_ECHO => {
            let (value, elapsed) = content.split_at_checked(4)?;
            let elapsed = matches!(elapsed.len(), 0 | 2 | 4).then(|| number(elapsed) as u32)?;
            DccpOption::TimestampEcho { value: word(value)?, elapsed }
        }
        ELAPSED_TIME if matches!(content.len(), 2 | 4) => {
            DccpOption::ElapsedTime(number(content) as u32)
        }
        DATA_CHECKSUM => DccpOption::DataChecksum(word(content)?),
        RTT_ESTIMATE if matches!(content.len(), 1..=3) => {
            DccpOption::RttEstimate(number(content) as u32)
        }
        LOSS_EVENT_RATE => DccpOption::LossEventRate(word(content)?),
        LOSS_INTERVALS => {
            let (&skip, rest) = content.split_first()?;
            let whole = rest.len().is_multiple_of(9) && rest.len() / 9 <= MOST_INTERVALS;
            let intervals = whole.then(|| rest.chunks_exact(9).map(interval).collect())?;
            DccpOption::LossIntervals { skip, intervals }
        }
        RECEIVE_RATE => DccpOption::ReceiveRate(word(content)?),
        DROPPED_PACKETS if content.len().is_multiple_of(3) => DccpOption::DroppedPackets(
            content.chunks_exact(3).map(|bytes| number(bytes) as u32).collect(),
        ),
        _ => return None,
    })
}

/// A number of at most eight bytes.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

fn interval(bytes: &[u8]) -> IntervalReport {
    let [lossless, loss, data] = [0, 3, 6].map(|at| number(&bytes[at..at + 3]) as u32);
    IntervalReport { lossless, nonce: loss >> 23 == 1, loss: loss & 0x7f_ffff, data }
}

/// Appends options and the padding to a whole word. Lists that no option can hold are cut.
pub(super) fn encode(options: &[DccpOption], out: &mut Vec<u8>) {
    let begin = out.len();
    options.iter().for_each(|option| encode_one(option, out));
    let padding = (out.len() - begin).next_multiple_of(4) - (out.len() - begin);
    out.extend_from_slice(&[PADDING; 3][..padding]);
    // A Mandatory before padding would be padding itself.
    if options.last() == Some(&DccpOption::Mandatory) {
        out[begin..].rotate_right(padding);
    }
}

/// Bytes that [`encode`] appends.
pub(super) fn encoded_len(options: &[DccpOption]) -> usize {
    let long = |content: usize| 2 + content.min(LONGEST);
    let bytes_of = |value: u64| (8 - value.leading_zeros() as usize / 8).max(1);
    let len = |option: &DccpOption| match option {
        DccpOption::Mandatory | DccpOption::SlowReceiver => 1,
        DccpOption::Other { kind, .. } if *kind < FIRST_LONG => 1,
        DccpOption::Feature(feature) => long(1 + feature.values.len()),
        DccpOption::InitCookie(bytes)
        | DccpOption::AckVector { runs: bytes, .. }
        | DccpOption::DataDropped(bytes)
        | DccpOption::Other { content: bytes, .. } => long(bytes.len()),
        DccpOption::NdpCount(count) => long(bytes_of(count & ((1 << 48) - 1))),
        DccpOption::TimestampEcho { elapsed, .. } => long(match elapsed {
            0 => 4,
            1..=0xffff => 6,
            _ => 8,
        }),
        DccpOption::ElapsedTime(elapsed) => long(if *elapsed > 0xffff { 4 } else { 2 }),
        DccpOption::RttEstimate(micros) => long(bytes_of((*micros).min(THREE_BYTES).into())),
        DccpOption::Timestamp(_)
        | DccpOption::DataChecksum(_)
        | DccpOption::LossEventRate(_)
        | DccpOption::ReceiveRate(_) => long(4),
        DccpOption::LossIntervals { intervals, .. } => {
            long(1 + 9 * intervals.len().min(MOST_INTERVALS))
        }
        DccpOption::DroppedPackets(counts) => long(3 * counts.len().min(MOST_DROPS)),
    };
    options.iter().map(len).sum::<usize>().next_multiple_of(4)
}

fn encode_one(option: &DccpOption, out: &mut Vec<u8>) {
    let mut put = |kind: u8, parts: &[&[u8]]| {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut left = length.min(LONGEST);
        out.extend_from_slice(&[kind, left as u8 + 2]);
        for part in parts {
            let part = &part[..part.len().min(left)];
            out.extend_from_slice(part);
            left -= part.len();
        }
    };
    match option {
        DccpOption::Mandatory => out.push(MANDATORY),
        DccpOption::SlowReceiver => out.push(SLOW_RECEIVER),
        DccpOption::Feature(FeatureOption { step, feature, values }) => {
            put(CHANGE_L + *step as u8, &[&[*feature], values]);
        }
        DccpOption::InitCookie(cookie) => put(INIT_COOKIE, &[cookie]),
        DccpOption::NdpCount(count) => put(NDP_COUNT, &[shortest(&count.to_be_bytes()[2..])]),
        DccpOption::AckVector { nonce, runs } => put(ACK_VECTOR + u8::from(*nonce), &[runs]),
        DccpOption::DataDropped(runs) => put(DATA_DROPPED, &[runs]),
        DccpOption::Timestamp(value) => put(TIMESTAMP, &[&value.to_be_bytes()]),
        DccpOption::TimestampEcho { value, elapsed } => {
            let long = elapsed.to_be_bytes();
            let elapsed = match elapsed {
                0 => &[][..],
                1..=0xffff => &long[2..],
                _ => &long[..],
            };
            put(TIMESTAMP_ECHO, &[&value.to_be_bytes(), elapsed]);
        }
        DccpOption::ElapsedTime(elapsed) => {
            let long = elapsed.to_be_bytes();
            put(ELAPSED_TIME, &[if *elapsed > 0xffff { &long } else { &long[2..] }]);
        }
        DccpOption::DataChecksum(value) => put(DATA_CHECKSUM, &[&value.to_be_bytes()]),
        DccpOption::RttEstimate(micros) => {
            put(RTT_ESTIMATE, &[shortest(&(*micros).min(THREE_BYTES).to_be_bytes()[1..])]);
        }
        DccpOption::LossEventRate(value) => put(LOSS_EVENT_RATE, &[&value.to_be_bytes()]),
        DccpOption::LossIntervals { skip, intervals } => {
            let mut bytes = vec![*skip];
            for report in intervals.iter().take(MOST_INTERVALS) {
                let loss = u32::from(report.nonce) << 23 | report.loss.min(0x7f_ffff);
                for part in [report.lossless.min(THREE_BYTES), loss, report.data.min(THREE_BYTES)] {
                    bytes.extend_from_slice(&part.to_be_bytes()[1..]);
                }
            }
            put(LOSS_INTERVALS, &[&bytes]);
        }
        DccpOption::ReceiveRate(rate) => put(RECEIVE_RATE, &[&rate.to_be_bytes()]),
        DccpOption::DroppedPackets(counts) => {
            let counts = counts.iter().take(MOST_DROPS);
            let bytes = counts.flat_map(|count| three((*count).min(THREE_BYTES)));
            put(DROPPED_PACKETS, &[&bytes.collect::<Vec<u8>>()]);
        }
        DccpOption::Other { kind, .. } if *kind < FIRST_LONG => out.push(*kind),
        DccpOption::Other { kind, content } => put(*kind, &[content]),
    }
}

/// A number without its leading zeros, but at least one byte.
fn shortest(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros.min(bytes.len() - 1)..]
}

fn three(value: u32) -> [u8; 3] {
    let [_, a, b, c] = value.to_be_bytes();
    [a, b, c]
}
