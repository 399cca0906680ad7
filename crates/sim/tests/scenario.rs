//! Scenario files: what they stand for, and what is said when one is wrong.

use fontis_base::{Duration, Rate, Size, Time};
use fontis_net::{Limit, QueueKind};
use fontis_sim::Transport;
use fontis_sim::scenario::{Form, KEYS, Scenario};
use proptest::prelude::*;

fn error(text: &str) -> String {
    Scenario::parse(text).expect_err("it is wrong").to_string()
}

#[test]
fn without_any_key_it_is_one_cubic_flow() {
    let runs = Scenario::parse("").expect("nothing is needed").runs().expect("one run");
    assert_eq!((runs.len(), runs[0].experiment.flows.len()), (1, 1));
    let link = &runs[0].experiment.links[0].config;
    assert_eq!((link.rate, link.queue), (Rate::from_mbps(100), QueueKind::Fifo));
    // 100 Mbit/s for 50 ms.
    assert_eq!(link.buffer, Limit::Bytes(Size::from_bytes(625_000)));
    assert!(matches!(runs[0].experiment.flows[0].transport, Transport::Tcp(_)));
}

#[test]
fn variants_sweeps_and_repetitions_multiply() {
    let text = r#"
        [scenario]
        repetitions = 2
        seed = 7
        [[flow]]
        name = "a"
        [[flow]]
        name = "b"
        [sweep]
        topology.rtt = ["10 ms", "20 ms", "40 ms"]
        flow.b.start = [1, 2]
        [variants]
        plain = {}
        fair = { topology.queue = "drr", flow.a.protocol = "newreno" }
    "#;
    // A time needs its unit.
    assert!(error(text).contains("line 11: flow.b.start"), "{}", error(text));
    let text = text.replace("[1, 2]", "[\"1 s\", \"2 s\"]");
    let scenario = Scenario::parse(&text).expect("it is right");
    let runs = scenario.runs().expect("runs");
    assert_eq!((scenario.len(), runs.len()), (24, 24));
    let last = runs.last().expect("one");
    assert_eq!(last.label(), "fair, rtt 40 ms, start 2 s, repetition 1");
    assert_eq!((last.index, last.seed), (23, 8));
    assert_eq!(last.experiment.links[0].config.queue, QueueKind::Drr);
    let starts: Vec<Time> = last.experiment.flows.iter().map(|flow| flow.start).collect();
    assert_eq!(starts, [Time::ZERO, Time::ZERO + Duration::from_secs(2)]);
    assert_eq!(runs[0].experiment.links[0].config.queue, QueueKind::Fifo);
}

#[test]
fn a_key_that_is_set_from_outside_is_swept_no_more() {
    let text = "[sweep]\ntopology.rtt = [\"10 ms\", \"20 ms\"]";
    let mut scenario = Scenario::parse(text).expect("it is right");
    scenario.set("topology.rtt", "30 ms").expect("a time");
    assert_eq!(scenario.len(), 1);
    assert_eq!(scenario.get("topology.rtt"), "30 ms");
    let error = scenario.set("topology.rt", "30 ms").expect_err("no such key").to_string();
    assert!(error.contains("did you mean \"topology.rtt\""), "{error}");
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_what_would_be_right() {
    for (text, parts) in [
        ("[topology]\nrtt = \"50\"", &["line 2", "topology.rtt", "50 ms"][..]),
        ("[topology]\n\nrate = \"fast\"", &["line 3", "topology.rate", "100 Mbit/s"]),
        (
            "[topology]\nqueu = \"drr\"",
            &["line 2", "topology.queu", "did you mean \"topology.queue\""],
        ),
        ("[topology]\nqueue = \"dr\"", &["line 2", "fifo", "codel", "did you mean \"drr\""]),
        ("[topolgy]\nrtt = \"1 ms\"", &["line 1", "topolgy", "did you mean \"topology\""]),
        ("[[flow]]\nprotocol = \"cubick\"", &["line 2", "did you mean \"cubic\""]),
        ("[[flow]]\ncount = -1", &["line 2", "flow.count", "whole number"]),
        ("[scenario]\nduration = [\"1 s\"]", &["line 2", "not a list"]),
        ("[sweep]\ntopology.rtt = \"1 ms\"", &["line 2", "list of values"]),
        ("[sweep]\nflow.x.start = [\"1 s\"]", &["flow.x.start"]),
        ("[topology", &["line 1"]),
        ("[scenario]\nwarmup = \"2 min\"", &["warmup", "nothing", "duration"]),
        ("[[flow]]\nprotocol = \"datagrams\"", &["flow1", "datagrams", "constant"]),
        ("[topology]\nbuffer = \"much BDP\"", &["line 2", "0.1 BDP"]),
        ("[topology]\nrate_changes = [\"1 s\"]", &["line 2", "TIME:VALUE"]),
        ("[topology]\nrate_changes = [\"1 s:fast\"]", &["rate_changes", "fast"]),
        ("[variants.a]\ntopology.rtt = \"x\"", &["line 2", "topology.rtt"]),
        ("[variants.a]\nscenario.warmup = \"2 min\"", &["a: ", "warmup"]),
        ("[[flow]]\ncount = 2000000", &["1000000 flows"]),
        ("[scenario]\nsample = \"1 ns\"", &["ten million samples"]),
    ] {
        let error = error(text);
        for part in parts {
            assert!(error.contains(part), "{text:?}: {error:?} lacks {part:?}");
        }
    }
}

#[test]
fn every_key_is_read_with_its_default() {
    for key in KEYS.iter().filter(|key| !key.default.is_empty()) {
        let table = if key.table == "flow" { "[flow]".to_owned() } else { key.table.to_owned() };
        let text = format!("[{table}]\n{} = \"{}\"", key.name, key.default);
        let read = Scenario::parse(&text);
        assert!(read.is_ok(), "{text}: {read:?}");
    }
}

fn cases() -> u32 {
    std::env::var("FONTIS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(300)
}

/// A value that the form of a key allows, often an extreme one.
fn value_for(form: Form) -> BoxedStrategy<String> {
    let pick = |values: &'static [&'static str]| {
        prop::sample::select(values).prop_map(|value| format!("\"{value}\"")).boxed()
    };
    match form {
        Form::Rate => pick(&["1 bit/s", "64 kbit/s", "3 Mbit/s", "20 Mbit/s"]),
        Form::Duration => pick(&["0", "1 ns", "300 us", "20 ms", "1 s", "1 h"]),
        Form::Size => pick(&["0", "1 B", "999 B", "64 KiB", "3 MB", "1 TB"]),
        Form::Buffer => {
            pick(&["0", "1 B", "1 packets", "0 packets", "0 BDP", "0.1 BDP", "3 BDP", "1 GB"])
        }
        Form::Probability => pick(&["0", "0.1%", "50%", "1"]),
        Form::Loss => pick(&["none", "1%", "100%", "gilbert:1%,25%", "ge:5%,20%,1%,60%"]),
        Form::Number => pick(&["0", "0.002", "1", "7"]),
        Form::Count => pick(&["0", "1", "2", "17", "1500", "100000"]),
        Form::Flag => prop::sample::select(vec!["true".to_owned(), "false".to_owned()]).boxed(),
        Form::Text => pick(&["auto", "greedy", "2 Mbit/s", "x"]),
        Form::Changes => prop::sample::select(vec![
            "[]".to_owned(),
            "[\"10 ms:100 kB\", \"0:1 B\"]".to_owned(),
            "[\"10 ms:0\", \"50 ms:5 Mbit/s\"]".to_owned(),
        ])
        .boxed(),
        Form::Names(_) | Form::LossAt | Form::Queue => {
            let names = form.names().expect("names");
            prop::sample::select(names).prop_map(|name| format!("\"{name}\"")).boxed()
        }
    }
}

fn any_line() -> impl Strategy<Value = (String, String)> {
    (0..KEYS.len()).prop_flat_map(|key| {
        let key = &KEYS[key];
        value_for(key.form)
            .prop_map(|value| (key.table.to_owned(), format!("{} = {value}", key.name)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn any_text_is_read_or_refused(text in "(\\[\\[?[a-z]{0,8}\\]\\]?\n|[a-z_.]{0,12} ?= ?[\"\\[0-9a-z{]{0,9}\n){0,8}") {
        let _ = Scenario::parse(&text);
    }

    #[test]
    fn whatever_a_scenario_sets_it_runs_to_its_end_or_is_refused(
        lines in prop::collection::vec(any_line(), 0..10)
    ) {
        let mut text = String::new();
        for table in ["scenario", "topology", "queue", "tcp", "dfcp"] {
            let mut own: Vec<&String> =
                lines.iter().filter(|(of, _)| of == table).map(|(_, line)| line).collect();
            // The same key twice is no TOML.
            own.sort();
            own.dedup_by_key(|line| line.split(' ').next());
            let own: Vec<&str> = own.iter().map(|line| line.as_str()).collect();
            text += &format!("[{table}]\n{}\n", own.join("\n"));
        }
        let mut own: Vec<&str> =
            lines.iter().filter(|(of, _)| of == "flow").map(|(_, line)| line.as_str()).collect();
        own.sort_unstable();
        own.dedup_by_key(|line| line.split(' ').next());
        text += &format!("[[flow]]\n{}\n", own.join("\n"));
        let Ok(mut scenario) = Scenario::parse(&text) else { return Ok(()) };
        // Short, slow and few, so that thousands can be tried.
        for (key, value) in [
            ("scenario.duration", "200 ms"),
            ("scenario.warmup", "0"),
            ("scenario.sample", "50 ms"),
            ("scenario.repetitions", "1"),
            ("flow.count", "2"),
        ] {
            if scenario.set(key, value).is_err() {
                return Ok(());
            }
        }
        let Ok(runs) = scenario.runs() else { return Ok(()) };
        for run in runs.iter().take(2) {
            let recording = run.experiment.run(|| false).expect("nobody stops it");
            prop_assert!(recording.metric("goodput", "all").is_some_and(|goodput| goodput >= 0.0));
        }
    }
}
