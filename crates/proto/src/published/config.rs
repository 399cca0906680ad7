use fontis_base::{Duration, Rate};

/// What can be set of an endpoint. The defaults are the values of the dissertation's chapter 5, and
/// the specification's decisions (D-nn) where it says nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedConfig {
    /// k, bytes of a block (section 3.3.4).
    pub block: u32,
    /// W, blocks sent and not acknowledged at most (section 3.3.5; D-07: known to both ends).
    pub window: u32,
    /// ε, the redundancy of LDPC and LT code together, as a share of the block.
    pub redundancy: f64,
    /// Encoded bytes in a full packet: 1500 less the IPv4 header and this protocol's (section
    /// 3.3.5).
    pub payload: u32,
    /// Which packets are sent when (D-13).
    pub sending: Sending,
    /// How much of a block the first pass sends.
    pub plan: Plan,
    /// What a block needs before it is acknowledged.
    pub need: Need,
    /// Whether the first pass over a block ends with a full packet (D-14).
    pub last_packet: LastPacket,
    /// Whether bytes are encoded or only counted.
    pub coding: Coding,
    /// Of the switches of section 3.3.6, `coding` is the one for the encoder; whether the receiver
    /// decodes or only counts …
    pub decode: bool,
    /// … and whether it acknowledges blocks. Without, a block is done when its first pass is.
    pub acknowledge: bool,
    /// Who decides how fast packets leave.
    pub control: Control,
    /// How fast, to begin with.
    pub rate: Rate,
    /// How long a host remembers a connection that is closed (D-12).
    pub time_wait: Duration,
}

/// Which packets are sent when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sending {
    /// A first pass over each block in turn, as far as the window goes; then some more of each
    /// block whose acknowledgement is overdue, and of all in turn when the window is full.
    #[default]
    TwoPhase,
    /// One packet of each block of the window in turn, until it is acknowledged.
    RoundRobin,
    /// Nothing but packets of the oldest block, until it is acknowledged.
    UntilAcknowledged,
}

/// How much of a block the first pass sends (D-13, D-20). The text says that the redundancy should
/// fit the loss, not how it is made to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plan {
    /// (1+ε)k bytes, and more after a while in which most blocks had to be repaired: about as many
    /// as lose themselves on the way, so that (1+ε)k arrive.
    #[default]
    Measured,
    /// (1+ε)k bytes always.
    Fixed,
}

/// What a block needs before it is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Need {
    /// (1+ε)k bytes, as the analysis has it.
    #[default]
    Redundancy,
    /// What the code needs, which differs from block to block and may be less than ε, or more.
    Code,
}

/// How the first pass over a block ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastPacket {
    /// With a packet as short as (1+ε)k asks for.
    #[default]
    Short,
    /// With a full one, so that a little more is sent.
    Full,
}

/// Whether bytes are encoded or only counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// They are counted: no bytes move. What a block needs is drawn from the distribution measured
    /// for the real code.
    #[default]
    Counting,
    /// They are encoded and decoded with the 2015 code.
    Real,
}

/// Who decides how fast packets leave (D-01, D-02).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Control {
    /// Nobody: the rate stays, unless
    /// [`PublishedEndpoint::set_rate`](super::PublishedEndpoint::set_rate) changes it.
    #[default]
    Told,
    /// Marks that the receiver echoes: rate·(1 − gain·share of marked packets), and two per cent
    /// more after a block without any, once in two round trips. Experimental: no text defines it.
    Marks {
        /// How strongly.
        gain: f64,
    },
}

impl Default for PublishedConfig {
    fn default() -> Self {
        Self {
            block: 63_536,
            window: 1000,
            redundancy: 0.05,
            payload: 1452,
            sending: Sending::default(),
            plan: Plan::default(),
            need: Need::default(),
            last_packet: LastPacket::default(),
            coding: Coding::default(),
            decode: true,
            acknowledge: true,
            control: Control::default(),
            rate: Rate::from_mbps(1000),
            time_wait: Duration::from_secs(60),
        }
    }
}

impl PublishedConfig {
    /// (1+ε)k: the bytes of the first pass, and what a block needs by the analysis.
    pub(super) fn encoded(&self) -> u32 {
        // The margin keeps what is whole but for rounding from costing a byte.
        libm::ceil(f64::from(self.block) * (1.0 + self.redundancy.max(0.0)) - 1e-6) as u32
    }

    /// The bytes that the first pass sends.
    pub(super) fn first_pass(&self) -> u32 {
        match self.last_packet {
            LastPacket::Short => self.encoded(),
            LastPacket::Full => self.encoded().next_multiple_of(self.payload.max(1)),
        }
    }
}
