//! The events of connections in qlog.

use serde_json::{Value, json};

use crate::dfcp::packet::Frame;
use crate::dfcp::trace::{TraceEvent, Traced};
use crate::qlog::{
    QlogEvent, extend, metrics_updated, millis, packet_lost, packet_received, packet_sent,
};

/// An event of a connection as qlog tells it.
pub fn qlog_event(event: &TraceEvent) -> QlogEvent {
    let told = |frames: &[Frame]| frames.iter().map(frame).collect();
    let (name, mut data) = match &event.what {
        Traced::Sent { number, size, frames } => packet_sent(*number, *size, told(frames)),
        Traced::Received { number, size, frames } => packet_received(*number, *size, told(frames)),
        Traced::Lost { number } => packet_lost(*number),
        Traced::Metrics { srtt, rate, in_flight, loss, state } => metrics_updated(json!({
            "smoothed_rtt": millis(*srtt),
            "pacing_rate": rate.as_bps(),
            "bytes_in_flight": in_flight,
            "loss_rate": loss,
            "rate_state": state.name(),
        })),
    };
    // A connection has one path unless it says otherwise.
    if event.path != 0 {
        data["path_id"] = event.path.into();
    }
    (name, data)
}

fn frame(frame: &Frame) -> Value {
    let mut told = json!({ "frame_type": frame.name() });
    if let Value::Object(fields) = fields(frame) {
        extend(&mut told, fields);
    }
    told
}

/// The fields of a frame besides its kind.
fn fields(frame: &Frame) -> Value {
    match frame {
        Frame::Symbols(symbols) => {
            let mut told = json!({
                "channel": symbols.channel,
                "block": symbols.block,
                "esi": symbols.esi,
                "count": symbols.count,
                "length": symbols.len,
            });
            if let Some(live) = symbols.live {
                told["block_length"] = live.block_len.into();
                told["fin"] = live.fin.into();
            }
            if symbols.whole {
                told["whole"] = true.into();
            }
            told
        }
        Frame::Feedback(feedback) => {
            let received = feedback.ranges().filter(|(.., received)| *received);
            // QUIC's acknowledgements have their names for the same.
            let ranges: Vec<_> = received.map(|(first, last, _)| [first, last]).collect();
            json!({
                "ack_delay": f64::from(feedback.delay_us) / 1e3,
                "acked_ranges": ranges,
                "packets": feedback.packets,
                "ce": feedback.ce,
            })
        }
        Frame::Blocks(status) => {
            let needs = status.blocks.iter();
            let needs: Vec<_> = needs
                .map(
                    |need| json!({ "block": need.block, "needed": need.needed, "done": need.done }),
                )
                .collect();
            json!({
                "channel": status.channel,
                "sequence": status.sequence,
                "floor": status.floor,
                "limit": status.limit,
                "blocks": needs,
            })
        }
        Frame::Open(open) => json!({
            "channel": open.channel,
            "size": open.object.size,
            "block_size": open.object.block_size,
            "symbol_size": open.object.symbol_size,
            "code": open.object.code,
        }),
        Frame::Done { channel } => json!({ "channel": channel }),
        Frame::Abandon { channel, code, .. } => json!({ "channel": channel, "error_code": code }),
        Frame::GivenUp(run) => {
            json!({ "ordered": run.is_ordered(), "first": run.first(), "count": run.count() })
        }
        Frame::PathClosed { path } => json!({ "path_id": path }),
        Frame::Limit { rate, .. } => json!({ "rate": rate.map(|rate| rate.as_bps()) }),
        Frame::Close { code, reason } => json!({ "error_code": code, "reason": reason }),
        Frame::Padding(length) => json!({ "length": length }),
        _ => json!({}),
    }
}
