use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};

use fontis_base::Ecn;

use super::sockets::{MAIN, Sockets};
use crate::udp::AnySocket as Socket;

/// The most bytes that one call may send.
const MAX_BATCH: usize = 60_000;

/// Datagrams on their way to the socket: joined for segmentation offload where they may be, kept
/// where the socket is full.
pub(super) struct Outbox {
    batch: Batch,
    backlog: VecDeque<Batch>,
    spare: Vec<Vec<u8>>,
}

struct Batch {
    socket: usize,
    to: SocketAddr,
    from: Option<IpAddr>,
    ecn: Ecn,
    bytes: Vec<u8>,
    segment: usize,
    count: usize,
    /// True if no datagram may be joined to it: its last one is shorter, or it must travel alone.
    closed: bool,
}

/// Where a datagram goes: over which socket, to which address, and from which if not the socket's.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) socket: usize,
    pub(super) to: SocketAddr,
    pub(super) from: Option<IpAddr>,
}

impl Outbox {
    pub(super) fn new() -> Self {
        let to = SocketAddr::from(([0, 0, 0, 0], 0));
        let batch = Batch {
            socket: MAIN,
            to,
            from: None,
            ecn: Ecn::NotEct,
            bytes: Vec::new(),
            segment: 0,
            count: 0,
            closed: false,
        };
        Self { batch, backlog: VecDeque::new(), spare: Vec::new() }
    }

    /// True if the socket could not take all: no more packets should be made until it can.
    pub(super) fn is_blocked(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Adds the datagram that `write` appends. What cannot be joined to it leaves first.
    pub(super) fn push(
        &mut self,
        sockets: &Sockets,
        target: Target,
        ecn: Ecn,
        alone: bool,
        write: impl FnOnce(&mut Vec<u8>) -> bool,
    ) {
        let Target { socket, to, from } = target;
        let batch = &self.batch;
        let same = (batch.socket, batch.to, batch.from, batch.ecn) == (socket, to, from, ecn);
        let most = sockets.get(socket).map_or(1, Socket::max_segments);
        let full = batch.count >= most || batch.bytes.len() + batch.segment > MAX_BATCH;
        if batch.count > 0 && (!same || full || batch.closed || alone) {
            self.flush(sockets);
        }
        let start = self.batch.bytes.len();
        if !write(&mut self.batch.bytes) {
            self.batch.bytes.truncate(start);
            return;
        }
        let length = self.batch.bytes.len() - start;
        if self.batch.count == 0 {
            self.aim(target, ecn);
            self.batch.segment = length;
            self.batch.closed = alone;
        } else if length > self.batch.segment {
            // A longer datagram cannot follow: it begins the next batch.
            let longer = self.batch.bytes.split_off(start);
            self.flush(sockets);
            self.aim(target, ecn);
            self.batch.segment = length;
            self.batch.bytes.extend_from_slice(&longer);
        } else if length < self.batch.segment {
            self.batch.closed = true;
        }
        self.batch.count += 1;
        if alone {
            self.flush(sockets);
        }
    }

    fn aim(&mut self, Target { socket, to, from }: Target, ecn: Ecn) {
        (self.batch.socket, self.batch.to, self.batch.from) = (socket, to, from);
        self.batch.ecn = ecn;
    }

    /// Sends the batch.
    pub(super) fn flush(&mut self, sockets: &Sockets) {
        if self.batch.count == 0 {
            return;
        }
        let spare = self.spare.pop().unwrap_or_default();
        let next = Batch { bytes: spare, segment: 0, count: 0, closed: false, ..self.batch };
        let batch = std::mem::replace(&mut self.batch, next);
        self.backlog.push_back(batch);
        self.retry(sockets);
    }

    /// Sends the datagrams that the socket did not take before.
    pub(super) fn retry(&mut self, sockets: &Sockets) {
        while let Some(batch) = self.backlog.front() {
            let segment = (batch.count > 1).then_some(batch.segment);
            let sent = sockets.get(batch.socket).map_or(Ok(()), |socket| {
                socket.send(batch.to, batch.from, batch.ecn, &batch.bytes, segment)
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Any other error is a lost packet: the path is down, too narrow, or gone, perhaps
                // with its socket.
                Ok(()) | Err(_) => {}
            }
            if let Some(mut batch) = self.backlog.pop_front() {
                batch.bytes.clear();
                self.spare.push(batch.bytes);
            }
        }
    }
}
