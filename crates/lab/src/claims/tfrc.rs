//! The formulas of TFRC, of CCID 4 and of the reorder buffer, as connections compute them.

use fontis_base::{Duration, Rate, Time};
use fontis_proto::rate::reorder::{ReorderBuffer, ReorderMode};
use fontis_proto::rate::tfrc::{
    FeedbackCount, InitialRate, LossHistory, LossInterval, SlowStart, TfrcConfig, TfrcRules,
    throughput,
};

/// The value of a formula; `None` if there is none of this name and number of arguments. Sizes are
/// in bytes, times in seconds, rates in bytes a second unless said otherwise.
pub(super) fn formula(name: &str, numbers: &[f64]) -> Option<f64> {
    Some(match (name, numbers) {
        ("tfrc", [size, rtt, rto, loss]) => throughput(*size, *rtt, *rto, *loss),
        ("tfrc_small", [size, rtt, loss]) => {
            of(SlowStart::Standard).equation_rate(*size, *rtt, *loss)
        }
        ("equation_size", [size]) => of(SlowStart::Standard).equation_size(*size),
        // The rate after the first report of CCID 4, CCID4-N and CCID4-N100.
        ("initial_4", [size, rtt]) => of(SlowStart::Standard).initial_rate(*size, *rtt),
        ("initial_4n", [size, rtt]) => of(SlowStart::Equivalent).initial_rate(*size, *rtt),
        ("initial_4n100", [size, rtt]) => of(SlowStart::Nominal).initial_rate(*size, *rtt),
        ("first_4n", [size]) => of(SlowStart::Equivalent).first_rate(*size),
        // Packets in a round trip: after the first report, and after a pause.
        ("first_packets_3448", [size]) => {
            let config = TfrcConfig { initial: InitialRate::Packet, ..under(TfrcRules::Rfc3448) };
            config.initial_rate(*size, 1.0) / size
        }
        ("first_packets_5348", [size]) => under(TfrcRules::Rfc5348).initial_rate(*size, 1.0) / size,
        ("recover_packets_3448", [size]) => {
            under(TfrcRules::Rfc3448).recover_rate(*size, 1.0) / size
        }
        ("recover_packets_5348", [size]) => {
            under(TfrcRules::Rfc5348).recover_rate(*size, 1.0) / size
        }
        ("recover_packets_faster", [size]) => {
            let config = TfrcConfig { faster_restart: true, ..under(TfrcRules::Rfc5348) };
            config.recover_rate(*size, 1.0) / size
        }
        // Reports in a round trip, of which one is enough for `reference`.
        ("reports", [rtt, reference, packets]) => {
            let reference = Duration::from_secs_f64(*reference);
            let feedback = FeedbackCount::Dynamic { reference };
            let config = TfrcConfig { feedback, ..TfrcConfig::default() };
            config.reports(*rtt, packets / rtt, 1.0)
        }
        // The length of each of equal short intervals of so many packets and losses.
        ("short_interval", [packets, losses]) => {
            let interval =
                LossInterval { packets: *packets, losses: *losses as u32, is_short: true };
            let mut history = LossHistory::default();
            (0..8).for_each(|_| history.close(interval));
            1.0 / history.loss_event_rate(&interval, true)
        }
        // Packets in a reorder buffer for kbit/s, ms and bytes in a packet.
        ("reorder_size", [rate, delay, bytes]) => {
            let rate = Rate::from_bps((rate * 1e3) as u64);
            let delay = Duration::from_secs_f64(delay * 1e-3);
            let mut buffer = ReorderBuffer::new(ReorderMode::Full, delay, rate);
            buffer.push(Time::ZERO, 1, *bytes as u32, ());
            buffer.size() as f64
        }
        _ => return None,
    })
}

fn of(slow_start: SlowStart) -> TfrcConfig {
    TfrcConfig { small_packets: true, slow_start, ..TfrcConfig::default() }
}

fn under(rules: TfrcRules) -> TfrcConfig {
    TfrcConfig { rules, ..TfrcConfig::default() }
}
