use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use fontis_base::{Rate, Time};
use fontis_proto::flute::{
    FdtFile, FecBlockEncoder, FecPayloadId, FecPlan, FluteSender, FluteSenderConfig, FluteTransmit,
};
use mio::{Events, Interest, Poll, Token};

use super::error::FluteError;
use super::source::{SourceFile, collect, read};
use crate::source::SourceOptions;
use crate::udp::outbox::GroupOutbox;
use crate::udp::{Alarm, Clock, GroupInterface, Socket, group_sender};

/// How files are sent.
#[derive(Clone, Debug)]
pub struct FluteSendOptions {
    /// Where to: a group, or one receiver.
    pub to: SocketAddr,
    /// The interface towards a group.
    pub interface: GroupInterface,
    /// Routers that packets to a group may pass.
    pub hops: u32,
    /// The session; below 2⁴⁸.
    pub tsi: u64,
    /// How files are protected.
    pub plan: FecPlan,
    /// Bytes of datagrams that leave in a second, as a rate.
    pub rate: Rate,
    /// How often everything is sent; none for no end.
    pub rounds: Option<u32>,
    /// What of folders is sent.
    pub source: SourceOptions,
}

/// Sends files to receivers that cannot answer.
pub struct FluteFileSender {
    files: Vec<SourceFile>,
    left_out: u64,
    options: FluteSendOptions,
    sender: FluteSender,
    encoders: BTreeMap<u32, FecBlockEncoder>,
    /// The file that the encoders are of.
    file: usize,
    /// Datagrams that have left.
    sent: u64,
}

const SOCKET: Token = Token(0);
const ALARM: Token = Token(1);
/// The longest time until a stop is seen.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Seconds from 1900, where NTP begins to count, to 1970.
const NTP_EPOCH: u64 = 2_208_988_800;
/// The file delivery table holds so long. Receivers that are given the time of a wrong clock should
/// not throw it away, so this is long.
const VALID: Duration = Duration::from_secs(30 * 24 * 3600);

impl FluteFileSender {
    /// Hashes the files at these paths, and those in folders, and is ready to send them.
    ///
    /// # Errors
    /// [`FluteError`], if they cannot be read or sent.
    pub fn new(paths: &[PathBuf], options: FluteSendOptions) -> Result<Self, FluteError> {
        let (files, left_out) = collect(paths, &options.source)?;
        let entry = |(toi, file): (u128, &SourceFile)| {
            let oti = options.plan.oti(file.length);
            let failed = |source| FluteError::Length { path: file.path.clone(), source };
            Ok(FdtFile {
                toi,
                location: file.location.clone(),
                length: Some(file.length),
                md5: Some(file.md5),
                oti: Some(oti.map_err(failed)?),
            })
        };
        let table = (1..).zip(&files).map(entry).collect::<Result<_, FluteError>>()?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let expires = now + VALID + Duration::from_secs(NTP_EPOCH);
        let config = FluteSenderConfig {
            tsi: options.tsi,
            plan: options.plan,
            rate: options.rate,
            rounds: options.rounds,
            // The first of its eras ends in 2036; the second counts from there.
            expires: expires.as_secs() as u32,
        };
        Ok(Self {
            sender: FluteSender::new(config, table).map_err(FluteError::Table)?,
            files,
            left_out,
            options,
            encoders: BTreeMap::new(),
            file: 0,
            sent: 0,
        })
    }

    /// Files, and their bytes.
    pub fn size(&self) -> (usize, u64) {
        (self.files.len(), self.files.iter().map(|file| file.length).sum())
    }

    /// Links and other entries that are not sent.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Sends until all rounds are over, or `stop` is set; returns how many datagrams have left. It
    /// blocks.
    ///
    /// # Errors
    /// [`FluteError`], if the address cannot be sent to, or a file not be read.
    pub fn run(mut self, stop: &AtomicBool) -> Result<u64, FluteError> {
        let address = self.options.to;
        let failed = |source: io::Error| FluteError::Socket { address, source };
        let mut socket = self.socket().map_err(failed)?;
        let mut poll = Poll::new().map_err(failed)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(socket.source(), SOCKET, interest).map_err(failed)?;
        let mut alarm = Alarm::new(poll.registry(), ALARM).map_err(failed)?;
        let mut outbox = GroupOutbox::new(&socket);
        let (clock, mut events) = (Clock::start(), Events::with_capacity(8));
        while !(self.sender.is_over() && outbox.is_empty()) {
            let at = Some(self.sender.timeout());
            let at = at.filter(|at| *at < Time::MAX && outbox.is_empty());
            let timeout = alarm.set(clock.now(), at).map_err(failed)?;
            let timeout = timeout.unwrap_or(LOOK_EVERY).min(LOOK_EVERY);
            match poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(failed(error));
                }
                _ => {}
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let now = clock.now();
            while outbox.flush(&socket, address) {
                let mut is_more = false;
                while !outbox.is_full()
                    && let Some(transmit) = self.sender.poll(now)
                {
                    is_more = true;
                    self.queue(transmit, &mut outbox)?;
                }
                if !is_more {
                    break;
                }
            }
        }
        Ok(self.sent)
    }

    fn socket(&self) -> io::Result<Socket> {
        let FluteSendOptions { to, interface, hops, .. } = self.options;
        if to.ip().is_multicast() {
            return group_sender(to, interface, hops);
        }
        let any = match to {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Socket::bind(SocketAddr::new(any, 0))
    }

    fn queue(
        &mut self,
        transmit: FluteTransmit,
        outbox: &mut GroupOutbox,
    ) -> Result<(), FluteError> {
        match transmit {
            FluteTransmit::Datagram(datagram) => outbox.add(|out| out.extend_from_slice(&datagram)),
            FluteTransmit::Symbol { file, block, esi, first, is_last } => {
                if file != self.file {
                    (self.encoders, self.file) = (BTreeMap::new(), file);
                }
                self.encoders.retain(|block, _| *block >= first);
                if !self.encoders.contains_key(&block) {
                    let Some(encoder) = self.encoder(file, block)? else { return Ok(()) };
                    self.encoders.insert(block, encoder);
                }
                let symbol = self.encoders.get_mut(&block).and_then(|own| own.symbol(esi));
                let Some(symbol) = symbol else { return Ok(()) };
                let id = FecPayloadId { block, esi };
                outbox.add(|out| self.sender.write(file, id, is_last, &symbol, out));
            }
        }
        self.sent += 1;
        Ok(())
    }

    fn encoder(&self, file: usize, block: u32) -> Result<Option<FecBlockEncoder>, FluteError> {
        let Some(SourceFile { path, length, .. }) = self.files.get(file) else { return Ok(None) };
        let failed = |source| FluteError::Length { path: path.clone(), source };
        let oti = self.options.plan.oti(*length).map_err(failed)?;
        let Some(own) = oti.block(block) else { return Ok(None) };
        let data = read(path, own.range.start, (own.range.end - own.range.start) as usize)?;
        Ok(FecBlockEncoder::new(&oti, own, data.into(), self.options.plan.points()))
    }
}
