//! The rate controller `friendly`: CUBIC's response to loss, and its share of a queue that does not
//! separate flows.

use fontis_sim::Recording;
use fontis_sim::scenario::Scenario;

/// Runs flows over 100 s of which the last 80 count.
fn run(topology: &str, flows: &[(&str, u32)], seed: u64) -> Recording {
    let flow = |(protocol, count): &(&str, u32)| {
        format!("[[flow]]\nname = \"of-{protocol}\"\nprotocol = \"{protocol}\"\ncount = {count}\n")
    };
    let flows: String = flows.iter().map(flow).collect();
    let text = format!(
        r#"
        [scenario]
        duration = "100 s"
        warmup = "20 s"
        seed = {seed}
        [topology]
        {topology}
        [dfcp]
        rate = "friendly"
        [tcp]
        recovery = "rack-tlp"
        {flows}"#
    );
    let runs = Scenario::parse(&text).expect("it is right").runs().expect("a run");
    runs[0].experiment.run(|| false).expect("nobody stops it")
}

/// What DFCP gets for each byte that as many CUBIC flows get at the same bottleneck.
fn share(flows: u32, rate: u32, rtt: u32, buffer: &str, seed: u64) -> f64 {
    let topology = format!(
        "rate = \"{rate} Mbit/s\"\nrtt = \"{rtt} ms\"\nbuffer = \"{buffer} BDP\"\nqueue = \"fifo\""
    );
    let recording = run(&topology, &[("dfcp", flows), ("cubic-hystart", flows)], seed);
    let sum = |name: &str| -> f64 {
        let name = |n| if flows == 1 { name.to_owned() } else { format!("{name}.{n}") };
        (1..=flows).filter_map(|n| recording.metric("goodput", &format!("of-{}", name(n)))).sum()
    };
    sum("dfcp") / sum("cubic-hystart")
}

#[test]
fn it_is_as_fast_as_cubic_over_the_same_random_loss() {
    for (rtt, loss) in [(20, "0.1%"), (20, "3%"), (100, "0.01%"), (100, "1%")] {
        let topology = format!(
            "rate = \"200 Mbit/s\"\nrtt = \"{rtt} ms\"\nloss = \"{loss}\"\nloss_at = \"before\""
        );
        let goodput = |protocol| run(&topology, &[(protocol, 1)], 1).metric("goodput", "all");
        let (cubic, friendly) = (goodput("cubic-hystart"), goodput("dfcp"));
        let ratio = friendly.expect("a flow") / cubic.expect("a flow");
        println!("{rtt} ms, {loss}: {friendly:?} ÷ {cubic:?} Mbit/s = {ratio:.2}");
        assert!((0.85..1.15).contains(&ratio), "{rtt} ms, {loss}: {ratio:.2}");
    }
}

#[test]
fn beside_cubic_in_a_fifo_it_takes_about_as_much() {
    // Beyond buffers of some twenty packets; in shorter ones its even spacing spares it losses that
    // TCP's bursts meet.
    let mut all: Vec<f64> = Vec::new();
    for (flows, rate, rtt, buffer) in [
        (1, 10, 50, "1"),
        (1, 10, 100, "2"),
        (1, 100, 20, "0.25"),
        (1, 100, 20, "1"),
        (1, 100, 50, "1"),
        (1, 100, 100, "0.25"),
        (3, 30, 40, "1"),
        (5, 100, 50, "1"),
    ] {
        let ratio = share(flows, rate, rtt, buffer, 1);
        println!("{flows}+{flows} flows, {rate} Mbit/s, {rtt} ms, {buffer} BDP: {ratio:.2}");
        // How two sawteeth fall into step is luck for minutes.
        assert!((0.4..2.5).contains(&ratio), "{rate} Mbit/s, {rtt} ms, {buffer} BDP: {ratio:.2}");
        all.push(ratio.ln());
    }
    let mean = (all.iter().sum::<f64>() / all.len() as f64).exp();
    assert!((0.67..1.5).contains(&mean), "{mean}");
}
