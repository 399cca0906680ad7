//! A node of a swarm, and neighbours that say anything.
//!
//! The input is a head of three bytes (blocks, uploads, whether it is the origin), and commands of
//! three: what happens, the neighbour, and the block.

use fontis_proto::swarm::{SwarmConfig, SwarmMessage, SwarmNode};

/// Nothing panics, and a node sends nothing that it lacks, nor to who has it or is gone.
pub(crate) fn run(data: &[u8]) {
    let Some((&[blocks, uploads, origin], commands)) = data.split_first_chunk::<3>() else {
        return;
    };
    let (blocks, is_origin) = (u32::from(blocks), origin & 1 == 1);
    let config = SwarmConfig { blocks, uploads: usize::from(uploads % 16), is_origin };
    let mut node = SwarmNode::new(config, u64::from(origin));
    let mut neighbours = std::collections::BTreeSet::new();
    for &[what, who, block] in commands.as_chunks::<3>().0.iter().take(2000) {
        let (who, block) = (u32::from(who % 16), u32::from(block));
        match what % 13 {
            0 => {
                node.meet(who);
                neighbours.insert(who);
            }
            1 => {
                node.part(who);
                neighbours.remove(&who);
            }
            2 => node.hear(who, SwarmMessage::Has(block)),
            3 => node.hear(who, SwarmMessage::Coming(block)),
            4 => node.hear(who, SwarmMessage::Lost(block)),
            5 => node.hear(who, SwarmMessage::Gone(block)),
            6 => node.hear(who, SwarmMessage::Room(block & 1 == 1)),
            7 => {
                if let Some(upload) = node.next_upload() {
                    assert!(node.has(upload.block), "it is there");
                    assert!(neighbours.contains(&upload.to) && !node.is_served(upload.to));
                }
            }
            8 => node.sent(),
            9 => assert_eq!(node.wants(block), node.accept(block)),
            10 => node.came(block),
            11 => node.lost(block),
            _ => node.forget(block),
        }
        assert!(node.blocks().chain(node.coming()).all(|block| block < blocks));
        assert_eq!(node.is_complete(), node.blocks().count() == blocks as usize);
        let (_, _) = (node.is_needed(), node.can_go_on());
    }
}
