//! What the ends of a call tell each other, in messages of the connection that the call is made
//! over. Voice never begins as these messages do.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::carrier::VoiceCarrier;
use crate::codec::VoiceCodec;
use crate::heard::Heard;
use crate::refusal::Refusal;

/// The version of these messages.
pub(crate) const VERSION: u8 = 2;
/// The byte before each message. Packets of RTP begin with 128 to 191.
const MARK: u8 = 1;
/// The longest message.
const LONGEST: usize = 1024;
/// The most calls in one connection.
pub(crate) const MOST_CALLS: u32 = 10_000;

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Signal {
    /// The caller asks for a call.
    Offer(Offer),
    /// The callee agrees. Voice over a carrier of its own goes to this UDP port.
    Answer { port: u16 },
    /// The callee does not agree.
    Refused(Refusal),
    /// How the sender of this message hears the other.
    Report(Report),
    /// The sender of this message has nothing more to say.
    Silent,
    /// The call is over.
    Bye(Report),
    /// It rings at the callee.
    Ringing,
}

/// A call that is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) version: u8,
    pub(crate) secret: Vec<u8>,
    pub(crate) codec: u8,
    pub(crate) rate: u32,
    pub(crate) carrier: u8,
    pub(crate) calls: u32,
    /// The key of voice that does not go over the connection.
    pub(crate) key: [u8; 32],
}

impl Offer {
    /// What it asks for, if there is such a thing.
    pub(crate) fn check(&self) -> Result<(VoiceCodec, VoiceCarrier, u32), Refusal> {
        if self.version != VERSION {
            return Err(Refusal::Version);
        }
        let codec = VoiceCodec::of_wire(self.codec, self.rate).ok_or(Refusal::Codec)?;
        let carrier = VoiceCarrier::of_wire(self.carrier).ok_or(Refusal::Carrier)?;
        if !(1..=MOST_CALLS).contains(&self.calls) {
            return Err(Refusal::TooMany);
        }
        Ok((codec, carrier, self.calls))
    }
}

/// How the sender of a report hears the other end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    received: u64,
    restored: u64,
    played: u64,
    missed: u64,
    late: u64,
    loss: f64,
    network_loss: f64,
    delay: f64,
    jitter: f64,
    r: f64,
    mos: f64,
}

impl From<Heard> for Report {
    fn from(heard: Heard) -> Self {
        let Heard {
            received,
            restored,
            played,
            missed,
            late,
            loss,
            network_loss,
            delay,
            jitter,
            r,
            mos,
        } = heard;
        Self { received, restored, played, missed, late, loss, network_loss, delay, jitter, r, mos }
    }
}

impl Report {
    /// The report with numbers in their limits, whatever the peer wrote.
    pub(crate) fn heard(self) -> Heard {
        let within = |value: f64, least: f64, most: f64| {
            if value.is_finite() { value.clamp(least, most) } else { least }
        };
        Heard {
            received: self.received,
            restored: self.restored,
            played: self.played,
            missed: self.missed,
            late: self.late,
            loss: within(self.loss, 0.0, 1.0),
            network_loss: within(self.network_loss, 0.0, 1.0),
            delay: within(self.delay, 0.0, 1e6),
            jitter: within(self.jitter, 0.0, 1e6),
            r: within(self.r, -100.0, 100.0),
            mos: within(self.mos, 1.0, 4.5),
        }
    }
}

impl Signal {
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = vec![MARK];
        // Nothing in a message can fail to be written.
        bytes.extend(postcard::to_allocvec(self).unwrap_or_default());
        bytes.into()
    }

    /// Reads a message; `None` if it is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (mark, rest) = bytes.split_first()?;
        if *mark != MARK || rest.len() > LONGEST {
            return None;
        }
        postcard::from_bytes(rest).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written_and_limits_are_kept() {
        let offer = Offer {
            version: VERSION,
            secret: vec![1; 16],
            codec: 4,
            rate: 24_000,
            carrier: 0,
            calls: 1,
            key: [9; 32],
        };
        assert_eq!(offer.check(), Ok((VoiceCodec::OPUS, VoiceCarrier::Dfcp, 1)));
        assert_eq!(Offer { rate: 5, ..offer.clone() }.check(), Err(Refusal::Codec));
        assert_eq!(Offer { carrier: 9, ..offer.clone() }.check(), Err(Refusal::Carrier));
        assert_eq!(Offer { calls: 0, ..offer.clone() }.check(), Err(Refusal::TooMany));
        assert_eq!(Offer { version: 1, ..offer.clone() }.check(), Err(Refusal::Version));
        let report = Report { loss: f64::NAN, mos: 99.0, ..Report::default() };
        assert_eq!((report.heard().loss, report.heard().mos), (0.0, 4.5));
        for signal in [Signal::Offer(offer), Signal::Silent, Signal::Bye(Report::default())] {
            assert_eq!(Signal::decode(&signal.encode()), Some(signal));
        }
    }

    proptest! {
        #[test]
        fn bytes_of_any_kind_are_read_without_harm(bytes: Vec<u8>) {
            let mut marked = vec![MARK];
            marked.extend(&bytes);
            if let Some(Signal::Offer(offer)) = Signal::decode(&marked) {
                let _ = offer.check();
            }
        }
    }
}
