use fontis_base::Time;

/// A sender's deadlines; [`Time::MAX`] while they are not set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// Retransmission (RFC 6298), or zero-window probe (RFC 9293 section 3.8.6.1): never both.
    pub(super) retransmit: Time,
    /// A segment that is late will count as lost (RFC 8985 section 6.3).
    pub(super) reorder: Time,
    /// A probe of the tail (RFC 8985 section 7).
    pub(super) probe: Time,
}

impl Timers {
    /// None is set.
    pub(super) const NONE: Self =
        Self { retransmit: Time::MAX, reorder: Time::MAX, probe: Time::MAX };

    /// The first to expire, and what it is for.
    #[inline]
    pub(super) fn first(&self) -> (Time, &'static str) {
        let mut first = (self.retransmit, "retransmission");
        if self.reorder < first.0 {
            first = (self.reorder, "reordering");
        }
        if self.probe < first.0 {
            first = (self.probe, "tail loss probe");
        }
        first
    }
}
