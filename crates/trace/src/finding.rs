use fontis_base::Time;

use crate::packet::Marks;

/// Something that stands out in a trace, in a plain sentence, and where it is to be seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The sentence.
    pub text: String,
    /// The flow.
    pub flow: u16,
    /// From when.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// The marks of the packets that show it, if packets do.
    pub marks: Marks,
    /// Whether lost packets show it.
    pub lost: bool,
    /// How much it matters, to sort by: about the share of time or data that it concerns.
    pub weight: f64,
}
