//! The choice between the system's sockets and simulated ones, for tests.

use std::io;
use std::net::{IpAddr, SocketAddr};

use fontis_base::Ecn;
use mio::{Interest, Registry, Token};

use super::socket::{Batch, Socket as System};
use crate::whole::net::{Signal, Socket as Simulated};

/// A UDP socket, of the system or of the simulated machine that runs.
#[derive(Debug)]
pub(crate) enum Socket {
    /// The system's.
    System(System),
    /// The machine's.
    Simulated(Simulated),
}

impl Socket {
    /// Binds to an address.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        match Simulated::bind(address) {
            Some(bound) => bound.map(Self::Simulated),
            None => System::bind(address).map(Self::System),
        }
    }

    /// The same on an interface.
    pub(crate) fn bind_to_device(address: SocketAddr, device: &str) -> io::Result<Self> {
        match Simulated::bind(address) {
            Some(bound) => bound.map(Self::Simulated),
            None => System::bind_to_device(address, device).map(Self::System),
        }
    }

    /// The address that it is bound to.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::System(socket) => socket.local_addr(),
            Self::Simulated(socket) => Ok(socket.address()),
        }
    }

    /// Registers the system's socket with a poll.
    pub(crate) fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        match self {
            Self::System(socket) => socket.register(registry, token, interest),
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Ends its registration.
    pub(crate) fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Self::System(socket) => socket.deregister(registry),
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Reads the waiting datagrams into `batch`; returns true if there may be more.
    pub(crate) fn receive(&self, batch: &mut Batch) -> bool {
        match self {
            Self::System(socket) => socket.receive(batch),
            Self::Simulated(socket) => socket.receive(batch),
        }
    }

    /// What wakes the owner of a simulated socket.
    pub(crate) fn signal(&self) -> Option<Signal> {
        match self {
            Self::System(_) => None,
            Self::Simulated(socket) => Some(socket.signal()),
        }
    }

    /// Lets what comes to a simulated socket wake the owner of another one, which owns both.
    pub(crate) fn follow(&self, main: &Self) {
        if let (Self::Simulated(socket), Self::Simulated(main)) = (self, main) {
            socket.follow(main);
        }
    }

    /// The number of datagrams that one call may send.
    pub(crate) fn max_segments(&self) -> usize {
        match self {
            Self::System(socket) => socket.max_segments(),
            Self::Simulated(_) => 8,
        }
    }

    /// Sends datagrams.
    pub(crate) fn send(
        &self,
        destination: SocketAddr,
        source: Option<IpAddr>,
        ecn: Ecn,
        contents: &[u8],
        segment: Option<usize>,
    ) -> io::Result<()> {
        match self {
            Self::System(socket) => socket.send(destination, source, ecn, contents, segment),
            Self::Simulated(socket) => {
                socket.send(destination, ecn, contents, segment);
                Ok(())
            }
        }
    }
}
