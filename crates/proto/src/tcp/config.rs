use fontis_base::{Duration, Rate};

use super::segment::{IP_HEADER, TCP_HEADER, TIMESTAMPS};
use crate::congestion::maker::CongestionMaker;
use crate::congestion::table::CongestionKind;

/// How a lost segment is recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// By what is acknowledged above it (RFC 6675); a lost retransmission waits for the timer.
    Rfc6675,
    /// By when what was sent later arrived, with probes of the tail (RACK-TLP, RFC 8985).
    #[default]
    RackTlp,
}

/// How a TCP endpoint behaves. The defaults are those of Linux where it and the standards differ,
/// except where a field says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpConfig {
    /// Bytes of a full packet at the IP layer.
    pub mtu: u32,
    /// The congestion control algorithm.
    pub congestion: CongestionKind,
    /// The constructor of an algorithm from outside, which takes the place of `congestion`.
    pub foreign: Option<CongestionMaker>,
    /// How losses are recognised.
    pub recovery: Recovery,
    /// Selective acknowledgement (RFC 2018). Without it losses are recovered as in RFC 6582.
    pub sack: bool,
    /// Timestamps (RFC 7323); they take 12 bytes of every segment.
    pub timestamps: bool,
    /// Explicit congestion notification (RFC 3168), if the peer agrees.
    pub ecn: bool,
    /// The initial window in segments (RFC 6928).
    pub initial_window: u32,
    /// The most bytes outstanding, whatever the congestion window and the peer allow: the fixed
    /// window that some stacks and experiments had.
    pub max_window: Option<u64>,
    /// Bytes that wait for the application at the receiver: the window that it offers.
    pub receive_buffer: u64,
    /// Whether arriving bytes are taken by the application at once; else by
    /// [`read`](super::TcpEndpoint::read).
    pub auto_read: bool,
    /// How long an acknowledgement may wait for a second segment (RFC 9293 section 3.8.6.3); `None`
    /// acknowledges every segment.
    pub delayed_ack: Option<Duration>,
    /// How many segments at the beginning are acknowledged at once all the same, so that the
    /// sender's slow start is not held up. Linux has up to 16.
    pub quick_acks: u32,
    /// Whether a short segment waits while another short one is unacknowledged: Nagle's algorithm
    /// (RFC 9293 section 3.7.4) as Minshall changed it and Linux has it, so that the end of a long
    /// message does not wait.
    pub nagle: bool,
    /// Whether the window shrinks to the initial one after a pause of one timeout (RFC 5681 section
    /// 4.1).
    pub slow_start_after_idle: bool,
    /// Whether segments leave evenly spaced, at twice the rate of window per round trip in slow
    /// start and 1.2 times it after, as with Linux's `fq`. An algorithm that has a rate of its own
    /// is always paced.
    pub pacing: bool,
    /// The rate of the host's own line, if what waits there is kept short: a millisecond of it, or
    /// two segments, as with Linux's TCP small queues. Segments that the line keeps back do not
    /// show that the window is too small, so that it does not grow.
    pub line: Option<Rate>,
    /// The timeout before the first round-trip time is known (RFC 6298 rule 2.1).
    pub initial_rto: Duration,
    /// The least that the timeout lies above the round-trip time.
    pub min_rto: Duration,
    /// How often a SYN or a segment is sent again before the connection is given up.
    pub retries: u32,
    /// How long the side that closed first answers copies of the last segment. Twice 30 s in real
    /// stacks; in a simulation nothing outlives its longest queue.
    pub time_wait: Duration,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            mtu: 1500,
            congestion: CongestionKind::default(),
            foreign: None,
            recovery: Recovery::default(),
            sack: true,
            timestamps: true,
            ecn: false,
            initial_window: 10,
            max_window: None,
            receive_buffer: 1 << 30,
            auto_read: true,
            delayed_ack: Some(Duration::from_millis(40)),
            quick_acks: 0,
            nagle: true,
            slow_start_after_idle: true,
            pacing: false,
            line: None,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            retries: 15,
            time_wait: Duration::from_secs(1),
        }
    }
}

impl TcpConfig {
    /// Bytes of payload in a full segment with the options that every segment carries.
    pub fn segment_len(&self, timestamps: bool) -> u32 {
        let options = if timestamps { TIMESTAMPS } else { 0 };
        self.mtu.saturating_sub(IP_HEADER + TCP_HEADER + options).max(1)
    }

    /// What the SYN states as the maximum segment size.
    pub(super) fn mss(&self) -> u16 {
        u16::try_from(self.mtu.saturating_sub(IP_HEADER + TCP_HEADER)).unwrap_or(u16::MAX).max(1)
    }

    /// The least shift that lets the window field state the whole buffer.
    pub(super) fn window_scale(&self) -> u8 {
        (0..14).find(|shift| self.receive_buffer >> shift <= 0xffff).unwrap_or(14)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_scale_is_the_least_that_states_the_buffer() {
        let scale =
            |receive_buffer| TcpConfig { receive_buffer, ..TcpConfig::default() }.window_scale();
        assert_eq!([scale(65_535), scale(65_536), scale(1 << 20)], [0, 1, 5]);
        assert_eq!(scale(u64::MAX), 14);
    }

    #[test]
    fn a_full_segment_fills_the_mtu() {
        let config = TcpConfig::default();
        assert_eq!([config.segment_len(true), config.segment_len(false)], [1448, 1460]);
    }
}
