//! DFCP, the digital-fountain transport, without I/O.
//!
//! Start here: [`DfcpConnection`] is one side of a connection. Its driver feeds it typed packets
//! ([`handle`](DfcpConnection::handle)) and finished jobs, drains packets
//! ([`poll`](DfcpConnection::poll)), events and jobs after every touch, and comes back when
//! [`timeout`](DfcpConnection::timeout) says so. A [`Session`] turns typed packets into protected
//! datagrams and back; the connection never sees a key.
//!
//! What is sent travels in *channels*: messages, streams and objects, all cut into blocks, each
//! block into symbols of an erasure code. Feedback tells the sender, block by block, how many
//! symbols are still lacking; nothing is ever sent again, only something more.

mod block;
mod budget;
mod carrier;
mod code;
mod config;
mod connection;
mod control;
mod event;
mod feedback;
mod feedback_due;
mod history;
mod in_flight;
mod left_out;
mod message_run;
mod ordered;
mod over;
mod pacer;
mod packet;
mod params;
mod path;
mod paths;
mod peer_clock;
mod qlog;
mod question;
mod receipts;
mod receiving;
mod redundancy;
mod resume;
mod rtt;
mod send_channels;
mod sending;
mod session;
mod shape;
mod stats;
mod trace;
mod trains;
pub mod wire;

pub use budget::MemoryBudget;
pub use code::{DEADLINE_PASSED, NO_ROOM, NOT_ASKED_FOR, TOO_LONG};
pub use config::{DfcpConfig, KnownPath, Redundancy, Timers};
pub use connection::{DfcpConnection, MAX_EARLY, Outgoing, SendOptions};
pub use event::{CloseReason, CodingJob, DfcpEvent, JobDone};
pub use feedback::Feedback;
pub use message_run::MessageRun;
pub use packet::{
    BlockNeed, BlockStatus, ChannelId, ConnectionId, DfcpPacket, Frame, Frames, Hello, Live,
    LiveKind, ObjectShape, Open, SymbolsFrame,
};
pub use params::{ParamFields, Params, ParamsError, ResetToken, SYMBOL_SIZE, SYN_SIZE, VERSION};
pub use paths::{MAX_OPEN_PATHS, MAX_PATHS, PathId};
pub use qlog::qlog_event;
pub use redundancy::n_star;
pub use resume::{Begun, Checkpoint, Held, Kept, KeptBlock};
pub use session::{OpenError, SealError, Session};
pub use stats::{DfcpStats, PathStats};
pub use trace::{TraceEvent, Traced};
