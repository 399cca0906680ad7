use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use fontis_base::Ecn;

use super::socket::Socket;

/// Datagrams that leave with one call: all have the length of the first, but for the last, which
/// may be shorter.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    length: usize,
    count: usize,
    is_closed: bool,
}

/// The datagrams for a group that the system has not taken yet.
pub(crate) struct GroupOutbox {
    batches: VecDeque<Batch>,
    most: usize,
}

/// Datagrams that one call hands to the system at most: few, so that others' packets get between.
const TOGETHER: usize = 16;
/// Batches that wait at most.
const MOST: usize = 4;

impl GroupOutbox {
    pub(crate) fn new(socket: &Socket) -> Self {
        Self { batches: VecDeque::new(), most: socket.max_segments().min(TOGETHER) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.batches.len() >= MOST
    }

    /// Adds the datagram that `write` appends.
    pub(crate) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let is_open = self.batches.back().is_some_and(|last| !last.is_closed);
        let last = match is_open {
            true => self.batches.back_mut(),
            false => None,
        };
        let Some(last) = last else {
            let mut bytes = Vec::new();
            write(&mut bytes);
            let length = bytes.len();
            self.batches.push_back(Batch { bytes, length, count: 1, is_closed: self.most <= 1 });
            return;
        };
        let start = last.bytes.len();
        write(&mut last.bytes);
        let own = last.bytes.len() - start;
        if own <= last.length {
            last.count += 1;
            last.is_closed = own < last.length || last.count >= self.most;
            return;
        }
        let bytes = last.bytes.split_off(start);
        last.is_closed = true;
        let is_closed = self.most <= 1;
        self.batches.push_back(Batch { bytes, length: own, count: 1, is_closed });
    }

    /// Hands everything to the system; false if it takes no more at present.
    pub(crate) fn flush(&mut self, socket: &Socket, group: SocketAddr) -> bool {
        while let Some(Batch { bytes, length, count, .. }) = self.batches.front() {
            let segment = (*count > 1).then_some(*length);
            match socket.send(group, None, Ecn::NotEct, bytes, segment) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // Another error is this moment's: a network that is down comes back, and a symbol
                // that was lost is none that cannot be replaced.
                _ => self.batches.pop_front(),
            };
        }
        true
    }
}
