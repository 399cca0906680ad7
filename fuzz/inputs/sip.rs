//! What a telephone says to a bridge: SIP and descriptions in SDP, step by step.

/// Nothing panics, and answers to a step have an end.
pub(crate) fn run(data: &[u8]) {
    fontis_call::readers::signals(data);
}
