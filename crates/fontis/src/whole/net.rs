//! A network that loses, repeats, reorders, delays and changes datagrams, and moves machines.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use fontis_base::{Ecn, Stream};

use super::world;
use crate::udp::Batch;

/// Datagrams that a socket holds before it drops.
const QUEUE: usize = 1000;

thread_local! {
    static NET: RefCell<Option<Net>> = const { RefCell::new(None) };
}

/// What the network does to datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trouble {
    /// The time of a way, and the most that is added to it.
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
    /// Of a thousand datagrams, those that are lost, repeated, and changed.
    pub(crate) loss: u64,
    pub(crate) repeated: u64,
    pub(crate) changed: u64,
    /// Of a thousand datagrams, those of which somebody on the way sends changed copies, sends them
    /// back, or sends them again later.
    pub(crate) hostile: u64,
}

impl Trouble {
    /// Some trouble, by chance.
    pub(crate) fn any(random: &mut Stream) -> Self {
        let mut of_thousand = |most| [0, 0, random.below(most)][random.below(3) as usize];
        Self {
            loss: of_thousand(200),
            repeated: of_thousand(100),
            changed: of_thousand(50),
            hostile: of_thousand(300),
            delay: Duration::from_micros(of_thousand(100_000)),
            jitter: Duration::from_micros(of_thousand(30_000)),
        }
    }

    /// Whether nothing is taken or changed. A delay that varies by much more than its least is
    /// taken for a queue, and the rate for too high.
    pub(crate) fn is_smooth(&self) -> bool {
        self.jitter * 10 <= self.delay
            && self.loss + self.repeated + self.changed + self.hostile == 0
    }
}

struct Net {
    trouble: Trouble,
    random: Stream,
    sockets: BTreeMap<SocketAddr, Arc<Mutex<State>>>,
    /// The addresses of machines as others see them.
    mapped: BTreeMap<SocketAddr, SocketAddr>,
    /// No datagram arrives before this time.
    silent_until: Duration,
    /// None that such an address sends or is to get, either.
    cut_until: BTreeMap<IpAddr, Duration>,
    /// What is added to the way from or to such an address.
    detours: BTreeMap<IpAddr, Duration>,
    next_port: u16,
    /// What went by, for the hostile.
    recorded: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
    digest: blake3::Hasher,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(SocketAddr, Ecn, Vec<u8>)>,
    is_set: bool,
    waker: Option<Waker>,
    /// The signal that its driver waits for, if that is another socket's.
    main: Option<Signal>,
}

/// A socket of a simulated machine; it is gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Socket {
    address: SocketAddr,
    signal: Signal,
}

/// Wakes a driver.
#[derive(Clone)]
pub(crate) struct Signal(Arc<Mutex<State>>);

impl std::fmt::Debug for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signal")
    }
}

fn with<T>(act: impl FnOnce(&mut Net) -> T) -> Option<T> {
    NET.with_borrow_mut(|net| net.as_mut().map(act))
}

/// Begins a network.
pub(crate) fn begin(seed: u64, trouble: Trouble) {
    NET.set(Some(Net {
        trouble,
        random: Stream::new(seed, "net"),
        sockets: BTreeMap::new(),
        mapped: BTreeMap::new(),
        silent_until: Duration::ZERO,
        cut_until: BTreeMap::new(),
        detours: BTreeMap::new(),
        next_port: 40_000,
        recorded: Vec::new(),
        digest: blake3::Hasher::new(),
    }));
}

/// Ends the network.
pub(crate) fn clear() {
    drop(NET.take());
}

/// What distinguishes two runs: the times, places and bytes of all datagrams.
pub(crate) fn digest() -> blake3::Hash {
    with(|net| net.digest.finalize()).unwrap_or_else(|| blake3::hash(b""))
}

/// The network carries nothing for some time.
pub(crate) fn silence(time: Duration) {
    let end = world::now() + time;
    with(|net| net.silent_until = end);
}

/// The network carries nothing from or to `address` for some time.
pub(crate) fn cut(address: IpAddr, time: Duration) {
    let end = world::now() + time;
    with(|net| net.cut_until.insert(address, end));
}

/// The way from or to `address` takes so much longer from now on.
pub(crate) fn slow(address: IpAddr, time: Duration) {
    with(|net| net.detours.insert(address, time));
}

/// Others see every machine but those at `fixed` at another port from now on.
pub(crate) fn rebind(fixed: &[SocketAddr]) {
    with(|net| {
        let moved: Vec<_> =
            net.sockets.keys().filter(|one| !fixed.contains(one)).copied().collect();
        for address in moved {
            net.next_port += 1;
            net.mapped.insert(address, SocketAddr::new(address.ip(), net.next_port));
        }
    });
}

/// The address that others see of the socket at `own`.
pub(crate) fn seen(own: SocketAddr) -> SocketAddr {
    with(|net| net.mapped.get(&own).copied()).flatten().unwrap_or(own)
}

impl Net {
    fn send(&mut self, from: SocketAddr, to: SocketAddr, ecn: Ecn, bytes: &[u8]) {
        let now = world::now();
        let seen = self.mapped.get(&from).copied().unwrap_or(from);
        self.digest.update(&now.as_nanos().to_le_bytes()).update(&seen.port().to_le_bytes());
        super::note(|| format!("{seen} sends {} bytes to {to}", bytes.len()));
        self.digest.update(&to.port().to_le_bytes()).update(bytes);
        if self.recorded.len() < 200 {
            self.recorded.push((seen, to, bytes.to_vec()));
        }
        if self.happens(self.trouble.hostile) {
            self.attack(seen, to, bytes);
        }
        if self.happens(self.trouble.loss) {
            return;
        }
        let copies = if self.happens(self.trouble.repeated) { 2 } else { 1 };
        for _ in 0..copies {
            let mut copy = bytes.to_vec();
            if self.happens(self.trouble.changed) {
                self.change(&mut copy);
            }
            self.deliver(seen, to, ecn, copy);
        }
    }

    /// Somebody who sees all packets and can send any, but takes none away.
    fn attack(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let mut copy = bytes.to_vec();
        match self.random.below(6) {
            0 => self.deliver(to, from, Ecn::Ce, copy),
            1 => {
                // From elsewhere, as if the peer had moved.
                let port = 1024 + self.random.below(60_000) as u16;
                self.deliver(SocketAddr::new(from.ip(), port), to, Ecn::NotEct, copy);
            }
            2 => {
                let number = self.random.below(self.recorded.len() as u64) as usize;
                let (from, to, bytes) = self.recorded[number].clone();
                self.deliver(from, to, Ecn::NotEct, bytes);
            }
            _ => {
                self.change(&mut copy);
                self.deliver(from, to, Ecn::NotEct, copy);
            }
        }
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let at = self.random.below(bytes.len() as u64) as usize;
        match self.random.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.extend_from_within(at..),
            // The first bytes decide what a datagram is taken for.
            2 => bytes[at.min(self.random.below(16) as usize)] ^= 1 << self.random.below(8),
            _ => bytes[at] = self.random.next_u64() as u8,
        }
        bytes.truncate(60_000);
    }

    fn happens(&mut self, of_thousand: u64) -> bool {
        self.random.below(1000) < of_thousand
    }

    fn deliver(&mut self, from: SocketAddr, to: SocketAddr, ecn: Ecn, bytes: Vec<u8>) {
        let jitter = self.random.below(self.trouble.jitter.as_micros() as u64 + 1);
        let detour = |address: SocketAddr| self.detours.get(&address.ip()).copied();
        let detour = detour(from).unwrap_or_default() + detour(to).unwrap_or_default();
        let delay = self.trouble.delay + Duration::from_micros(jitter) + detour;
        world::after(delay, move || arrive(from, to, ecn, bytes));
    }
}

fn arrive(from: SocketAddr, to: SocketAddr, ecn: Ecn, bytes: Vec<u8>) {
    let found = with(|net| {
        let now = world::now();
        let is_cut = |ip| net.cut_until.get(&ip).is_some_and(|end| now < *end);
        if now < net.silent_until || is_cut(from.ip()) || is_cut(to.ip()) {
            return None;
        }
        let own = net.mapped.iter().find(|(_, seen)| **seen == to).map(|(own, _)| *own);
        // Nobody is at the address that a machine had before.
        let is_left = own.is_none() && net.mapped.contains_key(&to);
        net.sockets.get(&own.unwrap_or(to)).filter(|_| !is_left).cloned()
    });
    let Some(state) = found.flatten() else { return };
    let signal = Signal(state);
    let mut state = signal.state();
    if state.waiting.len() < QUEUE {
        state.waiting.push_back((from, ecn, bytes));
    }
    drop(state);
    signal.set();
}

impl Socket {
    /// Binds a socket of the machine that runs; `None` if none does.
    pub(crate) fn bind(address: SocketAddr) -> Option<io::Result<Self>> {
        let machine = world::machine()?;
        with(|net| {
            let mut address = address;
            if address.ip().is_unspecified() {
                address.set_ip(IpAddr::from([10, 0, 0, machine as u8 + 1]));
            }
            if address.port() == 0 {
                net.next_port += 1;
                address.set_port(net.next_port);
            }
            if net.sockets.contains_key(&address) {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            let state = Arc::<Mutex<State>>::default();
            net.sockets.insert(address, state.clone());
            Ok(Self { address, signal: Signal(state) })
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn signal(&self) -> Signal {
        self.signal.clone()
    }

    /// What comes wakes the driver that waits for `main`, too.
    pub(crate) fn follow(&self, main: &Self) {
        self.signal.state().main = Some(main.signal());
    }

    pub(crate) fn receive(&self, batch: &mut Batch) -> bool {
        batch.clear();
        let mut state = self.signal.state();
        while let Some((from, ecn, bytes)) = state.waiting.front() {
            if !batch.put(bytes, *from, self.address.ip(), *ecn) {
                return true;
            }
            state.waiting.pop_front();
        }
        false
    }

    pub(crate) fn send(&self, to: SocketAddr, ecn: Ecn, bytes: &[u8], segment: Option<usize>) {
        with(|net| {
            for one in bytes.chunks(segment.unwrap_or(bytes.len()).max(1)) {
                net.send(self.address, to, ecn, one);
            }
        });
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        with(|net| net.sockets.remove(&self.address));
    }
}

impl Signal {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self) {
        let mut state = self.state();
        state.is_set = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        let main = state.main.clone();
        drop(state);
        if let Some(main) = main {
            main.set();
        }
    }

    /// Waits until it is set, or for a time.
    pub(crate) async fn wait(&self, at: Option<Instant>) {
        let at = at.map(world::time_of);
        let (mut is_timed, mut is_polled) = (false, false);
        std::future::poll_fn(|context| {
            let mut state = self.state();
            // Others have their turn in any case.
            let is_first = !std::mem::replace(&mut is_polled, true);
            let is_due = state.is_set || at.is_some_and(|at| at <= world::now());
            if is_due && is_first {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if is_due {
                state.is_set = false;
                return Poll::Ready(());
            }
            state.waker = Some(context.waker().clone());
            drop(state);
            if let Some(at) = at.filter(|_| !std::mem::replace(&mut is_timed, true)) {
                world::wake_at(at, context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}
