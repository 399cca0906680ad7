use fontis_base::Duration;

use crate::congestion::guard::SlowStartGuard;

/// The rules of [`Fld`](super::Fld), each an option. Windows are counted in segments, lengths in
/// bytes. The thesis is Moktan, "Resource Assignments in Network Data Transport" (Aalto, 2020).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FldOptions {
    /// The length of a flow above which it behaves like Reno (thesis section 2.4).
    pub threshold: u64,
    /// Segments by which an acknowledgement widens the window in the slow start of a short flow.
    pub increase: u64,
    /// The slow starts that have this increase.
    pub boost: Boost,
    /// The length of a flow that ends the increase.
    pub growth_length: Length,
    /// The length of a flow that ends the response of `is_relentless`.
    pub loss_length: Length,
    /// Whether a short flow gives up a segment for each loss (Relentless TCP), and no more.
    pub is_relentless: bool,
    /// The window of a short flow in recovery.
    pub repair: Repair,
    /// The window of a short flow after recovery.
    pub exit: Exit,
    /// A long flow keeps one part in so many of its window after a loss: 2 as Reno, 3 as in the
    /// thesis's ns-2 experiments.
    pub divisor: u64,
    /// What the window grows by.
    pub counting: Counting,
    /// Whether only a sender that uses its whole window gets a larger one.
    pub is_gated: bool,
    /// Whether a window that equals the threshold of slow start is in slow start, and may pass it
    /// by its last step (thesis listing 3.2); else growth stops at the threshold.
    pub is_inclusive: bool,
    /// The least threshold of slow start.
    pub least: u64,
    /// Whether the threshold of slow start of a short flow stays at its window when the timer
    /// expires; else it is half of it.
    pub keeps_after_timeout: bool,
    /// Whether a short flow gives up one segment for a congestion mark; else a share, as a long
    /// one. The thesis does not treat marks.
    pub is_relentless_to_marks: bool,
    /// Whether the window shrinks to the initial one after a pause (RFC 5681 section 4.1).
    pub decays_when_idle: bool,
    /// What keeps the first slow start from overshooting (thesis section 5.1).
    pub guard: SlowStartGuard,
    /// If not zero, the threshold is what the path's best round trip would carry in this time, and
    /// at least `threshold` (thesis section 5.1: thresholds by context).
    pub threshold_time: Duration,
    /// Whose length counts.
    pub length_of: LengthOf,
}

/// The slow starts that grow faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boost {
    /// The first, until the first loss, as in the kernel patch that was published with the thesis.
    First,
    /// Every one, as the text of the thesis says.
    Any,
}

/// The length of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Bytes sent, copies excluded. Bytes that are lost and wait to be sent again are left out
    /// until they are.
    Sent,
    /// Bytes delivered.
    Acknowledged,
}

/// Whose length it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthOf {
    /// A connection's.
    Connection,
    /// That of what a connection carries at a time: it begins anew when all that was written is
    /// acknowledged. So each answer on a connection that is kept is a short flow at first.
    Object,
    /// That of the shortest stream that has something to send, where a transport has streams: a
    /// connection is short as long as it carries a short stream. Else as `Object`.
    Stream,
}

/// The window in recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// One segment more than is in flight, so that an acknowledgement releases at most one (thesis
    /// listing 3.3).
    OnePerAck,
    /// What is in flight, and what the acknowledgement shows to be delivered, with a segment more
    /// if it leaves less outstanding and shows no loss: Proportional Rate Reduction below its
    /// threshold (PRR-SSRB of RFC 9937), which is Linux's.
    Delivered,
}

/// The window after recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The window before it less the segments lost.
    Jump,
    /// The window in it, which slow start brings back.
    Regrow,
}

/// What the window grows by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Acknowledgements.
    Acknowledgements,
    /// What they acknowledge, so that a receiver that delays or merges them changes nothing.
    Segments,
}

impl FldOptions {
    /// The length of a short flow, 2 MiB.
    pub const THRESHOLD: u64 = 2 << 20;

    /// The default: the law of `contrib/bpf/fld.bpf.c`, for kernels that merge segments and
    /// acknowledgements.
    pub const MODERN: Self = Self {
        repair: Repair::Delivered,
        exit: Exit::Jump,
        counting: Counting::Segments,
        is_gated: true,
        ..Self::LINUX
    };

    /// The behaviour of the kernel patch that was published with the thesis.
    pub const LINUX: Self = Self {
        threshold: Self::THRESHOLD,
        increase: 2,
        boost: Boost::First,
        growth_length: Length::Sent,
        loss_length: Length::Acknowledged,
        is_relentless: true,
        repair: Repair::OnePerAck,
        exit: Exit::Regrow,
        divisor: 2,
        counting: Counting::Acknowledgements,
        is_gated: false,
        is_inclusive: false,
        least: 2,
        keeps_after_timeout: true,
        is_relentless_to_marks: false,
        decays_when_idle: false,
        guard: SlowStartGuard::None,
        threshold_time: Duration::ZERO,
        length_of: LengthOf::Connection,
    };

    /// The text of the thesis, section 3.2.
    pub const THESIS: Self =
        Self { boost: Boost::Any, loss_length: Length::Sent, exit: Exit::Jump, ..Self::LINUX };

    /// Reno with limited slow start.
    pub(crate) const LIMITED: Self = Self {
        threshold: 0,
        is_relentless: false,
        guard: SlowStartGuard::Limited,
        keeps_after_timeout: false,
        decays_when_idle: true,
        ..Self::MODERN
    };

    /// The thesis's experiments in ns-2, section 3.1.
    pub const NS2: Self = Self { divisor: 3, ..Self::THESIS };
}

impl Default for FldOptions {
    fn default() -> Self {
        Self::MODERN
    }
}
