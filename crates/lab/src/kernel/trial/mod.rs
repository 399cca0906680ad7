//! Two congestion controls beside each other on a machine that is at work: new connections have one
//! or the other by chance, and what became of each is compared.
//!
//! Start here: [`KernelTrial::begin`] loads the algorithm and remembers the default;
//! [`KernelTrial::step`] is to be called until the time is over; [`KernelTrial::end`] restores the
//! default and gives the [`TrialOutcome`].
//!
//! The means is the default of the network namespace (`net.ipv4.tcp_congestion_control`): it
//! changes in short slots of random length, and a connection keeps what the default was when it
//! began.
//! Accepted connections have it too, unless their listener chose for itself. That works on every
//! kernel which can load the algorithm; a program at the sockets of a cgroup would need the second
//! version of cgroups, and one that picks in the algorithm itself would have to contain the other.
//!
//! The kernel tells at the end of each connection what it counted (`sock_diag(7)`). It does not
//! tell the algorithm then, so lists of all connections are read in between: one that is shorter
//! than the time between two lists is left out, and counted.

mod diag;
mod outcome;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use fontis_base::Stream;

use super::error::{KernelError, system};
use super::struct_ops::{self, Life};
use super::{is_loaded, object};
use crate::thread_time::thread_time;
pub use diag::Ended;
use diag::{Listener, Lister};
pub use outcome::{Class, Comparison, TrialOutcome};

/// The default of the network namespace of this thread.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// The shortest and the longest time for which the default stays.
const SLOT: [u64; 2] = [50, 150];
/// The time between two lists of connections, if they are quickly read.
const LIST: Duration = Duration::from_millis(20);

/// A trial on its way.
#[derive(Debug)]
pub struct KernelTrial {
    algorithm: String,
    other: String,
    share: f64,
    /// Keeps the algorithm in the kernel, if it was not there before.
    _own: Option<std::os::fd::OwnedFd>,
    listener: Listener,
    lister: Lister,
    stream: Stream,
    present: bool,
    slot_end: Instant,
    next_list: Instant,
    /// Algorithms of connections that have not ended, by cookie.
    algorithms: HashMap<u64, String>,
    ended: Vec<(Arm, Ended)>,
    left_out: u64,
    is_restored: bool,
}

/// A side of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    Tried,
    Other,
}

impl KernelTrial {
    /// Begins: loads the algorithm if it is not loaded, for the time of the trial, and gives it to
    /// a share of new connections in the network namespace of this thread.
    pub fn begin(algorithm: &str, share: f64, seed: u64) -> Result<Self, KernelError> {
        let object = object(algorithm)?;
        let other = default()?;
        if other == algorithm {
            return Err(KernelError::Default(algorithm.to_owned()));
        }
        let listener = Listener::open()?;
        let lister = Lister::open()?;
        // In other namespaces than the first only what users may choose can be the default.
        let life = Life::OfDescriptor { open: true };
        let own = match is_loaded(algorithm)? {
            true => None,
            false => struct_ops::register(&object, algorithm, life)?,
        };
        let mut trial = Self {
            algorithm: algorithm.to_owned(),
            other,
            share,
            _own: own,
            listener,
            lister,
            stream: Stream::new(seed, "slots of a trial"),
            present: false,
            slot_end: Instant::now(),
            next_list: Instant::now(),
            algorithms: HashMap::new(),
            ended: Vec::new(),
            left_out: 0,
            is_restored: false,
        };
        trial.choose()?;
        Ok(trial)
    }

    /// The algorithm that connections have without the trial.
    pub fn other(&self) -> &str {
        &self.other
    }

    /// Goes on for some 10 ms.
    pub fn step(&mut self) -> Result<(), KernelError> {
        let now = Instant::now();
        if now >= self.slot_end {
            self.choose()?;
        }
        if now >= self.next_list {
            let began = thread_time();
            for (cookie, algorithm) in self.lister.list()? {
                self.algorithms.insert(cookie, algorithm);
            }
            // Reading may take a twentieth of one processor. Time in which others had it does not
            // count: a busy machine would be looked at too seldom.
            self.next_list = Instant::now() + LIST.max(20 * (thread_time() - began));
        }
        self.take()?;
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    }

    /// Begins a slot.
    fn choose(&mut self) -> Result<(), KernelError> {
        let is_tried = self.stream.unit() < self.share;
        let name = if is_tried { &self.algorithm } else { &self.other };
        fs::write(DEFAULT, name).map_err(system("set net.ipv4.tcp_congestion_control"))?;
        self.present = is_tried;
        let milliseconds = SLOT[0] + self.stream.below(SLOT[1] - SLOT[0] + 1);
        self.slot_end = Instant::now() + Duration::from_millis(milliseconds);
        Ok(())
    }

    /// Takes what the kernel tells of connections that ended.
    fn take(&mut self) -> Result<(), KernelError> {
        for ended in self.listener.ended()? {
            let algorithm = self.algorithms.remove(&ended.cookie);
            // What only received tells nothing of its own algorithm; a SYN counts as a byte.
            if ended.acked <= 1 {
                continue;
            }
            match algorithm {
                Some(name) if name == self.algorithm => self.ended.push((Arm::Tried, ended)),
                Some(name) if name == self.other => self.ended.push((Arm::Other, ended)),
                // The application chose another.
                Some(_) => {}
                None => self.left_out += 1,
            }
        }
        Ok(())
    }

    fn restore(&mut self) -> Result<(), KernelError> {
        if self.is_restored {
            return Ok(());
        }
        fs::write(DEFAULT, &self.other)
            .map_err(system("restore net.ipv4.tcp_congestion_control"))?;
        self.is_restored = true;
        Ok(())
    }

    /// Ends: restores the default. Connections that are open keep what they have, and are not
    /// counted.
    pub fn end(mut self) -> Result<TrialOutcome, KernelError> {
        self.restore()?;
        self.take()?;
        let of = |arm: Arm| {
            let of = self.ended.iter().filter(|(of, _)| *of == arm);
            of.map(|(_, ended)| *ended).collect::<Vec<_>>()
        };
        let names = [self.algorithm.clone(), self.other.clone()];
        let lost = self.listener.lost();
        Ok(TrialOutcome::new(names, [of(Arm::Tried), of(Arm::Other)], self.left_out, lost))
    }
}

impl Drop for KernelTrial {
    fn drop(&mut self) {
        // Also after an error; there is nobody to tell.
        let _ = self.restore();
    }
}

fn default() -> Result<String, KernelError> {
    let text = fs::read_to_string(DEFAULT).map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => KernelError::Unsupported(format!("there is no {DEFAULT}")),
        _ => system("read net.ipv4.tcp_congestion_control")(error),
    })?;
    Ok(text.trim().to_owned())
}
