//! The rules of FLD_TCP, each by itself: what the algorithm does when it is told of
//! acknowledgements and losses, without a network.

use fontis_base::{Duration, Stream, Time};
use fontis_proto::congestion::{
    Acknowledgement, CongestionControl, CongestionKind, Fld, FldOptions, Phase, Setup,
    SlowStartGuard,
};
use fontis_proto::tcp::TcpConfig;
use fontis_sim::analysis::lognormal::log_normal;

use super::super::value::Value;

const MSS: u64 = 1000;
const SHORT: u64 = u64::MAX;

fn flow(options: FldOptions, threshold: u64) -> Fld {
    Fld::new(MSS, 10 * MSS, FldOptions { threshold, ..options })
}

fn setup(window: u64) -> Setup {
    Setup { mss: MSS, initial_window: window * MSS, salt: 0 }
}

/// What a sender that fills its window hears of segments.
fn ack(flow: &dyn CongestionControl, segments: u64) -> Acknowledgement {
    let rtt = Duration::from_millis(100);
    Acknowledgement {
        now: Time::ZERO,
        acked: segments * MSS,
        delivered: segments * MSS,
        lost: 0,
        rtt: Some(rtt),
        min_rtt: rtt,
        srtt: rtt,
        marked: false,
        in_flight: flow.cwnd().saturating_sub(segments * MSS),
        cwnd_limited: true,
        acked_to: 0,
        sent_to: u64::MAX,
        phase: Phase::Open,
        shortest_stream: None,
        delivery: None,
    }
}

/// Segments sent by the end of each of five round trips without loss.
fn sent(flow: &mut dyn CongestionControl) -> Vec<f64> {
    let mut total = 0;
    let trip = |_| {
        let segments = flow.cwnd() / MSS;
        total += segments;
        for _ in 0..segments {
            let ack = ack(flow, 1);
            flow.on_ack(&ack);
        }
        total as f64
    };
    (0..5).map(trip).collect()
}

/// The growth of the window by one acknowledgement, in segments.
fn step(options: FldOptions, threshold: u64) -> f64 {
    let mut flow = flow(options, threshold);
    let before = flow.cwnd();
    flow.on_ack(&ack(&flow.clone(), 1));
    (flow.cwnd() - before) as f64 / MSS as f64
}

/// A flow with a window of this many segments.
fn grown(options: FldOptions, threshold: u64, segments: u64) -> Fld {
    let mut flow = flow(options, threshold);
    while flow.cwnd() < segments * MSS {
        flow.on_ack(&ack(&flow.clone(), 1));
    }
    flow
}

/// Windows before and after a recovery from so many losses, and the threshold of slow start.
fn recovery(options: FldOptions, threshold: u64, lost: u64) -> [f64; 3] {
    let mut flow = grown(options, threshold, 90);
    let before = flow.cwnd();
    flow.on_congestion(Time::ZERO, before);
    (0..lost).for_each(|_| flow.on_lost(Time::ZERO, 1));
    let threshold = flow.ssthresh();
    let arrived = before / MSS - lost;
    for _ in 0..arrived {
        let in_flight = before - lost * MSS - MSS;
        let ack = Acknowledgement { phase: Phase::Recovery, in_flight, ..ack(&flow, 1) };
        flow.on_ack(&ack);
    }
    // A window that grows back is whole after a round trip.
    for _ in 0..arrived {
        let ack = ack(&flow, 1);
        flow.on_ack(&ack);
    }
    [before, flow.cwnd(), threshold].map(|bytes| bytes as f64 / MSS as f64)
}

/// The window less what is in flight, in segments, after each of some acknowledgements in recovery.
fn repair() -> Vec<f64> {
    let mut flow = grown(FldOptions::THESIS, SHORT, 90);
    flow.on_congestion(Time::ZERO, flow.cwnd());
    flow.on_lost(Time::ZERO, 3);
    let after = |in_flight: u64| {
        let in_flight = in_flight * MSS;
        let ack = Acknowledgement { phase: Phase::Recovery, in_flight, ..ack(&flow, 1) };
        flow.on_ack(&ack);
        (flow.cwnd() - in_flight) as f64 / MSS as f64
    };
    [80, 79, 78, 50].map(after).to_vec()
}

/// The bytes after which a flow has its long ones' growth, and its response to losses, less the
/// threshold: the last length that is short.
fn crossing() -> Vec<f64> {
    let options = FldOptions { threshold: 500 * MSS, ..FldOptions::LINUX };
    let mut flow = Fld::new(MSS, 10 * MSS, options);
    let mut sent = 10 * MSS;
    loop {
        let before = flow.cwnd();
        flow.on_ack(&ack(&flow.clone(), 1));
        let grown = flow.cwnd() - before;
        if grown == MSS {
            // One acknowledgement grew less: what was sent had passed the threshold by then.
            return vec![(sent / MSS) as f64 - 500.0];
        }
        sent += MSS + grown;
    }
}

/// The windows before and after one loss of a long flow of another algorithm.
fn halved(kind: CongestionKind) -> Vec<f64> {
    let mut flow = kind.start(setup(90));
    flow.on_congestion(Time::ZERO, 90 * MSS);
    vec![90.0, flow.cwnd() as f64 / MSS as f64]
}

/// The share of flows below 100 kB, and of all bytes in the others, of lengths as FG15 draws them.
fn workload() -> Vec<f64> {
    let mut stream = Stream::new(1, "lengths of flows");
    let sizes: Vec<u64> = (0..200_000).map(|_| log_normal(&mut stream, 10_000, 3.5)).collect();
    let short: Vec<u64> = sizes.iter().copied().filter(|size| *size < 100_000).collect();
    let bytes = |sizes: &[u64]| sizes.iter().sum::<u64>() as f64;
    vec![short.len() as f64 / sizes.len() as f64, 1.0 - bytes(&short) / bytes(&sizes)]
}

pub(super) fn probe(rule: &str) -> Option<Value> {
    let short = |lost| recovery(FldOptions::LINUX, SHORT, lost);
    let list = |values: [f64; 3]| Value::List(values.to_vec());
    Some(match rule {
        "tripling" => Value::List(sent(&mut flow(FldOptions::LINUX, SHORT))),
        "doubling" => Value::List(sent(&mut *CongestionKind::NewReno.start(setup(10)))),
        "step short" => Value::Number(step(FldOptions::LINUX, SHORT)),
        "step long" => Value::Number(step(FldOptions::LINUX, 0)),
        "one loss" => list(short(1)),
        "five losses" => list(short(5)),
        "twenty losses" => list(short(20)),
        "long loss" => list(recovery(FldOptions::LINUX, 0, 1)),
        "long loss ns2" => list(recovery(FldOptions::NS2, 0, 1)),
        "repair" => Value::List(repair()),
        "crossing" => Value::List(crossing()),
        "threshold" => Value::Number(FldOptions::default().threshold as f64),
        "initial window" => Value::Number(f64::from(TcpConfig::default().initial_window)),
        "guards" => Value::truth(FldOptions::default().guard != SlowStartGuard::None),
        "inclusive" => Value::truth(FldOptions::LINUX.is_inclusive),
        "workload" => Value::List(workload()),
        "reno loss" => Value::List(halved(CongestionKind::NewReno)),
        _ => return None,
    })
}
