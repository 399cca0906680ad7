/// What was counted of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets sent.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets with data.
    pub data: u64,
    /// Packets known or believed lost.
    pub lost: u64,
    /// Packets whose data had been sent before.
    pub retransmitted: u64,
    /// Of them, those whose first copy arrived.
    pub spurious: u64,
    /// Packets that arrived after one of their path that was sent later.
    pub reordered: u64,
    /// Packets that arrived marked with congestion experienced.
    pub marked: u64,
    /// Bytes of data, or chunks, that arrived and were new.
    pub delivered: u64,
}
