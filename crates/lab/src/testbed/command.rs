use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};

use super::Namespace;
use super::error::{TestbedError, system};
use super::system as sys;

/// A command in a namespace. It ends with all its children when this process ends, for any reason.
#[derive(Debug)]
pub struct CommandJob {
    handle: JobHandle,
    thread: JoinHandle<io::Result<ExitStatus>>,
}

/// Ends a command from another thread.
#[derive(Clone, Debug)]
pub struct JobHandle(Arc<Mutex<Option<Pid>>>);

impl JobHandle {
    /// Kills the command and all that it has started; nothing happens if it has ended.
    pub fn kill(&self) {
        if let Some(pid) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // It may have ended just now: it is not buried before the number is taken away.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

impl CommandJob {
    /// Starts a command in a namespace.
    pub fn start(namespace: &Namespace, mut command: Command) -> Result<Self, TestbedError> {
        let namespace = namespace.share()?;
        let handle = JobHandle(Arc::new(Mutex::new(None)));
        let (own, (report, started)) = (handle.clone(), mpsc::channel());
        let name = command.get_program().to_string_lossy().into_owned();
        // The kernel kills the command when this thread ends, so it waits.
        let body = move || {
            let mut child = match spawn(&namespace, &mut command) {
                Ok(child) => child,
                Err(error) => {
                    let _ = report.send(Err(error));
                    return Err(io::ErrorKind::Other.into());
                }
            };
            *own.0.lock().unwrap_or_else(PoisonError::into_inner) =
                Pid::from_raw(child.id() as i32);
            let _ = report.send(Ok(()));
            // Waits without burying, so that the number stays the command's until nobody has it.
            let pid = rustix::process::WaitId::Pid(Pid::from_child(&child));
            let options =
                rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(pid.clone(), options) {
            }
            own.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            child.wait()
        };
        let thread = std::thread::Builder::new().name(format!("command {name}")).spawn(body);
        let thread = thread.map_err(system("start a thread"))?;
        match started.recv() {
            Ok(Ok(())) => Ok(Self { handle, thread }),
            Ok(Err(source)) => Err(TestbedError::Command { command: name, source }),
            Err(_) => {
                Err(TestbedError::Command { command: name, source: io::ErrorKind::Other.into() })
            }
        }
    }

    /// The handle that ends it.
    pub fn handle(&self) -> JobHandle {
        self.handle.clone()
    }

    /// Returns true if it has ended.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end. A signal that ended it shows as the exit code 128 and its number, as in a
    /// shell.
    pub fn wait(self) -> Result<ExitStatus, TestbedError> {
        let end = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        end.map_err(system("wait for a command"))
    }
}

fn spawn(namespace: &Namespace, command: &mut Command) -> io::Result<Child> {
    namespace.enter().map_err(io::Error::other)?;
    sys::unshare(libc::CLONE_NEWPID)?;
    let (alive, hold): (OwnedFd, OwnedFd) = pipe_with(PipeFlags::CLOEXEC)?;
    sys::confine(command, &alive, &hold);
    let child = command.spawn()?;
    // Open until this process ends: what was started looks whether that has happened already.
    drop(alive);
    drop(hold);
    Ok(child)
}
