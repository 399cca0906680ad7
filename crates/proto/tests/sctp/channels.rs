//! Data channels between two ends.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bytes::Bytes;
use fontis_base::{Duration, Stream, Time};
use fontis_proto::data_channel::{
    ChannelContent, DataChannelError, DataChannelEvent, DataChannelOptions, DataChannels,
};
use fontis_proto::sctp::{
    Reliability, SctpAssociation, SctpConfig, SctpData, SctpPacket, SctpSend,
};

use super::pair::{address, secret};

/// Two ends that both connect, as in a browser, over a network that loses and delays.
struct Peers {
    now: Time,
    ends: [(SctpAssociation, DataChannels); 2],
    events: [Vec<DataChannelEvent>; 2],
    flying: BTreeMap<(Time, u64), (usize, SctpPacket)>,
    count: u64,
    random: Stream,
    loss: f64,
    /// Whether the applications take events.
    reads: [bool; 2],
}

fn ends_of(side: usize) -> [IpAddr; 2] {
    [address(side, 0), address(1 - side, 0)]
}

impl Peers {
    fn new(seed: u64, loss: f64) -> Self {
        let now = Time::from_nanos(1);
        let end = |side: usize| {
            let config = SctpConfig {
                streams: u16::MAX,
                interleaving: false,
                ..SctpConfig::new(secret(seed * 2 + side as u64))
            };
            let association = SctpAssociation::connect(now, config, ends_of(side));
            (association, DataChannels::new(side == 0, 100_000))
        };
        Self {
            now,
            ends: [end(0), end(1)],
            events: Default::default(),
            flying: BTreeMap::new(),
            count: 0,
            random: Stream::new(seed, "network"),
            loss,
            reads: [true; 2],
        }
    }

    fn open(&mut self, side: usize, options: DataChannelOptions) -> u16 {
        let (association, channels) = &mut self.ends[side];
        channels.open(self.now, association, options).unwrap()
    }

    fn send(
        &mut self,
        side: usize,
        id: u16,
        content: &ChannelContent,
    ) -> Result<(), DataChannelError> {
        let (association, channels) = &mut self.ends[side];
        channels.send(self.now, association, id, content)
    }

    fn run(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        loop {
            for side in 0..2 {
                let (association, channels) = &mut self.ends[side];
                channels.turn(self.now, association, |_| {});
                while self.reads[side]
                    && let Some(event) = channels.event()
                {
                    self.events[side].push(event);
                }
                while let Some(transmit) = association.poll(self.now) {
                    if self.random.unit() >= self.loss {
                        self.count += 1;
                        let late = Duration::from_micros(10_000 + self.random.below(5000));
                        let at = (self.now + late, self.count);
                        self.flying.insert(at, (1 - side, transmit.packet));
                    }
                }
            }
            let due = self.ends.iter().filter_map(|(association, _)| association.timeout());
            let flying = self.flying.first_key_value().map(|((at, _), _)| *at);
            let next = due.map(|(at, _)| at).chain(flying).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.flying.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to, packet) = entry.remove();
                self.ends[to].0.handle(self.now, ends_of(to), &packet, false);
            }
        }
        self.now = end;
    }
}

fn any(random: &mut Stream) -> ChannelContent {
    let len = random.below(10) * random.below(5000);
    match random.below(2) {
        0 => ChannelContent::Text("x".repeat(len as usize)),
        _ => ChannelContent::Binary(vec![0; len as usize].into()),
    }
}

/// Both ends open channels, send and close at random. What was sent before the close comes, in
/// order where there is one; each end learns of each close; numbers are used again.
#[test]
fn channels_are_opened_used_and_closed_at_any_time() {
    let mut reused = 0;
    for seed in 0..30 {
        let mut random = Stream::new(seed, "channels");
        let mut peers = Peers::new(seed, random.unit() * 0.1);
        // Of each end: what it has sent on each of its own channels, as they were opened.
        let mut sent: [Vec<(u16, bool, Vec<ChannelContent>)>; 2] = Default::default();
        let mut open: [Vec<usize>; 2] = Default::default();
        for _ in 0..60 {
            let side = random.below(2) as usize;
            match random.below(5) {
                0 => {
                    let is_ordered = random.below(2) == 0;
                    let label = sent[side].len().to_string();
                    let options =
                        DataChannelOptions { label, is_ordered, ..DataChannelOptions::default() };
                    let id = peers.open(side, options);
                    assert_eq!(usize::from(id) % 2, side, "seed {seed}");
                    reused += usize::from(sent[side].iter().any(|(other, ..)| *other == id));
                    open[side].push(sent[side].len());
                    sent[side].push((id, is_ordered, Vec::new()));
                }
                1 if !open[side].is_empty() => {
                    let place = random.below(open[side].len() as u64) as usize;
                    let at = open[side].remove(place);
                    let (association, channels) = &mut peers.ends[side];
                    channels.close(association, sent[side][at].0);
                }
                _ if !open[side].is_empty() => {
                    let at = open[side][random.below(open[side].len() as u64) as usize];
                    let content = any(&mut random);
                    if peers.send(side, sent[side][at].0, &content).is_ok() {
                        sent[side][at].2.push(content);
                    }
                }
                _ => {}
            }
            peers.run(random.below(200));
        }
        for side in 0..2 {
            for at in open[side].drain(..) {
                let (association, channels) = &mut peers.ends[side];
                channels.close(association, sent[side][at].0);
            }
        }
        peers.run(300_000);
        for side in 0..2 {
            // What came on each channel, by the number in its label.
            let mut open: BTreeMap<u16, (usize, Vec<ChannelContent>)> = BTreeMap::new();
            let mut done = BTreeMap::new();
            for event in &peers.events[1 - side] {
                match event {
                    DataChannelEvent::Incoming(id, options) => {
                        let number = options.label.parse().unwrap();
                        assert!(open.insert(*id, (number, Vec::new())).is_none(), "seed {seed}");
                    }
                    DataChannelEvent::Message(id, content) => {
                        open.get_mut(id).unwrap().1.push(content.clone());
                    }
                    DataChannelEvent::Closed(id) => {
                        let (number, contents) = open.remove(id).unwrap();
                        assert!(done.insert(number, contents).is_none(), "seed {seed}");
                    }
                    DataChannelEvent::Opened(_) => {}
                }
            }
            assert!(open.is_empty(), "seed {seed}: every channel is closed");
            assert_eq!(done.len(), sent[side].len(), "seed {seed}");
            for ((id, is_ordered, mut sent), (_, mut came)) in sent[side].drain(..).zip(done) {
                if !is_ordered {
                    let key = |content: &ChannelContent| {
                        (content.len(), matches!(content, ChannelContent::Text(_)))
                    };
                    sent.sort_by_key(key);
                    came.sort_by_key(key);
                }
                let lengths = |all: &[ChannelContent]| -> Vec<usize> {
                    all.iter().map(ChannelContent::len).collect()
                };
                let [came_lengths, sent_lengths] = [lengths(&came), lengths(&sent)];
                assert!(
                    came == sent,
                    "seed {seed}, channel {id}: {came_lengths:?} came, {sent_lengths:?} were sent"
                );
            }
        }
    }
    assert!(reused > 0);
}

fn connected(loss: f64) -> Peers {
    let mut peers = Peers::new(7, loss);
    peers.run(20_000);
    peers
}

#[test]
fn options_labels_and_empty_messages_come_as_they_were() {
    let mut peers = connected(0.0);
    let options = DataChannelOptions {
        label: "λ".into(),
        protocol: "chat".into(),
        is_ordered: false,
        reliability: Reliability::Repeats(3),
        priority: 512,
    };
    let id = peers.open(1, options.clone());
    let contents = [
        ChannelContent::Text(String::new()),
        ChannelContent::Binary(Bytes::new()),
        ChannelContent::Text("grüße".into()),
        ChannelContent::Binary(Bytes::from_static(&[0])),
    ];
    for content in &contents {
        peers.send(1, id, content).unwrap();
    }
    let long = ChannelContent::Binary(vec![0; 100_001].into());
    let refused = DataChannelError::LongMessage { len: 100_001, most: 100_000 };
    assert_eq!(peers.send(1, id, &long), Err(refused));
    peers.run(1000);
    assert_eq!(peers.events[1], [DataChannelEvent::Opened(id)]);
    let mut expected = vec![DataChannelEvent::Incoming(id, options)];
    expected.extend(contents.map(|content| DataChannelEvent::Message(id, content)));
    assert_eq!(peers.events[0], expected);
    // Both send on it.
    peers.send(0, id, &ChannelContent::Text("back".into())).unwrap();
    peers.run(1000);
    let back = DataChannelEvent::Message(id, ChannelContent::Text("back".into()));
    assert_eq!(peers.events[1].last(), Some(&back));
}

#[test]
fn who_breaks_the_protocol_loses_the_channel_and_no_other() {
    let mut peers = connected(0.0);
    let good = peers.open(0, DataChannelOptions::default());
    let bad = peers.open(0, DataChannelOptions::default());
    peers.run(1000);
    // Text that is not UTF-8, a number of the other end, and an opening that is none.
    for (stream, protocol, bytes) in [(bad, 51, &[0xff][..]), (1, 50, &[3; 12]), (6, 50, &[9])] {
        let now = peers.now;
        let send = SctpSend { stream, protocol, ..SctpSend::default() };
        let data = SctpData::Bytes(Bytes::copy_from_slice(bytes));
        peers.ends[0].0.send(now, send, data).unwrap();
    }
    peers.run(1000);
    for side in 0..2 {
        assert!(peers.events[side].contains(&DataChannelEvent::Closed(bad)), "{side}");
        assert!(!peers.events[side].contains(&DataChannelEvent::Closed(good)), "{side}");
    }
    peers.send(0, good, &ChannelContent::Text("on".into())).unwrap();
    peers.run(1000);
    let on = DataChannelEvent::Message(good, ChannelContent::Text("on".into()));
    assert_eq!(peers.events[1].last(), Some(&on));
    assert_eq!(
        peers.send(0, bad, &ChannelContent::Text("?".into())),
        Err(DataChannelError::Closed(bad))
    );
}

#[test]
fn an_application_that_reads_nothing_stops_its_peer_and_reads_all_later() {
    let mut peers = connected(0.0);
    let id = peers.open(0, DataChannelOptions::default());
    peers.reads[1] = false;
    let content = ChannelContent::Binary(vec![0; 50_000].into());
    let mut sent = 0;
    for _ in 0..400 {
        sent += usize::from(peers.send(0, id, &content).is_ok());
        peers.run(50);
    }
    // What waits at the reader, in its association, and at the sender.
    assert!(sent * content.len() < 4 << 20, "{sent} messages");
    peers.reads[1] = true;
    peers.run(60_000);
    let came = peers.events[1].iter().filter(|e| matches!(e, DataChannelEvent::Message(..)));
    assert_eq!(came.count(), sent);
}

#[test]
fn a_channel_is_opened_although_its_end_has_no_room_to_answer() {
    let mut peers = connected(0.0);
    let bulk = peers.open(1, DataChannelOptions::default());
    peers.run(1000);
    // The first end reads nothing, so that the second has more to send than it may.
    peers.reads[0] = false;
    // What is sent in small pieces leaves no room for a byte.
    for size in [50_000, 100, 1] {
        let content = ChannelContent::Binary(vec![0; size].into());
        while peers.send(1, bulk, &content).is_ok() {
            peers.run(20);
        }
    }
    let late = peers.open(0, DataChannelOptions::default());
    peers.run(5000);
    let is_incoming = |event: &DataChannelEvent| matches!(event, DataChannelEvent::Incoming(id, _) if *id == late);
    assert!(peers.events[1].iter().any(is_incoming));
    peers.reads[0] = true;
    peers.run(60_000);
    assert!(peers.events[0].contains(&DataChannelEvent::Opened(late)));
    assert!(!peers.events[0].contains(&DataChannelEvent::Closed(late)));
    peers.send(1, late, &ChannelContent::Text("here".into())).unwrap();
    peers.run(1000);
    let here = DataChannelEvent::Message(late, ChannelContent::Text("here".into()));
    assert_eq!(peers.events[0].last(), Some(&here));
}
