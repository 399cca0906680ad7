/// How a call is heard at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Heard {
    /// Packets of voice that arrived.
    pub received: u64,
    /// Packets that repair packets, copies or in-band FEC restored.
    pub restored: u64,
    /// Frames that were heard.
    pub played: u64,
    /// Frames that were sent and not heard: lost, or late.
    pub missed: u64,
    /// Frames that came too late, which are among these.
    pub late: u64,
    /// The share of the frames that was not heard.
    pub loss: f64,
    /// The share of the packets that did not arrive, restored ones among them.
    pub network_loss: f64,
    /// The estimated delay from mouth to ear, in milliseconds.
    pub delay: f64,
    /// The spread of arrivals, in milliseconds: nine tenths of the packets keep it.
    pub jitter: f64,
    /// The rating factor of the E-model (G.107).
    pub r: f64,
    /// The mean opinion score that follows from it.
    pub mos: f64,
}
