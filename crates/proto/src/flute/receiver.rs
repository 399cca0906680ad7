use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use fontis_codes::ReedSolomonPoints;

use super::alc::{AlcPacket, FecPayloadId};
use super::error::{AlcError, FdtError, FecOtiError};
use super::fdt::{FdtFile, FdtInstance, FdtRefusal};
use super::incoming::IncomingObject;
use super::lct::LctHeader;
use super::oti::{FecOti, FecScheme};
use super::waiting::Waiting;

/// The choices of a receiver.
#[derive(Clone, Copy, Debug)]
pub struct FluteReceiverConfig {
    /// The session; none for the first of which a file delivery table is heard.
    pub tsi: Option<u64>,
    /// Bytes that symbols take at most, and a quarter of that for packets that nothing is known
    /// about. A block that is decoded takes as much again for a moment.
    pub memory: usize,
    /// Files that are taken at most.
    pub max_files: usize,
    /// The points of Reed-Solomon.
    pub points: ReedSolomonPoints,
}

/// What a receiver has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FluteEvent {
    /// A file is going to come; its length is known.
    Announced(FdtFile),
    /// A piece of an announced file, which comes once.
    Block {
        /// The file.
        toi: u128,
        /// Its place in the file.
        offset: u64,
        /// Its bytes.
        data: Bytes,
    },
    /// All pieces of a file have come. Whether they are right only its hash says.
    Received {
        /// The file.
        toi: u128,
    },
    /// A file will not be received.
    Refused(FdtRefusal),
}

/// How far a receiver is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FluteStatus {
    /// Files that file delivery tables announced, refused ones among them.
    pub announced: usize,
    /// Files that have come.
    pub received: usize,
    /// Files that are refused.
    pub refused: usize,
    /// Whether the sender said that no further files come.
    pub is_complete: bool,
    /// Whether the sender said that nothing more comes.
    pub is_closed: bool,
    /// Blocks that were begun and forgotten, because memory did not suffice.
    pub forgotten: u64,
}

impl FluteStatus {
    /// Whether all files of the session are here or refused.
    pub const fn is_over(&self) -> bool {
        self.is_complete && self.received + self.refused >= self.announced
    }
}

/// Receives the files of one session.
pub struct FluteReceiver {
    config: FluteReceiverConfig,
    tsi: Option<u64>,
    /// Instances of the file delivery table that are coming, with their whole blocks.
    tables: BTreeMap<u32, (IncomingObject, BTreeMap<u64, Bytes>)>,
    /// The latest instances that were read.
    known: VecDeque<u32>,
    files: BTreeMap<u128, File>,
    refused: BTreeSet<u128>,
    waiting: Waiting,
    /// The blocks that have begun, in this order.
    begun: BTreeMap<u64, (u128, u32)>,
    next: u64,
    held: usize,
    /// Bytes of the names of files, refused ones among them.
    names: usize,
    events: VecDeque<FluteEvent>,
    status: FluteStatus,
}

struct File {
    file: FdtFile,
    object: Progress,
}

enum Progress {
    /// How it is cut is not known yet.
    Unknown,
    Coming(Box<IncomingObject>),
    Received,
}

/// The version of FLUTE.
const VERSION: u8 = 2;
/// The longest file delivery table.
const MAX_TABLE: u64 = 8 << 20;
/// Bytes that what came of one may take.
const TABLE_MEMORY: usize = 4 * MAX_TABLE as usize;
/// Tables that may come at the same time, and those that are remembered.
const MAX_TABLES: usize = 4;
const MAX_KNOWN: usize = 64;

impl FluteReceiver {
    /// A receiver that has heard nothing.
    pub fn new(config: FluteReceiverConfig) -> Self {
        Self {
            tsi: config.tsi,
            config,
            tables: BTreeMap::new(),
            known: VecDeque::new(),
            files: BTreeMap::new(),
            refused: BTreeSet::new(),
            waiting: Waiting::default(),
            begun: BTreeMap::new(),
            next: 0,
            held: 0,
            names: 0,
            events: VecDeque::new(),
            status: FluteStatus::default(),
        }
    }

    /// The session, once it is known.
    pub const fn tsi(&self) -> Option<u64> {
        self.tsi
    }

    /// How far it is.
    pub const fn status(&self) -> FluteStatus {
        self.status
    }

    /// Bytes that the symbols take that are kept.
    pub const fn held(&self) -> usize {
        self.held
    }

    /// The next event. They are to be drained after each datagram: whole blocks wait in them.
    pub fn poll_event(&mut self) -> Option<FluteEvent> {
        self.events.pop_front()
    }

    /// Takes a datagram; false if it is none of this session.
    ///
    /// # Errors
    /// [`AlcError`], if it is wrong or not understood.
    pub fn handle(&mut self, datagram: &[u8]) -> Result<bool, AlcError> {
        let AlcPacket { header, symbols } = AlcPacket::parse(datagram)?;
        match self.tsi {
            Some(tsi) if tsi != header.tsi => return Ok(false),
            None if header.fdt.is_none() || header.toi != Some(0) => return Ok(false),
            _ => {}
        }
        match (header.toi, symbols) {
            (Some(0), Some((scheme, id, symbols))) => {
                self.take_table(&header, scheme, id, symbols)?;
            }
            (Some(toi), Some((scheme, id, symbols))) => {
                if self.files.contains_key(&toi) {
                    self.take_symbols(toi, &header, scheme, id, symbols)?;
                } else if !self.refused.contains(&toi) {
                    self.waiting.keep(toi, datagram, self.config.memory / 4);
                }
            }
            _ => {}
        }
        self.tsi = Some(header.tsi);
        self.status.is_closed |= header.close_session;
        Ok(true)
    }

    /// Receives a file anew, because what came was wrong.
    pub fn restart(&mut self, toi: u128) {
        let Some(File { file, object }) = self.files.get_mut(&toi) else { return };
        if matches!(object, Progress::Received)
            && let Some(oti) = file.oti.filter(|oti| oti.blocks() > 0)
        {
            let new = IncomingObject::new(oti, self.config.points);
            self.held += new.held();
            *object = Progress::Coming(Box::new(new));
            self.status.received -= 1;
        }
    }

    /// Receives a file no longer, for a reason of the caller's.
    pub fn refuse(&mut self, toi: u128) {
        let Some(File { object, .. }) = self.files.remove(&toi) else { return };
        match object {
            Progress::Coming(object) => {
                self.held -= object.held();
                for begun in object.begun() {
                    self.begun.remove(&begun);
                }
            }
            Progress::Received => self.status.received -= 1,
            Progress::Unknown => {}
        }
        self.refused.insert(toi);
        self.status.refused += 1;
    }

    fn take_table(
        &mut self,
        header: &LctHeader<'_>,
        scheme: FecScheme,
        id: FecPayloadId,
        symbols: &[u8],
    ) -> Result<(), AlcError> {
        let Some(extension) = header.fdt else { return Ok(()) };
        if extension.version != VERSION {
            return Err(AlcError::FluteVersion(extension.version));
        }
        if header.content_encoding != 0 {
            return Err(FdtError::Encoding(header.content_encoding).into());
        }
        let instance = extension.instance;
        if self.known.contains(&instance) {
            return Ok(());
        }
        let oti = match (header.fti, self.tables.get(&instance)) {
            (Some(bytes), _) => FecOti::from_extension(scheme, bytes)?,
            (None, Some((object, _))) => object.oti(),
            (None, None) => return Err(FecOtiError::Missing("EXT_FTI").into()),
        };
        if oti.transfer_length() > MAX_TABLE {
            return Err(FdtError::Length(oti.transfer_length()).into());
        }
        oti.bearable()?;
        // What was kept of another table with the same number is of no use.
        self.tables.retain(|known, (object, _)| *known != instance || object.oti() == oti);
        while self.tables.len() >= MAX_TABLES && !self.tables.contains_key(&instance) {
            self.tables.pop_first();
        }
        let new = || (IncomingObject::new(oti, self.config.points), BTreeMap::new());
        let (object, blocks) = self.tables.entry(instance).or_insert_with(new);
        if let Some((_, offset, data)) = object.take(id, symbols, 0)?.block {
            blocks.insert(offset, data);
        }
        if object.held() > TABLE_MEMORY {
            self.tables.remove(&instance);
            return Err(FdtError::Memory.into());
        }
        if !object.is_done() {
            return Ok(());
        }
        let xml: Vec<u8> = blocks.values().flatten().copied().collect();
        self.tables.remove(&instance);
        let table = FdtInstance::parse(&xml)?;
        if self.known.len() >= MAX_KNOWN {
            self.known.pop_front();
        }
        self.known.push_back(instance);
        self.status.is_complete |= table.is_complete;
        for refusal in table.refused {
            self.turn_down(refusal);
        }
        for file in table.files {
            self.announce(file);
        }
        Ok(())
    }

    fn turn_down(&mut self, refusal: FdtRefusal) {
        let toi = refusal.toi;
        if self.files.contains_key(&toi) || self.refused.contains(&toi) {
            return;
        }
        if self.has_room(&refusal.location) {
            self.refused.insert(toi);
            self.status.announced += 1;
            self.status.refused += 1;
            self.waiting.take(toi);
            self.events.push_back(FluteEvent::Refused(refusal));
        }
    }

    /// Whether a file with this name may be remembered. One that is not is not counted one by one:
    /// what is remembered is bounded, and the session is not complete.
    fn has_room(&mut self, name: &str) -> bool {
        let names = self.names + name.len();
        let fits = self.files.len() + self.refused.len() < self.config.max_files
            && names <= self.config.memory / 4;
        match fits {
            true => self.names = names,
            false => self.status.is_complete = false,
        }
        fits
    }

    /// Takes a file of a table in. What was said of it first holds (RFC 6726, section 3.2).
    fn announce(&mut self, file: FdtFile) {
        let toi = file.toi;
        if self.files.contains_key(&toi) || self.refused.contains(&toi) {
            return;
        }
        if !self.has_room(&file.location) {
            return;
        }
        self.status.announced += 1;
        let oti = file.oti;
        self.files.insert(toi, File { file, object: Progress::Unknown });
        if let Some(oti) = oti {
            self.begin(toi, oti);
        }
        for datagram in self.waiting.take(toi) {
            if let Ok(AlcPacket { header, symbols: Some((scheme, id, symbols)) }) =
                AlcPacket::parse(&datagram)
            {
                // Whether it is right could not be seen before.
                let _ = self.take_symbols(toi, &header, scheme, id, symbols);
            }
        }
    }

    /// Begins to receive a file, now that it is known how it is cut.
    fn begin(&mut self, toi: u128, oti: FecOti) {
        let memory = self.config.memory as u64;
        let Some(File { file, object }) = self.files.get_mut(&toi) else { return };
        let block = oti.block(0).map_or(0, |block| block.range.end - block.range.start);
        let all = (self.held + IncomingObject::least(&oti)) as u64;
        let reason = match oti.bearable() {
            Err(error) => Some(error.to_string()),
            Ok(()) if block > memory || all > memory => Some(format!(
                "it takes {} bytes of memory, and {memory} bytes are all that may be used",
                block.max(all)
            )),
            Ok(()) => None,
        };
        if let Some(reason) = reason {
            let refusal = FdtRefusal { toi, location: file.location.clone(), reason };
            self.refuse(toi);
            self.events.push_back(FluteEvent::Refused(refusal));
            return;
        }
        (file.oti, file.length) = (Some(oti), Some(oti.transfer_length()));
        self.events.push_back(FluteEvent::Announced(file.clone()));
        if oti.blocks() == 0 {
            *object = Progress::Received;
            self.status.received += 1;
            self.events.push_back(FluteEvent::Received { toi });
        } else {
            let new = IncomingObject::new(oti, self.config.points);
            self.held += new.held();
            *object = Progress::Coming(Box::new(new));
        }
    }

    fn take_symbols(
        &mut self,
        toi: u128,
        header: &LctHeader<'_>,
        scheme: FecScheme,
        id: FecPayloadId,
        symbols: &[u8],
    ) -> Result<(), AlcError> {
        let Some(File { file, object }) = self.files.get(&toi) else { return Ok(()) };
        if matches!(object, Progress::Unknown) {
            let bytes = header.fti.ok_or(FecOtiError::Missing("EXT_FTI"))?;
            let oti = FecOti::from_extension(scheme, bytes)?;
            if file.length.is_some_and(|length| length != oti.transfer_length()) {
                return Err(AlcError::Contradiction(toi));
            }
            self.begin(toi, oti);
        }
        let Some(File { object: Progress::Coming(object), .. }) = self.files.get_mut(&toi) else {
            return Ok(());
        };
        if object.oti().scheme() != scheme {
            return Err(AlcError::Contradiction(toi));
        }
        let before = object.held();
        let taken = object.take(id, symbols, self.next)?;
        self.held = self.held + object.held() - before;
        let is_done = taken.block.is_some() && object.is_done();
        if let Some(begun) = taken.begun {
            self.begun.insert(begun, (toi, id.block));
            self.next += 1;
        }
        if let Some((begun, offset, data)) = taken.block {
            self.begun.remove(&begun);
            self.events.push_back(FluteEvent::Block { toi, offset, data });
        }
        if is_done && let Some(File { object, .. }) = self.files.get_mut(&toi) {
            if let Progress::Coming(whole) = object {
                self.held -= whole.held();
            }
            *object = Progress::Received;
            self.status.received += 1;
            self.events.push_back(FluteEvent::Received { toi });
        }
        self.keep_within_budget();
        Ok(())
    }

    /// Forgets the blocks that began last, so that those that began first become whole.
    fn keep_within_budget(&mut self) {
        while self.held > self.config.memory
            && let Some((_, (toi, block))) = self.begun.pop_last()
        {
            if let Some(File { object: Progress::Coming(object), .. }) = self.files.get_mut(&toi) {
                self.held -= object.held();
                object.forget(block);
                self.held += object.held();
                self.status.forgotten += 1;
            }
        }
    }
}
