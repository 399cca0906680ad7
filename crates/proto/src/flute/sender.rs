use std::collections::VecDeque;

use bytes::Bytes;
use fontis_base::{Duration, Rate, Serializer, Time};

use super::alc::FecPayloadId;
use super::encoder::FecBlockEncoder;
use super::error::FecOtiError;
use super::fdt::{FdtFile, FdtInstance};
use super::lct::{FdtExtension, LctHeader};
use super::order::{Place, SymbolOrder};
use super::plan::FecPlan;

/// The choices of a sender.
#[derive(Clone, Copy, Debug)]
pub struct FluteSenderConfig {
    /// The transport session identifier, below 2⁴⁸.
    pub tsi: u64,
    /// How files are protected.
    pub plan: FecPlan,
    /// Bytes of datagrams that leave in a second, as a rate.
    pub rate: Rate,
    /// How often everything is sent; none for no end.
    pub rounds: Option<u32>,
    /// When the file delivery table expires, in seconds since 1900.
    pub expires: u32,
}

/// What leaves next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FluteTransmit {
    /// This datagram.
    Datagram(Bytes),
    /// A symbol, for [`FluteSender::write`].
    Symbol {
        /// The file's place in the list.
        file: usize,
        /// The block.
        block: u32,
        /// The symbol.
        esi: u32,
        /// The blocks of the file before this one, and those of other files, need no encoder for
        /// now.
        first: u32,
        /// Whether it is the object's last one of all.
        is_last: bool,
    },
}

/// Sends files to receivers that cannot answer.
#[derive(Debug)]
pub struct FluteSender {
    config: FluteSenderConfig,
    files: Vec<FdtFile>,
    /// The datagrams of the file delivery table.
    fdt: Vec<Bytes>,
    fdt_at: Time,
    pacer: Serializer,
    /// Datagrams that leave before anything else.
    ready: VecDeque<Bytes>,
    round: u32,
    /// The file that is sent, and the rest of its symbols.
    file: usize,
    order: Option<SymbolOrder>,
    is_ending: bool,
    /// The length of a datagram with a symbol.
    datagram: u64,
}

/// The version of FLUTE (RFC 6726, section 3.4.1).
const VERSION: u8 = 2;
/// The file delivery table is sent again after this time, or if that takes longer after so many
/// times the time that it takes.
const FDT_EVERY: Duration = Duration::from_secs(1);
const FDT_SHARE: u64 = 10;
/// Datagrams that say that the session is over: some may be lost.
const ENDS: usize = 5;
/// What is not sent in time is made up for, if it is at most so late.
const CATCH_UP: Duration = Duration::from_millis(10);

impl FluteSender {
    /// A sender of these files, whose transmission information is that of the plan.
    ///
    /// # Errors
    /// [`FecOtiError`], if their table is too long.
    pub fn new(config: FluteSenderConfig, files: Vec<FdtFile>) -> Result<Self, FecOtiError> {
        let refused = Vec::new();
        let table = FdtInstance { expires: config.expires, is_complete: true, files, refused };
        let fdt = table_datagrams(&config, table.to_xml().into_bytes().into())?;
        let mut pacer = Serializer::new(config.rate);
        pacer.send(Time::ZERO, 0);
        Ok(Self {
            files: table.files,
            ready: VecDeque::new(),
            fdt,
            fdt_at: Time::ZERO,
            pacer,
            round: 0,
            file: 0,
            order: None,
            is_ending: config.rounds == Some(0),
            datagram: 20 + u64::from(config.plan.symbol_size()),
            config,
        })
    }

    /// Whether everything has left.
    pub fn is_over(&self) -> bool {
        self.is_ending && self.ready.is_empty()
    }

    /// When [`poll`](Self::poll) has something to send; `Time::MAX` when it is over.
    pub fn timeout(&self) -> Time {
        if self.is_over() { Time::MAX } else { self.pacer.free_at() }
    }

    /// The round that goes on, from 0.
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// What leaves next, if something is due.
    pub fn poll(&mut self, now: Time) -> Option<FluteTransmit> {
        if self.pacer.free_at() > now {
            return None;
        }
        loop {
            if let Some(datagram) = self.ready.pop_front() {
                self.charge(now, datagram.len() as u64);
                return Some(FluteTransmit::Datagram(datagram));
            }
            if self.is_ending {
                return None;
            }
            if self.fdt_at <= now {
                self.queue_table(now);
                continue;
            }
            if let Some(transmit) = self.next_symbol() {
                self.charge(now, self.datagram);
                return Some(transmit);
            }
            self.end_round(now);
        }
    }

    /// Appends the datagram of a symbol that [`poll`](Self::poll) asked for.
    pub fn write(
        &self,
        file: usize,
        id: FecPayloadId,
        is_last: bool,
        symbol: &[u8],
        out: &mut Vec<u8>,
    ) {
        let Some((file, oti)) = self.files.get(file).and_then(|file| Some((file, file.oti?)))
        else {
            return;
        };
        let header = LctHeader {
            tsi: self.config.tsi,
            toi: Some(file.toi),
            codepoint: oti.scheme().id(),
            close_object: is_last,
            ..LctHeader::default()
        };
        header.write(out);
        out.extend_from_slice(&id.to_bytes(oti.scheme()));
        out.extend_from_slice(symbol);
    }

    fn charge(&mut self, now: Time, bytes: u64) {
        let late = Time::from_nanos(now.as_nanos().saturating_sub(CATCH_UP.as_nanos()));
        self.pacer.send(self.pacer.free_at().max(late), bytes);
    }

    fn queue_table(&mut self, now: Time) {
        self.ready.extend(self.fdt.iter().cloned());
        let bytes: usize = self.fdt.iter().map(Bytes::len).sum();
        let time = self.config.rate.time_for(bytes as u64);
        self.fdt_at = now + FDT_EVERY.max(time.mul_ratio(FDT_SHARE, 1));
    }

    fn next_symbol(&mut self) -> Option<FluteTransmit> {
        while let Some(oti) = self.files.get(self.file).map(|file| file.oti) {
            let (plan, round) = (self.config.plan, self.round);
            let order = match (&mut self.order, oti) {
                (Some(order), _) => order,
                (none, Some(oti)) => none.insert(SymbolOrder::new(oti, plan, round)),
                (None, None) => {
                    self.file += 1;
                    continue;
                }
            };
            if let Some(place) = order.next() {
                let is_last_round = self.config.rounds.is_some_and(|rounds| round + 1 >= rounds);
                let is_last = place.is_last && is_last_round;
                let Place { block, esi, first, .. } = place;
                let file = self.file;
                return Some(FluteTransmit::Symbol { file, block, esi, first, is_last });
            }
            self.file += 1;
            self.order = None;
        }
        None
    }

    /// Begins the next round, or the end. The table leaves with each round, and twice in the end,
    /// when all that is missing may be it.
    fn end_round(&mut self, now: Time) {
        self.round = self.round.saturating_add(1);
        (self.file, self.order) = (0, None);
        self.queue_table(now);
        if self.config.rounds.is_some_and(|rounds| self.round >= rounds) {
            self.is_ending = true;
            self.queue_table(now);
            let end =
                LctHeader { tsi: self.config.tsi, close_session: true, ..LctHeader::default() };
            let mut datagram = Vec::new();
            end.write(&mut datagram);
            let datagram = Bytes::from(datagram);
            self.ready.extend(std::iter::repeat_n(datagram, ENDS));
        }
    }
}

/// The datagrams of an instance of the file delivery table.
fn table_datagrams(config: &FluteSenderConfig, xml: Bytes) -> Result<Vec<Bytes>, FecOtiError> {
    let plan = config.plan.of_fdt();
    let oti = plan.oti(xml.len() as u64)?;
    let information = oti.to_extension();
    let header = LctHeader {
        tsi: config.tsi,
        toi: Some(0),
        codepoint: oti.scheme().id(),
        fdt: Some(FdtExtension { version: VERSION, instance: 1 }),
        fti: Some(&information),
        ..LctHeader::default()
    };
    let mut datagrams = Vec::new();
    let mut encoders = Vec::new();
    for number in 0..oti.blocks() {
        let encoder = oti.block(number).and_then(|block| {
            let data = xml.slice(block.range.start as usize..block.range.end as usize);
            FecBlockEncoder::new(&oti, block, data, plan.points())
        });
        encoders.push(encoder.ok_or(FecOtiError::TransferLength(oti.transfer_length()))?);
    }
    for place in SymbolOrder::new(oti, plan, 0) {
        let symbol = encoders.get_mut(place.block as usize).and_then(|own| own.symbol(place.esi));
        let Some(symbol) = symbol else { continue };
        let mut datagram = Vec::new();
        header.write(&mut datagram);
        let id = FecPayloadId { block: place.block, esi: place.esi };
        datagram.extend_from_slice(&id.to_bytes(oti.scheme()));
        datagram.extend_from_slice(&symbol);
        datagrams.push(datagram.into());
    }
    Ok(datagrams)
}
