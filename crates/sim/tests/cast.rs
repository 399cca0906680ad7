//! Casts to groups: receivers by the hundred, the rate beside TCP, joining and leaving, and senders
//! that take no answers. `FONTIS_SEED` and `FONTIS_RUNS` choose the random points.

use std::fmt::Write as _;

use fontis_base::Stream;
use fontis_sim::Recording;
use fontis_sim::experiment::run::Watch;
use fontis_sim::scenario::Scenario;
use fontis_trace::Detail;

use crate::support::number::number;

fn recorded(text: &str) -> Recording {
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let runs = scenario.runs().expect("a run");
    runs[0].experiment.run(|| false).expect("nobody stops it")
}

/// The values of a metric of all receivers of flow `file`.
fn of_receivers(recording: &Recording, metric: &str) -> Vec<f64> {
    let metrics = recording.metrics();
    let of = metrics
        .into_iter()
        .filter(|((name, subject), _)| name == metric && subject.starts_with("file@"));
    of.map(|(_, value)| value).collect()
}

fn metric(recording: &Recording, metric: &str, subject: &str) -> f64 {
    let value = recording.metric(metric, subject);
    value.unwrap_or_else(|| panic!("there is no {metric} of {subject}"))
}

/// A sender, a trunk, and behind it receivers, each with a link of its own.
struct Room {
    seed: u64,
    /// Seconds.
    duration: u64,
    receivers: u64,
    /// Of the trunk, in Mbit/s.
    rate: f64,
    /// In milliseconds.
    rtt: f64,
    /// On the trunk, and on each receiver's link.
    shared_loss: f64,
    own_loss: f64,
}

impl Room {
    /// The scenario with these lines of the group and of flows.
    fn with(&self, group: &str, flows: &str) -> String {
        let Self { seed, duration, receivers, rate, rtt, shared_loss, own_loss } = self;
        let delay = rtt / 2.0;
        // A bandwidth-delay product, and twenty packets at least: with four, a window cannot work,
        // and what is paced gets more.
        let buffer = (rate * rtt * 125.0).max(30_000.0) as u64;
        format!(
            "[scenario]\nseed = {seed}\nduration = \"{duration} s\"\nuntil_done = true\n\
             [topology]\nrtt = \"{rtt} ms\"\n\
             [[host]]\nname = \"r\"\ncount = {receivers}\n\
             [[link]]\nname = \"trunk\"\nfrom = \"near\"\nto = \"far\"\nrate = \"{rate} Mbit/s\"\n\
             delay = \"{delay} ms\"\nloss = \"{shared_loss}\"\none_way = true\n\
             buffer = \"{buffer} B\"\n\
             [[link]]\nname = \"return\"\nfrom = \"far\"\nto = \"near\"\nrate = \"{rate} Mbit/s\"\n\
             delay = \"{delay} ms\"\none_way = true\n\
             [[link]]\nfrom = \"far\"\nto = \"r\"\nrate = \"1 Gbit/s\"\nloss = \"{own_loss}\"\n\
             record = false\n\
             [[group]]\nname = \"g\"\n{group}\n{flows}"
        )
    }

    fn all(&self, flows: &str) -> String {
        self.with("members = [\"r\"]", flows)
    }
}

fn file(size: &str, more: &str) -> String {
    format!(
        "[[flow]]\nname = \"file\"\nfrom = \"near\"\nto = \"g\"\nprotocol = \"cast\"\n\
         app = \"object\"\nsize = \"{size}\"\n{more}\n"
    )
}

/// Two receivers, for what needs no chance.
const SMALL: Room = Room {
    seed: 1,
    duration: 60,
    receivers: 2,
    rate: 20.0,
    rtt: 20.0,
    shared_loss: 0.0,
    own_loss: 0.01,
};

fn log_uniform(stream: &mut Stream, least: f64, most: f64) -> f64 {
    least * (most / least).powf(stream.unit())
}

#[test]
fn all_receivers_complete_and_few_symbols_are_sent_beyond_what_the_loss_asks_for() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 6));
    println!("FONTIS_SEED={first} FONTIS_RUNS={runs}");
    println!("| seed | receivers | loss | rtt ms | symbols x (1 - p) | reports | last s |");
    for seed in first..first + runs {
        let mut stream = Stream::new(seed, "cast room");
        let room = Room {
            seed,
            duration: 120,
            receivers: log_uniform(&mut stream, 2.0, 200.99) as u64,
            rate: 25.0,
            rtt: log_uniform(&mut stream, 10.0, 200.0).round(),
            shared_loss: 0.0,
            own_loss: 0.2 * stream.unit(),
        };
        let recording = recorded(&room.all(&file("8 MB", "cast = { rate = \"20 Mbit/s\" }")));
        let sent = metric(&recording, "symbols_sent", "file") * (1.0 - room.own_loss);
        let reports = metric(&recording, "report_share", "file");
        let last = of_receivers(&recording, "fct_received").into_iter().fold(0.0, f64::max);
        println!(
            "| {seed} | {} | {:.3} | {:.0} | {sent:.3} | {reports:.5} | {last:.2} |",
            room.receivers, room.own_loss, room.rtt
        );
        assert_eq!(of_receivers(&recording, "fct").len() as u64, room.receivers, "seed {seed}");
        assert_eq!(metric(&recording, "completed", "all"), 1.0, "seed {seed}");
        assert!(sent <= 1.17, "seed {seed}: {sent}");
    }
}

#[test]
fn tfmcc_and_a_tcp_flow_on_its_path_share_it() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 4));
    println!("FONTIS_SEED={first} FONTIS_RUNS={runs}");
    println!("| seed | receivers | Mbit/s | rtt ms | loss | cast Mbit/s | TCP Mbit/s | ratio |");
    for seed in first..first + runs {
        let mut stream = Stream::new(seed, "cast beside TCP");
        let room = Room {
            seed,
            duration: 150,
            receivers: log_uniform(&mut stream, 1.0, 16.99) as u64,
            rate: log_uniform(&mut stream, 2.0, 10.0),
            rtt: log_uniform(&mut stream, 10.0, 200.0).round(),
            shared_loss: if stream.below(2) == 0 { 0.0 } else { 0.005 * stream.unit() },
            own_loss: 0.0,
        };
        let flows = format!(
            "[[flow]]\nname = \"file\"\nfrom = \"near\"\nto = \"g\"\nprotocol = \"cast\"\n\
             [[flow]]\nname = \"rival\"\nfrom = \"near\"\nto = \"far\"\nprotocol = \"newreno\"\n\
             rtt = \"{} ms\"\n",
            room.rtt
        );
        let text = room.all(&flows).replace("until_done = true", "warmup = \"50 s\"");
        let recording = recorded(&text);
        let cast = of_receivers(&recording, "goodput").into_iter().fold(f64::INFINITY, f64::min);
        let rival = metric(&recording, "goodput", "rival");
        println!(
            "| {seed} | {} | {:.1} | {:.0} | {:.4} | {cast:.2} | {rival:.2} | {:.2} |",
            room.receivers,
            room.rate,
            room.rtt,
            room.shared_loss,
            cast / rival
        );
        assert!((0.3..=3.0).contains(&(cast / rival)), "seed {seed}: {cast} beside {rival}");
    }
}

/// `auto` for a group beside one flow on the slowest receiver's branch.
#[test]
fn auto_shares_the_slowest_branch_with_a_flow_there() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 4));
    println!("FONTIS_SEED={first} FONTIS_RUNS={runs}");
    println!("| seed | receivers | Mbit/s | rtt ms | rival | cast Mbit/s | rival Mbit/s | drops |");
    for seed in first..first + runs {
        let mut stream = Stream::new(seed, "auto beside a flow");
        let receivers = log_uniform(&mut stream, 1.0, 16.99) as u64;
        let rate = log_uniform(&mut stream, 5.0, 50.0);
        let rtt = log_uniform(&mut stream, 25.0, 100.0).round();
        let rival = ["cubic", "dfcp"][stream.below(2) as usize];
        let buffer = (rate * rtt * 125.0).max(30_000.0) as u64;
        let (half, faster) = (rtt / 4.0, rate * (1.5 + stream.unit()));
        let text = format!(
            "[scenario]\nseed = {seed}\nduration = \"90 s\"\nwarmup = \"30 s\"\n\
             [topology]\nrtt = \"{rtt} ms\"\n\
             [[host]]\nname = \"r\"\ncount = {receivers}\n\
             [[host]]\nname = \"slowest\"\n\
             [[link]]\nfrom = \"near\"\nto = \"hub\"\nrate = \"1 Gbit/s\"\n\
             delay = \"{half} ms\"\n\
             [[link]]\nfrom = \"hub\"\nto = \"r\"\nrate = \"{faster} Mbit/s\"\n\
             delay = \"{half} ms\"\nrecord = false\n\
             [[link]]\nname = \"slow\"\nfrom = \"hub\"\nto = \"slowest\"\n\
             rate = \"{rate} Mbit/s\"\ndelay = \"{half} ms\"\nbuffer = \"{buffer} B\"\n\
             [[group]]\nname = \"g\"\nmembers = [\"r\", \"slowest\"]\n\
             [[flow]]\nname = \"file\"\nfrom = \"near\"\nto = \"g\"\nprotocol = \"cast\"\n\
             cast.rate = \"auto\"\n\
             [[flow]]\nname = \"rival\"\nfrom = \"near\"\nto = \"slowest\"\n\
             protocol = \"{rival}\"\nstart = \"{} ms\"\n",
            stream.below(3000)
        );
        let recording = recorded(&text);
        let cast = of_receivers(&recording, "goodput").into_iter().fold(f64::INFINITY, f64::min);
        let theirs = metric(&recording, "goodput", "rival");
        let drops = metric(&recording, "drop_rate", "slow");
        println!(
            "| {seed} | {receivers} | {rate:.1} | {rtt:.0} | {rival} | {cast:.2} | {theirs:.2} | {drops:.4} |"
        );
        let fair = (cast + theirs) / 2.0;
        assert!((0.4..=1.6).contains(&(cast / fair)), "seed {seed}: {cast} beside {theirs}");
        assert!(cast + theirs > 0.75 * rate, "seed {seed}: {cast} and {theirs} of {rate}");
        assert!(drops < 0.02, "seed {seed}: {drops}");
    }
}

#[test]
fn one_copy_of_a_packet_crosses_the_trunk_however_many_receive_it() {
    let sent = [2, 40].map(|receivers| {
        let room = Room { receivers, own_loss: 0.0, ..SMALL };
        let recording = recorded(&room.all(&file("2 MB", "cast = { rate = \"10 Mbit/s\" }")));
        assert_eq!(metric(&recording, "completed", "all"), 1.0);
        recording.queue.numbers("delivered_bytes").into_iter().fold(0.0, f64::max)
    });
    // Each receiver gets invitations of its own.
    assert!(sent[1] < 1.03 * sent[0], "{sent:?}");
}

#[test]
fn packets_that_pass_their_bytes_make_the_same_run() {
    for more in ["", "cast = { rate = \"10 Mbit/s\", one_way = true }"] {
        let scenario = Scenario::parse(&SMALL.all(&file("2 MB", more))).expect("it is right");
        let mut experiment = scenario.runs().expect("a run").remove(0).experiment;
        let plain = experiment.run(|| false).expect("nobody stops it");
        experiment.wire = true;
        let wired = experiment.run(|| false).expect("nobody stops it");
        assert_eq!(plain.metrics(), wired.metrics());
        assert_eq!(metric(&plain, "completed", "all"), 1.0);
    }
}

#[test]
fn a_trace_and_a_capture_of_a_cast_hold_its_packets() {
    let scenario = Scenario::parse(&SMALL.all(&file("1 MB", ""))).expect("it is right");
    let runs = scenario.runs().expect("a run");
    let watch = Watch { packets: Some(Detail::default()), capture: 1000, qlog: true };
    let watched = runs[0].experiment.run_watched(watch, |_| false).expect("nobody stops it");
    let trace = watched.trace.expect("it was asked for");
    // Each packet of the sender comes twice.
    assert!(trace.total > 2 * 839, "{}", trace.total);
    assert!(watched.capture.is_some());
}

#[test]
fn who_joins_late_gets_everything_and_who_leaves_is_waited_for_no_longer() {
    let room = Room { receivers: 4, ..SMALL };
    let group = "members = [\"r.1\", \"r.2\"]\njoin = [\"3 s:r.3\", \"1 s:r.4\"]\n\
                 leave = [\"2 s:r.4\"]";
    let flow = file("10 MB", "cast = { rate = \"10 Mbit/s\" }");
    let recording = recorded(&room.with(group, &flow));
    let fct = |name: &str| recording.metric("fct", &format!("file@{name}"));
    assert!(fct("r.1").is_some() && fct("r.2").is_some());
    assert_eq!(fct("r.4"), None);
    // Its time begins when it joins, and it takes one pass: eight seconds, and repairs.
    let late = fct("r.3").expect("it has everything");
    assert!((8.0..9.5).contains(&late), "{late}");
    assert_eq!(metric(&recording, "completed", "all"), 0.75);
}

/// One who loses the first announcement does not know what the symbols are of until the next, half
/// a second later, and lacks those.
#[test]
fn receivers_that_cannot_answer_have_everything_after_a_round_if_they_hear_its_beginning() {
    let room = Room { own_loss: 0.1, receivers: 20, ..SMALL };
    let one_way = |loss: f64| {
        let cast = format!("cast = {{ rate = \"10 Mbit/s\", one_way = true, loss = \"{loss}\" }}");
        recorded(&room.all(&file("4 MB", &cast)))
    };
    let enough = one_way(0.1);
    let events = |recording: &Recording, event: &str| -> Vec<(String, f64)> {
        let texts = |name| recording.event.texts(name).expect("texts").iter().map(str::to_owned);
        let rows = texts("event").zip(texts("subject")).zip(recording.event.numbers("time"));
        let rows = rows.filter(|((name, _), _)| name == event);
        rows.map(|((_, subject), time)| (subject, time)).collect()
    };
    let complete = events(&enough, "completed");
    println!("{} of {} are complete", complete.len(), room.receivers);
    for (name, since) in events(&enough, "connected") {
        let is_complete = complete.iter().any(|(subject, _)| *subject == name);
        assert!(is_complete || since > 0.4, "{name} has heard all since {since}");
    }
    assert!(complete.len() > 15);
    assert_eq!(enough.metric("report_share", "file"), None);
    // What is too little ends, and says so.
    let too_little = one_way(0.02);
    assert_eq!(metric(&too_little, "completed", "all"), 0.0);
    assert!(events(&too_little, "completed").is_empty());
}

#[test]
fn a_cast_that_makes_no_sense_is_refused() {
    let mut wrong = String::new();
    for (cast, why) in [
        ("cast = { rate = \"fast\" }", "must be tfmcc, auto, or a rate of 8 kbit/s at least"),
        ("cast = { one_way = true }", "a sender without answers needs a rate"),
        (
            "cast = { rate = \"1 Mbit/s\", one_way = true, loss = \"99%\" }",
            "cast.loss: 0.99 must be 0.95 at most",
        ),
    ] {
        let scenario = Scenario::parse(&SMALL.all(&file("1 MB", cast)));
        let error = scenario.err().map_or(String::new(), |error| error.to_string());
        if !error.contains(why) {
            writeln!(wrong, "{cast}: {error:?} does not say {why:?}").expect("text");
        }
    }
    let text = SMALL.all(&file("1 MB", "")).replace("\"object\"", "\"voice\"");
    let error = Scenario::parse(&text).expect_err("a cast has no calls").to_string();
    assert!(error.contains("a cast carries an object or a bulk"), "{error}");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn hosts_of_a_count_have_links_of_their_own() {
    let room = Room { receivers: 3, ..SMALL };
    let scenario = Scenario::parse(&room.all(&file("1 MB", ""))).expect("it is right");
    let experiment = scenario.runs().expect("a run").remove(0).experiment;
    let machines: Vec<&str> = experiment.machines.iter().map(|one| &*one.name).collect();
    assert_eq!(machines, ["r.1", "r.2", "r.3"]);
    let links: Vec<&str> = experiment.links.iter().map(|link| &*link.name).collect();
    let own = ["far-r.1", "far-r.1.back", "far-r.2", "far-r.2.back", "far-r.3", "far-r.3.back"];
    assert_eq!(links[..2], ["trunk", "return"]);
    assert_eq!(links[2..], own);
    assert_eq!(experiment.groups[0].members.len(), 3);
    let none = room.all("").replace("count = 3", "count = 0");
    let error = Scenario::parse(&none).expect_err("no host").to_string();
    assert!(error.contains("host.count must be 1 to"), "{error}");
    let unlike = "[[host]]\nname = \"s\"\ncount = 2\n[[link]]\nfrom = \"r\"\nto = \"s\"\n";
    let error = Scenario::parse(&(room.all("") + unlike)).expect_err("no pairs").to_string();
    assert!(error.contains("a link joins 3 hosts \"r\" and 2 hosts \"s\""), "{error}");
}
