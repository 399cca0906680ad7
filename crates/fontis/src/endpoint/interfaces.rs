//! Connections over several interfaces of this machine.

use std::net::SocketAddr;

use fontis_base::Time;

use super::Endpoint;
use super::driver::Driver;
use super::sockets::{Bound, LocalInterface};
use super::way::{Way, overhead};
use crate::random::random;
use crate::udp::source_towards;

impl Endpoint {
    /// The interfaces over which connections that this endpoint makes open paths, beside the one
    /// that the system chooses: those that exist, and those that follow. Paths over interfaces that
    /// are no longer among them are closed. An interface whose socket cannot be opened is left out.
    pub fn use_interfaces(&self, interfaces: Vec<LocalInterface>) {
        self.inner.commands.post(Box::new(move |driver, now| {
            driver.use_interfaces(now, interfaces);
        }));
    }
}

impl Driver {
    fn use_interfaces(&mut self, now: Time, interfaces: Vec<LocalInterface>) {
        let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.bound)
            .into_iter()
            .partition(|bound| interfaces.contains(&bound.interface));
        self.bound = kept;
        for Bound { socket, .. } in gone {
            self.close_paths(now, socket);
            self.sockets.close(self.poll.registry(), socket);
        }
        for interface in interfaces {
            if self.bound.iter().any(|bound| bound.interface == interface) {
                continue;
            }
            if let Ok(socket) = self.sockets.open(self.poll.registry(), &interface) {
                self.bound.push(Bound { interface, socket });
            }
        }
        for (id, slot) in &mut self.slots {
            slot.opens_paths = slot.is_initiator();
            self.touched.push(*id);
        }
    }

    fn close_paths(&mut self, now: Time, socket: usize) {
        for (id, slot) in &mut self.slots {
            let over = |way: &Option<Way>| way.is_some_and(|way| way.socket == socket);
            let ways = slot.ways.iter().enumerate().filter(|(_, way)| over(way));
            for (path, _) in ways {
                slot.latest = slot.latest.max(now);
                slot.machine.close_path(slot.latest, path as u8);
                self.touched.push(*id);
            }
        }
    }

    /// Opens the paths of a connection that are not there yet.
    pub(super) fn open_paths(&mut self, id: u64) {
        let Some(slot) = self.slots.get_mut(&id).filter(|slot| slot.opens_paths) else { return };
        if !slot.machine.is_established() {
            return;
        }
        slot.opens_paths = false;
        let remote = slot.remote();
        let first = match self.local.to_canonical() {
            any if any.is_unspecified() => source_towards(remote).ok(),
            bound => Some(bound),
        };
        for Bound { interface, socket } in &self.bound {
            let is_used = slot.ways.iter().flatten().any(|way| way.socket == *socket);
            let is_alike = interface.address.is_ipv4() == remote.ip().to_canonical().is_ipv4();
            if is_used || !is_alike || first == Some(interface.address) {
                continue;
            }
            if let Some(path) = slot.machine.open_path(overhead(remote), interface.spare, random())
            {
                let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
                slot.set_way(path, Way::new(*socket, remote, None));
            }
        }
        self.touched.push(id);
    }
}
