use super::bytes::{short, word};

/// What a segment says of Multipath TCP (RFC 8684).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Multipath {
    /// It begins a connection: the keys of its sender and of its receiver, if they are in it.
    Capable([Option<u64>; 2]),
    /// It joins the connection whose other end has this token.
    Join(u32),
    /// It belongs to one: the low half of the connection's acknowledgement, and where its bytes
    /// belong.
    Part { ack: Option<u32>, mapping: Option<Mapping> },
}

/// Where a subflow's bytes belong in their connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The low half of the connection's number.
    pub(crate) number: u32,
    /// The subflow's number for the same byte, from its SYN on.
    pub(crate) subflow: u32,
}

/// An option of Multipath TCP (RFC 8684 section 3).
pub(super) fn multipath(option: &[u8], syn: bool, ack: bool) -> Option<Multipath> {
    let key = |at: usize| {
        let bytes: [u8; 8] = option.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_be_bytes(bytes))
    };
    Some(match (option.first()? >> 4, syn, ack) {
        (0, ..) => Multipath::Capable([key(2), key(10)]),
        // Only the first of its three messages has the token.
        (1, true, false) => Multipath::Join(word(option, 2)?),
        (2, ..) => sequence(option).unwrap_or(Multipath::Part { ack: None, mapping: None }),
        _ => Multipath::Part { ack: None, mapping: None },
    })
}

/// The option with the connection's numbers (section 3.3).
fn sequence(option: &[u8]) -> Option<Multipath> {
    let flags = *option.get(1)?;
    let mut at = 2;
    // The low half of a number of four or eight bytes.
    let mut number = |is_there: bool, is_long: bool| {
        is_there.then(|| {
            at += if is_long { 8 } else { 4 };
            word(option, at - 4)
        })?
    };
    let ack = number(flags & 0x01 != 0, flags & 0x02 != 0);
    let data = number(flags & 0x04 != 0, flags & 0x08 != 0);
    let mapping = data.and_then(|number| {
        // Without a length it stands for TCP alone again.
        let length = short(option, at + 4)?;
        (length > 0).then_some(Mapping { number, subflow: word(option, at)? })
    });
    Some(Multipath::Part { ack, mapping })
}
