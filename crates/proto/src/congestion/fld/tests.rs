use fontis_base::Stream;

use super::super::guard::SlowStartGuard;
use super::super::newreno::NewReno;
use super::super::testing::*;
use super::*;

const VARIANTS: [FldOptions; 4] =
    [FldOptions::MODERN, FldOptions::LINUX, FldOptions::THESIS, FldOptions::NS2];

fn flow(options: FldOptions) -> Fld {
    Fld::new(MSS, 10 * MSS, options)
}

/// What a sender that fills its window hears of one segment.
fn filled(fld: &Fld) -> Acknowledgement {
    Acknowledgement { in_flight: fld.cwnd() - MSS, ..ack(0, 1, 100) }
}

/// Segments sent by the end of each of six round trips.
fn sent(options: FldOptions) -> [u64; 6] {
    let mut fld = flow(options);
    let mut total = 0;
    [(); 6].map(|()| {
        let segments = fld.cwnd() / MSS;
        total += segments;
        (0..segments).for_each(|_| fld.on_ack(&filled(&fld.clone())));
        total
    })
}

#[test]
fn without_loss_a_short_flow_triples_its_window_and_a_long_one_doubles_it() {
    for options in VARIANTS {
        let short = sent(FldOptions { threshold: u64::MAX, ..options });
        let long = sent(FldOptions { threshold: 0, ..options });
        // 5·(3^k − 1) and 10·(2^k − 1).
        assert_eq!(short, [10, 40, 130, 400, 1210, 3640], "{options:?}");
        assert_eq!(long, [10, 30, 70, 150, 310, 630], "{options:?}");
    }
}

#[test]
fn an_acknowledgement_of_two_segments_counts_once_or_twice() {
    for (counting, segments) in [(Counting::Acknowledgements, 2), (Counting::Segments, 4)] {
        let mut fld = flow(FldOptions { counting, ..FldOptions::MODERN });
        fld.on_ack(&ack(0, 2, 100));
        assert_eq!(fld.cwnd(), (10 + segments) * MSS, "{counting:?}");
    }
}

#[test]
fn an_isolated_loss_costs_a_short_flow_one_segment_and_a_long_one_half_its_window_or_two_thirds() {
    for options in VARIANTS {
        for (threshold, want) in [(u64::MAX, 89), (0, 90 / options.divisor)] {
            let mut fld = flow(FldOptions { threshold, ..options });
            fld.on_ack(&filled(&fld.clone()));
            fld.cwnd = 90 * MSS;
            fld.on_congestion(Time::ZERO, 90 * MSS);
            fld.on_lost(Time::ZERO, 1);
            for _ in 0..89 {
                // 89 others are delivered, and each lets one segment go.
                let in_flight = 88 * MSS;
                fld.on_ack(&Acknowledgement {
                    phase: Phase::Recovery,
                    in_flight,
                    ..ack(0, 1, 100)
                });
            }
            fld.on_ack(&Acknowledgement { acked: 0, ..filled(&fld.clone()) });
            assert_eq!(fld.cwnd() / MSS, want, "{threshold}, {options:?}");
        }
    }
}

#[test]
fn losses_that_are_found_later_count_too_and_the_window_regrows_or_jumps() {
    for exit in [Exit::Regrow, Exit::Jump] {
        let mut fld = flow(FldOptions { exit, ..FldOptions::LINUX });
        fld.cwnd = 50 * MSS;
        fld.on_congestion(Time::ZERO, 50 * MSS);
        fld.on_lost(Time::ZERO, 3);
        fld.on_lost(Time::ZERO, 4);
        assert_eq!(fld.ssthresh(), 43 * MSS);
        let in_flight = 30 * MSS;
        fld.on_ack(&Acknowledgement { phase: Phase::Recovery, in_flight, ..ack(0, 1, 100) });
        assert_eq!(fld.cwnd(), 31 * MSS);
        fld.on_ack(&Acknowledgement { acked: 0, ..filled(&fld.clone()) });
        assert_eq!(fld.cwnd(), if exit == Exit::Jump { 43 } else { 31 } * MSS);
    }
}

#[test]
fn above_the_threshold_only_what_happens_later_is_different() {
    for options in VARIANTS {
        let mut fld = flow(FldOptions { threshold: 100 * MSS, ..options });
        let mut delivered = 0;
        loop {
            let before = fld.cwnd();
            let hears = filled(&fld);
            fld.on_ack(&hears);
            delivered += MSS;
            let sent = delivered + hears.in_flight;
            // "More than", so that the segment that reaches the threshold is a short flow's.
            let increase = if sent > 100 * MSS { 1 } else { 2 };
            assert_eq!(fld.cwnd(), before + increase * MSS, "{sent}, {options:?}");
            if fld.is_boosted {
                continue;
            }
            let by_sent = options.loss_length == Length::Sent;
            assert_eq!(fld.is_bold, !by_sent && delivered <= 100 * MSS);
            if !fld.is_bold {
                break;
            }
        }
    }
}

#[test]
fn only_the_first_slow_start_is_boosted_unless_every_one_is() {
    for (boost, increase) in [(Boost::First, 1), (Boost::Any, 2)] {
        let mut fld = flow(FldOptions { boost, ..FldOptions::MODERN });
        fld.cwnd = 40 * MSS;
        fld.on_timeout(Time::ZERO, 40 * MSS);
        assert_eq!((fld.cwnd(), fld.ssthresh()), (MSS, 40 * MSS));
        fld.on_ack(&Acknowledgement { phase: Phase::Loss, ..filled(&fld.clone()) });
        assert_eq!(fld.cwnd(), (1 + increase) * MSS, "{boost:?}");
    }
}

#[test]
fn growth_stops_at_the_threshold_of_slow_start_or_passes_it_by_a_step() {
    for (is_inclusive, want) in [(false, 20), (true, 22)] {
        let mut fld = flow(FldOptions { boost: Boost::Any, is_inclusive, ..FldOptions::MODERN });
        fld.ssthresh = 20 * MSS;
        (0..6).for_each(|_| fld.on_ack(&filled(&fld.clone())));
        assert_eq!(fld.cwnd(), want * MSS);
    }
}

#[test]
fn a_mark_halves_the_window_or_takes_a_segment() {
    for (is_relentless_to_marks, want) in [(false, 20), (true, 39)] {
        let mut fld = flow(FldOptions { is_relentless_to_marks, ..FldOptions::MODERN });
        fld.cwnd = 40 * MSS;
        fld.on_mark(Time::ZERO, 40 * MSS);
        assert_eq!(fld.cwnd(), want * MSS);
    }
}

#[test]
fn a_pause_leaves_the_window_but_a_lost_handshake_does_not() {
    let mut fld = flow(FldOptions::MODERN);
    fld.on_idle(MSS);
    assert_eq!(fld.cwnd(), MSS);
    fld.on_ack(&filled(&fld.clone()));
    fld.on_idle(MSS);
    assert_eq!(fld.cwnd(), 3 * MSS);
}

#[test]
fn hystart_ends_the_boost_before_the_queue_overflows() {
    let mut fld = flow(FldOptions { guard: SlowStartGuard::HyStart, ..FldOptions::MODERN });
    for n in 0..200 {
        let rtt = if fld.cwnd() > 40 * MSS { 150 } else { 100 };
        fld.on_ack(&Acknowledgement {
            min_rtt: ms(100),
            acked_to: n * MSS,
            sent_to: n * MSS + fld.cwnd(),
            ..ack(1 + 5 * n, 1, rtt)
        });
    }
    assert!(fld.ssthresh() < 200 * MSS, "{}", fld.ssthresh() / MSS);
}

/// A random transport above a flow.
struct Transport {
    stream: Stream,
    phase: Phase,
    /// The window and the segments lost in this recovery, and whether the flow was bold.
    episode: Option<(u64, u64, bool)>,
}

enum Event {
    Ack(Acknowledgement),
    Lost { begins: bool, window: u64, packets: u64 },
    Mark(u64),
    Timeout(u64),
}

impl Transport {
    fn next(&mut self, cwnd: u64) -> Event {
        let segments = cwnd / MSS;
        let window = MSS * self.stream.below(segments + 1).max(1);
        match self.stream.below(100) {
            0 if self.phase == Phase::Open => Event::Mark(window),
            1 => {
                self.phase = Phase::Loss;
                Event::Timeout(window)
            }
            2..=6 if self.phase != Phase::Loss => {
                let begins = self.phase == Phase::Open;
                self.phase = Phase::Recovery;
                Event::Lost { begins, window, packets: 1 + self.stream.below(4) }
            }
            chance => {
                if chance >= 85 {
                    self.phase = Phase::Open;
                }
                let acked = 1 + self.stream.below(segments.clamp(1, 4));
                Event::Ack(Acknowledgement {
                    in_flight: MSS * self.stream.below(segments + 1),
                    cwnd_limited: chance % 8 != 0,
                    phase: self.phase,
                    ..ack(0, acked, 100)
                })
            }
        }
    }
}

fn random_options(stream: &mut Stream) -> FldOptions {
    let threshold = match stream.below(4) {
        0 => 0,
        1 => u64::MAX,
        _ => MSS << stream.below(12),
    };
    let pick = |stream: &mut Stream| stream.below(2) == 0;
    FldOptions {
        threshold,
        increase: 1 + stream.below(3),
        boost: if pick(stream) { Boost::First } else { Boost::Any },
        repair: if pick(stream) { Repair::OnePerAck } else { Repair::Delivered },
        exit: if pick(stream) { Exit::Jump } else { Exit::Regrow },
        is_gated: pick(stream),
        is_inclusive: pick(stream),
        is_relentless_to_marks: pick(stream),
        keeps_after_timeout: pick(stream),
        guard: [
            SlowStartGuard::None,
            SlowStartGuard::HyStart,
            SlowStartGuard::HyStartPlus,
            SlowStartGuard::Limited,
        ][stream.below(4) as usize],
        threshold_time: ms(200 * stream.below(2)),
        ..VARIANTS[stream.below(4) as usize]
    }
}

fn check(
    before: &Fld,
    after: &Fld,
    transport: &Transport,
    started: Option<(u64, u64, bool)>,
    ended: bool,
) {
    let options = after.options;
    assert!(after.cwnd >= MSS);
    assert!(after.ssthresh >= options.least * MSS);
    assert!(before.is_boosted || !after.is_boosted);
    assert!(before.is_bold || !after.is_bold);
    assert!(options.threshold < u64::MAX || after.is_bold);
    if transport.phase == Phase::Recovery {
        assert!(after.cwnd <= before.cwnd.max(after.ssthresh));
    }
    let Some((prior, lost, is_bold)) = started.filter(|_| ended) else { return };
    // The acknowledgement that ends a recovery may widen the window, never narrow it.
    if is_bold {
        let floor = prior.saturating_sub(lost * MSS + MSS);
        let kept = if options.exit == Exit::Jump { after.cwnd } else { after.ssthresh };
        assert!(kept >= floor, "{kept} of {prior} after {lost}");
    } else {
        assert!(after.ssthresh <= (prior / options.divisor).max(options.least * MSS));
    }
}

#[test]
fn a_threshold_by_time_is_what_the_path_carries_in_it() {
    // Ten segments a round trip of 100 ms, so a second's length is a hundred.
    for time in [300, 1000, 2500] {
        let options = FldOptions { threshold: 20 * MSS, ..FldOptions::MODERN };
        let mut fld = flow(FldOptions { threshold_time: ms(time), ..options });
        let mut segments = 0;
        while fld.is_bold {
            segments += 10;
            let (acked_to, sent_to) = (segments * MSS, (segments + 10) * MSS);
            let at = 10 * segments;
            fld.on_ack(&Acknowledgement { acked_to, sent_to, ..ack(at, 10, 100) });
        }
        assert_eq!(segments, (time / 10).max(20) + 10, "{time}");
    }
}

#[test]
fn the_length_of_an_object_begins_anew_when_all_is_acknowledged() {
    for (length_of, want) in [(LengthOf::Connection, false), (LengthOf::Object, true)] {
        let mut fld = flow(FldOptions { length_of, ..FldOptions::MODERN });
        let all = Acknowledgement { cwnd_limited: false, ..ack(0, 3000, 100) };
        fld.on_ack(&Acknowledgement { in_flight: MSS, ..all });
        assert!(!fld.is_bold && !fld.is_boosted);
        fld.on_ack(&all);
        assert_eq!((fld.is_bold, fld.is_boosted), (want, want));
        // Long again, from where it began.
        fld.on_ack(&Acknowledgement { in_flight: MSS, ..all });
        assert!(!fld.is_bold);
    }
}

#[test]
fn invariants_hold_over_random_sequences_of_events() {
    // A sequence has 500 events.
    let runs = std::env::var("FONTIS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(2000);
    for seed in 0..runs {
        println!("seed {seed}");
        let mut stream = Stream::new(seed, "options");
        let options = random_options(&mut stream);
        let mut fld = flow(options);
        let equal = FldOptions { threshold: 0, divisor: 2, ..options };
        let equal = FldOptions { counting: Counting::Segments, is_gated: true, ..equal };
        let mut reno_like = flow(FldOptions {
            is_inclusive: false,
            guard: SlowStartGuard::None,
            threshold_time: Duration::ZERO,
            ..equal
        });
        let mut reno = NewReno::new(MSS, 10 * MSS);
        let mut transport = Transport { stream, phase: Phase::Open, episode: None };
        // No transport hears of a loss before it hears of an arrival.
        let first = filled(&fld);
        fld.on_ack(&first);
        reno_like.on_ack(&first);
        reno.on_ack(&first);
        for _ in 0..500 {
            let before = fld.clone();
            let was = transport.episode;
            let event = transport.next(fld.cwnd().min(reno.cwnd()));
            tell(&mut fld, &event);
            tell(&mut reno_like, &event);
            tell(&mut reno, &event);
            assert_eq!(
                (reno_like.cwnd(), reno_like.ssthresh()),
                (reno.cwnd(), reno.ssthresh()),
                "a flow that is never short is NewReno's"
            );
            let ended = matches!(event, Event::Ack(_)) && transport.phase == Phase::Open;
            match event {
                Event::Lost { begins: true, packets, .. } => {
                    transport.episode = Some((before.cwnd, packets, before.is_bold));
                }
                Event::Lost { packets, .. } => {
                    transport.episode =
                        was.map(|(prior, lost, bold)| (prior, lost + packets, bold));
                }
                Event::Timeout(_) => transport.episode = None,
                Event::Ack(_) if ended => transport.episode = None,
                _ => {}
            }
            check(&before, &fld, &transport, was, ended);
        }
    }
}

fn tell(congestion: &mut dyn CongestionControl, event: &Event) {
    match event {
        Event::Ack(ack) => congestion.on_ack(ack),
        Event::Lost { begins, window, packets } => {
            if *begins {
                congestion.on_congestion(Time::ZERO, *window);
            }
            congestion.on_lost(Time::ZERO, *packets);
        }
        Event::Mark(window) => congestion.on_mark(Time::ZERO, *window),
        Event::Timeout(window) => congestion.on_timeout(Time::ZERO, *window),
    }
}

#[test]
fn a_connection_is_short_as_long_as_it_carries_a_short_stream() {
    let options = FldOptions { length_of: LengthOf::Stream, ..FldOptions::MODERN };
    let mut fld = flow(options);
    let mut hears = |shortest: Option<u64>| {
        let before = fld.cwnd();
        fld.on_ack(&Acknowledgement { shortest_stream: shortest, ..filled(&fld.clone()) });
        ((fld.cwnd() - before) / MSS, fld.is_bold)
    };
    let threshold = FldOptions::THRESHOLD;
    // The connection has long passed the threshold when a short stream begins.
    for (length, want) in
        [(0, (2, true)), (threshold, (2, true)), (threshold + 1, (1, false)), (5000, (2, true))]
    {
        assert_eq!(hears(Some(length)), want, "{length}");
    }
    // A transport without streams is asked about objects.
    let mut fld = flow(options);
    fld.on_ack(&Acknowledgement { in_flight: threshold + MSS, ..filled(&fld.clone()) });
    assert!(!fld.is_boosted);
}
