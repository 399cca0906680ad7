//! TCP in the simulated network, against what theory says of it.

use fontis_base::{Address, Duration, FlowId, Rate, Stream, Time};
use fontis_net::{Limit, LinkConfig, QueueKind};
use fontis_proto::tcp;
use fontis_sim::app::App;
use fontis_sim::app::source::{Pattern, PieceSource};
use fontis_sim::host::Host;
use fontis_sim::host::identity::EndpointIdentity;
use fontis_sim::host::tcp::TcpHost;
use fontis_sim::scenario::Scenario;
use fontis_sim::world::element::Element;
use fontis_sim::world::network::Network;
use fontis_sim::{Recording, World};

use crate::support::number::number;

/// Runs the only run of a scenario.
fn run(text: &str) -> Recording {
    let runs = Scenario::parse(text).expect("a scenario").runs().expect("a run");
    assert_eq!(runs.len(), 1);
    runs[0].experiment.run(|| false).expect("nobody stops it")
}

fn goodput(recording: &Recording) -> f64 {
    recording.metric("goodput", "all").expect("a goodput") * 1e6
}

fn check(what: &str, got: f64, want: f64, tolerance: f64) {
    assert!((got / want - 1.0).abs() < tolerance, "{what}: {got}, not {want}");
}

#[test]
fn the_mean_window_of_a_sawtooth_is_seven_ninths_of_its_peak() {
    // The queue never runs empty, so the window grows by a packet each time that it is served: its
    // square grows linearly from half the peak, and its mean in time is 7/9 of it; but for the
    // round trip at half the peak in which the loss is repaired.
    let (rate, rtt, buffer): (f64, f64, f64) = (10e6 / 8.0 / 1500.0, 0.1, 100.0);
    let recording = run(r#"
        [scenario]
        duration = "400 s"
        sample = "10 ms"
        host_jitter = "0"
        [topology]
        rate = "10 Mbit/s"
        rtt = "100 ms"
        buffer = "100 packets"
        [tcp]
        timestamps = false
        delayed_ack = "0"
        [[flow]]
        protocol = "newreno"
    "#);
    let rows = recording.flow.numbers("time").into_iter().zip(recording.flow.numbers("window"));
    let windows: Vec<f64> =
        rows.filter(|(time, _)| *time > 100.0).map(|(_, bytes)| bytes / 1460.0).collect();
    let mean = windows.iter().sum::<f64>() / windows.len() as f64;
    // The pipe, the buffer, and the packet on the line; the first whole window above that loses a
    // packet, and when that is known, a round trip later, the window is one more.
    let peak = (rate * rtt + buffer + 1.0).floor() + 2.0;
    let cycle = 0.75 * peak * peak / 2.0 / rate;
    let repair = peak / rate;
    let want = (7.0 / 9.0 * peak * cycle + peak / 2.0 * repair) / (cycle + repair);
    check("mean window", mean, want, 0.01);
    check("peak", windows.iter().copied().fold(0.0, f64::max), peak, 0.01);
}

#[test]
fn the_goodput_under_random_loss_is_that_of_mathis_and_padhye() {
    // Mathis and others (1997), and Padhye and others (1998, equation 32) with b = 1: bytes are
    // counted, so that delayed acknowledgements do not halve the growth.
    for (percent, tolerance) in [(0.1, 0.2), (0.5, 0.2), (2.0, 0.2)] {
        let p: f64 = percent / 100.0;
        let recording = run(&format!(
            "[scenario]\nduration = \"600 s\"\nwarmup = \"20 s\"\nsample = \"1 s\"\n\
             [topology]\nrtt = \"50 ms\"\nloss = \"{percent}%\"\n[[flow]]\nprotocol = \"newreno\"\ncount = 2"
        ));
        let got = goodput(&recording) / 2.0 / 8.0 / 1448.0;
        let (rtt, rto) = (0.05f64, 0.25f64);
        let mathis = (1.5 / p).sqrt() / rtt;
        let timeouts = rto * (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
        let padhye = 1.0 / (rtt * (2.0 * p / 3.0).sqrt() + timeouts);
        check(&format!("Padhye at {percent} %"), got, padhye, tolerance);
        // Mathis knows no timeouts, which cost more the more is lost.
        if p < 0.01 {
            check(&format!("Mathis at {percent} %"), got, mathis, tolerance);
        }
    }
}

#[test]
fn every_algorithm_fills_a_path_with_a_buffer_of_one_bandwidth_delay_product() {
    // 1448 of 1500 bytes are of use.
    let most = 20e6 * 1448.0 / 1500.0;
    for kind in fontis_proto::congestion::CongestionKind::ALL {
        let name = kind.name();
        let recording = run(&format!(
            "[scenario]\nduration = \"40 s\"\nwarmup = \"10 s\"\n[topology]\nrate = \"20 Mbit/s\"\n\
             [[flow]]\nprotocol = \"{name}\"\ncount = 2"
        ));
        let used = goodput(&recording) / most;
        // BBR drains the path every ten seconds on purpose. What waits behind a hole when the
        // window begins counts in it.
        assert!((0.9..=1.003).contains(&used), "{name}: {used}");
    }
}

#[test]
fn dctcp_fills_a_path_over_a_queue_as_long_as_routers_mark_where_reno_needs_more() {
    let run = |protocol: &str| {
        let recording = run(&format!(
            "[scenario]\nduration = \"5 s\"\nwarmup = \"1 s\"\n[topology]\nrate = \"1 Gbit/s\"\nrtt = \"500 us\"\n\
             queue = \"fifo-ecn\"\nbuffer = \"200 packets\"\n[queue]\nmark_above = \"20 packets\"\n[tcp]\necn = true\n\
             [[flow]]\nprotocol = \"{protocol}\"\ncount = 2"
        ));
        let metrics = recording.metrics();
        let of = |name: &str| metrics[&(name.to_owned(), "bottleneck".to_owned())];
        (goodput(&recording) / (1e9 * 1448.0 / 1500.0), of("mean_queue"), of("drop_rate"))
    };
    let (used, queue, dropped) = run("dctcp");
    assert!(used > 0.98 && (5.0..25.0).contains(&queue), "{used}, {queue} packets");
    assert_eq!(dropped, 0.0);
    let (reno, _, _) = run("newreno");
    assert!(reno < used - 0.005, "NewReno {reno}, DCTCP {used}");
}

#[test]
fn bbr_keeps_its_rate_where_others_halve_theirs() {
    let share = |protocol: &str| {
        let recording = run(&format!(
            "[scenario]\nduration = \"30 s\"\nwarmup = \"10 s\"\n[topology]\nrate = \"20 Mbit/s\"\n\
             loss = \"2%\"\n[tcp]\nrecovery = \"rack-tlp\"\n[[flow]]\nprotocol = \"{protocol}\""
        ));
        goodput(&recording) / 20e6
    };
    let (bbr, cubic) = (share("bbr"), share("cubic"));
    assert!(bbr > 0.85 && cubic < 0.4, "bbr {bbr}, cubic {cubic}");
}

#[test]
fn vegas_leaves_a_short_queue_and_cubic_a_long_one() {
    let queue = |protocol: &str| {
        let recording = run(&format!(
            "[scenario]\nduration = \"40 s\"\nwarmup = \"20 s\"\n[topology]\nrate = \"20 Mbit/s\"\n\
             [[flow]]\nprotocol = \"{protocol}\""
        ));
        recording.metric("mean_queue", "bottleneck").expect("a queue")
    };
    let vegas = queue("vegas");
    // Two to four packets, and what delayed acknowledgements gather.
    assert!((1.0..=6.0).contains(&vegas), "{vegas}");
    assert!(queue("cubic") > 30.0);
}

#[test]
fn marks_in_place_of_drops_lose_nothing() {
    let recording = run(r#"
        [scenario]
        duration = "30 s"
        [topology]
        queue = "codel-ecn"
        buffer = "10 BDP"
        [tcp]
        ecn = true
        [[flow]]
        count = 3
    "#);
    assert_eq!(recording.metric("drop_rate", "bottleneck"), Some(0.0));
    let marked = recording.queue.numbers("marked");
    assert!(marked.last().is_some_and(|marked| *marked > 10.0), "{:?}", marked.last());
    check("goodput", goodput(&recording), 100e6 * 1448.0 / 1500.0, 0.06);
}

#[test]
fn objects_complete_in_the_round_trips_that_slow_start_takes() {
    // 100 segments: windows of 10, 20, 40 and the rest, after a handshake of a round trip.
    let recording = run(r#"
        [scenario]
        duration = "10 s"
        host_jitter = "0"
        [topology]
        rate = "1 Gbit/s"
        rtt = "100 ms"
        [tcp]
        delayed_ack = "0"
        [[flow]]
        app = "object"
        size = "144800 B"
    "#);
    let fct = recording.metric("fct", "flow1").expect("it completes");
    // A handshake, three further round trips, and half of one to arrive.
    assert!((0.45..0.455).contains(&fct), "{fct}");
    assert_eq!(recording.metric("completed", "all"), Some(1.0));
}

#[test]
fn requests_are_answered_one_after_the_other() {
    let recording = run(r#"
        [scenario]
        duration = "30 s"
        [topology]
        rtt = "100 ms"
        [[flow]]
        app = "requests"
        requests = 10
        size = "5 kB"
    "#);
    // Ten round trips after the handshake's.
    let fct = recording.metric("fct", "flow1").expect("it completes");
    assert!((1.0..1.3).contains(&fct), "{fct}");
    assert_eq!(recording.flow.numbers("received").last(), Some(&50_000.0));
}

#[test]
fn a_host_without_jitter_and_one_with_it_send_at_other_times() {
    let text = |jitter: &str| {
        format!(
            "[scenario]\nduration = \"5 s\"\nhost_jitter = \"{jitter}\"\n[topology]\nrate = \"5 Mbit/s\"\n[[flow]]\ncount = 2"
        )
    };
    let [off, on] = ["0", "1 ms"].map(|jitter| run(&text(jitter)));
    assert!(off.queue != on.queue, "the jitter does nothing");
    let again = run(&text("1 ms"));
    assert!(on.queue == again.queue && on.summary == again.summary && on.event == again.event);
}

/// Segments that a sender believed lost, and data packets that its link lost. The MTUs are those of
/// the sender's and the receiver's host.
fn believed_and_lost(mtus: [u32; 2], pattern: Pattern) -> (u64, u64) {
    let mut network = Network::new(3);
    let [a, b] = [network.router(), network.router()];
    let link = LinkConfig {
        rate: Rate::from_mbps(10),
        delay: Duration::from_millis(5),
        ..LinkConfig::default()
    };
    let lossy = LinkConfig { loss: "2%".parse().expect("a loss"), ..link.clone() };
    let forth = network.link("forth", a, b, lossy);
    network.link("back", b, a, link);
    let identity = |local: u32, peer| EndpointIdentity {
        number: local,
        local: Address(local),
        peer: Address(peer),
        flow: FlowId(0),
        class: 0,
    };
    let config = |mtu| tcp::TcpConfig { mtu, ..tcp::TcpConfig::default() };
    let source = PieceSource::new(pattern, Time::ZERO, Stream::new(3, "source"));
    let app = Some(App::Source(source));
    let sender = TcpHost::new(identity(0, 1), config(mtus[0]), 7, app, Some(Time::ZERO));
    let receiver = TcpHost::new(identity(1, 0), config(mtus[1]), 9, None, None);
    let sender = network.host(Address(0), a, Element::Tcp(Box::new(sender)), None);
    network.host(Address(1), b, Element::Tcp(Box::new(receiver)), None);
    let (mut world, _) = network.build();
    world.start();
    world.run_to(Time::ZERO + Duration::from_secs(60));
    let Element::Tcp(host) = world.element(sender) else { panic!("a host speaks TCP") };
    (host.counters().lost, world.link(forth).stats().dropped.loss.packets)
}

#[test]
fn lost_packets_are_counted_one_by_one_whatever_their_size() {
    let small = Pattern::ConstantRate { rate: Rate::from_bps(400_000), piece: 100, lasts: None };
    for (mtus, pattern) in [
        ([1500, 1500], Pattern::Bulk),
        ([576, 576], Pattern::Bulk),
        ([9000, 9000], Pattern::Bulk),
        // The peer takes smaller segments than the sender could send.
        ([9000, 576], Pattern::Bulk),
        ([1500, 1500], small),
    ] {
        let (believed, lost) = believed_and_lost(mtus, pattern);
        // A timeout may believe more lost than is; what was lost last is not known yet.
        let off = believed.abs_diff(lost);
        assert!(lost > 20 && off * 50 <= lost, "{mtus:?}: {believed} believed, {lost} lost");
    }
}

/// Two hosts each way over two routers, with random loss and a short queue. The links of most hosts
/// are in bundles; those of the last two are slower than what follows.
struct Conserved {
    world: World,
    hosts: Vec<usize>,
    bundles: [usize; 2],
    slow: [usize; 2],
    core: [usize; 2],
}

fn conserved(kind: QueueKind, seed: u64) -> Conserved {
    let mut network = Network::new(seed);
    let [a, b] = [network.router(), network.router()];
    let core = LinkConfig {
        rate: Rate::from_mbps(10),
        delay: Duration::from_millis(5),
        queue: kind,
        buffer: Limit::Packets(20),
        loss: "0.5%".parse().expect("a loss"),
        ..LinkConfig::default()
    };
    let core = [network.link("forth", a, b, core.clone()), network.link("back", b, a, core)];
    let mut hosts = Vec::new();
    for flow in 0..4u32 {
        let (near, far) = if flow % 2 == 0 { (a, b) } else { (b, a) };
        let ids = [Address(2 * flow), Address(2 * flow + 1)];
        let config = || tcp::TcpConfig { ecn: true, ..tcp::TcpConfig::default() };
        let source = PieceSource::new(Pattern::Bulk, Time::ZERO, Stream::new(seed, "source"));
        let identity = |local: Address, peer| EndpointIdentity {
            number: local.0,
            local,
            peer,
            flow: FlowId(flow),
            class: 0,
        };
        let app = Some(App::Source(source));
        let start = Some(Time::ZERO);
        let sender = TcpHost::new(identity(ids[0], ids[1]), config(), 7, app, start);
        let receiver = TcpHost::new(identity(ids[1], ids[0]), config(), 9, None, None);
        for (id, router, host) in [(ids[0], near, sender), (ids[1], far, receiver)] {
            let rate = Rate::from_mbps(if flow < 3 { 50 } else { 5 });
            let link = LinkConfig { rate, ..LinkConfig::default() };
            let name = format!("uplink {}", id.0);
            hosts.push(network.host(id, router, Element::Tcp(Box::new(host)), Some((&name, link))));
        }
    }
    let (world, _) = network.build();
    // A host's link is made right after it, and a bundle after the first of its hosts.
    let (bundles, slow) = ([hosts[0] + 1, hosts[1] + 1], [hosts[6] + 1, hosts[7] + 1]);
    Conserved { world, hosts, bundles, slow, core }
}

#[test]
fn at_every_node_what_comes_in_goes_out_is_dropped_or_held() {
    for (_, kind) in QueueKind::ALL {
        let Conserved { mut world, hosts, bundles, slow, core } = conserved(kind, 5);
        world.start();
        for step in 1..200 {
            world.run_to(Time::ZERO + Duration::from_millis(17 * step));
            for link in slow.iter().chain(&core) {
                let stats = world.link(*link).stats();
                let out = stats.delivered + stats.dropped.total() + stats.held;
                assert_eq!(stats.entered + stats.duplicated, out, "{kind}");
            }
            let host = |index: usize| match world.element(index) {
                Element::Tcp(host) => host,
                _ => unreachable!("hosts speak TCP"),
            };
            let sum = |links: &[usize], count: fn(fontis_net::LinkStats) -> u64| {
                links.iter().map(|link| count(world.link(*link).stats())).sum::<u64>()
            };
            let mut sent = sum(&slow, |s| s.entered.packets);
            let mut passed_on = sum(&slow, |s| s.delivered.packets);
            for bundle in bundles {
                let Element::Bundle(bundle) = world.element(bundle) else { panic!("no bundle") };
                let (entered, delivered) = bundle.counts();
                assert_eq!(entered.packets, delivered.packets + bundle.held() as u64, "{kind}");
                sent += entered.packets;
                passed_on += delivered.packets;
            }
            assert_eq!(hosts.iter().map(|index| host(*index).packets()).sum::<u64>(), sent);
            // Routers hold nothing: what the uplinks deliver enters the core, what that delivers
            // arrives.
            assert_eq!(passed_on, sum(&core, |s| s.entered.packets));
            let arrived: u64 = hosts.iter().map(|index| host(*index).arrived()).sum();
            assert_eq!(sum(&core, |s| s.delivered.packets), arrived);
        }
        assert!(world.link(core[0]).stats().dropped.total().packets > 0, "{kind}: nothing tested");
    }
}

#[test]
fn a_sender_behind_a_narrow_line_of_its_own_does_not_fill_it_without_end() {
    // Nothing is lost, and the line is where packets would wait.
    let run = |queues: &str, recovery: &str| {
        run(&format!(
            r#"
            [scenario]
            duration = "60 s"
            warmup = "5 s"
            sample = "1 s"
            [topology]
            rate = "100 Mbit/s"
            access = "100 Mbit/s"
            rtt = "50 ms"
            buffer = "50 packets"
            [tcp]
            small_queues = {queues}
            recovery = "{recovery}"
            [[flow]]
            protocol = "cubic"
            "#
        ))
    };
    for recovery in ["rack-tlp", "rfc6675"] {
        let last = |recording: &Recording, column: &str| {
            *recording.flow.numbers(column).last().expect("a row")
        };
        let short = run("true", recovery);
        check("goodput", goodput(&short), 100e6 * 1448.0 / 1500.0, 0.002);
        // 50 ms, the path's own serialisation, and at most a millisecond of the line.
        let srtt = last(&short, "srtt");
        assert!(srtt < 0.052, "{srtt}");
        let bdp = 100e6 / 8.0 * 0.05;
        let window = last(&short, "window");
        assert!(window < 2.0 * bdp, "{window}");
        // Without the limit the same flow waits for itself for a second.
        let long = run("false", recovery);
        assert!(last(&long, "srtt") > 1.0 && last(&long, "window") > 20.0 * bdp);
    }
}

#[test]
fn hybla_has_under_random_loss_half_or_more_of_what_reno_has_over_25_ms() {
    // It grows as fast, but not in recovery, which lasts for a round trip of its own.
    let seed = number("FONTIS_SEED", 6);
    let mut stream = Stream::new(seed, "hybla");
    for case in 0..4 {
        let loss = 0.2 + 0.8 * stream.unit();
        let rtt = 25.0 + 575.0 * stream.unit();
        let goodput = |protocol: &str, rtt: f64| {
            goodput(&run(&format!(
                "[scenario]\nduration = \"200 s\"\nwarmup = \"40 s\"\nsample = \"1 s\"\n\
                 seed = {case}\n\
                 [topology]\nrate = \"100 Mbit/s\"\nrtt = \"{} us\"\nloss = \"{loss}%\"\n\
                 [tcp]\nreceive_buffer = \"16 MB\"\ndelayed_ack = \"0\"\n\
                 [[flow]]\nprotocol = \"{protocol}\"\n",
                (rtt * 1e3) as u64
            )))
        };
        let (hybla, reno) = (goodput("hybla", rtt), goodput("newreno", 25.0));
        let far = goodput("newreno", rtt);
        println!(
            "seed {seed}, {loss:.2} %, {rtt:.0} ms: {hybla:.3e} of {reno:.3e}, Reno {far:.3e}"
        );
        assert!((0.45..1.15).contains(&(hybla / reno)));
        assert!(rtt < 50.0 || hybla > 1.4 * far);
    }
}
