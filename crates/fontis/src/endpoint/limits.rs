use super::limiter::Limiter;
use super::replays::Replays;
use super::unconfirmed::Unconfirmed;
use crate::protection::{Cookies, Tokens};

/// The answers a second to unauthenticated packets.
const ANSWERS: u64 = 200;
/// SYNs in a second that are opened without a cookie. Each costs two Diffie–Hellman operations,
/// some 0.1 ms.
const OPENED: u64 = 500;
/// Those of one network. Its other SYNs are asked for a cookie.
const OPENED_OF_NETWORK: u64 = 100;
/// The same for SYNs with a cookie, so that a flood from valid addresses leaves the thread time for
/// other connections.
const OPENED_PROVED: u64 = 2000;
/// Those of one network, so that it leaves something for others.
const OPENED_PROVED_OF_NETWORK: u64 = 200;
/// Cookies sent in a second. A cookie costs a system call; who asks in vain asks again.
const COOKIES: u64 = 50_000;

/// The limits of work for strangers.
pub(super) struct Admission {
    pub(super) answers: Limiter,
    /// Connections of SYNs without a cookie. Their addresses may be forged, so none of them goes
    /// for another.
    pub(super) unproved: Unconfirmed,
    /// Connections of SYNs with a cookie.
    pub(super) proved: Unconfirmed,
    pub(super) cookies_sent: Limiter,
    pub(super) cookies: Cookies,
    pub(super) tokens: Tokens,
    pub(super) replays: Replays,
    /// SYNs that were turned away: asked for a cookie, or dropped.
    pub(super) turned_away: u64,
}

impl Admission {
    pub(super) fn new() -> Self {
        Self {
            answers: Limiter::new(ANSWERS),
            unproved: Unconfirmed::new(OPENED, OPENED_OF_NETWORK),
            proved: Unconfirmed::new(OPENED_PROVED, OPENED_PROVED_OF_NETWORK),
            cookies_sent: Limiter::new(COOKIES),
            cookies: Cookies::new(),
            tokens: Tokens::new(),
            replays: Replays::new(),
            turned_away: 0,
        }
    }

    /// A connection is confirmed, or over.
    pub(super) fn leave(&mut self, id: u64) {
        self.unproved.leave(id);
        self.proved.leave(id);
    }
}
