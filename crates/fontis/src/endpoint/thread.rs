//! The thread in which a driver works.

use std::io;

use fontis_base::Time;
use mio::Events;
use tokio::sync::watch;

use super::driver::Driver;
use super::handle::Handle;
use crate::udp::Batch;

impl Driver {
    /// Starts the thread; the returned channel is closed when the thread has ended.
    pub(super) fn start(mut self, handle: Handle) -> io::Result<watch::Receiver<()>> {
        self.handle = Some(handle);
        let (running, ended) = watch::channel(());
        #[cfg(test)]
        if let Some(signal) = self.signal.take() {
            crate::task::spawn(async move {
                let mut batch = Batch::new();
                while let Some((_, next)) = self.turn(&mut batch) {
                    signal.wait(next.map(|at| self.clock.instant(at))).await;
                }
                drop(running);
            });
            return Ok(ended);
        }
        std::thread::Builder::new().name("fontis-udp".to_owned()).spawn(move || {
            self.run();
            drop(running);
        })?;
        Ok(ended)
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> u64 {
        self.budget.used()
    }

    fn run(mut self) {
        let mut events = Events::with_capacity(16);
        let mut batch = Batch::new();
        while let Some((now, next)) = self.turn(&mut batch) {
            let Ok(timeout) = self.alarm.set(now, next) else { return };
            if let Err(error) = self.poll.poll(&mut events, timeout)
                && error.kind() != io::ErrorKind::Interrupted
            {
                return;
            }
        }
    }

    /// Does all that is to be done; returns the time, and that of the next work. `None`: the
    /// endpoint is over.
    fn turn(&mut self, batch: &mut Batch) -> Option<(Time, Option<Time>)> {
        let now = self.clock.now();
        while let Ok(command) = self.commands.try_recv() {
            command(self, now);
        }
        let more = self.receive(batch);
        let now = self.clock.now();
        let next = self.drive(now);
        if self.stopping && self.slots.is_empty() {
            return None;
        }
        Some((now, if more || !self.touched.is_empty() { Some(now) } else { next }))
    }
}
