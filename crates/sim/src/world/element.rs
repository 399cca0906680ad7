//! The nodes of a world.

use fontis_base::{FlowId, Packet, Port, Time};
use fontis_net::Bundle;

use crate::host::Host;
use crate::host::payload::Payload;
use crate::host::shared::SharedHost;
use crate::host::table::AnyHost;
use crate::host::tcp::TcpHost;
use crate::world::drops::SimLink;
use crate::world::switch::Switch;

/// A node of a world. Contents are boxed: of thousands of nodes, the places and the wires stay in
/// the processor's cache.
pub enum Element {
    /// One direction of a path.
    Link(Box<SimLink>),
    /// The links of many hosts to one router.
    Bundle(Box<Bundle<Payload>>),
    /// A host with one TCP connection, which the world's loop handles without a virtual call.
    Tcp(Box<TcpHost>),
    /// A host of any other kind.
    Host(Box<dyn Host>),
    /// A router.
    Switch(Box<Switch>),
}

impl From<AnyHost> for Element {
    fn from(host: AnyHost) -> Self {
        match host {
            AnyHost::Tcp(host) => Self::Tcp(host),
            AnyHost::Boxed(host) => Self::Host(host),
        }
    }
}

impl Element {
    pub(super) fn handle(&mut self, now: Time, port: Port, packet: Packet<Payload>) {
        match self {
            Self::Link(link) => link.enter(now, packet),
            Self::Bundle(bundle) => _ = bundle.enter(now, port, packet),
            Self::Tcp(host) => host.receive(now, packet),
            Self::Host(host) => host.handle(now, port, packet),
            Self::Switch(_) => unreachable!("a switch forwards at once"),
        }
    }

    /// The next packet of a host other than TCP's, outside of the loop that all packets go through,
    /// which stays small.
    #[inline(never)]
    pub(super) fn poll_host(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        match self {
            Self::Host(host) => host.poll(now),
            Self::Link(_) | Self::Bundle(_) | Self::Tcp(_) | Self::Switch(_) => None,
        }
    }

    #[inline]
    pub(super) fn timeout(&self) -> Option<Time> {
        match self {
            // The state of a link is computed when it is next touched.
            Self::Link(link) => link.next_delivery(),
            Self::Bundle(bundle) => Some(bundle.next_delivery()).filter(|at| *at < Time::MAX),
            Self::Tcp(host) => Some(host.deadline()).filter(|at| *at < Time::MAX),
            other => other.host_timeout(),
        }
    }

    #[inline(never)]
    fn host_timeout(&self) -> Option<Time> {
        match self {
            Self::Host(host) => host.timeout().map(|(at, _)| at),
            Self::Link(_) | Self::Bundle(_) | Self::Tcp(_) | Self::Switch(_) => None,
        }
    }

    /// The end of a flow at this node, if it has one.
    pub fn endpoint(&self, flow: FlowId) -> Option<&dyn Host> {
        match self {
            Self::Tcp(host) => Some(&**host),
            Self::Host(host) => match host.as_any().downcast_ref::<SharedHost>() {
                Some(shared) => shared.endpoint(flow),
                None => Some(&**host),
            },
            Self::Link(_) | Self::Bundle(_) | Self::Switch(_) => None,
        }
    }

    /// The host with several flows at this node, if there is one.
    pub(crate) fn shared_mut(&mut self) -> Option<&mut SharedHost> {
        match self {
            Self::Host(host) => host.as_any_mut().downcast_mut::<SharedHost>(),
            _ => None,
        }
    }
}
