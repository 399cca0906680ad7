//! Two associations of SCTP that are told what arrives when, without a network.

use core::net::IpAddr;

use fontis_base::{Duration, Stream, Time};
use fontis_proto::sctp::{
    AckPolicy, CmtConfig, CodeReach, CodingConfig, Multipath, RepairWait, RepairedLoss,
    SctpAssociation, SctpChunk, SctpCode, SctpConfig, SctpData, SctpPacket, SctpPath, SctpSecret,
    SctpSend, SctpTransmit, respond_without_state,
};

use super::super::value::Value;

/// Bytes of a message, which takes a packet of its own.
const PIECE: u32 = 1400;

/// A client that has connected to a server, and the time.
struct Script {
    now: Time,
    client: SctpAssociation,
    server: SctpAssociation,
}

fn address(end: u8, path: u8) -> IpAddr {
    IpAddr::from([10, end, 0, path])
}

/// A configuration of an end with so many paths.
fn config(end: u8, paths: u8, of: &SctpConfig) -> SctpConfig {
    let secret = SctpSecret::new(move |bytes| {
        let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut stream = Stream::new(end.into(), &name);
        let (a, b) = (stream.next_u64(), stream.next_u64());
        (u128::from(a) << 64 | u128::from(b)).to_be_bytes()
    });
    let addresses = (0..paths).map(|path| address(end, path)).collect();
    SctpConfig { addresses, secret, ..of.clone() }
}

/// The usual configuration; each end is given a secret of its own.
fn usual() -> SctpConfig {
    SctpConfig::new(SctpSecret::new(|_| [0; 16]))
}

impl Script {
    /// Connects at once, and confirms all paths.
    fn connect(of: &SctpConfig, paths: u8) -> Option<Self> {
        let now = Time::ZERO + Duration::from_secs(1);
        let configs = [config(1, paths, of), config(2, paths, of)];
        let ends = [address(1, 0), address(2, 0)];
        let mut client = SctpAssociation::connect(now, configs[0].clone(), ends);
        let mut server = None;
        while server.is_none() {
            let SctpTransmit { local, peer, packet, .. } = client.poll(now)?;
            let here = [peer, local];
            server = match SctpAssociation::accept(now, configs[1].clone(), here, &packet) {
                Ok(server) => Some(server),
                Err(answer) => {
                    let answer = answer
                        .or_else(|| respond_without_state(now, &configs[1], here, &packet))?;
                    client.handle(now, [local, peer], &answer, false);
                    None
                }
            };
        }
        let mut script = Self { now, client, server: server? };
        script.exchange();
        Some(script)
    }

    /// Everything that either end has to send arrives at once.
    fn exchange(&mut self) {
        loop {
            let (there, back) = (self.client.poll(self.now), self.server.poll(self.now));
            if there.is_none() && back.is_none() {
                return;
            }
            there.into_iter().for_each(|packet| self.server_takes(packet));
            back.into_iter().for_each(|packet| self.client_takes(packet));
        }
    }

    fn send(&mut self, messages: u32) {
        for _ in 0..messages {
            let data = SctpData::Counted(PIECE);
            // The buffer of the usual configuration holds hundreds.
            let _ = self.client.send(self.now, SctpSend::default(), data);
        }
    }

    /// What the client sends now.
    fn leaving(&mut self) -> Vec<SctpTransmit> {
        core::iter::from_fn(|| self.client.poll(self.now)).collect()
    }

    /// What the server sends now.
    fn answers(&mut self) -> Vec<SctpTransmit> {
        core::iter::from_fn(|| self.server.poll(self.now)).collect()
    }

    fn server_takes(&mut self, SctpTransmit { local, peer, packet, .. }: SctpTransmit) {
        self.server.handle(self.now, [peer, local], &packet, false);
        while self.server.receive(self.now).is_some() {}
    }

    fn client_takes(&mut self, SctpTransmit { local, peer, packet, .. }: SctpTransmit) {
        self.client.handle(self.now, [peer, local], &packet, false);
    }

    fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    fn path(&self) -> Option<SctpPath> {
        self.client.paths().next()
    }
}

fn at_once() -> AckPolicy {
    AckPolicy { every: 1, ..AckPolicy::default() }
}

fn has_gaps(packet: &SctpPacket) -> bool {
    let is_gap = |chunk: &SctpChunk| match chunk {
        SctpChunk::Sack(sack) => !sack.gaps.is_empty(),
        _ => false,
    };
    packet.chunks.iter().any(is_gap)
}

/// The SACKs with a gap after which a chunk that was lost leaves again.
fn reports() -> Option<f64> {
    let mut script = Script::connect(&SctpConfig { acks: at_once(), ..usual() }, 1)?;
    // The window opens first.
    script.send(20);
    script.exchange();
    script.send(8);
    let mut leaving = script.leaving().into_iter();
    leaving.next()?;
    let mut reports = 0;
    for packet in leaving {
        script.server_takes(packet);
        for answer in script.answers() {
            reports += u32::from(has_gaps(&answer.packet));
            script.client_takes(answer);
        }
        script.leaving();
        if script.client.stats().repeated > 0 {
            return Some(reports.into());
        }
    }
    None
}

/// The weights with which a sample of the round-trip time counts, in its mean and in its deviation.
fn weights() -> Option<[f64; 2]> {
    let mut of = SctpConfig { acks: at_once(), ..usual() };
    of.timers.least = Duration::from_nanos(1);
    let mut script = Script::connect(&of, 1)?;
    let mut sample = |millis: u64| {
        script.send(1);
        for packet in script.leaving() {
            script.server_takes(packet);
        }
        let answers = script.answers();
        script.wait(millis);
        answers.into_iter().for_each(|answer| script.client_takes(answer));
        let path = script.path()?;
        let mean = path.srtt?.as_secs_f64();
        Some((mean, (path.rto.as_secs_f64() - mean) / 4.0))
    };
    sample(100)?;
    let (mean, deviation) = sample(100)?;
    let (after, deviation_after) = sample(500)?;
    let error = 0.5 - mean;
    Some([(after - mean) / error, (deviation_after - deviation) / (error - deviation)])
}

/// The delay in ms of a path as the sender finds it: data take 37 ms, wait for their SACK as long
/// as that may wait, and the SACK takes 90 ms.
fn forward_delay() -> Option<f64> {
    let mut script = Script::connect(&SctpConfig { stamps: true, ..usual() }, 1)?;
    script.send(1);
    let leaving = script.leaving();
    script.wait(37);
    leaving.into_iter().for_each(|packet| script.server_takes(packet));
    script.wait(200);
    let answers = script.answers();
    script.wait(90);
    answers.into_iter().for_each(|answer| script.client_takes(answer));
    Some(script.path()?.forward_delay? as f64 * 1e-6)
}

/// Chunks that leave again where two SACKs overtake each other: the one of all chunks comes over
/// the first path, and then, over the second, the older one with a gap.
fn overtaken(has_numbers: bool) -> Option<f64> {
    let cmt = CmtConfig { believes_old_sacks: true, ..CmtConfig::default() };
    let multipath = Multipath::Concurrent(cmt);
    let of = SctpConfig { multipath, stamps: has_numbers, acks: at_once(), ..usual() };
    let mut script = Script::connect(&of, 2)?;
    script.send(12);
    script.exchange();
    script.send(4);
    let mut leaving = script.leaving().into_iter();
    let first = leaving.next()?;
    let mut older = None;
    for packet in leaving {
        script.server_takes(packet);
        older = script.answers().pop().or(older);
    }
    let older = older.filter(|answer| has_gaps(&answer.packet))?;
    script.server_takes(first);
    script.answers().into_iter().for_each(|newer| script.client_takes(newer));
    // Four more are on their way, which neither SACK knows.
    script.send(4);
    script.leaving();
    script.client_takes(older);
    script.leaving();
    script.wait(900);
    script.leaving();
    Some(script.client.stats().repeated as f64)
}

/// A configuration with a block code whose groups fit in the first window.
fn coded() -> SctpConfig {
    let code = SctpCode::fixed(4, 3, CodeReach::Group);
    let coding = CodingConfig {
        code,
        wait: RepairWait::Published,
        is_inside: false,
        loss: RepairedLoss::Hidden,
        covers_tail: false,
    };
    SctpConfig { coding: Some(coding), acks: at_once(), max_burst: None, ..usual() }
}

fn is_repair(transmit: &SctpTransmit) -> bool {
    transmit.packet.chunks.iter().any(|chunk| matches!(chunk, SctpChunk::Repair(_)))
}

/// A chunk of a full group is lost and restored: chunks that leave again, by how many bytes the
/// window has shrunk, and ms from the repair's arrival to the SACK that tells of the chunk.
fn restored() -> Option<[f64; 3]> {
    let mut script = Script::connect(&coded(), 1)?;
    script.send(18);
    script.exchange();
    let before = script.path()?.window;
    script.send(3);
    let mut leaving = script.leaving().into_iter();
    // The first chunk is lost.
    leaving.next()?;
    script.wait(10);
    let mut told = None;
    for packet in leaving {
        let has_repair = is_repair(&packet);
        script.server_takes(packet);
        let restored = script.server.stats().restored > 0;
        for answer in script.answers() {
            if has_repair && restored && !has_gaps(&answer.packet) {
                told = told.or(Some(script.now));
            }
            script.client_takes(answer);
        }
    }
    script.leaving();
    let delay = told?.since(script.now).as_secs_f64() * 1e3;
    let shrunk = before.saturating_sub(script.path()?.window);
    (script.server.stats().restored == 1).then_some([
        script.client.stats().repeated as f64,
        shrunk as f64,
        delay,
    ])
}

/// Repairs that are lost: bytes of the send buffer that they take, and those that leave again.
fn lost_repairs() -> Option<[f64; 2]> {
    let mut script = Script::connect(&coded(), 1)?;
    script.send(18);
    script.exchange();
    let sent = script.client.stats().repairs_sent;
    script.send(3);
    let before = script.client.buffered();
    let leaving = script.leaving();
    let taken = script.client.buffered().saturating_sub(before);
    if script.client.stats().repairs_sent == sent {
        return None;
    }
    let sent = script.client.stats().repairs_sent;
    for packet in leaving.into_iter().filter(|packet| !is_repair(packet)) {
        script.server_takes(packet);
        script.answers().into_iter().for_each(|answer| script.client_takes(answer));
    }
    script.wait(5000);
    script.exchange();
    let again = script.client.stats().repairs_sent - sent + script.client.stats().repeated;
    Some([taken as f64, again as f64])
}

/// The result of the probe of this name.
pub(super) fn probe(name: &str) -> Option<Value> {
    Some(match name {
        "reports" => Value::Number(reports()?),
        "weights" => Value::List(weights()?.to_vec()),
        "forward delay" => Value::Number(forward_delay()?),
        "overtaken" => Value::List(vec![overtaken(true)?, overtaken(false)?]),
        "restored" => Value::List(restored()?.to_vec()),
        "lost repairs" => Value::List(lost_repairs()?.to_vec()),
        _ => return None,
    })
}
