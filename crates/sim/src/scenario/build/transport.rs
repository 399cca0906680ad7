use std::sync::Arc;

use fontis_base::{Duration, Rate, Size};
use fontis_codes::Code;
use fontis_proto::{dfcp, published, rate, tcp};

use super::reader::{Reader, bad, senseless};
use crate::scenario::ScenarioError;
use crate::{Control, Transport};

/// What transports a flow whose sender's link has the rate `access`, over a path of this round-trip
/// time.
pub(super) fn transport(
    read: &Reader<'_>,
    protocol: &str,
    access: Rate,
    rtt: Duration,
) -> Result<Transport, ScenarioError> {
    Ok(match protocol {
        "datagrams" => Transport::Datagrams,
        "dfcp-published" => published_transport(read, access, rtt)?,
        "command" => {
            let (sender, receiver) = (read.text("flow.command"), read.text("flow.peer_command"));
            if sender.trim().is_empty() {
                return senseless("protocol command needs flow.command".to_owned());
            }
            Transport::Command { sender, receiver }
        }
        "dfcp" => {
            let text = read.text("dfcp.rate");
            let rate = match &*text {
                // As fast as the host can is as fast as its link: more would only wait there.
                "greedy" => rate::RateKind::Fixed(access),
                text => text.parse().map_err(|_| {
                    bad("dfcp.rate", format!("{text:?} must be greedy, auto, friendly or a rate"))
                })?,
            };
            let block = u32::try_from(read.size("dfcp.block")).unwrap_or(u32::MAX).max(1);
            let window = read.count("dfcp.window").max(1).saturating_mul(u64::from(block));
            let until = read.text("dfcp.redundancy") == "until-acknowledged";
            let fields = dfcp::ParamFields::default();
            let params = dfcp::Params::new(dfcp::ParamFields {
                window: u32::try_from(window).unwrap_or(u32::MAX),
                max_block: fields.max_block.max(block),
                ..fields
            })
            .map_err(|error| bad("dfcp.block", error.to_string()))?;
            let config = dfcp::Config {
                rate,
                redundancy: if until {
                    dfcp::Redundancy::UntilAcknowledged
                } else {
                    dfcp::Redundancy::Measured
                },
                params: params.with_code(Code::Counting),
                max_packet_size: u32::try_from(read.count("dfcp.mtu")).unwrap_or(u32::MAX),
                ..dfcp::Config::default()
            };
            Transport::Dfcp(Box::new(config), Some(block))
        }
        name => {
            let delayed_ack = read.duration("tcp.delayed_ack");
            let max_window =
                read.get::<Size>("flow.max_window").or_else(|| read.get("tcp.max_window"));
            Transport::Tcp(Arc::new(tcp::Config {
                mtu: u32::try_from(read.count("tcp.mtu")).unwrap_or(u32::MAX).clamp(88, 65_535),
                congestion: name.parse().unwrap_or_default(),
                recovery: if read.text("tcp.recovery") == "rack-tlp" {
                    tcp::Recovery::RackTlp
                } else {
                    tcp::Recovery::Rfc6675
                },
                sack: read.flag("tcp.sack"),
                timestamps: read.flag("tcp.timestamps"),
                ecn: read.flag("tcp.ecn") || name == "dctcp",
                pacing: read.flag("tcp.pacing"),
                initial_window: u32::try_from(read.count("tcp.initial_window"))
                    .unwrap_or(u32::MAX)
                    .max(1),
                max_window: max_window.map(Size::as_bytes),
                delayed_ack: (delayed_ack > Duration::ZERO).then_some(delayed_ack),
                min_rto: read.duration("tcp.min_rto"),
                ..tcp::Config::default()
            }))
        }
    })
}

fn published_transport(
    read: &Reader<'_>,
    access: Rate,
    rtt: Duration,
) -> Result<Transport, ScenarioError> {
    let count = |path| u32::try_from(read.count(path)).unwrap_or(u32::MAX).max(1);
    let size = |path| u32::try_from(read.size(path)).unwrap_or(u32::MAX);
    let (block, payload) = (size("published.block"), size("published.payload"));
    if !(16..=63_536).contains(&block) {
        return Err(bad("published.block", format!("{block} bytes must be 16 to 63536")));
    }
    if !(1..=65_000).contains(&payload) {
        return Err(bad("published.payload", format!("{payload} bytes must be 1 to 65000")));
    }
    let redundancy: f64 = read.get("published.redundancy").unwrap_or(0.0);
    if !(0.0..=100.0).contains(&redundancy) {
        return Err(bad("published.redundancy", format!("{redundancy} must be 0 to 100")));
    }
    let text = read.text("published.rate");
    let (rate, control) = match &*text {
        "greedy" | "oracle" | "sdn" => (access, published::Control::Told),
        "marks" => {
            let gain = read.get("published.gain").unwrap_or(0.0);
            (access, published::Control::Marks { gain })
        }
        text => match text.parse() {
            Ok(rate) if rate > Rate::ZERO => (rate, published::Control::Told),
            _ => {
                let message =
                    format!("{text:?} must be greedy, oracle, sdn, marks, or a rate above zero");
                return Err(bad("published.rate", message));
            }
        },
    };
    let config = published::Config {
        block,
        window: count("published.window"),
        redundancy,
        payload,
        sending: match &*read.text("published.sending") {
            "round-robin" => published::Sending::RoundRobin,
            "until-acknowledged" => published::Sending::UntilAcknowledged,
            _ => published::Sending::TwoPhase,
        },
        plan: match &*read.text("published.plan") {
            "fixed" => published::Plan::Fixed,
            _ => published::Plan::Measured,
        },
        need: match &*read.text("published.need") {
            "code" => published::Need::Code,
            _ => published::Need::Redundancy,
        },
        last_packet: match &*read.text("published.last_packet") {
            "full" => published::LastPacket::Full,
            _ => published::LastPacket::Short,
        },
        coding: match &*read.text("published.coding") {
            "real" => published::Coding::Real,
            _ => published::Coding::Counting,
        },
        decode: read.flag("published.decode"),
        acknowledge: read.flag("published.acknowledge"),
        control,
        rate,
        // D-12: in a simulation the round-trip times are known.
        time_wait: rtt + rtt + Duration::from_secs(1),
    };
    let control = Control {
        by_controller: matches!(&*text, "oracle" | "sdn"),
        class: u8::try_from(read.count("published.control_class")).unwrap_or(u8::MAX),
    };
    Ok(Transport::Published(Box::new(config), control))
}
