//! Tasks of a simulated machine, or of the runtime if none runs.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::world;
use crate::task::system;

/// The longest time that work on a thread waits for it, in microseconds.
const WAIT: u64 = 300;

/// The end of work that may block.
#[derive(Debug)]
pub(crate) enum Blocking<T> {
    System(JoinHandle<T>),
    Simulated(oneshot::Receiver<T>),
}

/// The work has not come to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished;

impl<T> Future for Blocking<T> {
    type Output = Result<T, Unfinished>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::System(work) => Pin::new(work).poll(context).map_err(|_| Unfinished),
            Self::Simulated(work) => Pin::new(work).poll(context).map_err(|_| Unfinished),
        }
    }
}

pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    match world::machine() {
        Some(_) => world::spawn(task),
        None => system::spawn(task),
    }
}

/// A short wait for a thread, then `work`.
fn later(work: impl FnOnce() + Send + 'static) {
    let at = world::now() + Duration::from_micros(world::below(WAIT));
    world::spawn(async move {
        world::until(at).await;
        work();
    });
}

pub(crate) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Blocking<T> {
    if world::machine().is_none() {
        return Blocking::System(system::blocking(work));
    }
    let (reply, done) = oneshot::channel();
    later(move || drop(reply.send(work())));
    Blocking::Simulated(done)
}

pub(crate) fn compute(work: impl FnOnce() + Send + 'static) {
    match world::machine() {
        Some(_) => later(work),
        None => system::compute(work),
    }
}

pub(crate) fn thread(
    name: &str,
    task: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    match world::machine() {
        Some(_) => world::spawn(task),
        None => return system::thread(name, task),
    }
    Ok(())
}

pub(crate) async fn sleep(time: Duration) {
    match world::machine() {
        Some(_) => world::until(world::now() + time).await,
        None => system::sleep(time).await,
    }
}

/// The result of `work`, or an error if it takes longer than `time`.
pub(crate) async fn timeout<F: Future>(time: Duration, work: F) -> Result<F::Output, Unfinished> {
    if world::machine().is_none() {
        return system::timeout(time, work).await.map_err(|_| Unfinished);
    }
    let end = world::until(world::now() + time);
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = end => Err(Unfinished),
    }
}

/// Tasks that end when it is dropped, and whose results are waited for.
pub(crate) enum Tasks<T> {
    System(system::Tasks<T>),
    Simulated(Together<T>),
}

/// Tasks of a simulated machine that end together.
pub(crate) struct Together<T> {
    left: usize,
    stop: watch::Sender<()>,
    tell: mpsc::UnboundedSender<Option<T>>,
    told: mpsc::UnboundedReceiver<Option<T>>,
}

impl<T: Send + 'static> Tasks<T> {
    pub(crate) fn new() -> Self {
        if world::machine().is_none() {
            return Self::System(system::Tasks::new());
        }
        let (tell, told) = mpsc::unbounded_channel();
        Self::Simulated(Together { left: 0, stop: watch::Sender::new(()), tell, told })
    }

    pub(crate) fn spawn(&mut self, work: impl Future<Output = T> + Send + 'static) {
        let tasks = match self {
            Self::System(tasks) => return drop(tasks.spawn(work)),
            Self::Simulated(tasks) => tasks,
        };
        tasks.left += 1;
        let (mut stopped, tell) = (tasks.stop.subscribe(), tasks.tell.clone());
        world::spawn(async move {
            let result = tokio::select! {
                biased;
                _ = stopped.changed() => None,
                result = work => Some(result),
            };
            // Who does not wait for it any more has stopped it.
            let _ = tell.send(result);
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::System(tasks) => tasks.is_empty(),
            Self::Simulated(tasks) => tasks.left == 0,
        }
    }

    pub(crate) async fn join_next(&mut self) -> Option<Result<T, Unfinished>> {
        match self {
            Self::System(tasks) => {
                tasks.join_next().await.map(|result| result.map_err(|_| Unfinished))
            }
            Self::Simulated(tasks) if tasks.left == 0 => None,
            Self::Simulated(tasks) => {
                let result = tasks.told.recv().await?;
                tasks.left -= 1;
                Some(result.ok_or(Unfinished))
            }
        }
    }

    /// Ends all, and waits until they have ended.
    pub(crate) async fn shutdown(&mut self) {
        match self {
            Self::System(tasks) => tasks.shutdown().await,
            Self::Simulated(tasks) => {
                tasks.stop.send_replace(());
                while self.join_next().await.is_some() {}
            }
        }
    }
}
