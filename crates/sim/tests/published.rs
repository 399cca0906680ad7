//! The DFCP of 2015 in a network: what theory says of it, and what must go wrong when a part of it
//! is broken.

use fontis_sim::Recording;
use fontis_sim::analysis::fountain;
use fontis_sim::scenario::Scenario;

/// Two flows over 100 Mbit/s, with more set.
fn run(more: &[(&str, &str)]) -> Recording {
    let text = r#"
        [scenario]
        duration = "12 s"
        warmup = "4 s"
        sample = "500 ms"
        [topology]
        rate = "100 Mbit/s"
        rtt = "10 ms"
        access = "100 Mbit/s"
        queue = "drr"
        buffer = "200 packets"
        [published]
        redundancy = 0.1
        window = 1000
        [[flow]]
        name = "one"
        protocol = "dfcp-published"
        [[flow]]
        name = "two"
        protocol = "dfcp-published"
        access = "200 Mbit/s"
    "#;
    let mut scenario = Scenario::parse(text).expect("it is right");
    for (key, value) in more {
        scenario.set(key, *value).expect("a key and its value");
    }
    let runs = scenario.runs().expect("one run");
    runs[0].experiment.run(|| false).expect("it ends")
}

fn metric(recording: &Recording, name: &str, subject: &str) -> f64 {
    recording.metric(name, subject).unwrap_or_else(|| panic!("{name} of {subject}"))
}

/// What a flow with this share of the link should get, in Mbit/s.
fn theory(share: f64, redundancy: f64) -> f64 {
    fountain::goodput(share * fountain::header_efficiency(1452.0, 48.0), redundancy)
}

#[test]
fn goodput_is_the_share_less_headers_and_redundancy() {
    for redundancy in ["0", "0.05", "0.5"] {
        let told = [("published.rate", "oracle"), ("published.redundancy", redundancy)];
        let recording = run(&told);
        let want = theory(50.0, redundancy.parse().expect("a number"));
        for flow in ["one", "two"] {
            let got = metric(&recording, "goodput", flow);
            assert!((got / want - 1.0).abs() < 0.01, "{flow}: {got} for {want} at {redundancy}");
        }
        assert!(metric(&recording, "drop_rate", "bottleneck") < 0.01);
    }
}

#[test]
fn greedy_senders_share_equally_and_waste_little() {
    let recording = run(&[]);
    assert!(metric(&recording, "jain", "all") > 0.99);
    assert!(metric(&recording, "utilisation", "bottleneck") > 0.99);
    let (got, want) = (metric(&recording, "goodput", "all"), theory(100.0, 0.1));
    assert!((0.90..1.01).contains(&(got / want)), "{got} for {want}");
    // Of what arrived, 1 − share ÷ access was dropped.
    assert!((metric(&recording, "drop_rate", "bottleneck") - 2.0 / 3.0).abs() < 0.02);
}

#[test]
fn a_fifo_in_place_of_fair_queueing_is_not_fair() {
    let recording = run(&[("topology.queue", "fifo")]);
    assert!(metric(&recording, "jain", "all") < 0.99);
    assert!(metric(&recording, "goodput", "two") > 1.3 * metric(&recording, "goodput", "one"));
}

#[test]
fn without_redundancy_and_acknowledgements_an_overload_delivers_nothing() {
    let recording = run(&[
        ("published.redundancy", "0"),
        ("published.need", "code"),
        ("published.plan", "fixed"),
        ("published.acknowledge", "false"),
    ]);
    assert!(metric(&recording, "goodput", "all") < 0.1 * theory(100.0, 0.1));
}

#[test]
fn with_acknowledgements_lost_the_window_stands_still() {
    let recording = run(&[("topology.loss_back", "97%"), ("published.window", "20")]);
    assert!(metric(&recording, "goodput", "all") < 0.7 * theory(100.0, 0.1));
}

#[test]
fn a_controller_that_errs_upwards_has_packets_dropped_and_a_late_one_has_more() {
    let drops = |error: &str, response: &str| {
        let told = [
            ("published.rate", "sdn"),
            ("sdn.error", error),
            ("sdn.response", response),
            ("flow.two.start", "2 s"),
            ("scenario.warmup", "0 s"),
        ];
        metric(&run(&told), "drop_rate", "bottleneck")
    };
    let [none, ten, late] = [drops("0", "5 ms"), drops("10%", "5 ms"), drops("0", "300 ms")];
    // e/(1+e), less while the first flow is alone and no faster than its link.
    assert!(none < 0.002 && (0.06..0.10).contains(&ten), "{none}, {ten}");
    assert!(late > none + 0.005, "{late}");
}

#[test]
fn marks_slow_senders_down() {
    let marks = [
        ("published.rate", "marks"),
        ("topology.queue", "fifo-ecn"),
        ("queue.mark_above", "50 packets"),
    ];
    let recording = run(&marks);
    assert!(metric(&recording, "drop_rate", "bottleneck") < 0.3, "greedy senders lose two thirds");
}

#[test]
fn real_bytes_arrive_whole_through_loss_and_the_wire_format() {
    let text = r#"
        [scenario]
        duration = "20 s"
        until_done = true
        [topology]
        rate = "20 Mbit/s"
        loss = "5%"
        [published]
        coding = "real"
        need = "code"
        [[flow]]
        protocol = "dfcp-published"
        app = "object"
        size = "150 kB"
    "#;
    let mut runs = Scenario::parse(text).expect("it is right").runs().expect("one run");
    let experiment = &mut runs[0].experiment;
    let typed = experiment.run(|| false).expect("it ends");
    experiment.wire = true;
    let wired = experiment.run(|| false).expect("it ends");
    assert_eq!(metric(&wired, "completed", "all"), 1.0);
    assert!(metric(&wired, "fct", "flow1") > 0.05);
    assert_eq!(typed.summary, wired.summary, "the wire format changes nothing");
}

#[test]
fn a_flow_without_end_may_carry_real_bytes() {
    let text = r#"
        [scenario]
        duration = "2 s"
        warmup = "500 ms"
        [topology]
        rate = "5 Mbit/s"
        access = "5 Mbit/s"
        [published]
        coding = "real"
        window = 50
        [[flow]]
        protocol = "dfcp-published"
    "#;
    let runs = Scenario::parse(text).expect("it is right").runs().expect("one run");
    let recording = runs[0].experiment.run(|| false).expect("it ends");
    let goodput = metric(&recording, "goodput", "flow1");
    assert!(goodput > 4.0, "{goodput}");
}

#[test]
fn a_scenario_has_a_quick_variant() {
    let text = "[scenario]\nduration = \"60 s\"\n[sweep]\ntopology.rtt = [\"1 ms\", \"2 ms\"]\n\
                [quick]\nscenario.duration = \"6 s\"\ntopology.rtt = [\"1 ms\"]";
    let scenario = Scenario::parse(text).expect("it is right");
    let quick = scenario.quick().expect("it has one");
    assert_eq!((scenario.len(), quick.len()), (2, 1));
    assert_eq!(
        (scenario.get("scenario.duration"), quick.get("scenario.duration")),
        ("60 s".into(), "6 s".into())
    );
    assert!(Scenario::parse("[quick]\nscenario.duraton = \"6 s\"").is_err());
    assert!(Scenario::parse("").expect("it is right").quick().is_none());
}
