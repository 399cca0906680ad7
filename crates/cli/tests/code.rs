//! The `code` command as a user meets it: files into symbols and back.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn fontis(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fontis"))
        .current_dir(folder)
        .arg("code")
        .args(arguments)
        .output()
        .unwrap()
}

fn content(size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    blake3::Hasher::new().update(b"code").finalize_xof().fill(&mut bytes);
    bytes
}

fn error(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_file_survives_the_loss_of_symbols() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("file"), content(100_000)).unwrap();
    let encoded = fontis(
        path,
        &[
            "encode",
            "file",
            "--symbol-size",
            "500",
            "--redundancy",
            "60%",
            "--block-symbols",
            "80",
            "--json",
        ],
    );
    assert!(encoded.status.success(), "{}", error(&encoded));
    let event: Value = serde_json::from_slice(&encoded.stdout).unwrap();
    assert_eq!((&event["blocks"], &event["symbols"]), (&Value::from(3), &Value::from(322)));
    let mut symbols: Vec<_> = fs::read_dir(path.join("file.symbols"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    symbols.sort();
    // Every fourth is lost, one is damaged, and one is no symbol.
    for (index, symbol) in symbols.iter().enumerate() {
        if index % 4 == 0 {
            fs::remove_file(symbol).unwrap();
        }
    }
    let mut damaged = fs::read(&symbols[1]).unwrap();
    damaged[200] ^= 1;
    fs::write(&symbols[1], damaged).unwrap();
    fs::write(path.join("file.symbols/notes.txt"), "FSYM no symbol").unwrap();
    let decoded = fontis(path, &["decode", "file.symbols", "--out", "again"]);
    assert!(decoded.status.success(), "{}", error(&decoded));
    assert!(fs::read(path.join("again")).unwrap() == content(100_000));
    let refused = fontis(path, &["decode", "file.symbols", "--out", "again"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(error(&refused).contains("exists already"));
}

#[test]
fn a_stream_with_gaps_rebuilds_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for size in [0usize, 1, 30_000] {
        fs::write(path.join("file"), content(size)).unwrap();
        let stream = fontis(path, &["encode", "file", "--stream", "--redundancy", "250%"]).stdout;
        // A fifth of the bytes is gone, in the middle of symbols; of an empty file there is but
        // one.
        let cut = if size == 0 { stream.len() } else { stream.len() / 2 };
        let damaged = [&stream[..cut], &stream[(cut * 7 / 5).min(stream.len())..]].concat();
        let mut decoder = Command::new(env!("CARGO_BIN_EXE_fontis"))
            .current_dir(path)
            .args(["code", "decode", "-", "--out", &format!("out{size}")])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        decoder.stdin.take().unwrap().write_all(&damaged).unwrap();
        let output = decoder.wait_with_output().unwrap();
        assert!(output.status.success(), "{size}: {}", error(&output));
        assert!(fs::read(path.join(format!("out{size}"))).unwrap() == content(size));
    }
}

#[test]
fn too_few_symbols_exit_with_1_and_say_how_many_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("file"), content(10_000)).unwrap();
    fontis(path, &["encode", "file", "--symbol-size", "1000", "--out", "symbols"]);
    for esi in 0..4 {
        fs::remove_file(path.join(format!("symbols/000-{esi:08}.symbol"))).unwrap();
    }
    let output = fontis(path, &["decode", "symbols", "--out", "again", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        error(&output).contains("3 more symbols are needed beside the 7"),
        "{}",
        error(&output)
    );
    let event: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(event["event"], "error");
    assert!(!path.join("again").exists());
    let nothing = fontis(path, &["decode", "file", "--out", "again"]);
    assert!(error(&nothing).contains("no undamaged symbol"));
}

#[test]
fn symbols_of_another_file_and_repeats_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("file"), content(5000)).unwrap();
    fs::write(path.join("other"), content(5001)).unwrap();
    let encode = |file, out| fontis(path, &["encode", file, "--symbol-size", "1000", "--out", out]);
    assert!(encode("file", "symbols").status.success());
    assert!(encode("other", "others").status.success());
    let again = encode("other", "symbols");
    assert_eq!(again.status.code(), Some(1));
    assert!(error(&again).contains("has symbols already"), "{}", error(&again));
    // Cut off, and of another file.
    let first = path.join("symbols/000-00000000.symbol");
    let bytes = fs::read(&first).unwrap();
    fs::write(&first, &bytes[..bytes.len() - 1]).unwrap();
    fs::remove_file(path.join("symbols/000-00000001.symbol")).unwrap();
    let few = fontis(path, &["decode", "symbols", "symbols", "others", "--out", "again"]);
    assert_eq!(few.status.code(), Some(1));
    let message = error(&few);
    assert!(message.contains("1 more symbols are needed beside the 4"), "{message}");
    assert!(message.contains("7 belong to another file"), "{message}");
    fs::write(&first, &bytes).unwrap();
    let enough = fontis(path, &["decode", "symbols", "others", "--out", "again"]);
    assert!(enough.status.success(), "{}", error(&enough));
    assert!(fs::read(path.join("again")).unwrap() == content(5000));
    assert!(!path.join("again.part").exists());
}

#[test]
fn the_curve_is_a_table_that_falls() {
    let folder = tempfile::tempdir().unwrap();
    let output =
        fontis(folder.path(), &["curve", "--code", "r10", "--symbols", "40", "--trials", "400"]);
    assert!(output.status.success(), "{}", error(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<f64>> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(|cell| cell.parse().unwrap()).collect())
        .collect();
    assert!(rows.iter().all(|row| row.len() == 5 && row[3] <= row[2] && row[2] <= row[4]));
    assert!(rows.windows(2).all(|pair| pair[0][2] >= pair[1][2]));
    // 0.85 without extra symbols, and halved with each: within what 400 trials tell.
    assert!((0.5..1.0).contains(&rows[0][2]) && rows[3][2] < rows[0][2] / 2.0, "{table}");
}

#[test]
fn the_bench_measures_a_code() {
    let folder = tempfile::tempdir().unwrap();
    let output = fontis(
        folder.path(),
        &["bench", "--code", "lt", "--symbols", "200", "--symbol-size", "100", "--json"],
    );
    assert!(output.status.success(), "{}", error(&output));
    let event: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(event["encode_megabytes_per_second"].as_f64().unwrap() > 0.0);
    assert!(event["symbols_used"].as_u64().unwrap() >= 200);
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "x").unwrap();
    for (arguments, hint) in [
        (&["encode"][..], "FILE"),
        (&["encode", "file", "--symbol-size", "0"], "symbol"),
        (&["encode", "file", "--redundancy", "some"], "10%"),
        (&["encode", "file", "--block-symbols", "60000"], "56403"),
        (&["decode", "file"], "--out"),
        (&["curve", "--code", "turbo"], "raptorq, r10"),
        (&["curve", "--code", "r10", "--symbols", "3"], "from 4 to 8192"),
        (&["curve", "--code", "legacy-byte", "--symbols", "70000"], "from 1 to 63536"),
        (&["curve", "--trials", "0"], "more than zero"),
        (&["bench", "--code", "counting"], "no bytes"),
        (&["bench", "--code", "none"], "the codes are raptorq"),
        (&["bench", "--symbols", "0"], "from 1 to 56403"),
        (&["bench", "--symbols", "56404"], "from 1 to 56403"),
        (&["bench", "--symbol-size", "0"], "symbol size of zero"),
        (&["bench", "--code", "legacy-byte", "--symbols", "1000"], "leave --symbols out"),
    ] {
        let output = fontis(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", error(&output));
        assert!(error(&output).contains(hint), "{arguments:?}: {}", error(&output));
    }
    let missing = fontis(folder.path(), &["encode", "nothing"]);
    assert_eq!(missing.status.code(), Some(1));
}
