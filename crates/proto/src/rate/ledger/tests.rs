use fontis_base::Stream;

use super::*;

/// Reports a thousand packets in twenty feedbacks of a flow that is alone.
fn report(ledger: &mut LossLedger, begin: u64, packet: impl FnMut(u64) -> (f64, bool)) {
    report_of(20e3, ledger, begin, packet);
}

/// The same of a flow with a share of so many packets in a second. The queue of each packet in
/// seconds, and whether it is lost, are the caller's.
fn report_of(
    share: f64,
    ledger: &mut LossLedger,
    begin: u64,
    mut packet: impl FnMut(u64) -> (f64, bool),
) {
    for feedback in begin * 20..(begin + 1) * 20 {
        let mut sample = FeedbackSummary::example(feedback * 10);
        let (mut delays, mut decided) = (Vec::new(), Vec::new());
        for number in feedback * 50..(feedback + 1) * 50 {
            let (queue, lost) = packet(number);
            if !lost {
                delays.push((number, (queue * 1e9) as i64));
            }
            decided.push((number, !lost));
        }
        decided.reverse();
        (sample.decided, sample.one_way_ns) = (decided, delays);
        ledger.set_window(sample.now, 250.0);
        ledger.sees_queue(sample.now);
        ledger.observe(&sample, share, |delay| delay as f64 / 1e9, |_| false);
    }
}

#[test]
fn loss_that_does_not_ask_for_the_queue_is_the_paths_own() {
    let seed = 0x6c65_6467;
    println!("seed {seed:#x}");
    let mut random = Stream::new(seed, "ledger");
    let mut ledger = LossLedger::default();
    report(&mut ledger, 0, |number| ((number % 100) as f64 * 1e-4, random.unit() < 0.2));
    let proved = ledger.proved().unwrap();
    assert!((proved - 0.2).abs() < 0.05, "{proved}");
}

#[test]
fn what_a_full_buffer_drops_is_not() {
    // The queue grows from nothing to ten milliseconds, and there every other packet is lost.
    let mut ledger = LossLedger::default();
    report(&mut ledger, 0, |number| {
        let queue = (number % 100) as f64 * 1e-4;
        (queue, queue > 9e-3 && number % 2 == 0)
    });
    assert_eq!(ledger.proved(), Some(0.0));
}

#[test]
fn what_active_queue_management_drops_is_not() {
    // The queue goes up and down within 100 ms, and whatever waits for more than 5 ms may be
    // dropped, however long others wait.
    let mut ledger = LossLedger::default();
    report(&mut ledger, 0, |number| {
        let queue = (number % 100) as f64 * 1e-3;
        (queue, queue > 5e-3 && number % 7 == 0)
    });
    assert_eq!(ledger.proved(), Some(0.0));
    let too_long = ledger.too_long(None);
    assert!(too_long.is_some_and(|queue| queue < 0.07), "{too_long:?}");
}

#[test]
fn a_lesser_delay_disproves_what_seemed_calm() {
    let mut ledger = LossLedger::default();
    report(&mut ledger, 0, |number| (0.0, number % 10 == 3));
    assert!(ledger.proved().unwrap() > 0.09);
    ledger.disprove(&FeedbackSummary::example(200), 10e-3);
    assert_eq!(ledger.proved(), None);
}

#[test]
fn after_a_lesser_delay_nothing_is_proved_for_a_while_unless_delays_differ_by_themselves() {
    let packet = |number: u64| ((number % 100) as f64 * 1e-4, number % 10 == 3);
    let proved = |jitter: u64, begin: u64| {
        let mut ledger = LossLedger::default();
        report(&mut ledger, 0, packet);
        let jitter = Duration::from_millis(jitter);
        ledger.disprove(&FeedbackSummary { jitter, ..FeedbackSummary::example(200) }, 10e-3);
        report(&mut ledger, begin, packet);
        ledger.proved().expect("there are calm packets")
    };
    // Five reports in a second.
    assert!(proved(0, 150) <= FLOOR);
    assert!(proved(0, 151) > 0.09);
    assert!(proved(3, 1) > 0.09);
}

#[test]
fn a_lesser_delay_than_that_of_the_first_packets_makes_no_doubt() {
    let packet = |number: u64| ((number % 100) as f64 * 1e-4, number % 10 == 3);
    let proved = |millis: u64| {
        let mut ledger = LossLedger::default();
        // One packet tells when the flow began, and proves nothing.
        let mut first = FeedbackSummary::example(0);
        (first.decided, first.one_way_ns) = (vec![(0, true)], vec![(0, 0)]);
        ledger.observe(&first, 20e3, |delay| delay as f64 / 1e9, |_| false);
        ledger.disprove(&FeedbackSummary::example(millis), 10e-3);
        report(&mut ledger, 9, packet);
        ledger.proved().expect("there are calm packets")
    };
    assert!(proved(1400) > 0.09);
    assert!(proved(1600) <= FLOOR);
}

#[test]
fn what_was_proved_is_forgotten_without_calm_packets() {
    let mut ledger = LossLedger::default();
    report(&mut ledger, 0, |number| ((number % 100) as f64 * 1e-4, number % 10 == 3));
    let before = ledger.proved().unwrap();
    for second in 1..40 {
        report(&mut ledger, second * 5, |number| (10e-3, number % 10 == 3));
    }
    assert!(ledger.proved().unwrap() < before / 20.0);
}

#[test]
fn a_queue_of_others_proves_little() {
    let packet = |number: u64| ((number % 100) as f64 * 1e-4, number % 10 == 3);
    let (mut alone, mut crowded) = (LossLedger::default(), LossLedger::default());
    for begin in 0..35 {
        report(&mut alone, begin, packet);
        // Of the queue of 10 ms it has two packets.
        report_of(200.0, &mut crowded, begin, packet);
        let proved = crowded.proved().unwrap();
        assert!(begin > 25 || proved > 0.09, "a newcomer may prove more: {proved}");
    }
    assert!(alone.proved().unwrap() > 0.09);
    assert_eq!(crowded.proved(), Some(MOST_DISTRUSTED));
}

/// Proves what a path loses whose queue goes from nothing to `queue` and back in seconds, and
/// that holds each run of 25 packets back for up to 10 ms; `drops` is the loss of the buffer
/// while it is full.
fn jittery(queue: f64, drops: f64) -> f64 {
    let mut random = Stream::new(0x6a69_7474, "ledger");
    let mut ledger = LossLedger::default();
    let mut held = 0.0;
    for feedback in 0..2000 {
        let mut sample = FeedbackSummary::example(feedback * 10);
        sample.jitter = Duration::from_millis(10);
        for number in feedback * 50..(feedback + 1) * 50 {
            if number % 25 == 0 {
                held = 10e-3 * random.unit();
            }
            let phase = feedback as f64 / 100.0;
            let stands =
                queue * (1.5 - libm::fabs(2.0 * (phase % 1.0) - 1.0) * 2.0).clamp(0.0, 1.0);
            let lost = random.unit() < 0.08 + if stands < queue { 0.0 } else { drops };
            if !lost {
                sample.one_way_ns.push((number, ((stands + held) * 1e9) as i64));
            }
            sample.decided.push((number, !lost));
        }
        sample.decided.reverse();
        ledger.set_window(sample.now, 1000.0);
        ledger.sees_queue(sample.now);
        ledger.observe(&sample, 5e3, |delay| delay as f64 / 1e9, |_| false);
    }
    ledger.proved().unwrap_or(0.0)
}

#[test]
fn a_queue_that_stands_longer_than_packets_are_held_back_proves_as_without_jitter() {
    let proved = jittery(20e-3, 0.3);
    assert!((proved - 0.08).abs() < 0.03, "{proved}");
}

#[test]
fn a_queue_that_jitter_hides_proves_little() {
    let proved = jittery(4e-3, 0.3);
    assert!(proved <= MOST_DISTRUSTED, "{proved}");
}

#[test]
fn losses_beyond_what_was_proved_show_an_overload() {
    let mut ledger = LossLedger::default();
    report(&mut ledger, 0, |number| ((number % 100) as f64 * 1e-4, number % 20 == 7));
    let weigh = |ledger: &mut LossLedger, every: u64| {
        let mut sample = FeedbackSummary::example(1000);
        sample.decided = (1000..2000).rev().map(|n| (n, n % every != 0)).collect();
        ledger.shows_overload(&sample, 0)
    };
    assert!(!weigh(&mut ledger, 20), "as much as was proved");
    assert!(weigh(&mut ledger, 7), "nearly three times as much");
}
