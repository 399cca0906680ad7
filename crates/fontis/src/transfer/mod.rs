//! Files and folders over connections, as the `fontis` command transfers them.
//!
//! Start here: [`get`] fetches from a [`FileServer`], [`get_from`] from several at once; [`send`]
//! delivers to a [`Receiver`]. Every block is checked against the object's BLAKE3 tree on arrival,
//! and a name appears when all of the object is verified. [`measure`] fetches and keeps nothing.

pub(crate) mod cast;
mod coming;
mod error;
mod gate;
mod get;
mod guesses;
mod incoming;
pub(crate) mod message;
mod outgoing;
pub(crate) mod over_sctp;
mod pace;
mod pieces;
mod receive;
mod resolve;
mod send;
mod serve;
mod sources;
pub(crate) mod swarm;
mod trial;
mod wanted;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use fontis_proto::dfcp::DfcpStats;
use fontis_proto::sctp::SctpStats;
use tokio::sync::{mpsc, oneshot};

use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::left_out::LeftOut;
use crate::task;

pub use cast::{
    CastGroup, CastOptions, CastStatus, Caster, Joined, LiveOptions, OneWayOptions, OneWaySender,
    join, join_one_way,
};
pub use error::TransferError;
pub use get::{get, get_over_sctp};
pub use receive::{ENTRY_COST, InboxOptions, Receiver};
pub use resolve::resolve;
pub use send::send;
pub use serve::FileServer;
pub use sources::{SourceServer, get_from};
pub use swarm::{Sharing, share};
pub use trial::{Trial, measure};

/// The interval of progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Connects to a server, and reports it if something answers that seems to hold another key.
async fn connect(
    endpoint: &Endpoint,
    remote: SocketAddr,
    key: [u8; 32],
    early: Option<Bytes>,
    progress: &impl Fn(Progress),
) -> Result<Connection, TransferError> {
    let (doubts, doubted) = oneshot::channel();
    let mut connecting = pin!(endpoint.connect_doubting(remote, key, early, doubts));
    tokio::select! {
        biased;
        connected = &mut connecting => return Ok(connected?),
        Ok(()) = doubted => progress(Progress::Doubted { remote }),
    }
    Ok(connecting.await?)
}

/// Runs `work`, which may block, on its own thread. If nobody awaits it, it ends at its next await.
async fn on_own_thread<T: Send + 'static>(
    name: &str,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, TransferError> {
    let (mut reply, done) = oneshot::channel();
    let run = async move {
        let result = tokio::select! {
            biased;
            () = reply.closed() => return,
            result = work => result,
        };
        let _ = reply.send(result);
    };
    task::thread(name, run).map_err(|_| TransferError::Worker)?;
    done.await.map_err(|_| TransferError::Worker)
}

/// Runs `work` to its end, and `moved` with its reports: bytes, and the counters of the connection.
async fn telling<T>(
    work: impl Future<Output = T>,
    mut told: mpsc::UnboundedReceiver<(u64, DfcpStats)>,
    mut moved: impl FnMut(u64, DfcpStats),
) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            Some((done, stats)) = told.recv() => moved(done, stats),
            result = &mut work => return result,
        }
    }
}

/// The progress of a transfer.
#[derive(Clone, Debug)]
pub enum Progress {
    /// The handshake is complete.
    Connected {
        /// The peer.
        remote: SocketAddr,
    },
    /// Something answered that seems to hold another key. Anybody could have said so: the attempt
    /// goes on.
    Doubted {
        /// The address that it claims to be.
        remote: SocketAddr,
    },
    /// Another node of a swarm is there.
    Met {
        /// The node.
        remote: SocketAddr,
    },
    /// A node of a swarm has given a block.
    Fed {
        /// The node.
        remote: SocketAddr,
        /// Its public key, as text, and that of this side.
        keys: Box<[String; 2]>,
        /// The block, of those of the object.
        block: u32,
        /// Its bytes.
        bytes: u64,
        /// How long it took to come.
        took: Duration,
    },
    /// One of several servers sends nothing any more: the others send what it would have sent.
    Dropped {
        /// The server.
        remote: SocketAddr,
        /// The reason, for people.
        error: String,
    },
    /// The object is known.
    Started {
        /// The object's name.
        name: String,
        /// Its bytes.
        bytes: u64,
        /// Its entries: one for a file.
        entries: usize,
        /// Bytes of it that are there from an earlier transfer.
        resumed: u64,
    },
    /// Some time has passed.
    Moved {
        /// Bytes verified and stored (when receiving) or acknowledged (when sending).
        done: u64,
        /// The counters of the connection.
        stats: DfcpStats,
    },
    /// A member of the group of a cast, or somebody who writes its address, has sent what is not
    /// the sender's. It was ignored.
    Forged {
        /// The address.
        from: IpAddr,
        /// So many packets so far.
        packets: u64,
    },
    /// Blocks of a stream did not come in time, and were skipped.
    Gaps {
        /// So many so far.
        blocks: u64,
    },
    /// One of several objects that are sent is verified and stored at the receiver.
    Stored(Box<Report>),
}

/// A transfer that is complete and verified.
#[derive(Clone, Debug)]
pub struct Report {
    /// The object's name.
    pub name: String,
    /// Its path; `None` for standard output and for sent objects.
    pub path: Option<PathBuf>,
    /// Its bytes, without blocks that hold nothing but what the receiver excluded.
    pub bytes: u64,
    /// Bytes of it that were there from an earlier transfer, and were not sent again.
    pub resumed: u64,
    /// The BLAKE3 hash of its content.
    pub hash: String,
    /// The time from the first packet to the last verified byte.
    pub duration: Duration,
    /// The counters of the connection.
    pub stats: DfcpStats,
    /// The counters of this side's end of SCTP, if it carried the content.
    pub sctp: Option<SctpStats>,
    /// The entries that were not transferred.
    pub left_out: LeftOut,
}

/// An event of a server.
#[derive(Clone, Debug)]
pub enum ServerEvent {
    /// A client is there.
    Connected {
        /// Its address.
        remote: SocketAddr,
        /// Its public key, as text.
        key: String,
    },
    /// A transfer has begun.
    Started {
        /// The client.
        remote: SocketAddr,
        /// The requested or offered object.
        name: String,
        /// Its bytes; none of a stream, whose end nobody knows.
        bytes: Option<u64>,
    },
    /// A transfer is complete: verified by the receiving side.
    Finished {
        /// The client.
        remote: SocketAddr,
        /// The transferred object.
        report: Box<Report>,
    },
    /// A transfer failed.
    Failed {
        /// The client.
        remote: SocketAddr,
        /// The failure, for people.
        error: String,
    },
}
