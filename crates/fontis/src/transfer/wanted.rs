use fontis_proto::dfcp::Held;

use super::message::Named;

/// What a client asks for.
pub(super) enum Wanted {
    /// An object.
    Object(Get),
    /// To take part in a cast.
    Part(Join),
    /// To take part in a swarm.
    Swarm(Share),
}

impl Wanted {
    /// The request's number, and the secret that it carries.
    pub(super) fn claim(&self) -> (u32, &[u8]) {
        match self {
            Self::Object(Get { id, secret, .. })
            | Self::Part(Join { id, secret, .. })
            | Self::Swarm(Share { id, secret, .. }) => (*id, secret),
        }
    }
}

/// A request to take part in a swarm.
pub(super) struct Share {
    pub(super) id: u32,
    pub(super) secret: Vec<u8>,
    pub(super) named: Named,
}

/// A request to take part in a cast.
pub(super) struct Join {
    pub(super) id: u32,
    pub(super) secret: Vec<u8>,
    pub(super) path: String,
}

/// A request for an object.
pub(super) struct Get {
    pub(super) id: u32,
    pub(super) secret: Vec<u8>,
    pub(super) path: String,
    pub(super) resume: bool,
}

/// What a client says of an offer.
#[derive(Default)]
pub(super) struct Begun {
    pub(super) held: Held,
    /// The key for what comes over SCTP, if the content shall.
    pub(super) carry: Option<[u8; 32]>,
}
