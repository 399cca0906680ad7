use core::fmt;
use core::net::IpAddr;
use std::sync::Arc;

use fontis_base::Duration;
use smallvec::SmallVec;

use super::coding::CodingConfig;
use super::offer::SctpAuth;
use crate::congestion::coupling::Coupling;
use crate::congestion::maker::CongestionMaker;
use crate::congestion::table::CongestionKind;
use crate::rate::reorder::ReorderMode;
use crate::scheduler::kind::SchedulerKind;

/// The configuration of one end.
#[derive(Clone, Debug, PartialEq)]
pub struct SctpConfig {
    /// Its port, and that of the peer.
    pub ports: [u16; 2],
    /// Its own addresses. Path `n` leads from the `n`-th to the peer's `n`-th address; the last one
    /// of the end that has fewer serves the rest.
    pub addresses: SmallVec<[IpAddr; 2]>,
    /// Makes what a stranger must not be able to guess or forge.
    pub secret: SctpSecret,
    /// Bytes of a packet that paths carry, at the IP layer.
    pub mtu: u32,
    /// Bytes of a packet up to which each path is probed for more (RFC 8899), with padded
    /// heartbeats (RFC 4820); nothing is searched if it is not more than `mtu`.
    pub most_mtu: u32,
    /// Bytes before the common header: those of IP, and of UDP if there is UDP.
    pub overhead: u32,
    /// Streams that it sends on and receives on at most.
    pub streams: u16,
    /// Bytes that it can hold for its application: what its window begins with.
    pub receive_buffer: u32,
    /// Bytes of messages that its application may hand over before the peer has them.
    pub send_buffer: u32,
    /// Bytes of a message that it receives at most.
    pub max_message: u32,
    /// The congestion control of each path.
    pub congestion: CongestionKind,
    /// The constructor of an algorithm from outside, which takes the place of `congestion`.
    pub foreign: Option<CongestionMaker>,
    /// How data use the paths.
    pub multipath: Multipath,
    /// Whether messages of several streams may interleave (RFC 8260).
    pub interleaving: bool,
    /// Which stream's message is next, where messages interleave.
    pub turns: StreamTurns,
    /// Whether messages may be given up (RFC 3758).
    pub partial: bool,
    /// Whether its packets may be marked.
    pub ecn: bool,
    /// Whether packets bear stamps, by which the delay of each path is known, and SACKs numbers.
    pub stamps: bool,
    /// How losses are recognised.
    pub recovery: LossRecovery,
    /// Reports of a chunk as missing after which it is sent again.
    pub missing_reports: u32,
    /// Whether a chunk may be sent again by reports more than once. RFC 9260 section 7.2.4 leaves
    /// the second time to the timer, because its SACKs do not tell copies apart; reports here count
    /// by the order of departure, which does.
    pub fast_again: bool,
    /// Packets that leave at once, at most, when an acknowledgement comes; `None` is no limit.
    pub max_burst: Option<u32>,
    /// Whether drivers read packets in batches, so that a SACK answers many: it then allows the
    /// burst of one for every two, and in slow start a window that grows by all that they answer.
    pub batches: bool,
    /// Packets of the first window, in place of four or less (RFC 9260 section 7.2.1).
    pub first_window: Option<u32>,
    /// Whether data leave with the COOKIE ECHO, a round trip before the association is up (RFC 9260
    /// section 5.1).
    pub early_data: bool,
    /// How acknowledgements wait.
    pub acks: AckPolicy,
    /// Whether it asks for an acknowledgement at once (RFC 7053) with data after which it can send
    /// nothing: a peer that waits for a second packet would delay both.
    pub asks_acks: bool,
    /// Data that follow a gap wait so long for what is missing before an acknowledgement tells of
    /// it, in a buffer of what arrives in that time (Sarwar 2014, chapter 5): reordering is then no
    /// loss to the peer. Across several paths it waits for the slower ones, too.
    pub reorder: Option<(ReorderMode, Duration)>,
    /// Whether acknowledgements say that nothing will be dropped again (NR-SACK), so that the
    /// sender's buffer is free at once.
    pub nr_sack: bool,
    /// Whether streams can be reset (RFC 6525).
    pub resets: bool,
    /// Which chunks must be authenticated, and by which keys (RFC 4895). Nothing is where there is
    /// none.
    pub auth: Option<SctpAuth>,
    /// Whether addresses of both ends may change (RFC 5061).
    pub dynamic: DynamicAddresses,
    /// Erasure codes over what it sends, if both ends have them.
    pub coding: Option<CodingConfig>,
    /// Whether it takes repairs of what the peer sends. An end that codes does so, too.
    pub decodes: bool,
    /// Whether marks alone reduce windows, where packets may be marked: loss is taken for the
    /// path's own.
    pub only_marks: bool,
    /// Timers.
    pub timers: SctpTimers,
}

/// How losses are recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossRecovery {
    /// By reports: of chunks that left later on the same path so many have come (RFC 9260 section
    /// 7.2.4).
    #[default]
    Reports,
    /// By time: something has come that left later on the same path, and a window for reordering
    /// has passed. The tail is probed before the timer expires (RACK-TLP, RFC 8985).
    RackTlp,
}

/// Which stream's message is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamTurns {
    /// Streams take turns.
    #[default]
    Rotation,
    /// That of which the fewest bytes were sent since it was at rest, so that what is short
    /// overtakes what is long (Moktan 2020, section 5.1).
    Shortest,
}

/// Whether addresses of an association may change (RFC 5061).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DynamicAddresses {
    /// They stay as they are.
    #[default]
    No,
    /// They may, if both ends authenticate the chunks that say so.
    Authenticated,
    /// The same for an end whose addresses others see as different ones, such as one behind a NAT:
    /// what it sends names no address but the source of its packet (sections 4.2.1 to 4.2.4).
    Unnamed,
    /// They may, also if nothing is authenticated: something below proves who the peer is.
    Open,
}

/// How data use several paths.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Multipath {
    /// One path carries data, the others are in reserve (RFC 9260 section 6.4).
    #[default]
    Failover,
    /// All carry data at once (Iyengar et al. 2006).
    Concurrent(CmtConfig),
}

/// Concurrent multipath transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CmtConfig {
    /// The choice of path for new data.
    pub scheduler: SchedulerKind,
    /// Split fast retransmit: a chunk counts as missing only if one that left later on the same
    /// path has arrived. Without it any later TSN counts.
    pub split_fast_retransmit: bool,
    /// A path's window grows by what it delivers itself (CUC). Without it only when the
    /// association's cumulative TSN moves.
    pub own_cumulative: bool,
    /// The path for data that are sent again.
    pub retransmit: RetransmitPolicy,
    /// How the paths share the buffers.
    pub buffers: BufferSplit,
    /// How their windows depend on each other, with an algorithm that can grow so.
    pub coupling: Coupling,
    /// Whether a SACK that an earlier one has overtaken is used as if it were new, as stacks
    /// without numbered SACKs do (spec 4.5).
    pub believes_old_sacks: bool,
}

impl Default for CmtConfig {
    fn default() -> Self {
        Self {
            scheduler: SchedulerKind::RoundRobin,
            split_fast_retransmit: true,
            own_cumulative: true,
            retransmit: RetransmitPolicy::Threshold,
            buffers: BufferSplit::None,
            coupling: Coupling::None,
            believes_old_sacks: false,
        }
    }
}

/// The path for data that are sent again (Iyengar et al. 2006, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetransmitPolicy {
    /// The path of the first time (RTX-SAME).
    Same,
    /// Any with room (RTX-ASAP).
    Soonest,
    /// That with the lowest loss rate (RTX-LOSSRATE).
    LossRate,
    /// That with the largest window (RTX-CWND).
    Window,
    /// That with the largest slow start threshold (RTX-SSTHRESH).
    #[default]
    Threshold,
}

/// How paths share a buffer, so that a slow one cannot fill it alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BufferSplit {
    /// They do not.
    #[default]
    None,
    /// What a path has in flight takes no more than its share of the peer's buffer.
    Receiver,
    /// What a path has sent and the peer has not acknowledged in order takes no more than its share
    /// of the sender's buffer.
    Sender,
    /// Both.
    Both,
}

/// How acknowledgements wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// Packets that one acknowledgement answers.
    pub every: u32,
    /// The longest wait for so many.
    pub delay: Duration,
    /// Whether it waits also when TSNs are missing, and says how many packets it answers: delayed
    /// acknowledgements for CMT (DAC).
    pub waits_at_gaps: bool,
}

impl Default for AckPolicy {
    fn default() -> Self {
        Self { every: 2, delay: Duration::from_millis(200), waits_at_gaps: false }
    }
}

/// Timers and the limits of failures (RFC 9260 section 16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SctpTimers {
    /// The first timeout of a path.
    pub initial: Duration,
    /// The least.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
    /// Between heartbeats on a path that is idle.
    pub heartbeat: Duration,
    /// How long a cookie is good.
    pub cookie: Duration,
    /// INITs that are sent again.
    pub init_repeats: u32,
    /// Failures in a row of one path until it is inactive.
    pub path_failures: u32,
    /// Failures in a row of all paths until the association ends.
    pub failures: u32,
    /// Failures in a row until a path is potentially failed (RFC 7829).
    pub potential_failures: u32,
}

impl Default for SctpTimers {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            least: Duration::from_secs(1),
            most: Duration::from_secs(60),
            heartbeat: Duration::from_secs(30),
            cookie: Duration::from_secs(60),
            init_repeats: 8,
            path_failures: 5,
            failures: 10,
            potential_failures: 0,
        }
    }
}

impl SctpConfig {
    /// The usual configuration, with what a stranger must not be able to guess.
    pub fn new(secret: SctpSecret) -> Self {
        Self {
            ports: [5000, 5000],
            addresses: SmallVec::new(),
            secret,
            mtu: 1500,
            most_mtu: 0,
            overhead: 20,
            streams: 16,
            receive_buffer: 1 << 20,
            send_buffer: 1 << 20,
            max_message: 1 << 20,
            congestion: CongestionKind::NewReno,
            foreign: None,
            multipath: Multipath::default(),
            interleaving: true,
            turns: StreamTurns::Rotation,
            partial: true,
            ecn: true,
            stamps: false,
            recovery: LossRecovery::Reports,
            missing_reports: 3,
            fast_again: true,
            max_burst: Some(4),
            batches: false,
            first_window: None,
            early_data: true,
            acks: AckPolicy::default(),
            asks_acks: true,
            reorder: None,
            nr_sack: false,
            resets: true,
            auth: None,
            dynamic: DynamicAddresses::No,
            coding: None,
            decodes: false,
            only_marks: false,
            timers: SctpTimers::default(),
        }
    }

    /// Its addresses that the peer is told of.
    pub(super) fn named_addresses(&self) -> &[IpAddr] {
        if self.dynamic == DynamicAddresses::Unnamed { &[] } else { &self.addresses }
    }

    /// What it authenticates, if it does: changes of addresses ask for it.
    pub(super) fn authentication(&self) -> Option<SctpAuth> {
        let asks =
            matches!(self.dynamic, DynamicAddresses::Authenticated | DynamicAddresses::Unnamed);
        self.auth.clone().or_else(|| asks.then(SctpAuth::default))
    }

    /// Whether it has nothing to do with peers that authenticate nothing: it would drop chunks
    /// without which there is no association.
    pub(super) fn insists_on_auth(&self) -> bool {
        self.auth.as_ref().is_some_and(|auth| !auth.kinds.is_empty())
    }

    /// Its settings of CMT, if it uses all paths at once.
    pub(super) const fn cmt(&self) -> Option<&CmtConfig> {
        match &self.multipath {
            Multipath::Failover => None,
            Multipath::Concurrent(cmt) => Some(cmt),
        }
    }
}

/// Bytes of the code that a secret makes.
pub const SECRET_CODE: usize = 16;

type Code = dyn Fn(&[u8]) -> [u8; SECRET_CODE] + Send + Sync;

/// A message authentication code under a key that only this end has. Cookies, tags, first TSNs and
/// the nonces of heartbeats come from it: nobody can guess or forge them who does not know the key.
#[derive(Clone)]
pub struct SctpSecret(Arc<Code>);

impl SctpSecret {
    /// A secret that makes codes by this function.
    pub fn new(code: impl Fn(&[u8]) -> [u8; SECRET_CODE] + Send + Sync + 'static) -> Self {
        Self(Arc::new(code))
    }

    pub(super) fn code(&self, content: &[u8]) -> [u8; SECRET_CODE] {
        (self.0)(content)
    }

    /// Whether a code is that of the content. Every byte is compared, so that the time tells
    /// nothing of the right code.
    pub(super) fn is_code(&self, content: &[u8], code: &[u8]) -> bool {
        let own = self.code(content);
        let difference = own.iter().zip(code).fold(0, |sum, (a, b)| sum | (a ^ b));
        code.len() == SECRET_CODE && difference == 0
    }

    /// A number that nobody can guess, made from what tells its use apart from others.
    pub(super) fn number(&self, parts: &[u64]) -> u64 {
        let mut content = b"number".to_vec();
        parts.iter().for_each(|part| content.extend_from_slice(&part.to_be_bytes()));
        let [a, b, c, d, e, f, g, h, ..] = self.code(&content);
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// The random number of an end that has chosen this tag and this first TSN.
    pub(super) fn random(&self, tag: u32, tsn: u32) -> [u8; 2 * SECRET_CODE] {
        let mut random = [0; 2 * SECRET_CODE];
        for (half, part) in (0_u8..).zip(random.chunks_exact_mut(SECRET_CODE)) {
            let mut content = b"random".to_vec();
            content.push(half);
            content.extend_from_slice(&tag.to_be_bytes());
            content.extend_from_slice(&tsn.to_be_bytes());
            part.copy_from_slice(&self.code(&content));
        }
        random
    }
}

impl fmt::Debug for SctpSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SctpSecret")
    }
}

impl PartialEq for SctpSecret {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
