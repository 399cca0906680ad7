//! `fontis analyse` as a user meets it.

use std::process::{Command, Output};

use serde_json::Value;

fn fontis(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fontis"))
        .arg("analyse")
        .args(args)
        .output()
        .expect("the command runs")
}

fn json(args: &[&str]) -> Value {
    let output = fontis(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
fn formulas_answer_in_numbers() {
    let n = json(&["n-star", "1000", "--loss", "1%", "--recovery", "25%"]);
    assert_eq!((&n["n_star_clt"], &n["n_star_exact"]), (&1079.into(), &1086.into()));
    let shares = json(&["share", "100Mbit/s", "10Mbit/s", "35Mbit/s", "100Mbit/s"]);
    assert_eq!(shares["max_min_mbps"], serde_json::json!([10.0, 35.0, 55.0]));
    assert_eq!(shares["printed_mbps"], serde_json::json!([10.0, 45.0, 45.0]));
    let two = json(&["share", "10Gbit/s", "10Gbit/s", "10Gbit/s", "--second", "2Gbit/s"]);
    assert!((two["efficiency"].as_f64().expect("a number") - 0.7).abs() < 1e-9);
    let goodput = json(&["goodput", "1Gbit/s", "10Gbit/s", "--redundancy", "10%"]);
    assert!((goodput["goodput_mbps"][0].as_f64().expect("a number") - 880.0).abs() < 1.0);
    let redundancy = json(&["redundancy", "8Mbit/s", "1", "1MB", "1.15s"]);
    assert!((redundancy["rate_increase"].as_f64().expect("a number") - 0.0952).abs() < 1e-3);
}

#[test]
fn the_estimator_is_judged_where_the_truth_is_known() {
    let found = json(&[
        "estimator",
        "--variation",
        "0",
        "--length",
        "30min",
        "--runs",
        "2",
        "--threshold",
        "50ms,1s",
        "--gap",
        "1s",
    ]);
    let cases = found["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 2);
    let improved = cases[0]["improved"]["mean"].as_f64().expect("an estimate");
    let published = cases[0]["published"]["mean"].as_f64().expect("an estimate");
    assert!((improved - 1.0).abs() < 0.03 && published < improved, "{found}");
}

#[test]
fn nonsense_is_refused_as_wrong_usage() {
    for args in [
        &["n-star", "10", "--loss", "100%"][..],
        &["n-star", "10", "--loss", "1%", "--success", "100%"],
        &["share", "0bit/s", "1Mbit/s"],
        &["redundancy", "1Mbit/s", "0", "1MB", "1s"],
        &["estimator", "--threshold", "0"],
        &["estimator", "--length", "1000h", "--distance", "1ms"],
    ] {
        let output = fontis(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn several_paths_block_and_carry_as_the_formulas_say() {
    let blocking = json(&["blocking", "1Mbit/s@20ms", "400kbit/s@100ms"]);
    assert!((number(&blocking["blocking_s"]) - 0.05752).abs() < 1e-9, "{blocking}");
    let buffer = json(&["blocking", "1.6Mbit/s@20ms", "400kbit/s@200ms"]);
    assert!((number(&buffer["buffer_bytes"]) - 50e3).abs() < 1e-6, "{buffer}");
    // The printed model has a window of 43.7 packets, 64,151 bytes of 1468.
    let base = ["cmt", "100ms@2%", "100ms@2%", "--window", "64151"];
    let cmt = json(&base);
    assert!((number(&cmt["goodput_mbps"]) - 1.415).abs() < 1e-3, "{cmt}");
    let coded = json(&[&base[..], &["--code", "10,9", "--most", "1800kbit/s"]].concat());
    assert!((number(&coded["goodput_mbps"]) - 1.8).abs() < 1e-9, "{coded}");
    assert!((number(&coded["loss"][0]) - 0.00333).abs() < 1e-5, "{coded}");
    for wrong in ["blocking 1Mbit/s", "cmt 100ms@120%", "cmt 100ms@1% --code 9,10"] {
        let output = fontis(&wrong.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn a_plan_that_knows_the_delays_carries_what_turns_do_not() {
    // Scenario T7 of the thesis, and the last rows of its Tables 7.1 and 7.2.
    let paths = ["schedule", "1.6Mbit/s@20ms", "400kbit/s@200ms"];
    let exact = json(&paths);
    let [turns, plan] = ["round_robin", "by_the_plan"].map(|name| &exact[name]);
    assert_eq!(turns["rows"][9]["delivered"], serde_json::json!([3, 17]), "{turns}");
    assert_eq!(plan["rows"][9]["delivered"], serde_json::json!([19, 25]), "{plan}");
    assert!((number(&turns["goodput_mbps"]) - 1.36).abs() < 1e-3, "{turns}");
    assert!((number(&plan["goodput_mbps"]) - 2.0).abs() < 1e-3, "{plan}");
    let wrong = json(&[&paths[..], &["--error", "100%", "--span", "100s"]].concat());
    let goodput = number(&wrong["by_the_plan"]["goodput_mbps"]);
    assert!((goodput - 1.8).abs() < 0.01, "{goodput}");
    for wrong in ["1Mbit/s@20ms --span 0s", "100Gbit/s@1s", "1Mbit/s@20ms --packet 0"] {
        let args: Vec<&str> = std::iter::once("schedule").chain(wrong.split(' ')).collect();
        assert_eq!(fontis(&args).status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn a_cascade_of_notions_depends_on_their_order() {
    // A cell of Table 4.1 of the thesis, in exact numbers.
    let found =
        json(&["fairness", "200Mbit/s@0.5", "100Mbit/s@2", "--users", "10:1", "--users", "10:2"]);
    let classes = |at: usize| -> Vec<f64> {
        let classes = found["allocations"][at]["classes_mbps"].as_array().expect("classes");
        classes.iter().map(|share| share.as_f64().expect("a number")).collect()
    };
    let close = |got: Vec<f64>, want: [f64; 2]| {
        assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-9), "{got:?} for {want:?}");
    };
    close(classes(0), [4.0, 6.0]);
    // The smaller node first gives all away that the second could: its own shares stay.
    let least = 100.0 / (10.0 + 10.0 * 2f64.sqrt());
    close(classes(1), [least, 10.0 - least]);
    close(classes(2), [2.0, 8.0]);
    let one = json(&["fairness", "100Mbit/s", "--users", "3:1:5Mbit/s", "--users", "5:2"]);
    assert_eq!(one["allocations"].as_array().map(Vec::len), Some(5));
    assert_eq!(one["allocations"][0]["sum_mbps"], 77.5);
    assert_eq!(one["allocations"][1]["pareto_better_than_first"], true);
    for wrong in ["0:1", "1:0", "1", "1:2:x"] {
        assert_eq!(fontis(&["fairness", "1Mbit/s", "--users", wrong]).status.code(), Some(2));
    }
    let two = fontis(&["fairness", "1Mbit/s@2", "1Mbit/s", "--users", "1:1"]);
    assert!(String::from_utf8_lossy(&two.stderr).contains("node 2 needs a notion"));
}

#[test]
fn every_node_of_a_cascade_and_ratios_that_no_float_holds_are_printed() {
    let found =
        json(&["fairness", "200Mbit/s@0.5", "100Mbit/s@2", "--users", "10:1", "--users", "10:2"]);
    let nodes = found["allocations"][0]["nodes"].as_array().expect("nodes");
    assert_eq!(nodes[0]["classes_mbps"], serde_json::json!([4.0, 16.0]));
    assert_eq!(nodes[1]["capacity_mbps"], 100.0);
    assert!((number(&nodes[1]["classes_mbps"][1]) - 6.0).abs() < 1e-9);
    let text =
        fontis(&["fairness", "200Mbit/s@0.5", "100Mbit/s@2", "--users", "10:1", "--users", "10:2"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for part in ["200 Mbit/s, 0.5", "100 Mbit/s, 2", "16", "0.962"] {
        assert!(text.contains(part), "{text}");
    }
    let far = ["fairness", "100Mbit/s@0.001", "--users", "1:1:5Mbit/s", "--users", "1:.1"];
    assert_eq!(json(&far)["allocations"][0]["classes_mbps"], serde_json::json!([5.0, 95.0]));
}

#[test]
fn a_network_in_a_file_is_shared() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cell.toml");
    let write = |text: &str| std::fs::write(&path, text).expect("a file");
    let file = path.to_str().expect("a text");
    // One user crosses both nodes, each of which has one of its own.
    let text = "notion = \"proportional\"
[[node]]\nname = \"cell\"\ncapacity = \"30Mbit/s\"
[[node]]\nname = \"core\"\ncapacity = \"30Mbit/s\"
[[user]]\nname = \"long\"\nroute = [\"cell\", \"core\"]
[[user]]\nname = \"near\"\nroute = [\"cell\"]
[[user]]\nname = \"far\"\nroute = [\"core\"]\n";
    write(text);
    let shares = |args: &[&str]| -> Vec<f64> {
        let found = json(&[&["fairness", "--network", file], args].concat());
        let users = found["allocations"][0]["users"].as_array().expect("users").clone();
        users.iter().map(|user| number(&user["mbps"])).collect()
    };
    let close = |got: Vec<f64>, want: [f64; 3]| {
        assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-9), "{got:?} for {want:?}");
    };
    close(shares(&[]), [10.0, 20.0, 20.0]);
    close(shares(&["--notion", "max-min"]), [15.0; 3]);
    write(text.split_once('\n').expect("lines").1);
    let all = json(&["fairness", "--network", file]);
    assert_eq!(all["allocations"].as_array().map(Vec::len), Some(3));
    assert!((number(&all["allocations"][1]["nodes"][0]["carried_mbps"]) - 30.0).abs() < 1e-9);
    let fails = |args: &[&str], words: &str| {
        let output = fontis(&[&["fairness", "--network", file], args].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(words), "{error}");
    };
    fails(&["--notion", "throughput"], "throughput alone has many allocations");
    fails(&["10Mbit/s"], "cannot be used with");
    write(&text.replace("\"core\"]", "\"cor\"]"));
    fails(&[], "cell.toml: line 10: user \"long\": there is no node \"cor\"");
    std::fs::remove_file(&path).expect("removed");
    fails(&[], "cell.toml: ");
}

#[test]
fn a_cell_shares_its_time_on_either_side_of_a_node() {
    let users = ["--users", "2:1::12Mbit/s", "--users", "2:1", "--users", "2:1::2Mbit/s"];
    let row = ["fairness", "cell:6Mbit/s@proportional", "5Mbit/s@max-min"];
    let found = json(&[&row[..], &users].concat());
    for (order, want) in [(0, [7.0 / 6.0, 1.0, 1.0 / 3.0]), (1, [5.0 / 6.0, 5.0 / 6.0, 0.58333])] {
        let shares = found["allocations"][order]["classes_mbps"].as_array().expect("shares");
        for (got, want) in shares.iter().zip(want) {
            assert!((number(got) - want).abs() < 1e-4, "{found}");
        }
    }
    for wrong in ["1:1::0", "1:1::x", "1:1:1Mbit/s:1Mbit/s:1"] {
        assert_eq!(fontis(&["fairness", "cell:1Mbit/s", "--users", wrong]).status.code(), Some(2));
    }
}

#[test]
fn the_energy_of_a_radio_is_that_of_its_time_its_bits_its_promotion_and_its_tail() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("a name").to_owned();
    let text = "[scenario]\nid = \"E\"\nduration = \"20 s\"\nsample = \"100 ms\"\n\
                [topology]\nrate = \"8 Mbit/s\"\nrtt = \"20 ms\"\n\
                [[flow]]\nname = \"a\"\napp = \"object\"\nsize = \"2 MB\"\nstart = \"1 s\"\n\
                [[flow]]\nname = \"b\"\napp = \"object\"\nsize = \"2 MB\"\nstart = \"5 s\"\n";
    std::fs::write(at("e.toml"), text).expect("a file");
    let sim = Command::new(env!("CARGO_BIN_EXE_fontis"))
        .args(["sim", &at("e.toml"), "--output", &at("out")])
        .output()
        .expect("the command runs");
    assert!(sim.status.success(), "{}", String::from_utf8_lossy(&sim.stderr));
    let run = at("out/E/00000");
    let found = json(&["energy", &run, "--radio", "3g"]);
    let flows = found["flows"].as_array().expect("flows");
    let [all, a] = [&flows[0], &flows[1]];
    assert_eq!(
        (&all["bytes"], &all["promotions"], &a["bytes"]),
        (&4_000_000.into(), &1.into(), &2_000_000.into())
    );
    for of in [all, a] {
        let bits = 8e-6 * number(&of["bytes"]);
        let want = 659.4 * 0.5821
            + 817.88 * number(&of["active_s"])
            + 122.12 * bits
            + 803.9 * number(&of["tails_s"]);
        assert!((number(&of["joules"]) - want * 1e-3).abs() < 1e-6, "{found}");
    }
    // The pause between them is within the tail, and one tail follows.
    let [pause, tail] = [5.0 - 1.0 - number(&a["active_s"]), 8.0882];
    assert!((number(&all["tails_s"]) - pause - tail).abs() < 0.3, "{found}");
    let up = json(&["energy", &run, "--radio", "3g", "--up", "--flows", "a"]);
    assert!(number(&up["flows"][0]["joules"]) > number(&a["joules"]), "{up}");
    for wrong in [&["energy", &*at("none")][..], &["energy", &run, "--flows", "x"]] {
        assert_eq!(fontis(wrong).status.code(), Some(2));
    }
}
