//! Sessions of FLUTE in virtual time: a sender, a path that loses packets, a receiver.

mod session;

use std::collections::BTreeMap;

use bytes::Bytes;
use fontis_base::Stream;
use fontis_codes::ReedSolomonPoints;
use fontis_proto::flute::{
    AlcPacket, FdtExtension, FecOti, FecPayloadId, FecPlan, FecScheme, FluteEvent, FluteReceiver,
    FluteReceiverConfig, FluteStatus, LctHeader,
};
use session::{bytes, datagrams};

fn receiver(memory: usize) -> FluteReceiver {
    FluteReceiver::new(FluteReceiverConfig {
        tsi: None,
        memory,
        max_files: 1000,
        points: ReedSolomonPoints::Reference,
    })
}

/// Puts what comes out together, and checks that no byte comes twice.
#[derive(Default)]
struct Files {
    parts: BTreeMap<u128, BTreeMap<u64, Bytes>>,
    received: Vec<u128>,
}

impl Files {
    fn drain(&mut self, receiver: &mut FluteReceiver) {
        while let Some(event) = receiver.poll_event() {
            match event {
                FluteEvent::Announced(file) => {
                    assert!(self.parts.insert(file.toi, BTreeMap::new()).is_none());
                }
                FluteEvent::Block { toi, offset, data } => {
                    let file = self.parts.get_mut(&toi).expect("it was announced");
                    assert!(file.insert(offset, data).is_none());
                }
                FluteEvent::Received { toi } => self.received.push(toi),
                FluteEvent::Refused(refusal) => panic!("{refusal:?}"),
            }
        }
    }

    fn bytes(&self, toi: u128) -> Vec<u8> {
        let mut all = Vec::new();
        for (offset, part) in &self.parts[&toi] {
            assert_eq!(*offset, all.len() as u64);
            all.extend_from_slice(part);
        }
        all
    }
}

fn run(plan: FecPlan, rounds: u32, objects: &[Bytes], loss: f64, seed: u64) -> FluteStatus {
    let mut draw = Stream::new(seed, "loss");
    let (mut receiver, mut files) = (receiver(64 << 20), Files::default());
    for datagram in datagrams(plan, rounds, objects) {
        if draw.below(1000) as f64 >= loss * 1000.0 {
            // Before the table is heard, packets are of no session.
            receiver.handle(&datagram).unwrap();
            files.drain(&mut receiver);
        }
    }
    for toi in &files.received {
        assert!(files.bytes(*toi) == objects[*toi as usize - 1], "seed {seed}: file {toi}");
    }
    assert!(receiver.held() == 0 || !receiver.status().is_over(), "seed {seed}");
    receiver.status()
}

/// Bytes of a seed.
fn of(seed: u64, length: usize) -> Bytes {
    bytes(&mut Stream::new(seed, "bytes"), length)
}

fn runs() -> u64 {
    std::env::var("FONTIS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(24)
}

#[test]
fn files_of_any_length_come_through_loss() {
    for seed in 0..runs() {
        let mut draw = Stream::new(seed, "flute");
        let scheme = FecScheme::ALL[draw.below(4) as usize];
        let loss = [0.0, 0.1, 0.2][draw.below(3) as usize];
        let size = 4 * (16 + draw.below(340)) as u16;
        let block = [Some(8 + draw.below(90) as u32), None][draw.below(2) as usize];
        // As much as loss takes and as chance may take more; without a code rounds have to do.
        let (repair, rounds) = match (scheme, loss > 0.0) {
            (FecScheme::NoCode, true) => (0, 14),
            (FecScheme::NoCode, false) => (0, 1),
            (_, false) => (10, 1),
            _ => (60, 4),
        };
        let plan = FecPlan::new(scheme, size, block, repair).unwrap();
        let objects: Vec<Bytes> = (0..1 + draw.below(4))
            .map(|_| {
                let most = [10, 3000, 100_000, 1_500_000][draw.below(4) as usize];
                let length = draw.below(most) as usize;
                bytes(&mut draw, length)
            })
            .collect();
        let status = run(plan, rounds, &objects, loss, seed);
        let note = format!("seed {seed}: {scheme} {size} {block:?} at {loss}: {status:?}");
        println!("{note}");
        assert!(status.is_over() && status.received == objects.len(), "{note}");
    }
}

#[test]
fn five_megabytes_come_through_a_fifth_of_loss_in_one_round() {
    let seed = 5_000_000;
    let objects = [of(seed, 5_000_000), of(seed, 1)];
    for (scheme, repair) in [(FecScheme::RaptorQ, 40), (FecScheme::Raptor, 60)] {
        let plan = FecPlan::new(scheme, 1400, None, repair).unwrap();
        let status = run(plan, 1, &objects[..1], 0.2, seed);
        assert_eq!(status.received, 1, "seed {seed}: {scheme}: {status:?}");
    }
    let plan = FecPlan::new(FecScheme::ReedSolomon, 1400, None, 60).unwrap();
    assert_eq!(run(plan, 1, &objects[..1], 0.2, seed).received, 1);
    let plan = FecPlan::new(FecScheme::NoCode, 1400, None, 0).unwrap();
    assert_eq!(run(plan, 1, &objects, 0.0, seed).received, 2);
    let status = run(plan, 1, &objects[..1], 0.2, seed);
    assert!(status.is_closed && !status.is_over(), "what lacks is known: {status:?}");
}

#[test]
fn packets_before_the_table_are_kept_and_one_session_is_followed() {
    let objects = [of(1, 20_000), Bytes::new()];
    let plan = FecPlan::new(FecScheme::RaptorQ, 1000, None, 0).unwrap();
    let all = datagrams(plan, 1, &objects);
    let is_table = |datagram: &&Vec<u8>| AlcPacket::parse(datagram).unwrap().header.toi == Some(0);
    let (tables, symbols): (Vec<_>, Vec<_>) = all.iter().partition(is_table);
    let config = FluteReceiverConfig {
        tsi: Some(7),
        memory: 1 << 20,
        max_files: 10,
        points: ReedSolomonPoints::Reference,
    };
    let (mut receiver, mut files) = (FluteReceiver::new(config), Files::default());
    for datagram in symbols {
        assert_eq!(receiver.handle(datagram), Ok(true));
    }
    assert_eq!(receiver.status().announced, 0);
    assert_eq!(receiver.handle(tables[0]), Ok(true));
    files.drain(&mut receiver);
    assert_eq!(files.received, [1, 2]);
    assert!(files.bytes(1) == objects[0] && files.bytes(2).is_empty());
    // A file whose content was wrong is received again.
    receiver.restart(1);
    assert!(!receiver.status().is_over());
    let mut other = FluteReceiver::new(FluteReceiverConfig { tsi: Some(8), ..config });
    assert!(all.iter().all(|datagram| other.handle(datagram) == Ok(false)));
}

#[test]
fn memory_has_a_bound_and_the_first_blocks_become_whole() {
    let objects: Vec<_> = (0..20).map(|seed| of(seed, 60_000)).collect();
    let plan = FecPlan::new(FecScheme::RaptorQ, 1000, Some(20), 0).unwrap();
    let all = datagrams(plan, 1, &objects);
    let (mut receiver, mut files) = (receiver(100_000), Files::default());
    // The packets of all files take turns: nothing of this is whole before most of it is there.
    let of = |toi: usize| {
        let is_own = move |datagram: &&Vec<u8>| {
            AlcPacket::parse(datagram).unwrap().header.toi == Some(toi as u128)
        };
        all.iter().filter(is_own).collect::<Vec<_>>()
    };
    let by_file: Vec<_> = (0..=objects.len()).map(of).collect();
    for _ in 0..20 {
        for turn in 0..60 {
            for (toi, own) in by_file.iter().enumerate() {
                let Some(datagram) = own.get(turn) else { continue };
                assert_eq!(receiver.handle(datagram), Ok(true), "file {toi}");
                assert!(receiver.held() <= 100_000);
                files.drain(&mut receiver);
            }
        }
    }
    assert!(receiver.status().forgotten > 0, "there was too much");
    assert_eq!(files.received.len(), objects.len(), "{:?}", receiver.status());
}

#[test]
fn a_file_with_blocks_beyond_the_memory_is_refused() {
    let objects = [of(1, 200_000), of(2, 1000)];
    let plan = FecPlan::new(FecScheme::RaptorQ, 1000, None, 0).unwrap();
    let mut receiver = receiver(100_000);
    for datagram in datagrams(plan, 1, &objects) {
        assert_eq!(receiver.handle(&datagram), Ok(true));
    }
    let events: Vec<_> = std::iter::from_fn(|| receiver.poll_event()).collect();
    assert!(
        matches!(&events[..], [FluteEvent::Refused(one), ..] if one.reason.contains("200000")),
        "{events:?}"
    );
    let FluteStatus { announced, received, refused, .. } = receiver.status();
    assert_eq!((announced, received, refused), (2, 1, 1));
}

#[test]
fn datagrams_that_were_changed_harm_nobody() {
    for seed in 0..runs() {
        let mut draw = Stream::new(seed, "flute");
        let scheme = FecScheme::ALL[draw.below(4) as usize];
        let objects = [bytes(&mut draw, 9000), bytes(&mut draw, 100)];
        let plan = FecPlan::new(scheme, 400, None, 0).unwrap();
        let mut receiver = receiver(50_000);
        for mut datagram in datagrams(plan, 2, &objects) {
            for _ in 0..draw.below(3) {
                let at = draw.below(datagram.len().min(40) as u64) as usize;
                datagram[at] = draw.below(256) as u8;
            }
            let _ = receiver.handle(&datagram);
            assert!(receiver.held() <= 50_000, "seed {seed}");
            while receiver.poll_event().is_some() {}
        }
    }
}

/// A table that comes in one packet.
fn table(instance: u32, files: &str) -> Vec<u8> {
    let xml = format!("<FDT-Instance Complete=\"true\">{files}</FDT-Instance>");
    let oti = FecOti::no_code(xml.len() as u64, 60_000, 1).unwrap().to_extension();
    let header = LctHeader {
        tsi: 7,
        toi: Some(0),
        fdt: Some(FdtExtension { version: 2, instance }),
        fti: Some(&oti),
        ..LctHeader::default()
    };
    let mut datagram = Vec::new();
    header.write(&mut datagram);
    datagram.extend_from_slice(&FecPayloadId { block: 0, esi: 0 }.to_bytes(FecScheme::NoCode));
    datagram.extend_from_slice(xml.as_bytes());
    datagram
}

#[test]
fn what_a_stranger_announces_has_a_bound() {
    let mut receiver = receiver(1 << 20);
    // Files that cannot be received, for ever, and one that could.
    for instance in 0..30 {
        let file = |i| format!("<File TOI=\"{}\"/>", instance * 100 + i + 1);
        let files: String = (0..100).map(file).collect();
        assert_eq!(receiver.handle(&table(instance, &files)), Ok(true));
        while receiver.poll_event().is_some() {}
    }
    let status = receiver.status();
    assert_eq!((status.announced, status.refused, status.is_complete), (1000, 1000, false));

    let refused = |file: &str, reason: &str| {
        let mut receiver = self::receiver(1 << 20);
        let file = format!("<File TOI=\"1\" Content-Location=\"file:///x\" {file}/>");
        assert_eq!(receiver.handle(&table(0, &file)), Ok(true));
        match receiver.poll_event() {
            Some(FluteEvent::Refused(refusal)) => {
                assert!(refusal.reason.contains(reason), "{}", refusal.reason);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(receiver.held(), 0);
    };
    // Sixteen million blocks of a byte, and a block of fifty thousand symbols of four bytes.
    refused(
        "Content-Length=\"16000000\" FEC-OTI-FEC-Encoding-ID=\"5\" \
         FEC-OTI-Encoding-Symbol-Length=\"1\" FEC-OTI-Maximum-Source-Block-Length=\"1\" \
         FEC-OTI-Max-Number-of-Encoding-Symbols=\"2\"",
        "bytes of memory",
    );
    refused(
        "Content-Length=\"200000\" FEC-OTI-FEC-Encoding-ID=\"6\" \
         FEC-OTI-Encoding-Symbol-Length=\"4\" FEC-OTI-Scheme-Specific-Info=\"AQABBA==\"",
        "64 bytes are the least",
    );
}
