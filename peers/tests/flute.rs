//! Files over FLUTE, through loss, in both directions with the crate `flute`.

#[path = "../../crates/proto/tests/flute/session.rs"]
mod session;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use flute::core::{Oti, UDPEndpoint};
use flute::receiver::MultiReceiver;
use flute::receiver::writer::ObjectWriterBufferBuilder;
use flute::sender::{Config, ObjectDesc, Sender, TransferConfig};
use fontis_base::Stream;
use fontis_codes::ReedSolomonPoints;
use fontis_proto::flute::{FecPlan, FecScheme, FluteEvent, FluteReceiver, FluteReceiverConfig};

use crate::runs;
use session::{bytes, datagrams};

/// A session: how it is protected, what is lost, and what is sent.
#[derive(Debug)]
struct Case {
    scheme: FecScheme,
    symbol_size: u16,
    block: u32,
    repair: u32,
    rounds: u32,
    /// Packets of a hundred that are lost.
    loss: u64,
    lengths: Vec<usize>,
}

impl Case {
    fn new(stream: &mut Stream) -> Self {
        let scheme = FecScheme::ALL[stream.below(4) as usize];
        let loss = [0, 10, 20][stream.below(3) as usize];
        let symbol_size = 4 * (16 + stream.below(335)) as u16;
        let block = 8 + stream.below(120) as u32;
        // As much as loss takes and as chance may take more; without a code rounds have to do.
        let (repair, rounds) = match (scheme, loss) {
            (FecScheme::NoCode, 0) => (0, 1),
            (FecScheme::NoCode, _) => (0, 16),
            (_, 0) => (0, 1),
            _ => (60, 12),
        };
        // R10 has no code for fewer symbols.
        let least = if scheme == FecScheme::Raptor { 4 * usize::from(symbol_size) } else { 1 };
        let lengths = (0..1 + stream.below(3)).map(|_| {
            let most = [2_000, 40_000, 400_000][stream.below(3) as usize];
            least + stream.below(most) as usize
        });
        let lengths = lengths.collect();
        Self { scheme, symbol_size, block, repair, rounds, loss, lengths }
    }

    fn peer_oti(&self) -> Oti {
        let (size, block) = (self.symbol_size, self.block as u16);
        let repair = (self.block * self.repair).div_ceil(100) as u16;
        match self.scheme {
            FecScheme::NoCode => Oti::new_no_code(size, block),
            FecScheme::Raptor => Oti::new_raptor(size, block, repair, 1, 4).unwrap(),
            FecScheme::RaptorQ => Oti::new_raptorq(size, block, repair, 1, 4).unwrap(),
            FecScheme::ReedSolomon => {
                Oti::new_reed_solomon_rs28(size, block as u8, repair as u8).unwrap()
            }
        }
    }
}

fn endpoint() -> UDPEndpoint {
    UDPEndpoint::new(None, "224.0.0.1".to_owned(), 5000)
}

/// All datagrams of a session of the other implementation.
fn peers_datagrams(case: &Case, objects: &[Bytes]) -> Vec<Vec<u8>> {
    let mut sender = Sender::new(endpoint(), 7, &case.peer_oti(), &Config::default());
    for (i, object) in objects.iter().enumerate() {
        let location = url::Url::parse(&format!("file:///folder/file-{i}")).unwrap();
        let config =
            TransferConfig { max_transfer_count: case.rounds, ..TransferConfig::default() };
        let object =
            ObjectDesc::create_from_buffer(object.to_vec(), "x/y", &location, true, config);
        sender.add_object(0, object.unwrap()).unwrap();
    }
    let mut now = SystemTime::now();
    sender.publish(now).unwrap();
    let mut all = Vec::new();
    loop {
        match sender.read(now) {
            Some(datagram) => all.push(datagram),
            None if sender.get_objects_in_fdt().is_empty() => return all,
            None => {}
        }
        // Its table leaves again every second.
        now += Duration::from_millis(400);
    }
}

#[test]
fn files_of_the_other_implementation_are_received() {
    for seed in 0..runs(150) {
        let mut stream = Stream::new(seed, "flute in");
        let case = Case::new(&mut stream);
        println!("seed {seed}: {case:?}");
        let objects: Vec<_> = case.lengths.iter().map(|one| bytes(&mut stream, *one)).collect();
        let mut receiver = FluteReceiver::new(FluteReceiverConfig {
            tsi: None,
            memory: 64 << 20,
            max_files: 10,
            points: ReedSolomonPoints::Reference,
        });
        let mut files: BTreeMap<String, BTreeMap<u64, Bytes>> = BTreeMap::new();
        let (mut names, mut received) = (BTreeMap::new(), 0);
        for datagram in peers_datagrams(&case, &objects) {
            if stream.below(100) < case.loss {
                continue;
            }
            receiver.handle(&datagram).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            while let Some(event) = receiver.poll_event() {
                match event {
                    FluteEvent::Announced(file) => {
                        assert!(file.md5.is_some() && file.length.is_some());
                        names.insert(file.toi, file.location);
                    }
                    FluteEvent::Block { toi, offset, data } => {
                        files.entry(names[&toi].clone()).or_default().insert(offset, data);
                    }
                    FluteEvent::Received { .. } => received += 1,
                    FluteEvent::Refused(refusal) => panic!("seed {seed}: {refusal:?}"),
                }
            }
        }
        assert_eq!(received, objects.len(), "seed {seed}: {:?}", receiver.status());
        for (i, object) in objects.iter().enumerate() {
            let parts = &files[&format!("file:///folder/file-{i}")];
            let all: Vec<u8> = parts.values().flatten().copied().collect();
            assert!(all == *object, "seed {seed}: file {i}");
        }
    }
}

#[test]
fn files_are_received_by_the_other_implementation() {
    for seed in 0..runs(150) {
        let mut stream = Stream::new(seed, "flute out");
        let case = Case::new(&mut stream);
        println!("seed {seed}: {case:?}");
        let objects: Vec<_> = case.lengths.iter().map(|one| bytes(&mut stream, *one)).collect();
        let plan = FecPlan::new(case.scheme, case.symbol_size, Some(case.block), case.repair);
        let output = Rc::new(ObjectWriterBufferBuilder::new(true));
        let mut receiver = MultiReceiver::new(output.clone(), None, false);
        let now = SystemTime::now();
        for datagram in datagrams(plan.unwrap(), case.rounds, &objects) {
            if stream.below(100) >= case.loss {
                // It calls what comes after the end of an object an error.
                let _ = receiver.push(&endpoint(), &datagram, now);
            }
        }
        let output = output.objects.borrow();
        for (i, object) in objects.iter().enumerate() {
            let location = format!("file:///folder/file-{i}");
            let is_whole = output.iter().any(|one| {
                let one = one.borrow();
                one.complete && one.meta.content_location == location && one.data == object[..]
            });
            assert!(is_whole, "seed {seed}: file {i}");
        }
    }
}
