use bytes::Bytes;
use fontis_base::Duration;
use thiserror::Error;

use super::options::DataChannelOptions;
use crate::sctp::Reliability;

/// DATA_CHANNEL_ACK (RFC 8832 section 8.2.1).
const ACK: u8 = 2;
/// DATA_CHANNEL_OPEN.
const OPEN: u8 = 3;
/// Bytes before the names of an OPEN.
const HEADER: usize = 12;
/// The bit that says that messages need no order.
const UNORDERED: u8 = 0x80;

/// A message that opens a channel, or answers one (RFC 8832 section 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelMessage {
    /// A channel begins.
    Open(DataChannelOptions),
    /// It is there.
    Ack,
}

/// The reason why bytes are no such message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChannelMessageError {
    /// It ends too early, or goes on behind its end.
    #[error("a message that opens a data channel has a wrong length")]
    Length,
    /// Its type is not known.
    #[error("a message that opens a data channel has the unknown type {0}")]
    Kind(u8),
    /// Its channel's type is not known.
    #[error("a data channel has the unknown type {0}")]
    Channel(u8),
    /// A name is not UTF-8.
    #[error("the label or the protocol of a data channel is not UTF-8")]
    Name,
}

impl ChannelMessage {
    /// The message that these bytes are.
    ///
    /// # Errors
    /// If they are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, ChannelMessageError> {
        match bytes {
            // Some send more behind it; nothing is defined there.
            [ACK, ..] => Ok(Self::Ack),
            [OPEN, ..] => open(bytes).map(Self::Open),
            [kind, ..] => Err(ChannelMessageError::Kind(*kind)),
            [] => Err(ChannelMessageError::Length),
        }
    }

    /// Its bytes. Names longer than 65535 bytes are cut off.
    pub fn encode(&self) -> Bytes {
        let Self::Open(options) = self else { return Bytes::from_static(&[ACK]) };
        let (kind, parameter) = match options.reliability {
            Reliability::Full => (0, 0),
            Reliability::Repeats(most) => (1, most),
            Reliability::Lifetime(span) => {
                (2, u32::try_from(span.as_micros() / 1000).unwrap_or(u32::MAX))
            }
        };
        let order = if options.is_ordered { 0 } else { UNORDERED };
        let cut = |name: &str| Bytes::copy_from_slice(&name.as_bytes()[..name.len().min(0xffff)]);
        let (label, protocol) = (cut(&options.label), cut(&options.protocol));
        let mut bytes = Vec::with_capacity(HEADER + label.len() + protocol.len());
        bytes.extend_from_slice(&[OPEN, kind | order]);
        bytes.extend_from_slice(&options.priority.to_be_bytes());
        bytes.extend_from_slice(&parameter.to_be_bytes());
        bytes.extend_from_slice(&(label.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&(protocol.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&label);
        bytes.extend_from_slice(&protocol);
        bytes.into()
    }
}

fn open(bytes: &[u8]) -> Result<DataChannelOptions, ChannelMessageError> {
    let (header, names) = bytes.split_at_checked(HEADER).ok_or(ChannelMessageError::Length)?;
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let parameter = u32::from(half(4)) << 16 | u32::from(half(6));
    let reliability = match header[1] & !UNORDERED {
        0 => Reliability::Full,
        1 => Reliability::Repeats(parameter),
        2 => Reliability::Lifetime(Duration::from_millis(parameter.into())),
        _ => return Err(ChannelMessageError::Channel(header[1])),
    };
    let label = usize::from(half(8));
    if names.len() != label + usize::from(half(10)) {
        return Err(ChannelMessageError::Length);
    }
    let (label, protocol) = names.split_at(label);
    let name = |name: &[u8]| match core::str::from_utf8(name) {
        Ok(name) => Ok(name.to_owned()),
        Err(_) => Err(ChannelMessageError::Name),
    };
    Ok(DataChannelOptions {
        label: name(label)?,
        protocol: name(protocol)?,
        is_ordered: header[1] & UNORDERED == 0,
        reliability,
        priority: half(2),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reliability() -> impl Strategy<Value = Reliability> {
        prop_oneof![
            Just(Reliability::Full),
            any::<u32>().prop_map(Reliability::Repeats),
            any::<u32>().prop_map(|ms| Reliability::Lifetime(Duration::from_millis(ms.into()))),
        ]
    }

    proptest! {
        #[test]
        fn an_opening_comes_back_from_its_bytes(
            label in ".{0,40}",
            protocol in ".{0,40}",
            is_ordered: bool,
            reliability in reliability(),
            priority: u16,
        ) {
            let options =
                DataChannelOptions { label, protocol, is_ordered, reliability, priority };
            let message = ChannelMessage::Open(options);
            prop_assert_eq!(ChannelMessage::decode(&message.encode()), Ok(message));
        }

        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes: Vec<u8>) {
            if let Ok(message) = ChannelMessage::decode(&bytes) {
                prop_assert_eq!(ChannelMessage::decode(&message.encode()), Ok(message));
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_standard() {
        let options = DataChannelOptions {
            label: "a".into(),
            protocol: "bc".into(),
            is_ordered: false,
            reliability: Reliability::Lifetime(Duration::from_millis(500)),
            priority: 128,
        };
        let bytes = ChannelMessage::Open(options).encode();
        assert_eq!(*bytes, [3, 0x82, 0, 128, 0, 0, 1, 0xf4, 0, 1, 0, 2, b'a', b'b', b'c']);
        assert_eq!(*ChannelMessage::Ack.encode(), [2]);
    }
}
