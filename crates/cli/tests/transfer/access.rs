//! Who may read and write, and what each side learns of the other.

use std::fs;

use crate::support::{Bench, Listener, content};

#[test]
fn a_url_without_its_secret_reads_nothing_unless_the_server_is_public() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1_000)).unwrap();
    let server = bench.serve(&[]);
    let (bare, secret) = server.url.split_once("&secret=").unwrap();
    let wrong = format!("{bare}&secret={}", "A".repeat(secret.len()));
    for url in [bare, &wrong] {
        for path in ["file", "missing"] {
            let got = bench.run(&["get", &url.replace("/?", &format!("/{path}?"))]);
            assert!(got.failed_with("lacks this server's secret"), "{}", got.stderr);
        }
    }
    // A client can continue with the same URL after the server was restarted.
    assert!(bench.serve(&[]).url.ends_with(&format!("&secret={secret}")));
    let public = bench.serve(&["--public"]);
    assert!(!public.url.contains("secret"));
    let got = bench.run(&["get", &public.url_of("file")]);
    assert_eq!(got.code, 0, "{}", got.stderr);
}

#[test]
fn a_secret_need_not_stand_among_the_arguments() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1_000)).unwrap();
    let server = bench.serve(&[]);
    let url = server.url_of("file");
    fs::write(bench.path("url"), format!("{url}\n")).unwrap();
    let got = bench.run(&["get", "@url", "one"]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    let mut command = bench.command(&["get", "@-", "two"]);
    command.stdin(fs::File::open(bench.path("url")).unwrap());
    assert!(command.output().unwrap().status.success());
    let (bare, secret) = url.split_once("&secret=").unwrap();
    let with = |secret: &str, name: &str| {
        bench.command(&["get", bare, name]).env("FONTIS_SECRET", secret).output().unwrap()
    };
    assert!(with(secret, "three").status.success());
    let wrong = with("no secret", "four");
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && said.contains("FONTIS_SECRET"), "{said}");
    assert!(!said.contains("no secret"), "{said}");
    for name in ["one", "two", "three"] {
        assert_eq!(fs::read(bench.path(name)).unwrap(), content(1_000));
    }
    let missing = bench.run(&["get", "@missing", "five"]);
    assert!(missing.failed_with("cannot read missing"), "{}", missing.stderr);
}

#[test]
fn each_server_sees_another_key_of_a_client_and_its_identity_only_if_that_is_named() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1_000)).unwrap();
    let one = bench.serve(&["--json"]);
    let other = bench.serve(&["--json", "--identity", "other"]);
    let seen = |server: &Listener, arguments: &[&str]| {
        let url = server.url_of("file");
        let got = bench.run(&[&["get", &url, "--force"], arguments].concat());
        assert_eq!(got.code, 0, "{}", got.stderr);
        server.event("connected")["key"].as_str().unwrap().to_owned()
    };
    let first = seen(&one, &[]);
    assert_eq!(seen(&one, &[]), first);
    assert_ne!(seen(&other, &[]), first);
    let own = bench.run(&["keygen"]).stdout;
    assert_ne!(own.trim(), first);
    let file = bench.path("config/fontis/identity");
    assert_eq!(seen(&one, &["--identity", file.to_str().unwrap()]), own.trim());
}

#[test]
fn only_those_on_the_list_are_served() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1_000)).unwrap();
    let friend = bench.run(&["keygen", "--identity", "friend"]).stdout;
    fs::write(bench.path("friends"), format!("{} # a friend\n", friend.trim())).unwrap();
    let server = bench.serve(&["--allow", "friends"]);
    let url = server.url_of("file");
    let got = bench.run(&["get", &url, "--identity", "stranger"]);
    assert!(got.failed_with("does not allow this client's key"), "{}", got.stderr);
    let got = bench.run(&["get", &url, "--identity", "friend"]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    fs::write(bench.path("friends"), "nonsense\n").unwrap();
    let refused = bench.run(&["serve", "served", "--listen", "127.0.0.1:0", "--allow", "friends"]);
    assert!(refused.failed_with("line 1"), "{}", refused.stderr);
}
