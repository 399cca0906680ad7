use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration as Span, Instant};

use fontis::udp::Clock;
use fontis_base::Time;

use crate::testbed::error::TestbedError;

/// The progress of all runners.
#[derive(Clone, Debug)]
pub struct Standing(Arc<Vec<Lane>>, Instant);

#[derive(Debug, Default)]
struct Lane {
    bytes: AtomicU64,
    end: Mutex<Option<Result<Span, String>>>,
}

impl Standing {
    pub(super) fn new(lanes: usize) -> Self {
        Self(Arc::new((0..lanes).map(|_| Lane::default()).collect()), Instant::now())
    }

    /// The number of runners.
    pub fn lanes(&self) -> usize {
        self.0.len()
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Span {
        self.1.elapsed()
    }

    /// Bytes that a runner's receiver has.
    pub fn bytes(&self, lane: usize) -> u64 {
        self.0[lane].bytes.load(Ordering::Relaxed)
    }

    /// The time of a finished runner, or the reason why it cannot finish.
    pub fn end(&self, lane: usize) -> Option<Result<Span, String>> {
        self.0[lane].end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_end(&self, lane: usize, end: Result<Span, String>) {
        *self.0[lane].end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }
}

/// The parameters of a runner.
pub(super) struct Track {
    /// The address of the sender.
    pub(super) from: SocketAddr,
    /// The receiver's addresses, one for each path.
    pub(super) to: Vec<IpAddr>,
    pub(super) file: Arc<Prize>,
    /// The receiver's path of the file.
    pub(super) arrival: PathBuf,
    pub(super) index: usize,
    pub(super) standing: Standing,
    pub(super) stop: Arc<AtomicBool>,
    /// Bytes that may be under way.
    pub(super) window: u64,
}

impl Track {
    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn moved(&self, bytes: u64) {
        self.standing.0[self.index].bytes.store(bytes, Ordering::Relaxed);
    }

    /// The receiver has had all, which hashes to this, after so long; or has failed.
    pub(super) fn arrived(&self, took: Span, hash: Result<String, String>) {
        let end = hash.and_then(|hash| {
            if hash == self.file.hash.to_hex().as_str() {
                self.moved(self.file.size);
                Ok(took)
            } else {
                Err("what arrived is not what was sent".to_owned())
            }
        });
        if !self.is_over() {
            self.standing.set_end(self.index, end);
        }
    }
}

/// The time at which the race begins.
pub(super) type Start = (Clock, Time);

pub(super) fn wait((clock, start): Start) -> Span {
    start.since(clock.now()).into()
}

/// The requested file.
#[derive(Debug)]
pub(super) struct Prize {
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) hash: blake3::Hash,
}

impl Prize {
    pub(super) fn open(path: &Path) -> Result<Self, TestbedError> {
        let wrong =
            |error: String| TestbedError::Unsupported(format!("{}: {error}", path.display()));
        let mut file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(wrong("only a file can be raced with".to_owned()));
        }
        let (mut hasher, mut buffer, mut size) = (blake3::Hasher::new(), vec![0; 1 << 20], 0);
        loop {
            let length = file.read(&mut buffer).map_err(|error| wrong(error.to_string()))?;
            if length == 0 {
                break;
            }
            size += length as u64;
            hasher.update(&buffer[..length]);
        }
        if size == 0 {
            return Err(wrong("it is empty: there is nothing to race with".to_owned()));
        }
        Ok(Self { path: path.to_owned(), size, hash: hasher.finalize() })
    }
}
