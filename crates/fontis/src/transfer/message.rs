//! The messages between client and server, each encoded with postcard.

use bytes::Bytes;
use fontis_proto::dfcp::{Begun, Held};
use serde::{Deserialize, Serialize};

use super::cast::Invitation;
use super::pieces::{decode_sharing, part};
use super::swarm::SwarmWire;
use crate::printable::Printable;

/// By the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    /// Fetch the object at a path, with the secret of the URL if it has one. It changes nothing, so
    /// it may travel with the first packet.
    Get { id: u32, secret: Vec<u8>, path: String, resume: bool },
    /// After an offer, if the request was to resume: send the blocks that are not held.
    Begin { id: u32, holding: Holding },
    /// The held part is still being checked: a sign of life of the client.
    Checking { id: u32 },
    /// Take an object.
    Put { id: u32, secret: Vec<u8>, offer: Offer },
    /// Take an object that has not been hashed yet, from its beginning.
    PutOpening { id: u32, secret: Vec<u8>, opening: Opening },
    /// The chaining values of the blocks of an opening, from `first` on.
    Values { id: u32, first: u32, values: Vec<u8> },
    /// Take part in a cast of what the URL names. It changes little, so it may travel with the
    /// first packet.
    Join { id: u32, secret: Vec<u8>, path: String },
    /// Take part in the swarm of an object. After the answer both sides say what nodes of a swarm
    /// say to each other.
    Share { id: u32, secret: Vec<u8>, named: Named },
    /// After an offer, in place of `Begin`: send the blocks that are not held over SCTP, encrypted
    /// with keys from this one.
    Carry { id: u32, holding: Holding, key: [u8; 32] },
}

/// Which object is meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Named {
    /// The one at the path of the URL.
    Path(String),
    /// The one whose content has this BLAKE3 hash.
    Root([u8; 32]),
}

/// By the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Response {
    /// The object that was asked for; its content follows on a channel whose label is the request's
    /// id.
    Offer { id: u32, offer: Offer },
    /// The object that was asked for, from its beginning: it has not been hashed yet. Content
    /// follows as after an offer, and what it is checked against with it, as `Values`.
    Opening { id: u32, opening: Opening },
    /// The chaining values of the blocks of an opening, from `first` on.
    Values { id: u32, first: u32, values: Vec<u8> },
    /// The object that was offered or opened is wanted: send its content.
    Accept { id: u32, holding: Holding },
    /// The held part is still being checked.
    Checking { id: u32 },
    /// The object that was sent is verified and stored, without so many links that point out of it,
    /// entries whose names cannot be here, and attributes that cannot or shall not be.
    Stored { id: u32, links: u64, names: u64, attributes: u64 },
    /// The request failed.
    Error { id: u32, text: String },
    /// Something is there already, and whether it belongs to the object that was opened shows its
    /// offer: hash it, and put that.
    Hash { id: u32 },
    /// What is asked for is cast to a group, and this is how to take part.
    Invite { id: u32, invitation: Invitation },
    /// The swarm of the object that was named by its hash takes the client in. Who named a path
    /// gets an offer instead.
    Sharing { id: u32 },
    /// The content comes over SCTP, from this UDP port.
    Carried { id: u32, port: u16 },
}

/// The messages with the chaining values of an opening's blocks, from the second argument on.
pub(super) type Tell = fn(u32, u32, Vec<u8>) -> Bytes;

impl Request {
    pub(super) fn values(id: u32, first: u32, values: Vec<u8>) -> Bytes {
        encode(&Self::Values { id, first, values })
    }
}

impl Response {
    pub(super) fn values(id: u32, first: u32, values: Vec<u8>) -> Bytes {
        encode(&Self::Values { id, first, values })
    }
}

/// The held part of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Holding {
    /// Blocks that are done: the first of each run, and how many.
    done: Vec<(u32, u32)>,
    /// Blocks that were begun: which, bytes in a symbol, the next symbol to send, symbols lacking.
    begun: Vec<(u32, u16, u32, u32)>,
}

impl From<&Held> for Holding {
    fn from(held: &Held) -> Self {
        let done = held.done().iter().map(|run| (run.start, run.end - run.start)).collect();
        let begun = |b: &Begun| (b.block, b.symbol_size, b.next_esi, b.needed);
        Self { done, begun: held.begun().iter().map(begun).collect() }
    }
}

impl From<Holding> for Held {
    fn from(holding: Holding) -> Self {
        let done = holding.done.into_iter().map(|(first, n)| first..first.saturating_add(n));
        let begun = holding.begun.into_iter().map(|(block, symbol_size, next_esi, needed)| Begun {
            block,
            symbol_size,
            next_esi,
            needed,
        });
        Self::new(done.collect(), begun.collect())
    }
}

/// An object: its contents, and its checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Offer {
    /// The BLAKE3 hash of the content.
    pub(super) root: [u8; 32],
    /// Bytes of content.
    pub(super) size: u64,
    /// Bytes in a block.
    pub(super) block_size: u32,
    /// The encoded manifest.
    #[serde(deserialize_with = "part")]
    pub(super) manifest: Bytes,
    /// The chaining values of the blocks; they merge to the root.
    pub(super) tree: Vec<u8>,
    /// Its name in an opening; a held part of an opening is a held part of this.
    pub(super) state: Option<[u8; 32]>,
}

/// An object whose hash is not known yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Opening {
    /// A name for the object in its present state: another state has another name.
    pub(super) state: [u8; 32],
    /// Bytes of content.
    pub(super) size: u64,
    /// Bytes in a block.
    pub(super) block_size: u32,
    /// The encoded manifest.
    #[serde(deserialize_with = "part")]
    pub(super) manifest: Bytes,
}

/// The sender's description of an object: its name, contents and checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Announced {
    Offer(Offer),
    Opening(Opening),
}

impl Announced {
    /// The encoded manifest.
    pub(super) fn manifest(&self) -> &Bytes {
        match self {
            Self::Offer(offer) => &offer.manifest,
            Self::Opening(opening) => &opening.manifest,
        }
    }
}

/// The answer for objects that do not exist, cannot be read, or are not served.
pub(super) const NOT_HERE: &str = "there is no such file or folder here: check the path in the URL";

/// The answer to a wrong secret, or to none.
pub(super) const NO_SECRET: &str =
    "the URL lacks this server's secret: copy all of its present URL, in quotes";
/// The longest text of an error that is shown.
const MAX_TEXT: usize = 500;

pub(super) fn encode(message: &impl Serialize) -> Bytes {
    // Writing plain data to memory cannot fail.
    postcard::to_allocvec(message).expect("plain data").into()
}

pub(super) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

/// The label of the channel that carries the content of request `id`.
pub(super) fn label(id: u32) -> Bytes {
    Bytes::copy_from_slice(&id.to_be_bytes())
}

/// The beginning of a peer's text, with what a terminal would obey or hide escaped.
pub(super) fn safe_text(text: &str) -> String {
    let end = text.char_indices().nth(MAX_TEXT).map_or(text.len(), |(at, _)| at);
    Printable(&text[..end]).to_string()
}

/// Whether the bytes are a message that reads the same when it is written again.
pub(crate) fn reads(bytes: &[u8]) -> bool {
    let request = decode::<Request>(bytes).map(|request| {
        let again = decode(&encode(&request)) == Some(request.clone());
        if let Request::Begin { holding, .. } = request {
            let held = Held::from(holding);
            assert_eq!(Held::from(Holding::from(&held)), held, "a list of blocks has one order");
        }
        again
    });
    let response = decode::<Response>(bytes)
        .map(|response| decode(&encode(&response)) == Some(response.clone()));
    let swarm = decode::<SwarmWire>(bytes)
        .map(|message| decode(&encode(&message)) == Some(message.clone()));
    // A manifest of a long offer is read without a copy, and is the same.
    let shared = decode_sharing::<Response>(&Bytes::copy_from_slice(bytes));
    let shared = Some(shared == decode::<Response>(bytes));
    let text = safe_text(&String::from_utf8_lossy(bytes));
    assert!(!text.contains(char::is_control), "{text:?}");
    [request, response, swarm, shared].into_iter().flatten().all(|same| same)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_for_a_short_path_fits_into_the_first_packet() {
        let secret = vec![7; crate::url::MAX_SECRET];
        let request = Request::Get { id: 0, secret, path: "x".repeat(800), resume: true };
        assert!(encode(&request).len() <= fontis_proto::dfcp::MAX_EARLY);
        assert_eq!(decode::<Request>(&encode(&request)), Some(request));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode::<Request>(&bytes);
            let _ = decode::<Response>(&bytes);
        }
    }

    #[test]
    fn a_peers_words_cannot_move_the_cursor() {
        assert_eq!(safe_text("a\x1b[2Jb\r\nc"), r"a\u{1b}[2Jb\r\nc");
        assert_eq!(safe_text("gpj.\u{202e}exe"), r"gpj.\u{202e}exe", "nor turn the text around");
        assert_eq!(safe_text(&"ä".repeat(600)), "ä".repeat(500));
    }
}
