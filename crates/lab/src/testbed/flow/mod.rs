//! The flows of a testbed: kernel TCP, datagrams, Fontis, any command, and hosts of the simulator
//! at real sockets.

mod algorithm;
mod command;
mod datagrams;
mod dfcp;
mod messages;
mod published;
mod simulated;
pub(super) mod stage;
mod tcp;

use crate::testbed::error::TestbedError;
use crate::testbed::flow::stage::{Flow, Place, Stage};

/// Starts a flow of a transport on the testbed.
type Start = fn(&Stage, &Place<'_>) -> Result<Box<dyn Flow>, TestbedError>;

/// The counterparts of the simulator's transports, by name. A transport that is not here runs in
/// the simulator only.
const COUNTERPARTS: &[(&str, Start)] = &[
    ("TCP", tcp::start),
    ("DFCP", dfcp::start),
    ("datagrams", datagrams::start),
    ("command", command::start),
    ("DFCP of 2015", published::start),
];

/// Starts a flow.
pub(super) fn start(stage: &Stage, place: &Place<'_>) -> Result<Box<dyn Flow>, TestbedError> {
    let row = place.spec.transport.row();
    match COUNTERPARTS.iter().find(|(name, _)| *name == row.name) {
        Some((_, start)) => start(stage, place),
        None => Err(TestbedError::Unsupported(format!(
            "{}: {} has no counterpart on the testbed: use fontis sim",
            place.spec.name, row.name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use fontis_sim::host::rows::TRANSPORTS;

    use super::COUNTERPARTS;

    #[test]
    fn every_transport_of_the_simulator_has_a_counterpart_or_is_known_to_have_none() {
        /// This kernel has no DCCP and no SCTP.
        const SIMULATED_ONLY: [&str; 3] = ["DCCP", "SCTP", "cast"];
        for row in TRANSPORTS {
            let has = COUNTERPARTS.iter().any(|(name, _)| *name == row.name);
            assert_ne!(has, SIMULATED_ONLY.contains(&row.name), "{}", row.name);
        }
        assert_eq!(COUNTERPARTS.len() + SIMULATED_ONLY.len(), TRANSPORTS.len());
    }
}
