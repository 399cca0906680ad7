//! Scenario files: what they stand for, and what is said when one is wrong.

use fontis_base::{Duration, Rate, Size, Time};
use fontis_net::{Limit, LinkConfig, QueueKind};
use fontis_sim::Recording;
use fontis_sim::experiment::spec::{Destination, End, FlowSpec};
use fontis_sim::scenario::{Files, Form, Language, Scenario};
use proptest::prelude::*;

fn error(text: &str) -> String {
    Scenario::parse(text).expect_err("it is wrong").to_string()
}

/// The link of a flow's own sender.
fn access(flow: &FlowSpec) -> &LinkConfig {
    let End::Own { link, .. } = &flow.from else { panic!("its sender is its own") };
    link
}

#[test]
fn without_any_key_it_is_one_cubic_flow() {
    let runs = Scenario::parse("").expect("nothing is needed").runs().expect("one run");
    assert_eq!((runs.len(), runs[0].experiment.flows.len()), (1, 1));
    let link = &runs[0].experiment.links[0].config;
    assert_eq!((link.rate, link.queue), (Rate::from_mbps(100), QueueKind::Fifo));
    // 100 Mbit/s for 50 ms.
    assert_eq!(link.buffer, Limit::Bytes(Size::from_bytes(625_000)));
    assert_eq!(runs[0].experiment.flows[0].transport.row().name, "TCP");
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
    let text = "[[flow]]\nname = \"a\"\nstart = \"1 s\"\n[[flow]]\nname = \"b\"\nstart = \"2 s\"\n";
    let named = Scenario::parse(text).expect("a scenario");
    let starts = ["flow.start", "flow.a.start", "flow.b.start"].map(|key| named.get(key));
    assert_eq!(starts, ["1 s", "1 s", "2 s"]);
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
fn links_of_ones_own_carry_flows_by_the_shortest_way() {
    let text = r#"
        [topology]
        rate = "8 Mbit/s"
        [[link]]
        from = "a"
        to = "b"
        delay = "10 ms"
        [[link]]
        name = "detour"
        from = "a"
        to = "c"
        [[link]]
        from = "c"
        to = "d"
        rate = "2 Mbit/s"
        rate_changes = ["5 s:1 Mbit/s"]
        delay = "30 ms"
        one_way = true
        record = false
        [[link]]
        from = "d"
        to = "b"
        delay_changes = ["1 s:40 ms"]
        [[flow]]
        from = "a"
        to = "b"
        [[flow]]
        from = "a"
        to = "d"
        rtt = "80 ms"
        [sweep]
        link.detour.loss = ["0.1%", "1%"]
        link.c-d.queue = ["drr"]
    "#;
    let runs = Scenario::parse(text).expect("it is right").runs().expect("runs");
    let experiment = &runs[1].experiment;
    let names: Vec<&str> = experiment.links.iter().map(|link| &*link.name).collect();
    assert_eq!(names, ["a-b", "a-b.back", "detour", "detour.back", "c-d", "d-b", "d-b.back"]);
    assert_eq!(experiment.links[2].config.loss, "1%".parse().expect("a loss"));
    assert_eq!(experiment.links[4].config.queue, QueueKind::Drr);
    assert!(experiment.links[5].bottleneck && !experiment.links[4].bottleneck);
    // Two links lead from a to d either way: by b, which comes first.
    let [first, second] = [0, 1].map(|flow| &experiment.flows[flow]);
    let ends = |flow: &FlowSpec| {
        let Destination::One(to) = &flow.to else { panic!("it has one receiver") };
        [experiment.router(&flow.from), experiment.router(to)]
    };
    let ([a, b], [c, d]) = (ends(first), ends(second));
    assert_eq!(experiment.route(a, b), Some(vec![0]));
    assert_eq!(experiment.route(c, d), Some(vec![0, 6]));
    assert_eq!(experiment.route(d, c), Some(vec![5, 1]));
    // The path takes 20 ms of the second flow's 80; its own links take the rest, half each way.
    assert_eq!(access(second).delay, Duration::from_millis(30));
    assert_eq!(access(first).delay, Duration::ZERO);
    let recording = experiment.run(|| false).expect("nobody stops it");
    assert!(recording.metric("goodput", "flow1").is_some_and(|goodput| goodput > 3.0));
    assert!(recording.metric("utilisation", "a-b").is_some_and(|share| share > 0.9));
}

#[test]
fn weights_that_no_queue_can_serve_are_refused() {
    for (text, parts) in [
        ("[queue]\nalpha = 0\n", &["queue.alpha", "above zero"][..]),
        ("[queue]\nclass_weights = \"1:0\"\n", &["queue.class_weights", "numbers above zero"]),
        ("[queue]\nclass_weights = \"1:2\"\nquanta = \"9:9\"\n", &["weights or quanta"]),
        ("[queue]\nalpha = 0.1\n[[flow]]\nweight = 20\n", &["weight of 20", "alpha = 0.1"]),
        ("[[flow]]\nweight = -1\n", &["flow.weight", "above zero"]),
        ("[queue]\nturns = \"class\"\n[[flow]]\nweight = 2\n", &["queue.class_weights"]),
    ] {
        let error = error(text);
        assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
    }
}

#[test]
fn links_of_ones_own_that_lead_nowhere_are_refused() {
    let link = "[[link]]\nfrom = \"a\"\nto = \"b\"\n";
    let flow = "[[flow]]\nfrom = \"a\"\nto = \"b\"\n";
    assert!(Scenario::parse(&format!("{link}{flow}")).is_ok());
    for (text, parts) in [
        (link.to_owned(), &["flow1: flow.from must name a router", "a, b"][..]),
        (format!("{link}[[flow]]\nfrom = \"a\"\nto = \"x\""), &["no link leads to \"x\""]),
        (format!("{link}[[flow]]\nfrom = \"a\"\nto = \"a\""), &["the same router"]),
        (format!("{link}one_way = true\n{flow}"), &["no links lead from \"b\" to \"a\""]),
        (format!("{link}{link}{flow}"), &["two links are called \"a-b\""]),
        ("[[link]]\nfrom = \"a\"".to_owned(), &["link 1 needs \"to\""]),
        ("[[link]]\nfrom = \"a\"\nto = \"a\"".to_owned(), &["to itself"]),
        (format!("[topology]\nloss = \"1%\"\n{link}{flow}"), &["topology.loss", "link.KEY"]),
        (format!("{link}rat = \"1 Mbit/s\"\n"), &["line 4", "link.rate"]),
        ("[link]\nfrom = \"a\"".to_owned(), &["[[link]]"]),
        (flow.to_owned(), &["needs routers with names"]),
        (format!("{link}{flow}subflows = 10"), &["at most 9 subflows"]),
        (format!("{link}{flow}subflows = 2\nvia = \"c\""), &["flow.via", "no link leads to \"c\""]),
        (format!("{link}{flow}via = \"a\""), &["1 routers for 0 subflows"]),
        (format!("{link}{flow}protocol = \"dfcp\"\nsubflows = 2"), &["only TCP has subflows"]),
        ("[[flow]]\nsubflows = 1\nvia = \"a\"".to_owned(), &["flow.via needs routers"]),
        (
            format!("{link}{flow}rtt = \"1 ms\"\n[sweep]\nlink.a-b.delay = [\"1 ms\"]"),
            &["less than its path takes"],
        ),
        (
            format!("{link}{flow}[sweep]\nlink.b.delay = [\"1 ms\"]"),
            &["link.b.delay", "link.a-b.delay"],
        ),
    ] {
        let error = error(&text);
        for part in parts {
            assert!(error.contains(part), "{text:?}: {error:?} lacks {part:?}");
        }
    }
}

#[test]
fn a_trace_comes_from_a_file_beside_the_scenario_or_from_a_model() {
    let read = |folder: &str, name: &str| match (folder, name) {
        ("here", "twelve.trace") => Ok("1\n2\n".to_owned()),
        ("here", "wrong.trace") => Ok("2\n1\n".to_owned()),
        _ => Err(format!("{name}: no such file")),
    };
    let parse = |name: &str| {
        let files = Files { folder: "here".to_owned(), read };
        Scenario::parse_with(&format!("[topology]\nrate_trace = \"{name}\""), files)
    };
    let runs = parse("twelve.trace").expect("it is right").runs().expect("a run");
    let recording = runs[0].experiment.run(|| false).expect("nobody stops it");
    // What else of the scenario goes by a rate goes by the mean.
    assert_eq!(runs[0].experiment.links[0].config.rate, Rate::from_mbps(12));
    assert_eq!(access(&runs[0].experiment.flows[0]).rate, Rate::from_mbps(120));
    assert!(recording.metric("utilisation", "bottleneck").is_some_and(|share| share > 0.97));
    assert!(recording.metric("goodput", "all").is_some_and(|mbps| mbps > 11.0 && mbps < 11.7));
    for (name, parts) in [
        ("wrong.trace", &["topology.rate_trace", "line 2", "earlier"][..]),
        ("none.trace", &["no such file"]),
        ("cellular:1 Mbit/s", &["cellular:MEAN,VARIATION,LENGTH"]),
        ("cellular:x,1%,1 s", &["\"x\" is not a rate", "as in"]),
        ("cellular:1 bit/s,1%,1 s", &["the trace is empty"]),
        ("cellular:1000 Gbit/s,1%,1 h", &["too long"]),
    ] {
        let error = parse(name).expect_err(name).to_string();
        for part in parts {
            assert!(error.contains(part), "{name:?}: {error:?} lacks {part:?}");
        }
    }
    let both =
        "[topology]\nrate_trace = \"cellular:1 Mbit/s,1%,1 s\"\nrate_changes = [\"1 s:1 Mbit/s\"]";
    assert!(error(both).contains("either a trace, or bursts, or changes"));
    assert!(error("[topology]\nrate_trace = \"a\"").contains("cannot be read here"));
}

#[test]
fn every_key_is_read_with_its_default() {
    for key in Language::standard().catalogue().keys().iter().filter(|key| !key.default.is_empty())
    {
        let line = format!("{} = \"{}\"", key.name, key.default);
        let text = match key.table {
            "flow" => format!("[[flow]]\n{line}"),
            "link" => {
                format!(
                    "[[link]]\nfrom = \"a\"\nto = \"b\"\n{line}\n[[flow]]\nfrom = \"a\"\nto = \"b\""
                )
            }
            "host" => format!(
                "[[host]]\nname = \"a\"\n{line}\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
                 [[flow]]\nfrom = \"a\"\nto = \"b\""
            ),
            "swarm" if key.name != "peers" => format!("[swarm]\npeers = 3\n{line}"),
            table => format!("[{table}]\n{line}"),
        };
        let read = Scenario::parse(&text);
        assert!(read.is_ok(), "{text}: {read:?}");
    }
}

#[test]
fn relays_that_all_send_nothing_are_refused() {
    let text = |silent| format!("[swarm]\npeers = 6\nrelays = 2\nsilent = \"{silent}\"");
    assert!(Scenario::parse(&text("50%")).is_ok());
    let refused = Scenario::parse(&text("100%")).map(drop);
    let said = refused.expect_err("nobody feeds the others").to_string();
    assert!(said.contains("none of swarm.relays"), "{said}");
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
        Form::Texts => prop::sample::select(vec![
            "[]".to_owned(),
            "[\"h0\"]".to_owned(),
            "[\"h1\", \"h2\"]".to_owned(),
        ])
        .boxed(),
        Form::Outage => pick(&["10 ms:30 ms", "0:5 ms:20 ms"]),
        Form::Policer => pick(&["1 Mbit/s", "2 Mbit/s:3 kB", "64 kbit/s:0"]),
        Form::Reorder => pick(&["1%", "50%:3 ms", "100%:1 us"]),
        Form::Trace => pick(&["cellular:3 Mbit/s,50%,100 ms", "cellular:1 Mbit/s,0,1 s,7"]),
        Form::Names(_) | Form::LossAt | Form::Queue => {
            let names = form.names().expect("names");
            prop::sample::select(names).prop_map(|name| format!("\"{name}\"")).boxed()
        }
    }
}

fn any_line() -> impl Strategy<Value = (String, String)> {
    let keys = Language::standard().catalogue().keys().to_vec();
    (0..keys.len()).prop_flat_map(move |key| {
        let key = keys[key].clone();
        value_for(key.form.clone())
            .prop_map(move |value| (key.table.to_owned(), format!("{} = {value}", key.name)))
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
        lines in prop::collection::vec(any_line(), 0..10),
        links in prop_oneof![Just(vec![]), prop::collection::vec((0u8..4, 0u8..4), 1..6)],
        hosts in prop::collection::btree_set(0u8..4, 0..3),
        (to_group, own_tcp) in any::<(bool, bool)>(),
    ) {
        // The same key twice is no TOML.
        let of = |table: &str| {
            let mut own: Vec<&str> =
                lines.iter().filter(|(of, _)| of == table).map(|(_, line)| line.as_str()).collect();
            own.sort_unstable();
            own.dedup_by_key(|line| line.split(' ').next());
            own.join("\n")
        };
        let is_linked = !links.is_empty();
        let mut text = String::new();
        let tables = ["scenario", "topology", "queue", "tcp", "dfcp"];
        for table in tables.iter().filter(|table| !is_linked || **table != "topology") {
            text += &format!("[{table}]\n{}\n", of(table));
        }
        let without = |text: String| {
            let kept = text.lines().filter(|line| !["from", "to", "name"].iter().any(|key| line.starts_with(key)));
            kept.collect::<Vec<_>>().join("\n")
        };
        for (from, to) in &links {
            text += &format!("[[link]]\nfrom = \"r{from}\"\nto = \"r{to}\"\n{}\n", without(of("link")));
        }
        let names: Vec<String> = hosts.iter().map(|host| format!("r{host}")).collect();
        for name in names.iter().filter(|_| is_linked) {
            text += &format!("[[host]]\nname = \"{name}\"\n");
        }
        if is_linked && to_group {
            text += &format!("[[group]]\nname = \"g\"\nmembers = {names:?}\nleave = [\"50 ms:r1\"]\n");
        }
        text += &format!("[[flow]]\n{}\n", without(of("flow")));
        if is_linked {
            text += &format!("from = \"r0\"\nto = \"{}\"\n", if to_group { "g" } else { "r1" });
        }
        if own_tcp {
            text += &format!("[flow.tcp]\n{}\n", of("tcp"));
        }
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
            // Nothing is in a packet that its bytes do not say.
            let mut wired = run.experiment.clone();
            wired.wire = true;
            let wired = wired.run(|| false).expect("nobody stops it");
            let tables = |recording: &Recording| {
                // As text: where nothing was measured, columns hold what no number equals.
                format!("{:?}{:?}{:?}", recording.summary, recording.flow, recording.queue)
            };
            prop_assert_eq!(tables(&wired), tables(&recording));
        }
    }
}
