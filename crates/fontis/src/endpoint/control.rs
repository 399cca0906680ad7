use std::net::SocketAddr;

use fontis_base::{Rate, Time};
use fontis_proto::dfcp::{DfcpStats, PathStats};

use super::Endpoint;
use super::driver::Driver;
use super::shares::Shares;
use super::slot::Slot;
use super::sockets::LocalInterface;

/// The state of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointStatus {
    /// The limits of all connections together, for sending and for receiving, in bit/s at the IP
    /// layer.
    pub limit: Option<Rate>,
    /// Connections that clients have made so far.
    pub accepted: u64,
    /// SYNs that were answered by a request for a cookie, or not at all, because there were too
    /// many.
    pub turned_away: u64,
    /// Datagrams dropped because they did not open, on connections that are still there.
    pub forged: u64,
    /// Connections, in the order in which they were made.
    pub connections: Vec<ConnectionStatus>,
}

/// The state of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionStatus {
    /// The peer's address.
    pub remote: SocketAddr,
    /// True while an object or a stream is being sent.
    pub sending: bool,
    /// True while an object or a stream is being received.
    pub receiving: bool,
    /// Its counters.
    pub stats: DfcpStats,
    /// Its paths.
    pub paths: Vec<PathStatus>,
}

/// The state of a path of a connection.
#[derive(Clone, Debug)]
pub struct PathStatus {
    /// The interface that it is bound to; `None` if the system chooses.
    pub interface: Option<LocalInterface>,
    /// The peer's address on it.
    pub remote: SocketAddr,
    /// How it looks.
    pub stats: PathStats,
}

impl Endpoint {
    /// Limits the rates of all connections together, sending and receiving, each to `rate` at the
    /// IP layer; connections that reach it get equal shares. Zero pauses them; `None` removes the
    /// limit.
    pub fn limit(&self, rate: Option<Rate>) {
        self.inner.commands.post(Box::new(move |driver, _| {
            driver.limit = rate;
            driver.shares_changed = true;
            driver.is_shared = true;
            let all: Vec<_> = driver.slots.keys().copied().collect();
            driver.count_flows(&all);
        }));
    }

    /// The present state of the endpoint.
    pub async fn status(&self) -> Option<EndpointStatus> {
        let (reply, answer) = tokio::sync::oneshot::channel();
        self.inner.commands.post(Box::new(move |driver, _| {
            let _ = reply.send(driver.status());
        }));
        answer.await.ok()
    }
}

impl Driver {
    /// Gives every connection its share of the limit.
    pub(super) fn share(&mut self, now: Time) {
        if !std::mem::take(&mut self.shares_changed) {
            return;
        }
        let part = |rate: Rate, count: usize| rate.mul_ratio(1, count.max(1) as u64);
        let wanted = self.flows.map(|count| self.limit.map(|rate| part(rate, count)));
        for (id, slot) in &mut self.slots {
            // Whoever only asks is told nothing; a client's peer may send as soon as it is asked.
            let told = slot.machine.is_receiving() || slot.is_initiator();
            let wanted = [wanted[0], if told { wanted[1] } else { slot.shares[1] }];
            if slot.shares == wanted {
                continue;
            }
            slot.latest = slot.latest.max(now);
            if slot.shares[0] != wanted[0] {
                slot.machine.limit(slot.latest, wanted[0]);
            }
            if slot.shares[1] != wanted[1] {
                slot.machine.limit_peer(slot.latest, wanted[1]);
            }
            slot.shares = wanted;
            self.touched.push(*id);
        }
        // Without a limit nothing is counted, once all have been told.
        let is_told = |slot: &Slot| slot.shares != Shares::default();
        self.is_shared = self.limit.is_some() || self.slots.values().any(is_told);
    }

    pub(super) fn paths_of(&self, slot: &Slot) -> Vec<PathStatus> {
        let status = |stats: PathStats| {
            let way = slot.way(stats.path)?;
            let bound = self.bound.iter().find(|bound| bound.socket == way.socket);
            let interface = bound.map(|bound| bound.interface.clone());
            Some(PathStatus { interface, remote: way.remote, stats })
        };
        slot.machine.path_stats().into_iter().filter_map(status).collect()
    }

    fn status(&self) -> EndpointStatus {
        let mut slots: Vec<_> = self.slots.iter().collect();
        slots.sort_unstable_by_key(|(id, _)| **id);
        let connections = slots.iter().map(|(_, slot)| ConnectionStatus {
            remote: slot.remote(),
            sending: slot.machine.is_sending() || slot.carries,
            receiving: slot.machine.is_receiving(),
            stats: slot.machine.stats(),
            paths: self.paths_of(slot),
        });
        EndpointStatus {
            limit: self.limit,
            accepted: self.accepted,
            turned_away: self.admission.turned_away,
            forged: slots.iter().map(|(_, slot)| slot.forged).sum(),
            connections: connections.collect(),
        }
    }
}

#[cfg(test)]
impl Endpoint {
    /// The bytes that all connections hold for their peers.
    pub(crate) async fn held(&self) -> Option<u64> {
        let (reply, answer) = tokio::sync::oneshot::channel();
        self.inner.commands.post(Box::new(move |driver, _| {
            let _ = reply.send(driver.held());
        }));
        answer.await.ok()
    }
}
