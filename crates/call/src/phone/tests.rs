use std::net::Ipv4Addr;

use super::*;

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Two agents, and what they say to each other.
struct Pair {
    agents: [SipAgent; 2],
    at: [SocketAddr; 2],
    now: Time,
}

impl Pair {
    fn new() -> Self {
        let at = [5070, 5072].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let new = |number: usize| {
            let media = SocketAddr::from((Ipv4Addr::LOCALHOST, 6000 + 2 * number as u16));
            SipAgent::new(at[number], media, VoiceCodec::OPUS, [number as u8; 32], true)
        };
        Self { agents: [new(0), new(1)], at, now: Time::ZERO }
    }

    fn call(&mut self, codec: VoiceCodec) {
        let (uri, at) = (format!("sip:you@{}", self.at[1]), self.at[1]);
        self.agents[0].ring(self.now, &uri, at, codec);
    }

    /// Passes datagrams for a minute or until nothing happens; `is_lost` takes their numbers.
    fn run(&mut self, mut is_lost: impl FnMut(usize) -> bool) -> Vec<String> {
        let (mut said, mut count) = (Vec::new(), 0);
        let end = self.now + fontis_base::Duration::from_secs(60);
        loop {
            let mut idle = true;
            for from in 0..2 {
                while let Some((to, message)) = self.agents[from].poll(self.now) {
                    idle = false;
                    assert_eq!(to, self.at[1 - from]);
                    let text = String::from_utf8_lossy(&message);
                    said.push(text.lines().next().unwrap_or_default().to_owned());
                    count += 1;
                    if !is_lost(count) {
                        self.agents[1 - from].handle(self.now, self.at[from], &message);
                    }
                }
            }
            if idle {
                let due = self.agents.iter().filter_map(SipAgent::timeout).min();
                match due.filter(|due| *due <= end) {
                    Some(due) => self.now = self.now.max(due),
                    None => return said,
                }
            }
        }
    }
}

#[test]
fn a_call_is_made_answered_and_ended_from_either_end() {
    for ender in [0, 1] {
        let mut pair = Pair::new();
        pair.call(VoiceCodec::Mulaw);
        let said = pair.run(|_| false);
        assert!(said[2].contains("180 Ringing"), "{said:?}");
        let caller = pair.agents[1].caller().expect("it rings");
        assert_eq!(caller.formats[0].codec, VoiceCodec::Mulaw);
        assert!(!pair.agents[1].accept(pair.now, VoiceCodec::Alaw), "it was not offered");
        assert!(pair.agents[1].accept(pair.now, VoiceCodec::Mulaw));
        pair.run(|_| false);
        for (number, agent) in pair.agents.iter().enumerate() {
            let end = agent.talking().expect("it talks");
            assert_eq!(end.at.port(), 6002 - 2 * number as u16);
            assert!(agent.timeout().is_none(), "nothing is said again");
        }
        pair.agents[ender].hang_up(pair.now);
        pair.run(|_| false);
        assert!(pair.agents.iter().all(|agent| agent.over().is_some()));
    }
}

#[test]
fn the_loss_of_any_messages_is_made_up_for() {
    for mask in 0..512_usize {
        let mut pair = Pair::new();
        pair.call(VoiceCodec::OPUS);
        let lost = |count: usize| count <= 9 && mask >> (count - 1) & 1 == 1;
        pair.run(lost);
        assert!(pair.agents[1].accept(pair.now, VoiceCodec::OPUS), "{mask:b}");
        pair.run(lost);
        assert!(pair.agents.iter().all(|agent| agent.talking().is_some()), "{mask:b}");
        pair.agents[0].hang_up(pair.now);
        pair.run(lost);
        assert!(pair.agents.iter().all(|agent| agent.over().is_some()), "{mask:b}");
    }
}

#[test]
fn a_call_that_is_given_up_or_refused_ends_at_both_ends() {
    let mut pair = Pair::new();
    pair.call(VoiceCodec::Mulaw);
    pair.run(|_| false);
    pair.agents[0].hang_up(pair.now);
    let said = pair.run(|_| false);
    assert!(said.iter().any(|line| line.contains("487")), "{said:?}");
    assert!(pair.agents.iter().all(|agent| agent.over().is_some()));
    let mut pair = Pair::new();
    pair.call(VoiceCodec::Mulaw);
    pair.run(|_| false);
    pair.agents[1].hang_up(pair.now);
    pair.run(|_| false);
    assert!(pair.agents[0].over().expect("it is over").contains("480"));
}

#[test]
fn wrong_messages_get_an_error_of_sip_and_others_hear_that_the_line_is_busy() {
    let mut pair = Pair::new();
    let from = pair.at[0];
    let mut ask = |text: &str| {
        pair.agents[1].handle(pair.now, from, &Bytes::from(text.to_owned()));
        let (_, answer) = pair.agents[1].poll(pair.now)?;
        while pair.agents[1].poll(pair.now).is_some() {}
        Some(String::from_utf8_lossy(&answer).lines().next()?.to_owned())
    };
    let request = |method: &str, number: u32, body: &str| {
        let len = body.len();
        format!(
            "{method} sip:fontis@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{number}\r\n\
             From: <sip:a@{from}>;tag=1\r\nTo: <sip:fontis@127.0.0.1>\r\nCall-ID: {number}\r\n\
             CSeq: {number} {method}\r\nContact: <sip:a@{from}>\r\nContent-Length: {len}\r\n\r\n{body}"
        )
    };
    let voice = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
                 m=audio 4000 RTP/AVP 0\r\n";
    let of = |answer: Option<String>| answer.map(|line| line[8..11].to_owned());
    assert_eq!(of(ask(&request("OPTIONS", 1, ""))).as_deref(), Some("200"));
    assert_eq!(of(ask(&request("BYE", 2, ""))).as_deref(), Some("481"));
    assert_eq!(of(ask(&request("CANCEL", 3, ""))).as_deref(), Some("481"));
    assert_eq!(of(ask(&request("REGISTER", 4, ""))).as_deref(), Some("405"));
    assert_eq!(of(ask(&request("ACK", 5, ""))), None);
    assert_eq!(of(ask(&request("INVITE", 6, "v=1"))).as_deref(), Some("488"));
    let wrong = request("INVITE", 7, voice).replace("CSeq: 7 INVITE", "CSeq: x");
    assert_eq!(of(ask(&wrong)).as_deref(), Some("400"));
    assert_eq!(of(ask(&wrong.replace("INVITE sip:", "INVITE  sip :"))).as_deref(), Some("400"));
    let needs = request("INVITE", 8, voice).replace("Contact", "Require: 100rel\r\nContact");
    assert_eq!(of(ask(&needs)).as_deref(), Some("420"));
    assert_eq!(of(ask("no SIP at all\r\n\r\n")), None);
    assert_eq!(of(ask(&request("INVITE", 9, voice))).as_deref(), Some("100"));
    assert_eq!(of(ask(&request("INVITE", 10, voice))).as_deref(), Some("486"));
    let far = SocketAddr::from(([192, 0, 2, 1], 5060));
    pair.agents[1].handle(pair.now, far, &Bytes::from(request("OPTIONS", 11, "")));
    assert!(pair.agents[1].poll(pair.now).is_none(), "it is of another machine");
}

#[test]
fn addresses_of_sip_are_read() {
    let of = |text| address(text).map(|at| at.to_string());
    assert_eq!(of("sip:me@127.0.0.1:5062").as_deref(), Some("127.0.0.1:5062"));
    assert_eq!(of("sip:localhost;transport=udp").as_deref(), Some("127.0.0.1:5060"));
    assert_eq!(of("sip:me@[::1]:5064").as_deref(), Some("[::1]:5064"));
    for wrong in ["me@127.0.0.1", "sip:me@example.org", "sip:me@127.0.0.1 x", "sip:"] {
        assert_eq!(of(wrong), None, "{wrong}");
    }
}

#[tokio::test]
async fn voice_goes_both_ways_between_two_bridges_until_one_hangs_up() {
    let called = PhoneBridge::bind(loopback()).await.expect("a socket");
    let at = called.local_addr().expect("an address");
    let caller = PhoneBridge::bind(loopback()).await.expect("a socket");
    let answer = async {
        let mut phone = called.wait(VoiceCodec::OPUS, async {}).await.expect("a call");
        assert_eq!(phone.codecs(), [VoiceCodec::Mulaw]);
        phone.accept(VoiceCodec::Mulaw).await.expect("it is taken");
        phone
    };
    let uri = format!("sip:you@{at}");
    let ring = caller.ring(&uri, VoiceCodec::Mulaw);
    let (mut here, there) = tokio::join!(answer, ring);
    let mut there = there.expect("it is answered");
    for (seq, timestamp) in [(0, 0), (1, 160), (2, 8000)] {
        let payload = Bytes::from(vec![seq as u8; 160]);
        let marker = seq == 0;
        let packet = RtpFrame { payload_type: 0, marker, seq, timestamp, source: 0, payload };
        there.send(&packet);
        let heard = tokio::time::timeout(Wait::from_secs(10), here.next()).await;
        assert_eq!(heard.expect("in time"), Some(packet), "its own times, but for the begin");
    }
    there.hang_up().await.expect("it is understood");
    let end = tokio::time::timeout(Wait::from_secs(10), here.next()).await;
    assert_eq!(end.expect("in time"), None);
}

/// A telephone of this test's own, which says what SIP and RTP have and knows nothing of bridges.
#[tokio::test]
async fn a_telephone_is_told_how_its_packets_come_and_its_keys_and_noise_are_heard() {
    let bridge = PhoneBridge::bind(loopback()).await.expect("a socket");
    let at = bridge.local_addr().expect("an address");
    let [sip, voice, control] = {
        let bind = || UdpSocket::bind(loopback());
        [bind().await, bind().await, bind().await].map(|socket| socket.expect("a socket"))
    };
    let port = |socket: &UdpSocket| socket.local_addr().expect("an address").port();
    let from = sip.local_addr().expect("an address");
    let body = format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
         m=audio {} RTP/AVP 0 13 96\r\na=rtpmap:96 telephone-event/8000\r\na=rtcp:{}\r\n",
        port(&voice),
        port(&control)
    );
    let invite = format!(
        "INVITE sip:fontis@{at} SIP/2.0\r\nVia: SIP/2.0/UDP {from};branch=z9hG4bK1\r\n\
         From: <sip:a@{from}>;tag=1\r\nTo: <sip:fontis@{at}>\r\nCall-ID: 1\r\n\
         CSeq: 1 INVITE\r\nContact: <sip:a@{from}>\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    sip.send_to(invite.as_bytes(), at).await.expect("it leaves");
    let mut phone = bridge.wait(VoiceCodec::OPUS, async {}).await.expect("a call");
    phone.accept(VoiceCodec::Mulaw).await.expect("it is taken");
    let mut buffer = [0; 2048];
    let answer = loop {
        let (len, _) = sip.recv_from(&mut buffer).await.expect("an answer");
        let text = String::from_utf8_lossy(&buffer[..len]).into_owned();
        if text.starts_with("SIP/2.0 200") {
            break text;
        }
    };
    let line = answer.lines().find_map(|line| line.strip_prefix("m=audio ")).expect("voice");
    let (target, formats) = line.split_once(' ').expect("a port");
    assert_eq!(formats, "RTP/AVP 0 13 96");
    let target: u16 = target.parse().expect("a port");
    let to = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let say = |payload_type, seq, timestamp, payload: &'static [u8]| {
        let payload = Bytes::from_static(payload);
        let (marker, source) = (false, 77);
        RtpFrame { payload_type, marker, seq, timestamp, source, payload }.encode()
    };
    // One in four is lost on the way.
    for (payload_type, seq, payload) in
        [(0, 500, &[1; 160][..]), (96, 501, &[5, 138, 3, 32]), (13, 503, &[50])]
    {
        let packet = say(payload_type, seq, 160 * u32::from(seq), payload);
        voice.send_to(&packet, to(target)).await.expect("it leaves");
        let heard = tokio::time::timeout(Wait::from_secs(10), phone.next()).await;
        let heard = heard.expect("in time").expect("a packet");
        let own = if payload_type == 96 { 101 } else { payload_type };
        assert_eq!((heard.payload_type, heard.seq), (own, seq - 500));
        assert_eq!(heard.payload, payload);
    }
    // What the far end says goes out, with the telephone's numbers for its kinds.
    for (kind, number) in [(0, 0), (101, 96), (13, 13)] {
        let payload = Bytes::from_static(&[7, 138, 3, 32]);
        let (marker, seq, timestamp, source) = (false, kind.into(), 160, 0);
        let packet = RtpFrame { payload_type: kind, marker, seq, timestamp, source, payload };
        phone.send(&packet);
        let (len, _) = voice.recv_from(&mut buffer).await.expect("it comes");
        assert_eq!((buffer[1] & 127, &buffer[12..len]), (number, &[7, 138, 3, 32][..]));
    }
    // A sender report, and five seconds later the bridge's own.
    let mut report = vec![0x80, 200, 0, 6];
    report.extend([77_u32, 0xaaaa_1234, 0x5678_bbbb, 0, 4, 480].map(u32::to_be_bytes).concat());
    control.send_to(&report, to(target + 1)).await.expect("it leaves");
    let told = async {
        tokio::select! {
            _ = phone.next() => panic!("nothing is said"),
            told = control.recv_from(&mut buffer) => told.expect("a report").0,
        }
    };
    let len = tokio::time::timeout(Wait::from_secs(20), told).await.expect("in time");
    let word = |number: usize| {
        u32::from_be_bytes(buffer[4 * number..][..4].try_into().expect("four bytes"))
    };
    assert!(len > 52 && (buffer[0], buffer[1]) == (0x81, 200), "a report of a sender");
    assert_eq!((word(5), word(6)), (3, 12), "packets and bytes");
    assert_eq!((word(7), word(8)), (77, 64 << 24 | 1), "a quarter was lost");
    assert_eq!((word(9), word(11)), (503, 0x1234_5678));
    assert!(word(12) > 0, "the time since the telephone's report");
    let (len, sender) = {
        let goodbye = tokio::join!(phone.hang_up(), control.recv_from(&mut buffer));
        goodbye.0.expect("it is understood");
        goodbye.1.expect("a last report")
    };
    assert_eq!((sender, buffer[len - 7]), (to(target + 1), 203));
}
