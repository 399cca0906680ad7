use std::io;
use std::net::{IpAddr, SocketAddr};

use mio::{Interest, Registry, Token};

use crate::udp::AnySocket as Socket;

/// An interface of this machine, and an address of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalInterface {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
    /// Whether it carries data only while no other answers: a connection that costs money.
    pub spare: bool,
}

/// An interface that connections may use, and the socket that is bound to it.
pub(super) struct Bound {
    pub(super) interface: LocalInterface,
    pub(super) socket: usize,
}

/// The socket that the endpoint is bound with.
pub(super) const MAIN: usize = 0;

/// The sockets of an endpoint, by their numbers, which are not used twice.
pub(super) struct Sockets {
    all: Vec<Option<Socket>>,
    /// The token of the first in the poll.
    first: usize,
}

impl Sockets {
    /// Begins with the socket that the endpoint is bound with. In the poll they have the tokens
    /// from `first` on.
    pub(super) fn new(registry: &Registry, main: Socket, first: usize) -> io::Result<Self> {
        let mut sockets = Self { all: Vec::new(), first };
        sockets.add(registry, main)?;
        Ok(sockets)
    }

    fn add(&mut self, registry: &Registry, mut socket: Socket) -> io::Result<usize> {
        let number = self.all.len();
        let interest = Interest::READABLE | Interest::WRITABLE;
        socket.register(registry, Token(self.first + number), interest)?;
        self.all.push(Some(socket));
        Ok(number)
    }

    /// Opens a socket on an interface.
    pub(super) fn open(&mut self, registry: &Registry, on: &LocalInterface) -> io::Result<usize> {
        let address = SocketAddr::new(on.address, 0);
        let socket = Socket::bind_to_device(address, &on.name)?;
        #[cfg(test)]
        if let Some(main) = self.get(MAIN) {
            socket.follow(main);
        }
        self.add(registry, socket)
    }

    pub(super) fn close(&mut self, registry: &Registry, number: usize) {
        if let Some(mut socket) = self.all.get_mut(number).and_then(Option::take) {
            let _ = socket.deregister(registry);
        }
    }

    pub(super) fn get(&self, number: usize) -> Option<&Socket> {
        self.all.get(number)?.as_ref()
    }

    /// How many there have been.
    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }
}
