//! Datagrams without a transport.

use core::any::Any;
use std::collections::VecDeque;

use fontis_base::{Duration, Node, Packet, PacketId, Port, Rate, Time};

use crate::app::App;
use crate::app::socket::{AppMessage, AppSocket};
use crate::host::fragments::Fragments;
use crate::host::identity::EndpointIdentity;
use crate::host::payload::{Datagram, Payload};
use crate::host::{Counters, Host, Milestones};

/// One end of a flow of datagrams: an application sends messages, or takes those that arrive.
#[derive(Clone, Debug)]
pub struct DatagramHost {
    identity: EndpointIdentity,
    app: Option<App>,
    out: Outbox,
    sent: u64,
    received: u64,
    received_bytes: u64,
    first: Option<Time>,
    last: Option<Time>,
    /// The fragments of messages in several datagrams.
    fragments: Fragments,
}

/// Datagrams that are to leave, and their bytes of payload.
#[derive(Clone, Debug, Default)]
struct Outbox {
    waiting: VecDeque<(u32, Datagram)>,
}

/// Bytes of IP and UDP headers.
const HEADERS: u32 = 28;
/// The largest datagram.
const LARGEST: u64 = 65_507;
/// Bytes of payload in a fragment of a message.
const FRAGMENT: u64 = 1472;

impl DatagramHost {
    /// One end of a flow, with the application that sends or takes its messages.
    pub fn new(identity: EndpointIdentity, app: Option<App>) -> Self {
        Self {
            identity,
            app,
            out: Outbox::default(),
            sent: 0,
            received: 0,
            received_bytes: 0,
            first: None,
            last: None,
            fragments: Fragments::default(),
        }
    }

    /// Datagrams sent.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Datagrams received.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes of payload received.
    pub const fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// How long after the first the last datagram arrived.
    pub fn span(&self) -> Option<Duration> {
        Some(self.last?.since(self.first?))
    }

    fn due(&self) -> Option<Time> {
        self.app.as_ref().map(App::due).filter(|due| *due < Time::MAX)
    }
}

impl AppSocket for Outbox {
    fn write(&mut self, now: Time, bytes: u64) {
        self.send(now, AppMessage::of_size(bytes));
    }

    fn finish(&mut self, _now: Time) {}

    fn delivered(&self) -> u64 {
        0
    }

    fn send(&mut self, _now: Time, message: AppMessage) {
        // A message with a number is cut into packets of the usual size. A piece without one is a
        // datagram, however large.
        let Some(number) = message.number else {
            let datagram = Datagram { message: u64::MAX, ..Datagram::default() };
            self.waiting.push_back((message.bytes.min(LARGEST) as u32, datagram));
            return;
        };
        let fragments = message.bytes.div_ceil(FRAGMENT).clamp(1, u64::from(u16::MAX));
        let mut left = message.bytes;
        for fragment in 0..fragments as u16 {
            let bytes = left.min(FRAGMENT);
            left -= bytes;
            let fragments = fragments as u16;
            let datagram = Datagram { number: 0, message: number, fragment, fragments };
            self.waiting.push_back((bytes as u32, datagram));
        }
    }

    fn rate(&self) -> Option<Rate> {
        None
    }

    fn keeps_messages(&self) -> bool {
        true
    }
}

impl Node<Payload> for DatagramHost {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<Payload>) {
        let Payload::Datagram(datagram) = packet.payload else { return };
        if packet.corrupt {
            return;
        }
        self.received += 1;
        self.received_bytes += u64::from(packet.size.saturating_sub(HEADERS));
        self.first.get_or_insert(now);
        self.last = Some(now);
        let Datagram { message, fragment, fragments, .. } = datagram;
        if self.app.is_some() && self.fragments.completes(message, fragment, fragments) {
            let app = self.app.as_mut();
            app.into_iter().for_each(|app| app.on_message(now, datagram.message));
        }
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        if self.due().is_some_and(|due| due <= now)
            && let Some(app) = &mut self.app
            && !app.act(now, &mut self.out)
        {
            self.app = None;
        }
        let (bytes, datagram) = self.out.waiting.pop_front()?;
        self.sent += 1;
        let datagram = Datagram { number: self.sent, ..datagram };
        let EndpointIdentity { number, local, peer, flow, class } = self.identity;
        let packet = Packet {
            id: PacketId(u64::from(number) << 40 | self.sent),
            src: local,
            dst: peer,
            flow,
            size: bytes + HEADERS,
            segments: 1,
            ecn: Default::default(),
            corrupt: false,
            class,
            payload: Payload::Datagram(datagram),
        };
        Some((0, packet))
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        Some((self.due()?, "application"))
    }
}

impl Host for DatagramHost {
    fn counters(&self) -> Counters {
        Counters { sent: self.sent, received: self.received_bytes, ..Counters::default() }
    }

    fn milestones(&self) -> Milestones {
        Milestones { first_data: self.first, last_data: self.last, ..Milestones::default() }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
