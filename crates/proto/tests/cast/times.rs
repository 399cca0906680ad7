use fontis_base::{Rate, Time};

use super::room::{Outcome, SYMBOL, Way, cast};

const RATE: Rate = Rate::from_mbps(100);

fn seed() -> u64 {
    std::env::var("FONTIS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn secs(seconds: f64) -> Time {
    Time::ZERO + fontis_base::Duration::from_secs_f64(seconds)
}

/// The least time for what is needed at the rate behind a loss.
fn ideal(outcome: &Outcome, loss: f64) -> f64 {
    outcome.needed as f64 * f64::from(SYMBOL) * 8.0 / RATE.as_bps() as f64 / (1.0 - loss)
}

fn show(what: &str, outcome: &Outcome, loss: f64) {
    println!(
        "{what}: sent {:.3}, last {:.3}, feedback {:.3} %",
        outcome.symbols as f64 / outcome.needed as f64,
        outcome.last() / ideal(outcome, loss),
        100.0 * outcome.feedback as f64 / (outcome.symbols as f64 * f64::from(SYMBOL)),
    );
}

#[test]
fn eight_behind_independent_loss() {
    for (loss, most) in [(0.0, 1.005), (0.01, 1.035), (0.1, 1.15), (0.3, 1.49)] {
        println!("seed {}", seed());
        let ways = [Way::lossy(loss); 8];
        let outcome = cast(64 << 20, RATE, &ways, seed(), secs(60.0));
        show(&format!("8 at {loss}"), &outcome, loss);
        let sent = outcome.symbols as f64 / outcome.needed as f64;
        assert!(sent <= most, "{sent}");
        assert!(outcome.last() <= 1.08 * ideal(&outcome, loss), "{}", outcome.last());
    }
}

#[test]
fn a_thousand_behind_independent_loss() {
    println!("seed {}", seed());
    let members = std::env::var("FONTIS_RUNS").ok().and_then(|text| text.parse().ok());
    let members = members.unwrap_or(200);
    let outcome = cast(12 << 20, RATE, &vec![Way::lossy(0.1); members], seed(), secs(60.0));
    show(&format!("{members} at .1"), &outcome, 0.1);
    assert!(outcome.done.iter().all(Option::is_some));
    assert!(outcome.symbols as f64 <= 1.17 * outcome.needed as f64);
    let sent = outcome.symbols as f64 * f64::from(SYMBOL);
    assert!((outcome.feedback as f64) < 0.0015 * sent, "{}", outcome.feedback as f64 / sent);
}

#[test]
fn who_has_a_worse_path_delays_nobody() {
    println!("seed {}", seed());
    let mut ways = vec![Way::lossy(0.01); 8];
    let others = |outcome: &Outcome| (1..8).map(|i| outcome.of(i)).fold(0.0, f64::max);
    let alone = others(&cast(64 << 20, RATE, &ways, seed(), secs(60.0)));
    ways[0].loss = 0.3;
    let bad = cast(64 << 20, RATE, &ways, seed(), secs(60.0));
    show("one at .3", &bad, 0.3);
    assert!(others(&bad) <= 1.05 * alone, "{} {alone}", others(&bad));
    assert!(bad.of(0) <= 1.08 * ideal(&bad, 0.3), "{}", bad.of(0));
    ways[0] = Way { away: Some((secs(2.0), secs(7.0))), ..Way::lossy(0.01) };
    let paused = cast(64 << 20, RATE, &ways, seed(), secs(60.0));
    show("one away", &paused, 0.01);
    assert!(others(&paused) <= 1.05 * alone, "{} {alone}", others(&paused));
    assert!(paused.of(0) <= 5.3 + 1.08 * ideal(&paused, 0.01), "{}", paused.of(0));
    ways[0] = Way { dies: Some(secs(2.0)), ..Way::lossy(0.01) };
    let dead = cast(64 << 20, RATE, &ways, seed(), secs(60.0));
    assert!(others(&dead) <= 1.05 * alone, "{} {alone}", others(&dead));
}

#[test]
fn who_comes_late_loses_nothing_and_delays_nobody() {
    let mut stream = fontis_base::Stream::new(seed(), "late");
    for _ in 0..2 {
        println!("seed {}", seed());
        let mut ways = vec![Way::lossy(0.01); 8];
        let others = |outcome: &Outcome| (1..8).map(|i| outcome.of(i)).fold(0.0, f64::max);
        let alone = others(&cast(64 << 20, RATE, &ways, seed(), secs(60.0)));
        let at = stream.unit() * 6.0;
        ways[0].joins = secs(at);
        let late = cast(64 << 20, RATE, &ways, seed(), secs(60.0));
        show(&format!("late at {at:.2}"), &late, 0.01);
        println!(
            "  late {:.3} others {:.3}",
            (late.of(0) - at) / ideal(&late, 0.01),
            others(&late) / alone
        );
        // The last rounds of two runs differ by as much.
        assert!(others(&late) <= 1.04 * alone, "{} {alone}", others(&late));
        assert!(late.of(0) - at <= 1.03 * ideal(&late, 0.01), "{}", late.of(0) - at);
    }
}

#[test]
fn who_lies_about_what_it_lacks_delays_nobody() {
    println!("seed {}", seed());
    let mut ways = vec![Way::lossy(0.01); 8];
    let others = |outcome: &Outcome| (1..8).map(|i| outcome.of(i)).fold(0.0, f64::max);
    let alone = others(&cast(64 << 20, RATE, &ways, seed(), secs(60.0)));
    ways[0].lies = true;
    let lied = cast(64 << 20, RATE, &ways, seed(), secs(60.0));
    println!("one lies: the others take {:.3} of the time without it", others(&lied) / alone);
    assert!(others(&lied) <= 1.08 * alone, "{} {alone}", others(&lied));
}
