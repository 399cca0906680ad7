//! DFCP over several interfaces of a host, and over random pairs of links.
//!
//! `FONTIS_RUNS` sets how many pairs (6 by default), `FONTIS_SEED` the first seed. A failure names
//! the seed that repeats it:
//! `FONTIS_SEED=n FONTIS_RUNS=1 cargo test -p fontis-sim --test main paths::pairs -- --nocapture`.

use std::fmt::Write as _;

use fontis_base::Stream;
use fontis_sim::Recording;
use fontis_sim::scenario::Scenario;

use crate::support::number::number;

fn run(text: &str) -> Recording {
    let runs = Scenario::parse(text).expect("it is right").runs().expect("a run");
    runs[0].experiment.run(|| false).expect("nothing stops it")
}

fn metric(recording: &Recording, metric: &str, subject: &str) -> f64 {
    let value = recording.metric(metric, subject);
    value.unwrap_or_else(|| panic!("there is no {metric} of {subject}"))
}

/// A link to the client: Mbit/s, round-trip time in ms, loss, jitter in ms, an outage.
#[derive(Clone, Debug)]
struct Link {
    kind: &'static str,
    rate: f64,
    rtt: f64,
    loss: f64,
    jitter: f64,
    outage: Option<(f64, f64)>,
}

impl Link {
    /// What it carries of content in a second at best, in bits: packets of 1500 bytes hold 1472.
    fn useful(&self) -> f64 {
        self.rate * 1e6 * 1472.0 / 1500.0 * (1.0 - self.loss)
    }

    /// What it would have carried during its outage, in bits.
    fn missed(&self) -> f64 {
        self.outage.map_or(0.0, |(_, span)| span * self.useful())
    }

    /// A link of one of six kinds, steady, jittery, lossy or failing.
    fn random(s: &mut Stream) -> Self {
        let (kind, rate, rtt, loss) = match s.below(6) {
            0 => ("wired", (20.0, 100.0), (5.0, 60.0), 0.0),
            1 => ("Wi-Fi", (10.0, 80.0), (5.0, 40.0), 0.01),
            2 => ("LTE", (5.0, 50.0), (30.0, 90.0), 0.005),
            3 => ("5G", (20.0, 100.0), (10.0, 40.0), 0.005),
            4 => ("low orbit", (20.0, 100.0), (25.0, 60.0), 0.01),
            _ => ("high orbit", (2.0, 30.0), (500.0, 650.0), 0.02),
        };
        let between = |s: &mut Stream, (low, high): (f64, f64)| low * (high / low).powf(s.unit());
        let (rate, rtt) = (between(s, rate), between(s, rtt));
        let mut link = Self { kind, rate, rtt, loss: 0.0, jitter: 0.0, outage: None };
        match s.below(4) {
            0 => {}
            1 => link.jitter = rtt * 0.1 * s.unit(),
            2 => link.loss = 5.0 * loss * s.unit(),
            _ => link.outage = Some((2.0 + 6.0 * s.unit(), 0.2 + 1.8 * s.unit())),
        }
        link
    }
}

/// The time in which an object of so many bytes comes over these links.
fn time(links: &[&Link], bytes: u64, seed: u64) -> f64 {
    let mut text = format!("[scenario]\nseed = {seed}\nduration = \"60 s\"\nsample = \"1 s\"\n");
    text.push_str("[[host]]\nname = \"laptop\"\n[[host]]\nname = \"server\"\n");
    text.push_str("[[link]]\nname = \"rack\"\nfrom = \"server\"\nto = \"core\"\n");
    text.push_str("rate = \"10 Gbit/s\"\ndelay = \"10 us\"\n");
    for (number, link) in links.iter().enumerate() {
        let packets = (link.rate * 1e3 * link.rtt / 12e3).max(30.0) as u64;
        write!(
            text,
            "[[link]]\nname = \"last{number}\"\nfrom = \"core\"\nto = \"laptop\"\n\
             rate = \"{:.4} Mbit/s\"\ndelay = \"{:.4} ms\"\nbuffer = \"{packets} packets\"\n\
             loss = \"{:.4} %\"\njitter = \"{:.4} ms\"\none_way = true\n\
             [[link]]\nname = \"first{number}\"\nfrom = \"laptop\"\nto = \"core\"\n\
             rate = \"{:.4} Mbit/s\"\ndelay = \"{:.4} ms\"\none_way = true\n",
            link.rate,
            link.rtt / 2.0,
            link.loss * 100.0,
            link.jitter,
            link.rate,
            link.rtt / 2.0,
        )
        .expect("a string takes it");
        if let Some((at, span)) = link.outage {
            // Before the table of the way back.
            let place = text.find(&format!("[[link]]\nname = \"first{number}\"")).expect("it is");
            text.insert_str(place, &format!("outage = \"{at:.2}s:{span:.2}s\"\n"));
        }
    }
    text.push_str("[[flow]]\nname = \"get\"\nprotocol = \"dfcp\"\nfrom = \"server\"\n");
    write!(text, "to = \"laptop/first0\"\napp = \"object\"\nsize = \"{bytes} B\"\n").expect("so");
    let others: Vec<_> = (1..links.len()).map(|n| format!("\"laptop/first{n}\"")).collect();
    writeln!(text, "paths = [{}]", others.join(", ")).expect("a string takes it");
    // Where the slower link alone would take longer than the run, there is none.
    run(&text).metric("fct", "get").unwrap_or(f64::INFINITY)
}

#[test]
fn two_interfaces_of_a_host_add_up() {
    let path = format!("{}/../../scenarios/basic/paths.toml", env!("CARGO_MANIFEST_DIR"));
    let recording = run(&std::fs::read_to_string(path).expect("the scenario is there"));
    let goodput = metric(&recording, "goodput", "both");
    let sum = (50.0 + 30.0 * 0.99) * 1472.0 / 1500.0;
    assert!(goodput > 0.92 * sum, "{goodput} of {sum} Mbit/s");
}

#[test]
fn pairs_of_links_are_never_slower_than_the_better_and_mostly_add_up() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 6));
    let mut slower = Vec::new();
    let mut shares = Vec::new();
    for seed in first..first + runs {
        let s = &mut Stream::new(seed, "pairs");
        let (one, other) = (Link::random(s), Link::random(s));
        let sum = one.useful() + other.useful();
        let bytes = (sum * 10.0 / 8.0) as u64;
        let alone = time(&[&one], bytes, seed).min(time(&[&other], bytes, seed));
        let both = time(&[&one, &other], bytes, seed);
        let least = one.rtt.min(other.rtt) / 1e3;
        // Outages are within the first ten seconds; nothing is carried meanwhile.
        let missed = one.missed() + other.missed();
        let share = ((bytes as f64 * 8.0 + missed) / sum + 2.0 * least) / both;
        let kinds = [one.kind, other.kind].join(" and ");
        println!("seed {seed}: {kinds}: {:.3} x the better, {share:.3} of the sum", alone / both);
        println!("    {one:?}\n    {other:?}");
        // A connection begins over the first link: handshake and question take a round trip each.
        let start = 2.0 * (one.rtt - one.rtt.min(other.rtt)) / 1e3;
        if alone / (both - start) < 0.98 {
            slower.push(seed);
        }
        shares.push(share);
    }
    shares.sort_by(f64::total_cmp);
    println!("shares of the sum: {shares:.3?}");
    assert!(slower.is_empty(), "slower than the better link alone: seeds {slower:?}");
    assert!(shares[shares.len() / 2] > 0.85, "{shares:.3?}");
}

/// One bottleneck that paths share and others use too.
#[derive(Clone, Debug)]
struct Bottleneck {
    rate: f64,
    /// Round-trip times of the two paths, in ms.
    rtt: [f64; 2],
    /// The buffer, in products of the rate and the longer round trip.
    buffer: f64,
    queue: &'static str,
    /// The rate controller of the flow.
    control: &'static str,
    /// The protocols of flows beside, with the first path's round trip.
    beside: Vec<&'static str>,
}

impl Bottleneck {
    fn random(s: &mut Stream) -> Self {
        let between = |s: &mut Stream, low: f64, high: f64| low * (high / low).powf(s.unit());
        let rate = between(s, 10.0, 200.0);
        let rtt = [between(s, 10.0, 80.0), between(s, 10.0, 80.0)];
        let buffer = between(s, 0.5, 2.0);
        let queue = ["fifo", "fifo", "codel"][s.below(3) as usize];
        let (control, beside): (_, &[&str]) = match s.below(4) {
            0 => ("auto", &["dfcp"]),
            1 => ("auto", &["dfcp", "cubic"]),
            2 => ("auto", &["dfcp", "dfcp", "dfcp"]),
            _ => ("friendly", &["cubic-hystart"]),
        };
        Self { rate, rtt, buffer, queue, control, beside: beside.to_vec() }
    }

    /// The goodput in Mbit/s of a flow over these paths of the bottleneck.
    fn goodput(&self, paths: &[usize], coupled: bool, seed: u64) -> f64 {
        let mut text = format!(
            "[scenario]\nseed = {seed}\nduration = \"60 s\"\nwarmup = \"20 s\"\nsample = \"1 s\"\n\
             [[host]]\nname = \"laptop\"\n[[host]]\nname = \"server\"\n\
             [[link]]\nname = \"rack\"\nfrom = \"server\"\nto = \"core\"\nrate = \"10 Gbit/s\"\n\
             delay = \"10 us\"\n"
        );
        let packets = self.buffer * self.rate * 1e3 * self.rtt[0].max(self.rtt[1]) / 12e3;
        write!(
            text,
            "[[link]]\nname = \"shared\"\nfrom = \"core\"\nto = \"home\"\nrate = \"{:.3} Mbit/s\"\n\
             delay = \"1 ms\"\nqueue = \"{}\"\nbuffer = \"{:.0} packets\"\n",
            self.rate,
            self.queue,
            packets.max(20.0)
        )
        .expect("a string takes it");
        for (number, rtt) in self.rtt.iter().enumerate() {
            let delay = rtt / 2.0 - 1.0;
            write!(
                text,
                "[[link]]\nname = \"last{number}\"\nfrom = \"home\"\nto = \"laptop\"\n\
                 rate = \"1 Gbit/s\"\ndelay = \"{delay:.3} ms\"\n"
            )
            .expect("a string takes it");
        }
        write!(
            text,
            "[[flow]]\nname = \"get\"\nprotocol = \"dfcp\"\nfrom = \"server\"\n\
             to = \"laptop/last{}\"\n",
            paths[0]
        )
        .expect("a string takes it");
        if let Some(other) = paths.get(1) {
            writeln!(text, "paths = [\"laptop/last{other}\"]").expect("a string takes it");
        }
        let control = self.control;
        writeln!(text, "dfcp = {{ rate = \"{control}\", coupled = {coupled} }}").expect("it does");
        for (number, protocol) in self.beside.iter().enumerate() {
            write!(
                text,
                "[[flow]]\nname = \"beside{number}\"\nprotocol = \"{protocol}\"\n\
                 from = \"server\"\nto = \"laptop/last0\"\n"
            )
            .expect("a string takes it");
        }
        metric(&run(&text), "goodput", "get")
    }
}

#[test]
fn paths_that_share_a_bottleneck_take_one_share() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 6));
    let mut shares = Vec::new();
    for seed in first..first + runs {
        let cell = Bottleneck::random(&mut Stream::new(seed, "bottlenecks"));
        let alone = [0, 1].map(|path| cell.goodput(&[path], true, seed));
        let [both, apart] = [true, false].map(|coupled| cell.goodput(&[0, 1], coupled, seed));
        let equal = cell.rate * 1472.0 / 1500.0 / (cell.beside.len() + 1) as f64;
        // RFC 6356 section 2: no more than a flow on the best of the paths.
        let one = alone[0].max(alone[1]).max(equal);
        println!("seed {seed}: {:.2} of one share, {:.2} uncoupled", both / one, apart / one);
        println!("    alone {alone:.1?}, equal {equal:.1} Mbit/s; {cell:.1?}");
        shares.push(both / one);
    }
    shares.sort_by(f64::total_cmp);
    println!("shares: {shares:.2?}");
    assert!(shares[shares.len() / 2] <= 1.1, "{shares:.2?}");
    assert!(shares[shares.len() * 8 / 10] <= 1.2, "{shares:.2?}");
}
