use super::limiter::Limiter;
use crate::protection::{Cookies, Tokens};

/// The answers a second to unauthenticated packets.
const ANSWERS: u64 = 200;
/// SYNs in a second that are opened without a cookie. Each costs two Diffie–Hellman operations,
/// some 0.1 ms.
const OPENED: u64 = 500;
/// The same for SYNs with a cookie, so that a flood from valid addresses leaves the thread time for
/// other connections.
const OPENED_PROVED: u64 = 2000;
/// Cookies sent in a second. A cookie costs a system call; who asks in vain asks again.
const COOKIES: u64 = 50_000;
/// The limits of work for strangers.
pub(super) struct Admission {
    pub(super) answers: Limiter,
    pub(super) opened: Limiter,
    pub(super) opened_proved: Limiter,
    pub(super) cookies_sent: Limiter,
    pub(super) cookies: Cookies,
    pub(super) tokens: Tokens,
    /// Connections whose handshake is not confirmed, as counted when it was needed last.
    pub(super) unconfirmed: Option<usize>,
    /// SYNs that were turned away, asked for a cookie or dropped.
    pub(super) turned_away: u64,
}

impl Admission {
    pub(super) fn new() -> Self {
        Self {
            answers: Limiter::new(ANSWERS),
            opened: Limiter::new(OPENED),
            opened_proved: Limiter::new(OPENED_PROVED),
            cookies_sent: Limiter::new(COOKIES),
            cookies: Cookies::new(),
            tokens: Tokens::new(),
            unconfirmed: None,
            turned_away: 0,
        }
    }
}
