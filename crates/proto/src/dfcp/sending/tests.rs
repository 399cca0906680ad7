use super::*;
use crate::dfcp::params::Params;

const SYMBOLS: u32 = 10;
const SYMBOL_SIZE: u16 = 64;
/// The only path.
const ONE: Carrier = Carrier { path: 0, room: 1200, answering: PathSet::ALL, early: PathSet::ALL };

/// A stream of so many blocks, all of whose source symbols have been sent.
fn sent(blocks: u32, loss: &LossModel) -> SendChannel {
    let block_size = SYMBOLS * u32::from(SYMBOL_SIZE);
    let (id, kind) = (0, LiveKind::Stream);
    let mut channel =
        SendChannel::live(id, kind, 0, None, Code::RaptorQ, SYMBOL_SIZE, block_size, blocks);
    channel.write(vec![7; (blocks * block_size) as usize].into());
    let account = Account::new(&Params::default(), None);
    let mut ahead = u64::MAX;
    for _ in 0..blocks {
        channel.prepare(loss, None, 1200, &account, &mut ahead);
        while channel.next_symbols(Pass::Mean, ONE).is_some() {}
    }
    channel
}

fn repair_asked(channel: &mut SendChannel) -> Vec<(u32, RepairJob)> {
    core::iter::from_fn(|| channel.next_want())
        .filter_map(|want| match want {
            Want::Repair { block, job } => Some((block, job)),
            Want::Data { .. } => None,
        })
        .collect()
}

#[test]
fn a_probe_has_repair_symbols_of_one_block_prepared_not_of_all_that_are_on_their_way() {
    let mut channel = sent(3, &LossModel::new());
    assert!(repair_asked(&mut channel).is_empty(), "source symbols need no preparation");

    for _ in 0..5 {
        assert!(channel.next_symbols(Pass::Probe, ONE).is_none(), "none is ready");
    }
    let mut asked = repair_asked(&mut channel);
    assert_eq!(asked.len(), 1);
    let (block, job) = asked.remove(0);
    assert_eq!(block, 0, "the oldest");

    channel.set_repair(block, job.run());
    let (symbols, _) = channel.next_symbols(Pass::Probe, ONE).expect("one symbol is ready");
    assert_eq!((symbols.block, symbols.esi, symbols.count), (0, SYMBOLS, 1));
    assert!(repair_asked(&mut channel).is_empty());
}

#[test]
fn a_block_that_lost_symbols_is_the_next_to_send_whatever_was_sent_since() {
    let loss = LossModel::new();
    let mut channel = sent(3, &loss);
    assert!(channel.next_symbols(Pass::Mean, ONE).is_none(), "nothing lacks");
    channel.resolved(0, 1, 2, false);
    channel.retarget(&loss);
    assert!(channel.next_symbols(Pass::Mean, ONE).is_none(), "repair is not there yet");
    let mut asked = repair_asked(&mut channel);
    let (block, job) = asked.remove(0);
    assert_eq!((block, asked.len()), (1, 0));
    channel.set_repair(block, job.run());
    let (symbols, _) = channel.next_symbols(Pass::Mean, ONE).expect("two were lost");
    assert_eq!((symbols.block, symbols.esi, symbols.count), (1, SYMBOLS, 2));
    assert!(channel.next_symbols(Pass::Mean, ONE).is_none());
}

#[test]
fn a_packet_holds_no_more_of_a_message_than_is_lacking() {
    let mut loss = LossModel::new();
    loss.observe(700, 300, 200);
    let block_size = SYMBOLS * u32::from(SYMBOL_SIZE);
    let kind = LiveKind::Message;
    let mut channel =
        SendChannel::live(0, kind, 0, None, Code::RaptorQ, SYMBOL_SIZE, block_size, 1);
    channel.write(vec![7; 40].into());
    channel.finish();
    let account = Account::new(&Params::default(), None);
    channel.prepare(&loss, None, 1200, &account, &mut 0);
    let (first, _) = channel.next_symbols(Pass::Mean, ONE).expect("it is there");
    assert!(channel.next_symbols(Pass::Tail, ONE).is_none(), "repair is not there yet");
    let (block, job) = repair_asked(&mut channel).remove(0);
    channel.set_repair(block, job.run());
    let copies = core::iter::from_fn(|| Some(channel.next_symbols(Pass::Tail, ONE)?.0.count));
    let packets: Vec<_> = core::iter::once(first.count).chain(copies).collect();
    assert!(packets.len() >= 4 && packets.iter().all(|count| *count == 1), "{packets:?}");
}

#[test]
fn objects_share_what_may_wait_for_the_peer_and_each_has_two_blocks_at_least() {
    let (loss, account) = (LossModel::new(), Account::new(&Params::default(), None));
    let shape = ObjectShape::partition(100 << 20, 1192, Code::RaptorQ);
    let mut ahead = 10 * u64::from(shape.block_size);
    let asked = |id: ChannelId, ahead: &mut u64| {
        let held = Held::default();
        let mut channel = SendChannel::object(id, shape, Code::RaptorQ, 0, None, 100, held);
        let mut asked = 0;
        loop {
            channel.prepare(&loss, None, 1200, &account, ahead);
            let wants: Vec<_> = core::iter::from_fn(|| channel.next_want()).collect();
            let before = asked;
            for want in wants {
                if let Want::Data { block } = want {
                    channel.supply(block, vec![7; shape.block_len(block) as usize].into());
                    asked += 1;
                }
            }
            while channel.next_symbols(Pass::Mean, ONE).is_some() {}
            if asked == before {
                return (asked, channel);
            }
        }
    };
    let (first, _kept) = asked(0, &mut ahead);
    let (second, _kept) = asked(2, &mut ahead);
    assert_eq!((first, second, ahead), (10, 2, 0));
}
