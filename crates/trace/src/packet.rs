use fontis_base::Time;

/// One packet's life: who sent it when, what it carried, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracePacket {
    /// What the source of the trace calls it: the frame's number in a capture, the uid in ns-2, the
    /// packet number in a qlog, the count of packets in the simulator.
    pub number: u64,
    /// The flow, as the trace numbers them.
    pub flow: u16,
    /// The lane that it left.
    pub from: u16,
    /// The lane that it was sent to.
    pub to: u16,
    /// The path of the flow that it took.
    pub path: u8,
    /// What it was for.
    pub kind: Kind,
    /// What became of it.
    pub fate: Fate,
    /// The lane at which it was lost; [`NOWHERE`] if nobody knows, or it was not.
    pub place: u16,
    /// What else is to be said of it.
    pub marks: Marks,
    /// Bytes at the IP layer.
    pub size: u32,
    /// When it left.
    pub sent: Time,
    /// When it arrived or was lost; [`Time::MAX`] if neither is known.
    pub ended: Time,
    /// First byte, chunk or symbol that it carried, counted from the flow's first.
    pub seq: u64,
    /// How many of them.
    pub len: u32,
    /// The first one that its sender still wanted of the other direction.
    pub ack: u64,
    /// The channel that its symbols or bytes belong to, if the flow has several.
    pub channel: u16,
    /// The block that its symbols belong to; zero for transports without blocks.
    pub block: u32,
}

/// No lane.
pub const NOWHERE: u16 = u16::MAX;

/// What a packet is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// It carries data.
    #[default]
    Data = 0,
    /// It carries repair symbols.
    Repair = 1,
    /// It says what has arrived.
    Ack = 2,
    /// It begins or ends a connection.
    Handshake = 3,
    /// It carries neither data nor acknowledgements.
    Control = 4,
    /// What it carries cannot be seen.
    Opaque = 5,
}

impl Kind {
    /// All of them, by their number.
    pub const ALL: [Self; 6] =
        [Self::Data, Self::Repair, Self::Ack, Self::Handshake, Self::Control, Self::Opaque];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Repair => "repair",
            Self::Ack => "acknowledgement",
            Self::Handshake => "handshake",
            Self::Control => "control",
            Self::Opaque => "opaque",
        }
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Fate {
    /// Nobody saw.
    #[default]
    Unknown = 0,
    /// It arrived.
    Arrived = 1,
    /// It was lost.
    Lost = 2,
}

/// What else is to be said of a packet: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(pub u16);

impl Marks {
    /// What it carries had been sent before.
    pub const RETRANSMITTED: Self = Self(0x01);
    /// It carries more than the data itself: repair symbols.
    pub const REDUNDANT: Self = Self(0x02);
    /// Nothing of what it carries was of use to its receiver.
    pub const USELESS: Self = Self(0x04);
    /// It was sent again although the first copy arrived.
    pub const SPURIOUS: Self = Self(0x08);
    /// It arrived after a packet of its path that had been sent later.
    pub const REORDERED: Self = Self(0x10);
    /// It bears the mark of congestion experienced.
    pub const CONGESTION: Self = Self(0x20);
    /// Its departure or arrival was computed from the round-trip time, not seen.
    pub const ESTIMATED: Self = Self(0x40);
    /// The network had copied it.
    pub const COPY: Self = Self(0x80);

    /// All of them and their names.
    pub const ALL: [(Self, &str); 8] = [
        (Self::RETRANSMITTED, "retransmitted"),
        (Self::REDUNDANT, "redundant"),
        (Self::USELESS, "useless"),
        (Self::SPURIOUS, "spurious"),
        (Self::REORDERED, "reordered"),
        (Self::CONGESTION, "congestion experienced"),
        (Self::ESTIMATED, "estimated"),
        (Self::COPY, "copy"),
    ];

    /// Whether all of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets all of `other`.
    pub const fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl TracePacket {
    /// A packet that has left and of which nothing more is known.
    pub const fn sent(number: u64, at: Time, from: u16, to: u16, size: u32) -> Self {
        Self {
            number,
            flow: 0,
            from,
            to,
            path: 0,
            kind: Kind::Opaque,
            fate: Fate::Unknown,
            place: NOWHERE,
            marks: Marks(0),
            size,
            sent: at,
            ended: Time::MAX,
            seq: 0,
            len: 0,
            ack: 0,
            channel: 0,
            block: 0,
        }
    }

    /// Whether it says more than that it was sent and arrived: such packets are kept when others
    /// are thinned out.
    pub const fn is_remarkable(&self) -> bool {
        const ORDINARY: u16 = Marks::ESTIMATED.0 | Marks::REDUNDANT.0 | Marks::CONGESTION.0;
        matches!(self.fate, Fate::Lost)
            || matches!(self.kind, Kind::Handshake)
            || self.marks.0 & !ORDINARY != 0
    }
}
