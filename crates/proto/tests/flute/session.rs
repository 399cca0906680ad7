//! A sender's session as its datagrams. Tests with other implementations include it, too.

use std::collections::BTreeMap;

use bytes::Bytes;
use fontis_base::{Rate, Stream, Time};
use fontis_proto::flute::{
    FdtFile, FecBlockEncoder, FecPayloadId, FecPlan, FluteSender, FluteSenderConfig, FluteTransmit,
};

/// Random bytes.
pub(crate) fn bytes(stream: &mut Stream, length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    stream.fill(&mut bytes);
    bytes.into()
}

fn session(plan: FecPlan, rounds: u32, objects: &[Bytes]) -> FluteSender {
    let file = |(i, object): (usize, &Bytes)| FdtFile {
        toi: i as u128 + 1,
        location: format!("file:///folder/file-{i}"),
        length: Some(object.len() as u64),
        md5: None,
        oti: Some(plan.oti(object.len() as u64).unwrap()),
    };
    let config = FluteSenderConfig {
        tsi: 7,
        plan,
        rate: Rate::from_mbps(50),
        rounds: Some(rounds),
        expires: u32::MAX,
    };
    FluteSender::new(config, objects.iter().enumerate().map(file).collect()).unwrap()
}

/// All datagrams of a session, in their order.
pub(crate) fn datagrams(plan: FecPlan, rounds: u32, objects: &[Bytes]) -> Vec<Vec<u8>> {
    let mut sender = session(plan, rounds, objects);
    let mut encoders = BTreeMap::new();
    let (mut now, mut all) = (Time::ZERO, Vec::new());
    while !sender.is_over() {
        now = now.max(sender.timeout());
        while let Some(transmit) = sender.poll(now) {
            all.push(match transmit {
                FluteTransmit::Datagram(datagram) => datagram.to_vec(),
                FluteTransmit::Symbol { file, block, esi, is_last, .. } => {
                    let oti = plan.oti(objects[file].len() as u64).unwrap();
                    let encoder = encoders.entry((file, block)).or_insert_with(|| {
                        let own = oti.block(block).unwrap();
                        let range = own.range.start as usize..own.range.end as usize;
                        let data = objects[file].slice(range);
                        FecBlockEncoder::new(&oti, own, data, plan.points()).unwrap()
                    });
                    let symbol = encoder.symbol(esi).unwrap();
                    let mut datagram = Vec::new();
                    let id = FecPayloadId { block, esi };
                    sender.write(file, id, is_last, &symbol, &mut datagram);
                    datagram
                }
            });
        }
    }
    all
}
