use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fontis_codes::ReedSolomonPoints;
use fontis_proto::flute::{
    FdtFile, FdtRefusal, FluteEvent, FluteReceiver, FluteReceiverConfig, FluteStatus,
};
use mio::{Events, Interest, Poll, Token};

use super::error::FluteError;
use super::location;
use super::store::{FileStore, StoredFile};
use crate::sink::SinkError;
use crate::udp::{Batch, Clock, GroupInterface, Socket, group_receiver};

/// How files are received.
#[derive(Clone, Debug)]
pub struct FluteReceiveOptions {
    /// The group, or an address of this machine; and the port.
    pub listen: SocketAddr,
    /// The interface towards a group.
    pub interface: GroupInterface,
    /// Take packets of this sender only; none for the first that is heard.
    pub source: Option<IpAddr>,
    /// The session; none for the first that is heard.
    pub tsi: Option<u64>,
    /// Bytes that symbols take at most.
    pub memory: usize,
    /// End if nothing comes for so long.
    pub timeout: Duration,
    /// End when so many files have come.
    pub objects: Option<usize>,
    /// Replace files that are there.
    pub overwrite: bool,
    /// The points of Reed-Solomon.
    pub points: ReedSolomonPoints,
}

/// What happens while files are received.
#[derive(Clone, Debug)]
pub enum FluteNews {
    /// A file is going to come.
    Announced {
        /// Its URI.
        location: String,
        /// Its bytes.
        bytes: u64,
    },
    /// A file is here under its name.
    Received {
        /// Its path.
        path: PathBuf,
        /// Its bytes.
        bytes: u64,
        /// Whether the sender gave a hash, which it has.
        is_verified: bool,
    },
    /// A file came wrong, and is waited for again.
    Wrong {
        /// Its URI.
        location: String,
    },
    /// A file will not be received.
    Refused {
        /// Its URI.
        location: String,
        /// The reason, for people.
        reason: String,
    },
}

/// Why receiving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FluteEnd {
    /// All files of the session are here, or as many as were wanted.
    Complete,
    /// The sender closed the session.
    Closed,
    /// Nothing came for too long.
    Timeout,
    /// The caller ended it.
    Stopped,
}

/// What was received.
#[derive(Clone, Debug)]
pub struct FluteReport {
    /// Files that are here, and their bytes.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The URIs of the files that were announced and are not here.
    pub missing: Vec<String>,
    /// Why it ended.
    pub end: FluteEnd,
    /// Blocks that were begun and forgotten, because memory did not suffice.
    pub forgotten: u64,
    /// Datagrams that were no packets of FLUTE, or not understood, and what was wrong with the
    /// first.
    pub wrong: u64,
    /// What was wrong with the first of them.
    pub first_wrong: Option<String>,
}

/// Receives files of one session into a folder.
pub struct FluteFileReceiver {
    options: FluteReceiveOptions,
    store: FileStore,
    socket: Socket,
    receiver: FluteReceiver,
    source: Option<IpAddr>,
    files: BTreeMap<u128, FdtFile>,
    open: BTreeMap<u128, StoredFile>,
    report: FluteReport,
}

const SOCKET: Token = Token(0);
/// The longest time until a stop is seen.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Packets that overtook the end of the session are waited for so long.
const LATE: Duration = Duration::from_millis(300);
/// Files that are written at the same time: as many may be open.
const MAX_OPEN: usize = 256;
/// Files of a session.
const MAX_FILES: usize = 65_536;

impl FluteFileReceiver {
    /// Binds to the address, and opens the folder, which is made if it is not there.
    ///
    /// # Errors
    /// [`FluteError`], if that fails.
    pub fn new(folder: &Path, options: FluteReceiveOptions) -> Result<Self, FluteError> {
        let address = options.listen;
        let store = FileStore::open(folder, options.overwrite)?;
        let bound = match address.ip().is_multicast() {
            true => {
                let any = match address {
                    SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                    SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
                };
                group_receiver(address, options.source.unwrap_or(any), options.interface)
            }
            false => Socket::bind(address),
        };
        let socket = bound.map_err(|source| FluteError::Socket { address, source })?;
        let receiver = FluteReceiver::new(FluteReceiverConfig {
            tsi: options.tsi,
            memory: options.memory,
            max_files: MAX_FILES,
            points: options.points,
        });
        Ok(Self {
            source: options.source.map(|source| source.to_canonical()),
            options,
            store,
            socket,
            receiver,
            files: BTreeMap::new(),
            open: BTreeMap::new(),
            report: FluteReport {
                files: 0,
                bytes: 0,
                missing: Vec::new(),
                end: FluteEnd::Stopped,
                forgotten: 0,
                wrong: 0,
                first_wrong: None,
            },
        })
    }

    /// The address that it is bound to.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Receives until all files are here, the session is closed, nothing comes any more, or
    /// `stop` is set. It blocks. A file that cannot be written is refused, which ends nothing.
    ///
    /// # Errors
    /// [`FluteError`], if the socket fails.
    pub fn run(
        mut self,
        stop: &AtomicBool,
        mut tell: impl FnMut(FluteNews),
    ) -> Result<FluteReport, FluteError> {
        let address = self.options.listen;
        let failed = |source: io::Error| FluteError::Socket { address, source };
        let mut poll = Poll::new().map_err(failed)?;
        let registered = poll.registry().register(self.socket.source(), SOCKET, Interest::READABLE);
        registered.map_err(failed)?;
        let (clock, mut events) = (Clock::start(), Events::with_capacity(8));
        let mut batch = Batch::new();
        let mut heard = clock.now();
        self.report.end = loop {
            let status = self.receiver.status();
            if self.is_complete(status) {
                break FluteEnd::Complete;
            }
            if stop.load(Ordering::Relaxed) {
                break FluteEnd::Stopped;
            }
            let silence: Duration = clock.now().since(heard).into();
            if status.is_closed && silence >= LATE {
                break FluteEnd::Closed;
            }
            if silence >= self.options.timeout {
                break FluteEnd::Timeout;
            }
            match poll.poll(&mut events, Some(LOOK_EVERY)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(failed(error));
                }
                _ => {}
            }
            loop {
                let is_more = self.socket.receive(&mut batch);
                if self.take(&batch, &mut tell) {
                    heard = clock.now();
                }
                if !is_more || self.is_complete(self.receiver.status()) {
                    break;
                }
            }
        };
        self.report.forgotten = self.receiver.status().forgotten;
        self.report.missing.extend(self.files.into_values().map(|file| file.location));
        Ok(self.report)
    }

    fn is_complete(&self, status: FluteStatus) -> bool {
        let is_enough = self.options.objects.is_some_and(|objects| self.report.files >= objects);
        is_enough || status.is_over()
    }

    /// Takes the datagrams of a batch; true if one was of the session.
    fn take(&mut self, batch: &Batch, tell: &mut impl FnMut(FluteNews)) -> bool {
        let mut is_heard = false;
        for (meta, datagram) in batch.datagrams() {
            let from = meta.addr.ip().to_canonical();
            if self.source.is_some_and(|source| source != from) {
                continue;
            }
            match self.receiver.handle(datagram) {
                // A session is one sender's (RFC 5651, section 4.1).
                Ok(true) => (self.source, is_heard) = (Some(from), true),
                Ok(false) => {}
                Err(error) => {
                    self.report.wrong += 1;
                    self.report.first_wrong.get_or_insert_with(|| error.to_string());
                }
            }
            while let Some(event) = self.receiver.poll_event() {
                self.act(event, tell);
            }
            if self.is_complete(self.receiver.status()) {
                break;
            }
        }
        is_heard
    }

    fn act(&mut self, event: FluteEvent, tell: &mut impl FnMut(FluteNews)) {
        match event {
            FluteEvent::Announced(file) => match location::to_names(&file.location) {
                Ok(_) => {
                    let (location, bytes) = (file.location.clone(), file.length.unwrap_or(0));
                    self.files.insert(file.toi, file);
                    tell(FluteNews::Announced { location, bytes });
                }
                Err(reason) => self.refuse(file.toi, file.location, reason, tell),
            },
            FluteEvent::Block { toi, offset, data } => {
                let written = self.stored(toi).and_then(|file| match file {
                    Some(file) => file.write(offset, &data),
                    None => Ok(()),
                });
                if let Err(error) = written {
                    self.fail(toi, &error, tell);
                }
            }
            FluteEvent::Received { toi } => match self.finish(toi, tell) {
                Ok(()) => {}
                Err(error) => self.fail(toi, &error, tell),
            },
            FluteEvent::Refused(FdtRefusal { toi, location, reason }) => {
                self.forget(toi);
                self.report.missing.push(location.clone());
                tell(FluteNews::Refused { location, reason });
            }
        }
    }

    /// The file that is written, begun if it is not yet; none if it is not received.
    fn stored(&mut self, toi: u128) -> Result<Option<&StoredFile>, SinkError> {
        let Some(file) = self.files.get(&toi) else { return Ok(None) };
        if !self.open.contains_key(&toi) {
            if self.open.len() >= MAX_OPEN {
                let error = io::Error::other("too many files come at the same time");
                return Err(SinkError::io(Path::new(&file.location), error));
            }
            // It was checked when the file was announced.
            let names = location::to_names(&file.location).unwrap_or_default();
            let stored = self.store.begin(&names, file.length.unwrap_or(0))?;
            self.open.insert(toi, stored);
        }
        Ok(self.open.get(&toi))
    }

    fn finish(&mut self, toi: u128, tell: &mut impl FnMut(FluteNews)) -> Result<(), SinkError> {
        if self.stored(toi)?.is_none() {
            return Ok(());
        }
        let (Some(file), Some(stored)) = (self.files.get(&toi), self.open.remove(&toi)) else {
            return Ok(());
        };
        let bytes = file.length.unwrap_or(0);
        if file.md5.is_some() && file.md5 != Some(stored.hash()?) {
            let location = file.location.clone();
            self.receiver.restart(toi);
            tell(FluteNews::Wrong { location });
            return Ok(());
        }
        let is_verified = file.md5.is_some();
        let path = stored.finish()?;
        self.files.remove(&toi);
        self.report.files += 1;
        self.report.bytes += bytes;
        tell(FluteNews::Received { path, bytes, is_verified });
        Ok(())
    }

    fn fail(&mut self, toi: u128, error: &SinkError, tell: &mut impl FnMut(FluteNews)) {
        if let Some(file) = self.files.remove(&toi) {
            self.refuse(toi, file.location, error.to_string(), tell);
        }
    }

    fn refuse(
        &mut self,
        toi: u128,
        location: String,
        reason: String,
        tell: &mut impl FnMut(FluteNews),
    ) {
        self.forget(toi);
        self.receiver.refuse(toi);
        self.report.missing.push(location.clone());
        tell(FluteNews::Refused { location, reason });
    }

    fn forget(&mut self, toi: u128) {
        self.files.remove(&toi);
        self.open.remove(&toi);
    }
}
