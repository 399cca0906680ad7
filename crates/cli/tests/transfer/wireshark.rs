//! Captures of real transfers, read by the dissector in `contrib/wireshark` with the keys that
//! `--keylog` leaves.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use fontis::protection::{Initiator, cookie, open_syn};
use fontis::{Identity, KeyLog};
use fontis_proto::dfcp::{
    ConnectionId, DfcpPacket, Frame, Frames, Hello, Params, Session, VERSION,
};

use crate::support::{Bench, content, hash};

const DISSECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/wireshark/fontis.lua");

/// A capture in libpcap's format, of IPv4 packets without a link layer (LINKTYPE_RAW).
struct Capture(File);

impl Capture {
    fn create(path: &Path) -> Self {
        let mut file = File::create(path).unwrap();
        let fields: [u32; 6] = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 101];
        file.write_all(&fields.map(u32::to_le_bytes).concat()).unwrap();
        Self(file)
    }

    fn add(&mut self, from: u16, to: u16, datagram: &[u8]) {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let length = 28 + datagram.len();
        let head = [time.as_secs() as u32, time.subsec_micros(), length as u32, length as u32];
        let mut record = head.map(u32::to_le_bytes).concat();
        record.extend([0x45, 0]);
        record.extend((length as u16).to_be_bytes());
        record.extend([0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        for field in [from, to, length as u16 - 20, 0] {
            record.extend(field.to_be_bytes());
        }
        record.extend(datagram);
        self.0.write_all(&record).unwrap();
    }
}

/// Passes datagrams between a client and a server and captures them, until `is_over` and all is
/// quiet.
fn tap(socket: &UdpSocket, server: u16, capture: &mut Capture, mut is_over: impl FnMut() -> bool) {
    let outside = UdpSocket::bind("127.0.0.1:0").unwrap();
    outside.connect(("127.0.0.1", server)).unwrap();
    socket.set_nonblocking(true).unwrap();
    outside.set_nonblocking(true).unwrap();
    let mut client: Option<SocketAddr> = None;
    let mut buffer = [0; 65_536];
    loop {
        let mut idle = true;
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            client = Some(from);
            capture.add(from.port(), server, &buffer[..length]);
            let _ = outside.send(&buffer[..length]);
            idle = false;
        }
        while let Ok(length) = outside.recv(&mut buffer) {
            let client = client.expect("the client spoke first");
            capture.add(server, client.port(), &buffer[..length]);
            let _ = socket.send_to(&buffer[..length], client);
            idle = false;
        }
        if idle {
            if is_over() {
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// What tshark says of each packet of the capture: its column of information.
fn dissect(capture: &Path, keys: Option<&Path>) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.arg("-X").arg(format!("lua_script:{DISSECTOR}")).env_remove("FONTIS_KEYLOG");
    if let Some(keys) = keys {
        command.arg("-o").arg(format!("fontis.keylog:{}", keys.display()));
    }
    command
        .args(["-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info", "-r"])
        .arg(capture);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.strip_prefix("DFCP\t").expect(line).to_owned()).collect()
}

fn has_tshark() -> bool {
    match Command::new("tshark")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        status => status.unwrap().success(),
    }
}

#[test]
fn a_capture_is_read_with_the_key_log_and_only_with_it() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1_500_000)).unwrap();
    let keys = bench.path("keys");
    let server = bench.serve(&["--keylog", keys.to_str().unwrap()]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let url = server.url_with("127.0.0.1", port, "file");
    let client_keys = bench.path("client-keys");
    let mut command = bench.command(&["get", &url, "got"]);
    let mut get = command.env("FONTIS_KEYLOG", &client_keys).spawn().unwrap();
    let captured = bench.path("capture.pcap");
    let mut capture = Capture::create(&captured);
    tap(&socket, server.port, &mut capture, || get.try_wait().unwrap().is_some());
    assert!(get.wait().unwrap().success());
    assert_eq!(hash(&bench.path("got")), hash(&bench.path("served/file")));

    let line = fs::read_to_string(&keys).unwrap();
    assert_eq!(line, fs::read_to_string(&client_keys).unwrap(), "both ends have the same keys");
    let lengths: Vec<_> = line.split_whitespace().map(str::len).collect();
    assert_eq!((line.lines().count(), &lengths[..]), (1, &[8, 16, 16, 32, 32][..]));
    assert_eq!(fs::metadata(&keys).unwrap().mode() & 0o777, 0o600);

    if !has_tshark() {
        println!("the dissector was not tried: tshark is not installed (Debian: tshark)");
        return;
    }
    let packets = dissect(&captured, Some(&keys));
    // An end that waits too long for the processor says its part again.
    let is_handshake = |info: &str| ["SYN", "SYNACK"].contains(&info);
    let infos = packets.iter().map(String::as_str);
    let mut handshake: Vec<&str> = infos.take_while(|info| is_handshake(info)).collect();
    handshake.dedup();
    assert!(handshake.starts_with(&["SYN", "SYNACK"]), "{packets:?}");
    let undecodable: Vec<_> = packets.iter().filter(|info| info.contains("undecodable")).collect();
    assert!(undecodable.is_empty(), "{undecodable:?}");
    for frame in ["PADDING", "CONFIRM", "FEEDBACK", "BLOCKS", "OPEN", "SYMBOLS", "DONE", "CLOSE"] {
        assert!(packets.iter().any(|info| info.contains(frame)), "{frame}: {packets:?}");
    }
    // Of all packets, those that the keys have opened.
    let sealed = |infos: Vec<String>| -> Vec<String> {
        assert_eq!(infos.len(), packets.len());
        let pairs = packets.iter().zip(infos);
        pairs.filter(|(opened, _)| !is_handshake(opened)).map(|(_, info)| info).collect()
    };
    let without = sealed(dissect(&captured, None));
    assert!(without.iter().all(|info| !info.contains(':')), "{without:?}");

    // Keys of other packets.
    let other = fs::read_to_string(&keys).unwrap().trim_end().split(' ').enumerate().fold(
        String::new(),
        |text, (index, word)| {
            let word = if index < 3 { word.to_owned() } else { "00".repeat(16) };
            text + &word + if index < 4 { " " } else { "\n" }
        },
    );
    fs::write(&keys, other).unwrap();
    let unopened = sealed(dissect(&captured, Some(&keys)));
    assert!(unopened.iter().all(|info| info.ends_with(": [wrong tag]")), "{unopened:?}");
}

#[test]
fn cookies_and_later_generations_of_keys_are_read_too() {
    let bench = Bench::new();
    let keys = bench.path("keys");
    let log = Some(KeyLog::append(&keys).unwrap());
    let identities = [Identity::generate(), Identity::generate()];
    let [(client, _), (server, public)] =
        identities.map(|identity| (*identity.secret(), *identity.public().as_bytes()));
    let ids = [ConnectionId([1; 8]), ConnectionId([2; 8])];
    let params = Params::default();
    let hello = || Hello { params: params.clone(), frames: Vec::new() };
    let captured = bench.path("capture.pcap");
    let mut capture = Capture::create(&captured);

    let mut initiator = Initiator::new(client, public, None).with_key_log(log);
    let mut syn = Vec::new();
    let packet = DfcpPacket::Syn { version: VERSION, source: ids[0], hello: hello() };
    initiator.seal(&packet, &mut syn).unwrap();
    capture.add(1, 2, &syn);
    capture.add(2, 1, &cookie(ids[0], &[5; 16]));
    capture.add(1, 2, initiator.prove(&[5; 16]).unwrap());
    let mut responder = open_syn(&syn, &server, None).unwrap().responder;
    let mut synack = Vec::new();
    let packet = DfcpPacket::SynAck { destination: ids[0], source: ids[1], hello: hello() };
    responder.seal(&packet, &mut synack).unwrap();
    initiator.open((&synack[..]).into()).unwrap();
    let mut ping = |number| {
        let mut datagram = Vec::new();
        let frames = Frames::from_iter([Frame::Ping]);
        let packet = DfcpPacket::Sealed { destination: ids[1], path: 0, number, frames };
        initiator.seal(&packet, &mut datagram).unwrap();
        datagram
    };
    for number in [0, (1 << 22) - 1, 1 << 22, (2 << 22) - 1, 2 << 22] {
        capture.add(1, 2, &ping(number));
    }
    // Changed in its number, so far ahead that it would put off those that follow if it counted; in
    // its frames; in its tag.
    let honest = ping((2 << 22) + 1);
    for at in [9, 13, honest.len() - 1] {
        let mut changed = honest.clone();
        changed[at] ^= 0x80;
        capture.add(1, 2, &changed);
    }
    capture.add(1, 2, &honest);
    drop(capture);
    let lines = fs::read_to_string(&keys).unwrap();
    let later: Vec<_> = lines.lines().skip(1).map(|line| &line[..32]).collect();
    assert_eq!(later, ["FONTIS_1_NEXT 0202020202020202 1", "FONTIS_1_NEXT 0202020202020202 2"]);
    if !has_tshark() {
        println!("the dissector was not tried: tshark is not installed (Debian: tshark)");
        return;
    }
    let packets = dissect(&captured, Some(&keys));
    assert_eq!(packets[..3], ["SYN", "COOKIE", "SYN with a cookie"]);
    let said = |info: &String| info.split_once(": ").map_or("", |(_, said)| said).to_owned();
    let said: Vec<_> = packets[3..].iter().map(said).collect();
    let changed = ["", "[wrong tag]", "[wrong tag]"];
    assert_eq!(said, [&["PING"; 5][..], &changed, &["PING"]].concat(), "{packets:?}");
}

#[test]
fn a_key_log_that_others_may_read_is_refused() {
    let bench = Bench::new();
    let keys = bench.path("name");
    fs::write(&keys, "").unwrap();
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o644)).unwrap();
    let run = bench.run(&["serve", "served", "--listen", "127.0.0.1:0", "--keylog", "name"]);
    assert!(run.failed_with("chmod 600"), "{}", run.stderr);
    assert_eq!(fs::read(&keys).unwrap(), b"");
}
