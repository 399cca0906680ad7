//! Connections over several paths.

use std::process::Command;

use super::{library, metric, possible, scenario};

#[test]
fn a_connection_of_multipath_tcp_takes_two_ways() {
    if !possible() {
        return;
    }
    let ip = Command::new("ip").args(["mptcp", "limits"]).output();
    if !ip.is_ok_and(|output| output.status.success()) {
        eprintln!("not checked: ip mptcp does not work (Debian: iproute2; CONFIG_MPTCP)");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (run, _) = scenario(
        folder.path(),
        r#"
        [scenario]
        duration = "4 s"
        warmup = "2 s"
        [[link]]
        name = "left"
        from = "a"
        to = "l"
        rate = "20 Mbit/s"
        delay = "5 ms"
        [[link]]
        from = "l"
        to = "b"
        rate = "1 Gbit/s"
        [[link]]
        name = "right"
        from = "a"
        to = "r"
        rate = "10 Mbit/s"
        delay = "10 ms"
        [[link]]
        from = "r"
        to = "b"
        rate = "1 Gbit/s"
        [[flow]]
        name = "both"
        protocol = "cubic"
        from = "a"
        to = "b"
        subflows = 2
        via = "l, r"
        "#,
    );
    // Neither way alone carries so much.
    let goodput = metric(&run, "goodput", "both");
    assert!((21.0..30.0).contains(&goodput), "{goodput}: {run}");
    for link in ["left", "right"] {
        let used = metric(&run, "utilisation", link);
        assert!(used > 0.3, "{link}: {used}");
    }
}

#[test]
fn a_connection_of_fontis_takes_all_interfaces_of_either_host() {
    if !possible() {
        return;
    }
    // The laptop receives over 20 and 12 Mbit/s: neither carries so much alone. A slow machine
    // that is busy with other tests can do that.
    let rates = ["link.wifi.rate=20 Mbit/s", "link.phone.rate=12 Mbit/s"];
    let run = &library("paths", &[&["scenario.duration=6 s"], &rates[..]].concat())[0];
    let goodput = metric(run, "goodput", "both");
    assert!((22.0..31.2).contains(&goodput), "{goodput}: {run}");
    for link in ["wifi", "phone"] {
        let used = metric(run, "utilisation", link);
        assert!(used > 0.5, "{link}: {used}");
    }

    // And it sends over both.
    let folder = tempfile::tempdir().expect("a folder");
    let (run, _) = scenario(
        folder.path(),
        r#"
        [scenario]
        duration = "6 s"
        warmup = "2 s"
        [[host]]
        name = "laptop"
        [[link]]
        name = "wifi"
        from = "laptop"
        to = "home"
        rate = "20 Mbit/s"
        delay = "5 ms"
        [[link]]
        name = "phone"
        from = "laptop"
        to = "home"
        rate = "10 Mbit/s"
        delay = "25 ms"
        [[flow]]
        name = "both"
        protocol = "dfcp"
        from = "laptop/wifi"
        to = "home"
        paths = ["laptop/phone"]
        "#,
    );
    let goodput = metric(&run, "goodput", "both");
    assert!((21.0..30.0).contains(&goodput), "{goodput}: {run}");
}
