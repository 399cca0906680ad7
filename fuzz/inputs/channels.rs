//! Data channels of a peer that says what it likes over a good association.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;

use bytes::Bytes;
use fontis_base::{Duration, Time};
use fontis_proto::data_channel::{
    ChannelContent, ChannelMessage, DataChannelEvent, DataChannelOptions, DataChannels,
};
use fontis_proto::sctp::{
    SctpAssociation, SctpConfig, SctpData, SctpSecret, SctpSend, respond_without_state,
};

const ENDS: [IpAddr; 2] = [IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED); 2];

/// Whatever a peer sends and resets, an end goes on, tells of each channel in the right order, and
/// keeps no more than it may.
pub(crate) fn run(data: &[u8]) {
    if let Ok(message) = ChannelMessage::decode(data) {
        assert_eq!(ChannelMessage::decode(&message.encode()), Ok(message));
    }
    let mut pair = Pair::new();
    let mut channels = DataChannels::new(false, 1000);
    let (mut open, mut own) = (BTreeSet::new(), Vec::new());
    let mut rest = data;
    for _ in 0..500 {
        let Some((&[step, at, len], after)) = rest.split_first_chunk::<3>() else { break };
        let (content, after) = after.split_at(usize::from(len).min(after.len()));
        rest = after;
        let (now, id) = (pair.now, u16::from(at % 8));
        match step % 8 {
            0..=3 => {
                let protocol = [50, 50, 51, 53, 56, 57, 54, 0][usize::from(at / 8 % 8)];
                let is_unordered = step & 64 != 0;
                let send = SctpSend { stream: id, protocol, is_unordered, ..SctpSend::default() };
                let bytes = Bytes::copy_from_slice(content);
                let _ = pair.ends[0].send(now, send, SctpData::Bytes(bytes));
            }
            4 => drop(pair.ends[0].reset(id)),
            5 => {
                let label = String::from_utf8_lossy(content).into_owned();
                let options = DataChannelOptions { label, ..DataChannelOptions::default() };
                if let Ok(id) = channels.open(now, &mut pair.ends[1], options) {
                    assert!(id % 2 == 1 && open.insert(id), "channel {id} is there");
                    own.push(id);
                }
            }
            6 => {
                if let Some(id) = own.pop() {
                    channels.close(&mut pair.ends[1], id);
                    open.remove(&id);
                }
            }
            _ => {
                let content = ChannelContent::Binary(Bytes::copy_from_slice(content));
                let _ = channels.send(now, &mut pair.ends[1], id, &content);
            }
        }
        pair.settle(&mut channels);
        // An application that does not always read.
        for _ in 0..step / 16 {
            let Some(event) = channels.event() else { break };
            match event {
                DataChannelEvent::Incoming(id, _) => {
                    assert!(id % 2 == 0 && open.insert(id), "channel {id} is there");
                    own.push(id);
                }
                // One that the application has closed may still have had something.
                DataChannelEvent::Message(id, _) | DataChannelEvent::Opened(id) => {
                    assert!(id < 8 || open.contains(&id), "nobody opened {id}");
                }
                DataChannelEvent::Closed(id) => {
                    open.remove(&id);
                    own.retain(|other| *other != id);
                }
            }
        }
        let held = pair.ends[1].stats().held;
        assert!(held <= 70_000, "{held} bytes wait");
    }
}

struct Pair {
    now: Time,
    ends: [SctpAssociation; 2],
}

fn secret() -> SctpSecret {
    SctpSecret::new(|bytes| {
        let step = |sum: u128, byte: &u8| sum.wrapping_mul(0x100_0000_01b3) ^ u128::from(*byte);
        bytes.iter().fold(7, step).to_be_bytes()
    })
}

impl Pair {
    /// Two ends that are connected.
    fn new() -> Self {
        let now = Time::from_nanos(1);
        let config = SctpConfig {
            streams: 16,
            receive_buffer: 50_000,
            max_message: 20_000,
            ..SctpConfig::new(secret())
        };
        let mut client = SctpAssociation::connect(now, config.clone(), ENDS);
        let init = client.poll(now).expect("an INIT").packet;
        let ack = respond_without_state(now, &config, ENDS, &init).expect("an INIT ACK");
        client.handle(now, ENDS, &ack, false);
        let cookie = client.poll(now).expect("a cookie").packet;
        let server = SctpAssociation::accept(now, config, ENDS, &cookie);
        let server = server.expect("an association");
        let mut pair = Self { now, ends: [client, server] };
        pair.settle(&mut DataChannels::new(false, 0));
        assert!(pair.ends[0].is_connected());
        pair
    }

    /// Packets go back and forth until none is left, and a second passes.
    fn settle(&mut self, channels: &mut DataChannels) {
        for _ in 0..2 {
            for _ in 0..50 {
                let mut packets = VecDeque::new();
                for end in 0..2 {
                    while let Some(transmit) = self.ends[end].poll(self.now) {
                        packets.push_back((1 - end, transmit.packet));
                    }
                }
                if packets.is_empty() {
                    break;
                }
                for (to, packet) in packets {
                    self.ends[to].handle(self.now, ENDS, &packet, false);
                }
                while self.ends[0].receive(self.now).is_some() {}
                while self.ends[0].event().is_some() {}
                channels.turn(self.now, &mut self.ends[1], |_| {});
            }
            self.now += Duration::from_secs(1);
        }
    }
}
