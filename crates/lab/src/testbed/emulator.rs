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

/// Carries packets between interfaces over ways, each on a thread of its own. Time is real: a
/// packet is due at a time that follows from its arrival alone, and leaves as soon after it as the
/// machine wakes up, never before.
#[derive(Debug)]
pub(super) struct Emulator {
    clock: Clock,
    lanes: Vec<Arc<Mutex<Lane>>>,
    stop: Arc<Stop>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// A way at work.
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
    /// Begins to carry. Each way takes the packets of some of the `ports`; its routes end at any of
    /// them. Times count from the start of `clock`.
    pub(super) fn start(
        clock: Clock,
        ports: Vec<Tun>,
        ways: Vec<(Way, Vec<usize>)>,
    ) -> Result<Self, TestbedError> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let event = event.map_err(|error| system("create a descriptor")(error.into()))?;
        let stop = Arc::new(Stop { flag: AtomicBool::new(false), event });
        let mut emulator = Self { clock, lanes: Vec::new(), stop, threads: Vec::new() };
        let ports: Arc<[Tun]> = ports.into();
        for (number, (way, from)) in ways.into_iter().enumerate() {
            let lane = Lane { way, lateness: LatenessRecorder::new(), unsent: 0 };
            let lane = Arc::new(Mutex::new(lane));
            emulator.lanes.push(Arc::clone(&lane));
            let (ports, stop) = (Arc::clone(&ports), Arc::clone(&emulator.stop));
            let mut carrier = Carrier { clock, lane, from, ports, stop, buffer: vec![] };
            let thread = std::thread::Builder::new().name(format!("testbed {number}"));
            let thread = thread.spawn(move || carrier.run());
            emulator.threads.push(thread.map_err(system("start a thread"))?);
        }
        Ok(emulator)
    }

    /// The time that links count.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// One of the ways.
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

/// The thread of a way.
struct Carrier {
    clock: Clock,
    lane: Arc<Mutex<Lane>>,
    /// The ports whose packets it takes.
    from: Vec<usize>,
    ports: Arc<[Tun]>,
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

    /// Reads a batch of each port; says whether there may be more.
    fn read(&mut self, lane: &mut Lane) -> io::Result<bool> {
        let mut more = false;
        for port in 0..self.from.len() {
            more |= self.read_port(lane, self.from[port])?;
        }
        Ok(more)
    }

    fn read_port(&mut self, lane: &mut Lane, port: usize) -> io::Result<bool> {
        for _ in 0..BATCH {
            self.buffer.resize(MAX_READ, 0);
            let read = self.ports[port].read(&mut self.buffer)?;
            let Some(length) = read else { return Ok(false) };
            // Read after the packet has come: a time before would let it leave early.
            let now = self.clock.now();
            let bytes = if length <= SMALL {
                self.buffer[..length].to_vec()
            } else {
                self.buffer.truncate(length);
                std::mem::take(&mut self.buffer)
            };
            lane.way.enter(now, bytes);
        }
        Ok(true)
    }

    /// Writes everything that is due. Packets that one super-packet stood for leave together if
    /// they are due together.
    fn release(&self, lane: &mut Lane) {
        let now = self.clock.now();
        let mut run: Option<(Time, Frame, Ecn, usize)> = None;
        while let Some((delivery, port)) = lane.way.leave(now) {
            let (at, packet) = (delivery.at, delivery.packet);
            if let Some((_, frame, ecn, of)) = &mut run
                && (*ecn, *of) == (packet.ecn, port)
                && !packet.corrupt
                && frame.join(&packet.payload)
            {
                continue;
            }
            if let Some((at, frame, ecn, port)) = run.take() {
                self.write(lane, at, &frame, ecn, port);
            }
            if packet.corrupt {
                let flip = lane.way.flipped_bits.next_u64();
                let bytes = packet.payload.damaged(packet.ecn, flip);
                lane.note(self.clock.now(), at, self.ports[port].write(&bytes, &[]));
            } else {
                run = Some((at, packet.payload, packet.ecn, port));
            }
        }
        if let Some((at, frame, ecn, port)) = run {
            self.write(lane, at, &frame, ecn, port);
        }
    }

    fn write(&self, lane: &mut Lane, due: Time, frame: &Frame, ecn: Ecn, port: usize) {
        let now = self.clock.now();
        let taken = frame.emit(ecn, |header, payload| self.ports[port].write(header, payload));
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
        let ports = self.from.iter().map(|port| self.ports[*port].as_fd());
        let sources = ports.chain([self.stop.event.as_fd()]);
        let mut sources: Vec<PollFd<'_>> =
            sources.map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN)).collect();
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
