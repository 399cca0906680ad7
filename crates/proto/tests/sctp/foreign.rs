//! Associations with `sctp-proto`, which others wrote.
#![allow(clippy::disallowed_types, reason = "the peer counts in instants of the machine")]

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fontis_base::{Duration, Stream, Time};
use fontis_proto::sctp::{
    SctpAssociation, SctpConfig, SctpData, SctpEvent, SctpMessage, SctpPacket, SctpSend,
    respond_without_state,
};
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event,
    Payload, PayloadProtocolIdentifier, ReliabilityType, ServerConfig, TransportConfig,
};

use super::pair::{address, secret};

/// Messages of both directions: the stream, whether ordered, and the content.
type Wanted = Vec<(u16, bool, Bytes)>;

struct Mixed {
    now: Time,
    begin: Instant,
    ours: Option<SctpAssociation>,
    config: SctpConfig,
    endpoint: Endpoint,
    theirs: Option<(AssociationHandle, Association)>,
    flying: BTreeMap<(Time, u64), (bool, Bytes)>,
    count: u64,
    random: Stream,
    loss: f64,
    got_by_us: Vec<SctpMessage>,
    got_by_them: Vec<(u16, Bytes)>,
    /// What waits for room, of us and of them.
    queues: [Wanted; 2],
    events: Vec<SctpEvent>,
    are_they_connected: bool,
    is_lost: bool,
}

fn ours_at() -> SocketAddr {
    SocketAddr::new(address(0, 0), 9899)
}

/// Our end's address and theirs.
fn ends() -> [IpAddr; 2] {
    [address(0, 0), address(1, 0)]
}

impl Mixed {
    fn new(seed: u64, we_connect: bool, loss: f64) -> Self {
        let now = Time::from_nanos(1_000_000);
        let config = SctpConfig {
            addresses: [address(0, 0)].into_iter().collect(),
            mtu: 1228,
            streams: 8,
            ..SctpConfig::new(secret(seed))
        };
        let transport = || {
            let config = TransportConfig::default().with_max_send_message_size(1 << 20);
            Arc::new(config.with_max_receive_message_size(1 << 20))
        };
        let mut server = ServerConfig::new();
        server.transport = transport();
        let mut endpoint =
            Endpoint::new(Arc::new(EndpointConfig::default()), Some(Arc::new(server)));
        let (mut ours, mut theirs) = (None, None);
        if we_connect {
            ours = Some(SctpAssociation::connect(now, config.clone(), ends()));
        } else {
            let mut client = ClientConfig::new();
            client.transport = transport();
            theirs = Some(endpoint.connect(client, ours_at()).unwrap());
        }
        Self {
            now,
            begin: Instant::now(),
            ours,
            config,
            endpoint,
            theirs,
            flying: BTreeMap::new(),
            count: 0,
            random: Stream::new(seed, "foreign"),
            loss,
            got_by_us: Vec::new(),
            got_by_them: Vec::new(),
            queues: Default::default(),
            events: Vec::new(),
            are_they_connected: false,
            is_lost: false,
        }
    }

    fn instant(&self) -> Instant {
        self.begin + std::time::Duration::from_nanos(self.now.as_nanos())
    }

    fn fly(&mut self, to_us: bool, bytes: Bytes) {
        if self.random.unit() < self.loss {
            return;
        }
        self.count += 1;
        // A way of 20 ms on which some are late.
        let late = if self.random.below(20) == 0 { self.random.below(10) } else { 0 };
        let at = self.now + Duration::from_millis(20 + late);
        self.flying.insert((at, self.count), (to_us, bytes));
    }

    fn run(&mut self, span: Duration, until: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + span;
        loop {
            self.drain();
            if until(self) {
                return true;
            }
            let ours = self.ours.as_ref().and_then(SctpAssociation::timeout);
            let theirs = self.theirs.as_ref().and_then(|(_, theirs)| theirs.poll_timeout());
            let theirs = theirs.map(|at| {
                Time::from_nanos(at.saturating_duration_since(self.begin).as_nanos() as u64)
            });
            let flying = self.flying.first_key_value().map(|((at, _), _)| *at);
            let due = [ours.map(|(at, _)| at), theirs, flying].into_iter().flatten().min();
            let Some(next) = due.filter(|next| *next <= end) else { return false };
            self.now = self.now.max(next);
            let instant = self.instant();
            if let Some((_, theirs)) = &mut self.theirs {
                theirs.handle_timeout(instant);
            }
            while let Some(entry) = self.flying.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to_us, bytes) = entry.remove();
                if to_us { self.give_us(&bytes) } else { self.give_them(bytes) }
            }
        }
    }

    fn give_us(&mut self, bytes: &Bytes) {
        let packet = SctpPacket::decode(bytes).expect("their bytes");
        if let Some(ours) = &mut self.ours {
            return ours.handle(self.now, ends(), &packet, false);
        }
        match SctpAssociation::accept(self.now, self.config.clone(), ends(), &packet) {
            Ok(ours) => self.ours = Some(ours),
            Err(_) => {
                let answer = respond_without_state(self.now, &self.config, ends(), &packet);
                let Some(answer) = answer else { return };
                let mut bytes = Vec::new();
                answer.encode(&mut bytes);
                self.fly(false, bytes.into());
            }
        }
    }

    fn give_them(&mut self, bytes: Bytes) {
        let instant = self.instant();
        match self.endpoint.handle(instant, ours_at(), None, None, bytes) {
            Some((handle, DatagramEvent::NewAssociation(theirs))) => {
                self.theirs = Some((handle, theirs));
            }
            Some((_, DatagramEvent::AssociationEvent(event))) => {
                if let Some((_, theirs)) = &mut self.theirs {
                    theirs.handle_event(event);
                }
            }
            None => {}
        }
    }

    fn drain(&mut self) {
        let mut out: Vec<(bool, Bytes)> = Vec::new();
        let instant = self.instant();
        if let Some(ours) = &mut self.ours {
            while let Some((stream, is_ordered, data)) = self.queues[0].first().cloned() {
                let is_unordered = !is_ordered;
                let send = SctpSend { stream, protocol: 53, is_unordered, ..SctpSend::default() };
                if ours.send(self.now, send, SctpData::Bytes(data)).is_err() {
                    break;
                }
                self.queues[0].remove(0);
            }
            while let Some(transmit) = ours.poll(self.now) {
                let mut bytes = Vec::new();
                transmit.packet.encode(&mut bytes);
                out.push((false, bytes.into()));
            }
            while let Some(message) = ours.receive(self.now) {
                self.got_by_us.push(message);
            }
            self.events.extend(std::iter::from_fn(|| ours.event()));
        }
        while let Some(transmit) = self.endpoint.poll_transmit() {
            out.extend(raw(transmit.payload));
        }
        if let Some((handle, theirs)) = &mut self.theirs {
            while let Some(event) = theirs.poll() {
                match event {
                    Event::Connected => self.are_they_connected = true,
                    Event::AssociationLost { .. } | Event::HandshakeFailed { .. } => {
                        self.is_lost = true;
                    }
                    _ => {}
                }
            }
            for id in theirs.stream_ids() {
                let mut stream = theirs.stream(id).unwrap();
                while let Ok(Some(chunks)) = stream.read_sctp() {
                    let mut bytes = vec![0; chunks.len()];
                    chunks.read(&mut bytes).unwrap();
                    self.got_by_them.push((id, bytes.into()));
                }
            }
            if self.are_they_connected {
                for (id, is_ordered, data) in self.queues[1].drain(..) {
                    let _ = theirs.open_stream(id, PayloadProtocolIdentifier::Binary);
                    let mut stream = theirs.stream(id).unwrap();
                    stream
                        .set_reliability_params(!is_ordered, ReliabilityType::Reliable, 0)
                        .unwrap();
                    stream.write_sctp(&data, PayloadProtocolIdentifier::Binary).unwrap();
                }
            }
            while let Some(event) = theirs.poll_endpoint_event() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    theirs.handle_event(event);
                }
            }
            while let Some(transmit) = theirs.poll_transmit(instant) {
                out.extend(raw(transmit.payload));
            }
        }
        for (to_us, bytes) in out {
            self.fly(to_us, bytes);
        }
    }
}

fn raw(payload: Payload) -> Vec<(bool, Bytes)> {
    match payload {
        Payload::RawEncode(all) => all.into_iter().map(|bytes| (true, bytes)).collect(),
        Payload::PartialDecode(_) => Vec::new(),
    }
}

fn messages(stream: &mut Stream, budget: usize) -> Wanted {
    let (mut all, mut bytes) = (Vec::new(), 0);
    while bytes < budget {
        let len = libm::exp2(stream.unit() * 17.0) as usize;
        let mut content = vec![0; len.max(1)];
        stream.fill(&mut content);
        bytes += len + 100;
        // A stream of theirs is ordered or not as a whole.
        let id = stream.below(8) as u16;
        all.push((id, id.is_multiple_of(2), content.into()));
    }
    all
}

/// Both lists stream by stream: in order if the stream is ordered.
fn by_stream(all: impl Iterator<Item = (u16, Bytes)>) -> BTreeMap<u16, Vec<Bytes>> {
    let mut streams: BTreeMap<u16, Vec<Bytes>> = BTreeMap::new();
    all.for_each(|(id, bytes)| streams.entry(id).or_default().push(bytes));
    for (id, list) in &mut streams {
        if id % 2 == 1 {
            list.sort();
        }
    }
    streams
}

#[test]
fn messages_go_both_ways_with_a_peer_that_others_wrote() {
    let runs = std::env::var("FONTIS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(12);
    for seed in 0..runs {
        let mut stream = Stream::new(seed, "messages");
        let loss = [0.0, 0.01, 0.05, 0.1][seed as usize / 2 % 4];
        let mut mixed = Mixed::new(seed, seed % 2 == 0, loss);
        let wanted = [messages(&mut stream, 400_000), messages(&mut stream, 400_000)];
        mixed.queues.clone_from(&wanted);
        let done = mixed.run(Duration::from_secs(900), |mixed| {
            mixed.got_by_them.len() == wanted[0].len() && mixed.got_by_us.len() == wanted[1].len()
        });
        let got = (mixed.got_by_them.len(), mixed.got_by_us.len());
        let want = (wanted[0].len(), wanted[1].len());
        let about = format!("seed {seed}, loss {loss}: {got:?} of {want:?} at {:?}", mixed.now);
        assert!(done && !mixed.is_lost, "{about} {:?}", mixed.events);
        let plain = |list: &Wanted| by_stream(list.iter().map(|(id, _, b)| (*id, b.clone())));
        assert!(by_stream(mixed.got_by_them.drain(..)) == plain(&wanted[0]), "{about}: to them");
        let ours = mixed.got_by_us.drain(..).map(|message| {
            assert_eq!((message.protocol, message.is_unordered), (53, message.stream % 2 == 1));
            let SctpData::Bytes(bytes) = message.data else { panic!("{about}") };
            (message.stream, bytes)
        });
        assert!(by_stream(ours) == plain(&wanted[1]), "{about}: to us");
        let now = mixed.now;
        mixed.ours.as_mut().unwrap().close(now);
        let closed = mixed.run(Duration::from_secs(400), |mixed| {
            mixed.events.iter().any(|e| matches!(e, SctpEvent::Closed | SctpEvent::Aborted(_)))
        });
        assert!(closed, "{about}: no end");
        assert!(loss > 0.0 || mixed.events.contains(&SctpEvent::Closed), "{:?}", mixed.events);
    }
}
