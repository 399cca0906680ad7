//! Waking at a given time, as exactly as the system can.

#[cfg(target_os = "linux")]
pub use linux::Alarm;
#[cfg(not(target_os = "linux"))]
pub use portable::Alarm;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};

    use fontis_base::Time;
    use mio::unix::SourceFd;
    use mio::{Interest, Registry, Token};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    /// A timer descriptor: exact to microseconds, where the time-out of epoll counts milliseconds.
    #[derive(Debug)]
    pub struct Alarm {
        timer: OwnedFd,
        set_for: Option<Time>,
    }

    impl Alarm {
        /// An alarm that is not set, registered under `token`.
        pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
            Ok(Self { timer, set_for: None })
        }

        /// Sets the alarm for `at`, or for never. Gives the time-out to poll with.
        pub fn set(
            &mut self,
            now: Time,
            at: Option<Time>,
        ) -> io::Result<Option<core::time::Duration>> {
            if at.is_some_and(|at| at <= now) {
                return Ok(Some(core::time::Duration::ZERO));
            }
            if at != self.set_for {
                const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
                // A value of zero disarms the timer.
                let value = match at.map(|at| core::time::Duration::from(at.since(now))) {
                    Some(wait) => Timespec {
                        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
                        tv_nsec: wait.subsec_nanos().into(),
                    },
                    None => ZERO,
                };
                let value = Itimerspec { it_interval: ZERO, it_value: value };
                timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &value)?;
                self.set_for = at;
            }
            Ok(None)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::io;

    use fontis_base::Time;
    use mio::{Registry, Token};

    /// The time-out of the system's poll, as exact as that is.
    #[derive(Debug)]
    pub struct Alarm;

    impl Alarm {
        /// An alarm that is not set, registered under `token`.
        pub fn new(_registry: &Registry, _token: Token) -> io::Result<Self> {
            Ok(Self)
        }

        /// Sets the alarm for `at`, or for never. Gives the time-out to poll with.
        pub fn set(
            &mut self,
            now: Time,
            at: Option<Time>,
        ) -> io::Result<Option<core::time::Duration>> {
            Ok(at.map(|at| at.since(now).into()))
        }
    }
}
