//! Machines, tasks and time in one thread: nothing happens but by the seed.
//!
//! A task belongs to a machine; ending a machine's process drops its tasks. When no task can go on,
//! the time of the next event comes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use fontis_base::Stream;

use super::disk::Disk;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;
type Act = Box<dyn FnOnce()>;

/// Tasks that are polled without time going on: more means that they wake each other for ever.
const AT_ONCE: u32 = 1_000_000;

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

struct World {
    now: Duration,
    sequence: u64,
    events: BTreeMap<(Duration, u64), Event>,
    tasks: BTreeMap<u64, Task>,
    ready: Arc<Mutex<Vec<u64>>>,
    machines: Vec<Option<Disk>>,
    running: Option<usize>,
    random: Stream,
    /// Whether the order in which tasks were woken decides nothing.
    is_sorted: bool,
}

struct Task {
    machine: usize,
    work: Option<Work>,
}

enum Event {
    Wake(Waker),
    Act(Act),
}

/// Makes a task ready.
struct Ready {
    task: u64,
    ready: Arc<Mutex<Vec<u64>>>,
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if !ready.contains(&self.task) {
            ready.push(self.task);
        }
    }
}

fn with<T>(act: impl FnOnce(&mut World) -> T) -> Option<T> {
    WORLD.with_borrow_mut(|world| world.as_mut().map(act))
}

/// A world that is there until it is dropped.
pub(crate) struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        let machines = with(|world| world.machines.len()).unwrap_or(0);
        (0..machines).for_each(end);
        let world = WORLD.take();
        super::net::clear();
        drop(world);
    }
}

/// Begins a world with machines that have these disks; one without has the system's.
pub(crate) fn begin(seed: u64, machines: Vec<Option<Disk>>) -> Running {
    let world = World {
        now: Duration::ZERO,
        sequence: 0,
        events: BTreeMap::new(),
        tasks: BTreeMap::new(),
        ready: Arc::default(),
        machines,
        running: None,
        random: Stream::new(seed, "world"),
        is_sorted: false,
    };
    WORLD.set(Some(world));
    Running
}

/// From now on the order in which tasks were woken decides nothing: a watch channel wakes those who
/// wait for it by a chance of its own.
pub(crate) fn sort() {
    with(|world| world.is_sorted = true);
}

/// The machine that runs.
pub(crate) fn machine() -> Option<usize> {
    with(|world| world.running).flatten()
}

pub(crate) fn now() -> Duration {
    with(|world| world.now).unwrap_or_default()
}

/// The present instant of a machine that runs.
pub(crate) fn instant() -> Option<Instant> {
    static BASE: OnceLock<Instant> = OnceLock::new();
    machine().map(|_| *BASE.get_or_init(Instant::now) + now())
}

/// The time of an instant.
pub(crate) fn time_of(at: Instant) -> Duration {
    let here = instant().unwrap_or(at);
    now() + at.saturating_duration_since(here)
}

/// Lets time go on for a machine that blocks; false if none runs.
pub(crate) fn pause(time: Duration) -> bool {
    with(|world| world.running.map(|_| world.now += time)).flatten().is_some()
}

/// Fills bytes that a machine wants to be random; false if none runs.
pub(crate) fn fill(bytes: &mut [u8]) -> bool {
    with(|world| world.running.map(|_| world.random.fill(bytes))).flatten().is_some()
}

/// A random number below `bound`.
pub(crate) fn below(bound: u64) -> u64 {
    with(|world| world.random.below(bound)).unwrap_or(0)
}

/// Runs `act` as the machine with this number.
pub(crate) fn on<T>(number: usize, act: impl FnOnce() -> T) -> T {
    let found = with(|world| {
        (world.running.replace(number), world.machines.get(number).cloned().flatten())
    });
    let (before, disk) = found.unwrap_or_default();
    let result = match disk {
        Some(disk) => disk.while_current(act),
        None => act(),
    };
    with(|world| world.running = before);
    result
}

/// Begins a task of the machine that runs.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    with(|world| {
        world.sequence += 1;
        let (number, machine) = (world.sequence, world.running.unwrap_or(0));
        world.tasks.insert(number, Task { machine, work: Some(Box::pin(work)) });
        world.ready.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    });
}

/// Ends the process of a machine: its tasks are dropped where they are.
pub(crate) fn end(number: usize) {
    let tasks = with(|world| {
        let of = |(id, task): (&u64, &Task)| (task.machine == number).then_some(*id);
        let ids: Vec<_> = world.tasks.iter().filter_map(of).collect();
        ids.into_iter().filter_map(|id| world.tasks.remove(&id)).collect::<Vec<_>>()
    });
    on(number, || drop(tasks));
}

/// The tasks of a machine.
pub(crate) fn tasks(number: usize) -> usize {
    let of = |world: &mut World| world.tasks.values().filter(|task| task.machine == number).count();
    with(of).unwrap_or(0)
}

/// Runs `act` after some time, on no machine.
pub(crate) fn after(time: Duration, act: impl FnOnce() + 'static) {
    with(|world| world.add(world.now + time, Event::Act(Box::new(act))));
}

/// Waits until a time.
pub(crate) fn until(at: Duration) -> impl Future<Output = ()> + Send {
    let mut is_set = false;
    std::future::poll_fn(move |context| {
        if now() >= at {
            return Poll::Ready(());
        }
        if !std::mem::replace(&mut is_set, true) {
            wake_at(at, context.waker().clone());
        }
        Poll::Pending
    })
}

pub(crate) fn wake_at(at: Duration, waker: Waker) {
    with(|world| world.add(at, Event::Wake(waker)));
}

/// Runs until `is_over`, or nothing can happen any more, or `most` has passed; returns whether it
/// is over.
pub(crate) fn run(most: Duration, is_over: impl Fn() -> bool) -> bool {
    let end = now() + most;
    let mut polls = 0;
    while !is_over() {
        if let Some((id, machine, work)) = with(World::next_task).flatten() {
            polls += 1;
            assert!(polls < AT_ONCE, "tasks wake each other and no time passes");
            poll(id, machine, work);
            continue;
        }
        polls = 0;
        match with(|world| world.next_event(end)).flatten() {
            Some(Event::Wake(waker)) => waker.wake(),
            Some(Event::Act(act)) => act(),
            None => return is_over(),
        }
    }
    true
}

fn poll(id: u64, machine: usize, mut work: Work) {
    let ready = with(|world| world.ready.clone()).unwrap_or_default();
    let waker = Waker::from(Arc::new(Ready { task: id, ready }));
    let polled = on(machine, || work.as_mut().poll(&mut Context::from_waker(&waker)));
    let task = with(|world| match polled {
        Poll::Ready(()) => world.tasks.remove(&id),
        Poll::Pending => {
            // Unless the process has ended meanwhile.
            let task = world.tasks.get_mut(&id)?;
            task.work = Some(work);
            None
        }
    });
    on(machine, || drop(task));
}

impl World {
    fn add(&mut self, at: Duration, event: Event) {
        self.sequence += 1;
        self.events.insert((at.max(self.now), self.sequence), event);
    }

    /// A task that can go on, by chance.
    fn next_task(&mut self) -> Option<(u64, usize, Work)> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_sorted {
            ready.sort_unstable();
        }
        while !ready.is_empty() {
            let at = self.random.below(ready.len() as u64) as usize;
            let id = ready.remove(at);
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            if let Some(work) = task.work.take() {
                return Some((id, task.machine, work));
            }
        }
        None
    }

    fn next_event(&mut self, end: Duration) -> Option<Event> {
        let at = self.events.first_key_value().map_or(end, |((at, _), _)| *at);
        self.now = self.now.max(at.min(end));
        if at > end { None } else { self.events.pop_first().map(|(_, event)| event) }
    }
}
