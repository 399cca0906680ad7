//! FLD_TCP in the simulated network, against what its rules say.

use fontis_base::Stream;
use fontis_sim::Recording;
use fontis_sim::scenario::Scenario;

/// Bytes of payload in a full segment with timestamps.
const MSS: f64 = 1448.0;

fn run(text: &str) -> Recording {
    let runs = Scenario::parse(text).expect("a scenario").runs().expect("a run");
    assert_eq!(runs.len(), 1);
    runs[0].experiment.run(|| false).expect("nobody stops it")
}

fn last(recording: &Recording, column: &str) -> f64 {
    recording.flow.numbers(column).last().copied().expect("a row")
}

#[test]
fn under_random_loss_the_window_of_a_short_flow_is_inverse_to_the_loss() {
    // A segment is added each round trip and one given up for each loss, so that the two are equal
    // at 1/p if growth went on in recovery; as it pauses there, at about half of that.
    for seed in 1..=2u64 {
        println!("seed {seed}");
        for p in [0.005, 0.01, 0.02] {
            let window = |protocol: &str| {
                let recording = run(&format!(
                    "[scenario]\nduration = \"120 s\"\nwarmup = \"20 s\"\nsample = \"1 s\"\nseed = {seed}\n\
                     [topology]\nrate = \"1 Gbit/s\"\nrtt = \"50 ms\"\nloss = \"{}%\"\n\
                     [tcp]\ndelayed_ack = \"0\"\n[fld]\nthreshold = \"1 TB\"\n\
                     [[flow]]\nprotocol = \"{protocol}\"\n",
                    p * 100.0
                ));
                recording.metric("goodput", "all").expect("a goodput") * 1e6 * 0.05 / 8.0 / MSS
            };
            let reno = window("newreno");
            for protocol in ["fld", "fld-linux", "fld-thesis", "fld-ns2"] {
                let got = window(protocol);
                println!("{protocol}, {p}: {got:.1} segments, {:.2}/p; Reno {reno:.1}", got * p);
                assert!((0.40..0.65).contains(&(got * p)), "{protocol}, {p}: {got}");
                assert!(got > 2.0 * reno, "{protocol}, {p}: {got} and {reno}");
            }
        }
    }
}

#[test]
fn nodes_that_prefer_short_flows_let_a_burst_pass_and_cost_long_flows_little() {
    let times = |queue: &str, seed: u64| {
        let recording = run(&format!(
            "[scenario]\nduration = \"40 s\"\nsample = \"1 s\"\nseed = {seed}\n\
             [topology]\nrate = \"10 Mbit/s\"\nrtt = \"30 ms\"\nqueue = \"{queue}\"\n\
             buffer = \"30 packets\"\n\
             [[flow]]\nname = \"long\"\ncount = 3\napp = \"object\"\nsize = \"8 MB\"\n\
             protocol = \"newreno\"\n\
             [[flow]]\nname = \"burst\"\napp = \"object\"\nsize = \"1 MB\"\n\
             start = \"{} s\"\nprotocol = \"newreno\"\n",
            4.0 + 1.37 * seed as f64
        ));
        let of = |name: &str| recording.metric("fct", name).expect("it ends");
        let longs = ["long.1", "long.2", "long.3"].map(of);
        (of("burst"), longs.into_iter().fold(0.0, f64::max))
    };
    for seed in 1..=3 {
        let (shared, last_shared) = times("fifo", seed);
        for queue in ["las", "srpt", "short-first"] {
            let (burst, last) = times(queue, seed);
            println!(
                "seed {seed}, {queue}: {burst:.2} s, not {shared:.2}; {last:.1}, {last_shared:.1}"
            );
            // 1 MB takes .85 s of the line, and slow start a few round trips.
            assert!(burst < 1.2, "seed {seed}, {queue}: {burst}");
            assert!(burst < 0.7 * shared, "seed {seed}, {queue}: {burst} and {shared}");
            assert!(last < 1.1 * last_shared, "seed {seed}, {queue}: {last} and {last_shared}");
        }
    }
}

#[test]
fn jump_start_spares_the_round_trips_of_slow_start() {
    // Handshake, request and answer: three round trips, if the answer leaves within one.
    let mut stream = Stream::new(3, "jump");
    for case in 0..4 {
        let rtt = 0.06 + 0.2 * stream.unit();
        let size = 600_000 + stream.below(300_000);
        println!("case {case}: {rtt:.3} s, {size} bytes");
        let rounds = |protocol: &str| {
            let recording = run(&format!(
                "[scenario]\nduration = \"10 s\"\nsample = \"1 s\"\n\
                 [topology]\nrate = \"1 Gbit/s\"\nrtt = \"{} us\"\nbuffer = \"4 BDP\"\n\
                 [tcp]\nreceive_buffer = \"6 MB\"\n\
                 [[flow]]\napp = \"requests\"\nrequests = 1\nsize = \"{size} B\"\n\
                 protocol = \"{protocol}\"\n",
                (rtt * 1e6) as u64
            ));
            recording.metric("fct", "flow1").expect("it ends") / rtt
        };
        let (jump, reno) = (rounds("jumpstart"), rounds("newreno"));
        println!("{jump:.2} round trips, Reno {reno:.2}");
        assert!((2.9..3.4).contains(&jump), "case {case}: {jump}");
        assert!(reno > 6.5, "case {case}: {reno}");
    }
}

#[test]
fn halfback_sends_half_of_its_packets_twice_and_waits_for_no_loss_at_the_end() {
    let mut stream = Stream::new(5, "halfback");
    let (mut late, mut slower) = (0, 0);
    for case in 0..40 {
        let rtt = 0.04 + 0.1 * stream.unit();
        let size = 60_000 + stream.below(80_000);
        let run = |protocol: &str, loss: u64| {
            let recording = run(&format!(
                "[scenario]\nduration = \"20 s\"\nsample = \"10 ms\"\nuntil_done = true\n\
                 seed = {case}\n\
                 [topology]\nrate = \"100 Mbit/s\"\nrtt = \"{} us\"\nloss = \"{loss}%\"\n\
                 [tcp]\nreceive_buffer = \"6 MB\"\n\
                 [[flow]]\napp = \"requests\"\nrequests = 1\nsize = \"{size} B\"\n\
                 protocol = \"{protocol}\"\n",
                (rtt * 1e6) as u64
            ));
            let copies = last(&recording, "retransmitted");
            (recording.metric("fct", "flow1").expect("it ends") / rtt, copies)
        };
        let ((clean, copies), (jump, _)) = (run("halfback", 0), run("jumpstart", 0));
        println!("case {case}: {rtt:.3} s, {size} bytes: {clean:.3} and {jump:.3} round trips");
        assert!((clean - jump).abs() < 0.02, "case {case}: copies delay nothing");
        let share = copies * MSS / size as f64;
        assert!((0.4..0.6).contains(&share), "case {case}: {share}");
        let (lossy, jump) = (run("halfback", 4).0, run("jumpstart", 4).0);
        late += u32::from(jump > lossy + 0.1);
        slower += u32::from(lossy > jump + 0.1);
    }
    println!("of 40 later without copies {late}, with them {slower}");
    assert!(late > slower && late >= 10, "{late} and {slower}");
}

#[test]
fn the_overshoot_of_slow_start_loses_about_half_more_and_leaves_the_whole_pipe() {
    // How far it goes beyond the pipe depends on where the last window falls, so that single ratios
    // scatter and their mean tells.
    let mut stream = Stream::new(7, "pipes");
    let mut logarithms = 0.0;
    for case in 0..8 {
        let rate = 5 + stream.below(40);
        let rtt = 20 + stream.below(80);
        let bdp = (rate * rtt) as f64 * 1e3 / 8.0 / 1500.0;
        let buffer = (bdp * (0.3 + stream.unit())).max(12.0) as u64;
        let pipe = bdp + buffer as f64;
        let until = 3.0 + 12.0 * rtt as f64 / 1e3;
        let measured = |protocol: &str| {
            let recording = run(&format!(
                "[scenario]\nduration = \"{until} s\"\nsample = \"10 ms\"\n\
                 [topology]\nrate = \"{rate} Mbit/s\"\nrtt = \"{rtt} ms\"\n\
                 buffer = \"{buffer} packets\"\n\
                 [tcp]\ndelayed_ack = \"0\"\n[fld]\nthreshold = \"1 TB\"\n\
                 [[flow]]\nprotocol = \"{protocol}\"\n"
            ));
            let lost = recording.flow.numbers("lost");
            let windows = recording.flow.numbers("window");
            // The window after the first recovery: the first that stays for a while.
            let first = lost.iter().position(|lost| *lost > 0.0).expect("slow start overflows");
            let after = first + (4 * rtt as usize / 10).max(4);
            (lost[after], windows[after] / MSS)
        };
        let (fld, reno) = (measured("fld"), measured("newreno"));
        let lost = fld.0 / reno.0;
        println!(
            "case {case}: {rate} Mbit/s, {rtt} ms, {buffer} packets, pipe {pipe:.0}: lost {:.0} and \
             {:.0}, {lost:.2}; window {:.2} and {:.2} pipes",
            fld.0,
            reno.0,
            fld.1 / pipe,
            reno.1 / pipe
        );
        assert!((0.75..1.1).contains(&(fld.1 / pipe)), "case {case}: {} of {pipe}", fld.1);
        logarithms += lost.ln();
    }
    let mean = (logarithms / 8.0).exp();
    println!("lost: {mean:.2} times as much");
    assert!((1.2..2.3).contains(&mean), "{mean}");
}

#[test]
fn dfcp_takes_its_rate_from_it_too() {
    let bytes = |rate: &str| {
        let recording = run(&format!(
            "[scenario]\nduration = \"1 s\"\nsample = \"10 ms\"\n\
             [topology]\nrate = \"1 Gbit/s\"\nrtt = \"100 ms\"\nbuffer = \"2 BDP\"\n\
             [dfcp]\nrate = \"{rate}\"\n[[flow]]\nprotocol = \"dfcp\"\n"
        ));
        last(&recording, "received")
    };
    let (fld, cubic) = (bytes("fld"), bytes("friendly"));
    assert!(fld > 1.5 * cubic, "{fld} and {cubic} bytes in a second");
}

#[test]
fn sctp_and_dccp_take_their_windows_from_it_too() {
    for (protocol, key) in [("sctp", "sctp.congestion"), ("dccp", "dccp.congestion")] {
        let (table, key) = key.split_once('.').expect("a table and a key");
        let more =
            if protocol == "dccp" { "ccid = \"2\"\n" } else { "receive_buffer = \"8 MB\"\n" };
        let bytes = |congestion: &str, loss: f64, seed: u64| {
            let recording = run(&format!(
                "[scenario]\nduration = \"2500 ms\"\nsample = \"100 ms\"\nseed = {seed}\n\
                 [topology]\nrate = \"200 Mbit/s\"\nrtt = \"100 ms\"\nbuffer = \"2 BDP\"\n\
                 loss = \"{loss}%\"\n\
                 [{table}]\n{more}{key} = \"{congestion}\"\n[[flow]]\nprotocol = \"{protocol}\"\n"
            ));
            last(&recording, "received")
        };
        // Without loss it triples its window, and a loss costs a segment instead of half of it.
        for (loss, least) in [(0.0, 1.15), (0.5, 1.5)] {
            let [fld, reno] = ["fld", "newreno"]
                .map(|congestion| (1..=3).map(|seed| bytes(congestion, loss, seed)).sum::<f64>());
            println!("{protocol}, {loss} % loss: {fld} and {reno}");
            assert!(fld > least * reno, "{protocol}, {loss} %: {fld} and {reno}");
        }
    }
}

#[test]
fn a_flow_may_have_rules_of_its_own() {
    let recording = run("[scenario]\nduration = \"250 ms\"\nsample = \"10 ms\"\n\
         [topology]\nrate = \"1 Gbit/s\"\nrtt = \"100 ms\"\n[tcp]\ndelayed_ack = \"0\"\n\
         [[flow]]\nprotocol = \"fld\"\nfld = { increase = 4 }\n");
    assert_eq!(last(&recording, "window") / MSS, 50.0);
    for (text, says) in [
        ("increase = -1", "increase"),
        ("boost = \"some\"", "first, any"),
        ("treshold = \"1 MB\"", "threshold"),
    ] {
        let error = Scenario::parse(&format!("[fld]\n{text}\n[[flow]]\nprotocol = \"fld\"\n"));
        let error = error.expect_err(text).to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_connection_that_is_short_while_a_stream_is_delivers_messages_sooner() {
    let delay = |keys: &str, seed: u64| {
        let recording = run(&format!(
            "[scenario]\nduration = \"40 s\"\nwarmup = \"5 s\"\nsample = \"1 s\"\nseed = {seed}\n\
             [topology]\nrate = \"20 Mbit/s\"\nrtt = \"40 ms\"\nbuffer = \"0.5 BDP\"\n\
             [sctp]\ncongestion = \"fld\"\nstreams = 64\nunordered = true\n\
             receive_buffer = \"6 MB\"\nsend_buffer = \"6 MB\"\n{keys}\n\
             [[flow]]\nname = \"long\"\ncount = 3\nprotocol = \"newreno\"\n\
             [[flow]]\nname = \"streams\"\nprotocol = \"sctp\"\napp = \"messages\"\n\
             size = \"100 kB\"\nsigma = 1.5\nrate = \"4 Mbit/s\"\ndeadline = \"5 s\"\n"
        ));
        recording.metric("message_delay", "streams").expect("a delay")
    };
    for seed in 1..=3 {
        let by_connection = delay("", seed);
        let by_stream = delay("[fld]\nlength_of = \"stream\"", seed);
        let shortest = delay("turns = \"shortest\"\n[fld]\nlength_of = \"stream\"", seed);
        println!("seed {seed}: {by_connection:.0}, {by_stream:.0} and {shortest:.0} ms");
        assert!(by_stream < 0.7 * by_connection && shortest < by_stream, "seed {seed}");
    }
}
