use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use fontis::udp::Clock;
use fontis_base::{Ecn, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::error::{TestbedError, system};
use super::frame::Frame;
use super::system as sys;
use super::tun::{MAX_READ, Tun};
use super::way::Way;
use crate::lateness::{Lateness, LatenessRecorder};

/// Carries packets between two interfaces over a way each, on a thread each. Time is real: what
/// enters is due at a time that follows from its arrival alone, and leaves as soon after it as the
/// machine wakes up, never before.
#[derive(Debug)]
pub(super) struct Emulator {
    clock: Clock,
    lanes: Vec<Arc<Mutex<Lane>>>,
    stop: Arc<Stop>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// One direction at work.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) way: Way,
    lateness: LatenessRecorder,
    /// Packets that the system did not take.
    unsent: u64,
}

#[derive(Debug)]
struct Stop {
    flag: AtomicBool,
    /// Wakes both threads.
    event: OwnedFd,
}

/// The number of packets that are read before due ones are released.
const BATCH: usize = 32;
/// Packets up to this size are copied to a buffer of their size; larger ones keep the buffer into
/// which they were read.
const SMALL: usize = 16 << 10;

impl Emulator {
    /// Begins to carry what `a` gives to `b` by the first way, and what `b` gives to `a` by the
    /// second. Times count from the start of `clock`.
    pub(super) fn start(
        clock: Clock,
        a: Tun,
        b: Tun,
        ways: [Way; 2],
    ) -> Result<Self, TestbedError> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let event = event.map_err(|error| system("create a descriptor")(error.into()))?;
        let stop = Arc::new(Stop { flag: AtomicBool::new(false), event });
        let mut emulator = Self { clock, lanes: Vec::new(), stop, threads: Vec::new() };
        let [a, b] = [Arc::new(a), Arc::new(b)];
        let ends = [(&a, &b, "forth"), (&b, &a, "back")];
        for (way, (from, to, name)) in ways.into_iter().zip(ends) {
            let lane = Lane { way, lateness: LatenessRecorder::new(), unsent: 0 };
            let lane = Arc::new(Mutex::new(lane));
            emulator.lanes.push(Arc::clone(&lane));
            let (from, to) = (Arc::clone(from), Arc::clone(to));
            let mut carrier =
                Carrier { clock, lane, from, to, stop: Arc::clone(&emulator.stop), buffer: vec![] };
            let thread = std::thread::Builder::new().name(format!("testbed {name}"));
            let thread = thread.spawn(move || carrier.run());
            emulator.threads.push(thread.map_err(system("start a thread"))?);
        }
        Ok(emulator)
    }

    /// The time that links count.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// One of the two directions.
    pub(super) fn lane(&self, index: usize) -> MutexGuard<'_, Lane> {
        lock(&self.lanes[index])
    }

    /// Returns true if a thread has ended early.
    pub(super) fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Stops carrying. What is on its way is lost.
    pub(super) fn stop(mut self) -> Result<(), TestbedError> {
        self.join().map_err(system("read from or wait for a TUN interface"))
    }

    fn join(&mut self) -> io::Result<()> {
        self.stop.flag.store(true, Ordering::Release);
        // A write of eight bytes to a counter that nobody reads cannot block.
        let _ = rustix::io::write(&self.stop.event, &1u64.to_ne_bytes());
        let mut result = Ok(());
        for thread in self.threads.drain(..) {
            let end = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(end);
        }
        result
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.join();
        }
    }
}

impl Lane {
    /// The lateness of packets.
    pub(super) fn lateness(&self) -> Lateness {
        self.lateness.summary()
    }

    /// Packets that crossed the way but that the system did not take.
    pub(super) const fn unsent(&self) -> u64 {
        self.unsent
    }
}

fn lock(lane: &Mutex<Lane>) -> MutexGuard<'_, Lane> {
    lane.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread of a direction.
struct Carrier {
    clock: Clock,
    lane: Arc<Mutex<Lane>>,
    from: Arc<Tun>,
    to: Arc<Tun>,
    stop: Arc<Stop>,
    /// Room for the next read.
    buffer: Vec<u8>,
}

impl Carrier {
    fn run(&mut self) -> io::Result<()> {
        sys::sleep_exactly();
        sys::take_precedence();
        while !self.stop.flag.load(Ordering::Acquire) {
            let lane = Arc::clone(&self.lane);
            let mut lane = lock(&lane);
            let more = self.read(&mut lane)?;
            self.release(&mut lane);
            let next = lane.way.next();
            drop(lane);
            if !more {
                self.wait(next)?;
            }
        }
        Ok(())
    }

    /// Reads a batch; says whether there may be more.
    fn read(&mut self, lane: &mut Lane) -> io::Result<bool> {
        for _ in 0..BATCH {
            self.buffer.resize(MAX_READ, 0);
            let Some(length) = self.from.read(&mut self.buffer)? else { return Ok(false) };
            // Read after the packet has come: a time before would let it leave early.
            let now = self.clock.now();
            let bytes = if length <= SMALL {
                self.buffer[..length].to_vec()
            } else {
                self.buffer.truncate(length);
                std::mem::take(&mut self.buffer)
            };
            if let Some(delivery) = lane.way.enter(now, bytes) {
                self.write(lane, now, &delivery.packet.payload, delivery.packet.ecn);
            }
        }
        Ok(true)
    }

    /// Writes everything that is due. Packets that one super-packet stood for leave together if
    /// they are due together.
    fn release(&self, lane: &mut Lane) {
        let now = self.clock.now();
        let mut run: Option<(Time, Frame, Ecn)> = None;
        while let Some(delivery) = lane.way.leave(now) {
            let (at, packet) = (delivery.at, delivery.packet);
            if let Some((_, frame, ecn)) = &mut run
                && *ecn == packet.ecn
                && !packet.corrupt
                && frame.join(&packet.payload)
            {
                continue;
            }
            if let Some((at, frame, ecn)) = run.take() {
                self.write(lane, at, &frame, ecn);
            }
            if packet.corrupt {
                let flip = lane.way.flipped_bits.next_u64();
                let bytes = packet.payload.damaged(packet.ecn, flip);
                lane.note(self.clock.now(), at, self.to.write(&bytes, &[]));
            } else {
                run = Some((at, packet.payload, packet.ecn));
            }
        }
        if let Some((at, frame, ecn)) = run {
            self.write(lane, at, &frame, ecn);
        }
    }

    fn write(&self, lane: &mut Lane, due: Time, frame: &Frame, ecn: Ecn) {
        let now = self.clock.now();
        let taken = frame.emit(ecn, |header, payload| self.to.write(header, payload));
        lane.note(now, due, taken);
    }

    /// Sleeps until something arrives or is due.
    fn wait(&self, next: Option<Time>) -> io::Result<()> {
        let timeout = match next.map(|at| core::time::Duration::from(at.since(self.clock.now()))) {
            Some(core::time::Duration::ZERO) => return Ok(()),
            Some(wait) => Some(Timespec {
                tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: wait.subsec_nanos().into(),
            }),
            None => None,
        };
        let mut sources = [
            PollFd::from_borrowed_fd(self.from.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.stop.event.as_fd(), PollFlags::IN),
        ];
        match poll(&mut sources, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Lane {
    fn note(&mut self, now: Time, due: Time, taken: bool) {
        self.unsent += u64::from(!taken);
        self.lateness.record(now.since(due));
    }
}
