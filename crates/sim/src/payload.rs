use fontis_proto::dfcp;

/// What simulated packets carry: typed protocol packets, no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A DFCP packet.
    Dfcp(dfcp::Packet),
}
