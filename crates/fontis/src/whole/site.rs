//! Servers that have an object, another one, or none, and that tell the truth or do not.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use fontis_base::{Rate, Stream};

use super::disk::Disk;
use super::transfers::lock;
use super::{note, world};
use crate::endpoint::{Accept, Endpoint, EndpointConfig};
use crate::hash_tree::HashTree;
use crate::identity::Identity;
use crate::source::Source;
use crate::transfer::{FileServer, ServerEvent};
use crate::url::Url;

/// The object's name.
pub(super) const NAME: &str = "object";
/// The object's sizes, and those of its blocks: more blocks than servers, or fewer.
const SIZES: [usize; 6] = [0, 5_000, 60_000, 150_000, 300_000, 500_000];
const BLOCKS: [u32; 3] = [4096, 16_384, 65_536];
/// Bytes that an endpoint may hold for its peers.
pub(super) const MEMORY: u64 = 1 << 20;
/// The port of the servers.
pub(super) const PORT: u16 = 4433;

/// How a server behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Honesty {
    Honest,
    /// It has another object under the name, and says so.
    Other,
    /// It describes the object, and sends wrong bytes.
    Liar,
    /// It does not have the object.
    Without,
    /// It cannot read the object any more from some time on.
    Failing,
    /// It takes every request, and answers none.
    Mute,
}

/// A server, and what it sends.
pub(super) struct Site {
    pub(super) honesty: Honesty,
    pub(super) address: SocketAddr,
    identity: Identity,
    pub(super) bytes: Vec<u8>,
    pub(super) tree: Arc<HashTree>,
    pub(super) rate: Option<Rate>,
    /// The time after which a failing one fails.
    fails_after: Duration,
    pub(super) endpoint: Arc<Mutex<Option<Endpoint>>>,
    /// When it began to send, last.
    pub(super) begun: Arc<Mutex<Option<Duration>>>,
    /// Whether all of its blocks are wrong.
    pub(super) lies_always: bool,
    /// Whether it stays away.
    pub(super) is_gone: bool,
}

/// An endpoint that may hold `memory`.
pub(super) fn endpoint(
    identity: &Identity,
    address: SocketAddr,
    accept: Accept,
    memory: u64,
) -> Endpoint {
    let config = EndpointConfig::new(*identity.secret());
    Endpoint::bind(address, EndpointConfig { accept, memory, ..config }).unwrap()
}

/// An object, and its tree.
pub(super) fn object(random: &mut Stream) -> (Vec<u8>, Arc<HashTree>) {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    let all = BYTES.get_or_init(|| {
        let mut bytes = vec![0; SIZES.into_iter().max().unwrap_or(0)];
        Stream::new(0, "sources").fill(&mut bytes);
        bytes
    });
    let size = SIZES[random.below(SIZES.len() as u64) as usize];
    let block = BLOCKS[random.below(BLOCKS.len() as u64) as usize];
    (all[..size].to_vec(), tree_of(&all[..size], block))
}

fn tree_of(bytes: &[u8], block: u32) -> Arc<HashTree> {
    Arc::new(HashTree::of_reader(bytes, block, |_| ()).unwrap())
}

/// Which blocks of the object are whole in its partial on a disk, as far as that goes.
pub(super) fn whole_blocks(disk: &Disk, content: &[u8], tree: &HashTree) -> Vec<bool> {
    let there = disk.read(&format!(".{NAME}.fontis-partial")).unwrap_or_default();
    let block = tree.block_size() as usize;
    content.chunks(block).zip(there.chunks(block)).map(|(one, other)| one == other).collect()
}

/// The bytes of blocks that are whole.
pub(super) fn whole_bytes(whole: &[bool], tree: &HashTree) -> u64 {
    let blocks = whole.iter().enumerate().filter(|(_, is_whole)| **is_whole);
    blocks.map(|(block, _)| tree.block_len(block as u64) as u64).sum()
}

impl Site {
    pub(super) fn new(
        number: usize,
        content: &[u8],
        tree: &Arc<HashTree>,
        random: &mut Stream,
    ) -> Self {
        use Honesty::{Failing, Honest, Liar, Mute, Other, Without};
        // One is always honest.
        let drawn = random.below(10) as usize;
        let honesty = match number {
            0 => Honest,
            _ => {
                let kinds = [Liar, Liar, Other, Without, Failing, Mute];
                kinds.get(drawn).copied().unwrap_or(Honest)
            }
        };
        let mut bytes = content.to_vec();
        let lies_always = random.below(2) == 0;
        if matches!(honesty, Liar | Other) && !bytes.is_empty() {
            let at = random.below(content.len() as u64) as usize;
            let (block, within) = (tree.block_size() as usize, at % tree.block_size() as usize);
            bytes[at] ^= 1;
            if lies_always {
                for wrong in bytes.chunks_mut(block) {
                    let last = wrong.len() - 1;
                    wrong[within.min(last)] = !wrong[within.min(last)];
                }
            }
        }
        // An empty object is nobody's lie.
        let is_no_lie = matches!(honesty, Liar | Other) && bytes == content;
        let honesty = if is_no_lie { Honest } else { honesty };
        let tree = match honesty {
            Other => tree_of(&bytes, tree.block_size()),
            _ => tree.clone(),
        };
        let rate = Rate::from_bps(200_000 << random.below(8));
        Self {
            honesty,
            address: SocketAddr::from(([10, 0, 0, number as u8 + 2], PORT)),
            identity: Identity::of_secret([10 + number as u8; 32].into()),
            bytes,
            tree,
            rate: [None, Some(rate)][random.below(2) as usize],
            fails_after: Duration::from_millis(random.below(1_500)),
            endpoint: Arc::default(),
            begun: Arc::default(),
            lies_always: lies_always && honesty == Liar,
            is_gone: false,
        }
    }

    /// Begins its process, on machine `number + 1`.
    pub(super) fn start(&self, number: usize) {
        world::on(number + 1, || {
            let endpoint = endpoint(&self.identity, self.address, Accept::Anyone, MEMORY);
            *lock(&self.endpoint) = Some(endpoint.clone());
            endpoint.limit(self.rate);
            if self.honesty == Honesty::Mute {
                world::spawn(async move {
                    let mut connections = Vec::new();
                    while let Some(connection) = endpoint.accept().await {
                        connections.push(connection);
                    }
                });
                return;
            }
            let source = self.source(number);
            let server = FileServer::of_parts(endpoint, source, self.tree.clone());
            let begun = self.begun.clone();
            world::spawn(server.run(move |event| {
                note(|| format!("server {number}: {event:?}"));
                if matches!(event, ServerEvent::Started { .. }) {
                    *lock(&begun) = Some(world::now());
                }
            }));
        });
    }

    /// What it reads.
    fn source(&self, number: usize) -> Source {
        // Mirrors have files of different ages.
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + number as u64);
        let name = if self.honesty == Honesty::Without { "another" } else { NAME };
        if self.honesty != Honesty::Failing {
            return Source::memory_of(name, self.bytes.clone(), modified).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        std::fs::write(&path, &self.bytes).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(modified).unwrap();
        let source = Source::open(&path).unwrap();
        world::after(self.fails_after, move || {
            file.set_len(0).unwrap();
            drop(folder);
        });
        source
    }

    pub(super) fn url(&self) -> Url {
        let key = self.identity.public();
        let host = self.address.ip().to_string();
        Url { host, port: PORT, path: Some(NAME.to_owned()), key, secret: None }
    }
}
