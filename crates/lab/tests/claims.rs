//! The books of claims: every claim that can be checked is bound, and what differs is explained.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fontis_lab::claims::{Book, Budget, Checked, Repeat, Results, Verdict};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../claims")
}

const BOOKS: [&str; 3] = ["dfcp", "fld", "wireless"];

/// Nothing is run: what is recorded must answer.
fn recorded() -> Results {
    let budget = Budget { quick: false, nothing: true, repeat: Repeat::Nothing, jobs: 1 };
    Results::new(&folder().join("results"), budget)
}

#[test]
fn every_claim_that_can_be_checked_is_bound_and_every_difference_has_a_cause() {
    for name in BOOKS {
        check(name);
    }
}

fn check(name: &str) {
    let book = Book::read(&folder(), name).expect("the book is whole");
    let checked = book.check(&[], &mut recorded(), &|_| ()).expect("it is judged");
    assert_eq!(checked.len(), book.claims().len());
    let ids: BTreeSet<&str> = checked.iter().map(|one| &*one.claim.id).collect();
    assert_eq!(ids.len(), checked.len(), "{name}: a claim stands twice in it");
    let mut wrong = Vec::new();
    for one in &checked {
        if !one.claim.id.starts_with(&one.paper) {
            wrong.push(format!("{}: the book names no paper of it", one.claim.id));
        }
        let is_ours = matches!(&*one.claim.checkable_in, "sim" | "analytic");
        let is_broken = [
            "not bound",
            "there is no probe",
            "there is no variant",
            "no such function",
            "is no number",
            "is missing",
        ];
        if is_ours && is_broken.iter().any(|text| one.why.contains(text)) {
            wrong.push(format!("{}: {}", one.claim.id, one.why));
        }
        // Of this book only what takes pages in a browser is left.
        let is_of_pages = one.claim.id.contains("-web-");
        let is_left = one.verdict == Verdict::NotCheckable
            && (one.why.contains("not bound") || one.why == "a statement, not a measurement");
        if name == "fld" && is_left {
            wrong.push(format!("{}: no reason of its own", one.claim.id));
        }
        let is_none = one.claim.checkable_in == "none" || is_of_pages;
        if name == "fld" && one.verdict == Verdict::NotCheckable && !is_none {
            wrong.push(format!("{}: {}", one.claim.id, one.why));
        }
        if one.verdict == Verdict::Differs && one.why.is_empty() {
            wrong.push(format!(
                "{}: it differs ({:?}), and nobody says why",
                one.claim.id, one.ours
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_runs_of_the_book_on_wireless_are_all_recorded_and_of_this_code() {
    let book = Book::read(&folder(), "wireless").expect("the book is whole");
    let mut results = recorded();
    let checked = book.check(&[], &mut results, &|_| ()).expect("it is judged");
    let missing = checked.iter().find(|one| one.why.contains("has not been run"));
    assert!(missing.is_none(), "{missing:?}");
    assert!(checked.iter().any(|one| !one.scenarios.is_empty()));
    assert!(results.stale().is_empty(), "{:?}", results.stale());
}

#[test]
fn a_wrong_book_is_refused_in_one_line() {
    let here = tempfile::TempDir::new().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(here.path().join(name), text).expect("written");
    };
    let error = |name: &str| Book::read(here.path(), name).err().expect("it is wrong");
    assert!(error("none").contains("none.jsonl"));
    write("a.jsonl", "{\"id\": 1}\n");
    assert!(error("a").contains("line 1"), "{}", error("a"));
    write("b.jsonl", "");
    write("b.toml", "[[binding]]\nclaims = [\"x\"]\nvalue = \"1\"\n");
    assert!(error("b").contains("no claim is"), "{}", error("b"));
    write("b.toml", "[[binding]]\nclaims = [\"x\"]\nvalu = \"1\"\n");
    assert!(error("b").contains("valu"), "{}", error("b"));
}

/// A book of two claims on a scenario that takes no time, the second of which is wrong; `on` is
/// what follows the scenario's name.
fn tiny(here: &Path, on: &str) -> Book {
    let scenario = here.join("run.toml");
    let text = "[scenario]\nid = \"tiny\"\nduration = \"2 s\"\nwarmup = \"1 s\"\n[topology]\nrate = \"10 Mbit/s\"\nrtt = \"10 ms\"\n";
    std::fs::write(&scenario, text).expect("written");
    let claim = |id: &str, value: f64| {
        format!(
            "{{\"id\": \"{id}\", \"source\": \"0\", \"source_lines\": \"1\", \"system\": \"s\", \"scenario\": \"s\", \
             \"metric\": \"goodput\", \"value\": {value}, \"unit\": \"Mbit/s\", \"comparison\": \"eq\", \
             \"tolerance_suggestion\": \"-\", \"checkable_in\": \"sim\"}}\n"
        )
    };
    let claims = claim("good", 9.6) + &claim("bad", 5.0);
    std::fs::write(here.join("tiny.jsonl"), claims).expect("written");
    let place = scenario.display().to_string();
    let bindings = format!(
        "[[binding]]\nclaims = [\"good\", \"bad\"]\nvalue = '[{place}{on} | | goodput all]'\ncause = \"it was made up\"\ntolerance = \"30%\"\n"
    );
    std::fs::write(here.join("tiny.toml"), bindings).expect("written");
    Book::read(here, "tiny").expect("it is right")
}

/// Judges the claims, and counts what was told meanwhile.
fn judged(book: &Book, here: &Path) -> (Vec<Checked>, usize) {
    let (checked, told, _) = repeated(book, here, Repeat::Nothing);
    (checked, told)
}

/// How many runs of a scenario are stale, and the parts of the code that changed.
type Stale = (usize, BTreeSet<String>);

/// The same with these runs repeated; and the stale runs left, by scenario.
fn repeated(book: &Book, here: &Path, repeat: Repeat) -> (Vec<Checked>, usize, Vec<Stale>) {
    let told = std::sync::atomic::AtomicUsize::new(0);
    let count = |_: String| {
        told.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let budget = Budget { quick: false, nothing: false, repeat, jobs: 1 };
    let mut results = Results::new(&here.join("results"), budget);
    let checked = book.check(&[], &mut results, &count).expect("it is judged");
    (checked, told.into_inner(), results.stale().into_values().collect())
}

#[test]
fn a_run_that_other_code_made_is_named_and_repeated_only_if_that_is_asked_for() {
    let here = tempfile::TempDir::new().expect("a folder");
    let book = tiny(here.path(), "");
    judged(&book, here.path());
    let kept = here.path().join("results/run.jsonl");
    let made = std::fs::read_to_string(&kept).expect("it is kept");
    let hash = made.split("\"links\":\"").nth(1).expect("the links' hash").split('"').next();
    let other = made.replace(hash.expect("its end"), "00000000");
    std::fs::write(&kept, &other).expect("it is written");
    let links = BTreeSet::from(["links".to_owned()]);
    let (checked, ran, stale) = repeated(&book, here.path(), Repeat::Nothing);
    assert_eq!((ran, stale), (0, vec![(1, links)]));
    assert!(checked[0].ours.is_some());
    let (_, ran, stale) = repeated(&book, here.path(), Repeat::Stale);
    assert_eq!((ran, stale), (1, vec![]));
    // One line for the run, not two, and nothing is stale now.
    let again = std::fs::read_to_string(&kept).expect("it is kept");
    assert_eq!(again.lines().count(), 1);
    assert_eq!(repeated(&book, here.path(), Repeat::Stale).1, 0);
}

#[test]
fn a_claim_is_judged_by_a_run_that_is_kept_and_not_repeated() {
    let here = tempfile::TempDir::new().expect("a folder");
    let book = tiny(here.path(), "");
    for time in 0..2 {
        let (checked, ran) = judged(&book, here.path());
        let verdicts: Vec<Verdict> = checked.iter().map(|one| one.verdict).collect();
        assert_eq!(verdicts, [Verdict::Reproduced, Verdict::Differs], "{checked:?}");
        assert_eq!(checked[1].why, "it was made up");
        assert_eq!(ran, 1 - time);
    }
}

#[test]
fn a_claim_can_be_judged_by_a_run_with_real_kernels_where_there_is_a_testbed() {
    let here = tempfile::TempDir::new().expect("a folder");
    let book = tiny(here.path(), "@testbed");
    let (checked, told) = judged(&book, here.path());
    assert_eq!(told, 1);
    let kept = here.path().join("results/run@testbed.jsonl");
    if checked[0].verdict == Verdict::NotCheckable {
        eprintln!("not checked: {}", checked[0].why);
        assert!(checked[0].why.contains("has not been run: ") && !kept.exists(), "{checked:?}");
        return;
    }
    let (again, told) = judged(&book, here.path());
    let [before, after] = [&checked, &again].map(|checked| checked[0].ours.expect("a number"));
    // Six digits are kept.
    assert!(told == 0 && (after / before - 1.0).abs() < 1e-5, "{before} {after}");
    assert!(std::fs::read_to_string(kept).expect("kept").contains("\"key\":\"testbed-"));
    // The simulator's runs are others, kept in a file of their own. The numbers may be the same.
    let (_, told) = judged(&tiny(here.path(), ""), here.path());
    assert_eq!(told, 1);
    // The machine may have had something else to do.
    assert!(checked[0].ours.is_some_and(|mbps| mbps > 2.0 && mbps < 10.0), "{checked:?}");
}
