use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use fontis_base::{Duration, FlowId, Time};
use mio::{Interest, Registry, Token};

use fontis::udp::Socket;

/// A client of the relay, with its own socket to the server, by which answers are assigned.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
    /// The relay's address that it sends to: answers come from there.
    pub(super) local_ip: Option<IpAddr>,
    pub(super) upstream: Socket,
    pub(super) seen: Time,
}

/// All clients, by flow and by address. Flows are never used again, so a late packet finds its
/// client or none.
#[derive(Debug)]
pub(super) struct Clients {
    by_flow: HashMap<FlowId, Client>,
    by_address: HashMap<SocketAddr, FlowId>,
    next_flow: u32,
    max: usize,
}

impl Clients {
    pub(super) fn new(max: usize) -> Self {
        Self { by_flow: HashMap::new(), by_address: HashMap::new(), next_flow: 0, max }
    }

    pub(super) fn len(&self) -> usize {
        self.by_flow.len()
    }

    /// The number of clients so far.
    pub(super) fn total(&self) -> u64 {
        self.next_flow.into()
    }

    pub(super) fn get(&mut self, flow: FlowId) -> Option<&mut Client> {
        self.by_flow.get_mut(&flow)
    }

    /// The flow of the client at `address`, who is new if not known; `None` if there is no room for
    /// it.
    pub(super) fn flow_of(
        &mut self,
        now: Time,
        address: SocketAddr,
        local_ip: Option<IpAddr>,
        to: SocketAddr,
        registry: &Registry,
    ) -> io::Result<Option<FlowId>> {
        if let Some(flow) = self.by_address.get(&address) {
            if let Some(client) = self.by_flow.get_mut(flow) {
                client.seen = now;
            }
            return Ok(Some(*flow));
        }
        if self.by_flow.len() >= self.max {
            return Ok(None);
        }
        let any: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let flow = FlowId(self.next_flow);
        let mut upstream = Socket::bind(SocketAddr::new(any, 0))?;
        registry.register(upstream.source(), token(flow), Interest::READABLE)?;
        self.next_flow += 1;
        self.by_address.insert(address, flow);
        self.by_flow.insert(flow, Client { address, local_ip, upstream, seen: now });
        Ok(Some(flow))
    }

    /// Forgets those who have been silent for `idle`.
    pub(super) fn forget_idle(&mut self, now: Time, idle: Duration, registry: &Registry) {
        let by_address = &mut self.by_address;
        self.by_flow.retain(|_, client| {
            let keep = now.since(client.seen) < idle;
            if !keep {
                by_address.remove(&client.address);
                // Closing the socket takes it out of the poll anyway.
                let _ = registry.deregister(client.upstream.source());
            }
            keep
        });
    }
}

/// The token of a client's socket.
pub(super) fn token(flow: FlowId) -> Token {
    Token(flow.0 as usize)
}
