//! Keys that control a transfer from its terminal.

use std::io::{self, stdin};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr,
};

use crate::control::Control;
use crate::request::Change;

/// The interval of checking that the terminal still belongs to this process.
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// The step of one key.
const STEP: f64 = 1.25;

/// The terminal in a mode without line buffering, until this value is dropped.
pub(crate) struct Keyboard {
    before: Termios,
}

impl Keyboard {
    /// Listens to the terminal, if this process has one.
    pub(crate) fn listen(control: &Control) -> Option<Self> {
        if !isatty(stdin()) || !isatty(io::stderr()) || !is_ours() {
            return None;
        }
        let before = tcgetattr(stdin()).ok()?;
        let mut keys = before.clone();
        // Signals stay: Ctrl-C and Ctrl-Z do what they always do.
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(stdin(), OptionalActions::Now, &keys).ok()?;
        let (control, runtime) = (control.clone(), tokio::runtime::Handle::current());
        let read = move || {
            while let Some(key) = next() {
                if let Some(change) = meaning(key) {
                    runtime.block_on(control.change(change));
                    control.tell();
                }
            }
        };
        std::thread::Builder::new().name("fontis-keys".to_owned()).spawn(read).ok()?;
        Some(Self { before })
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        if is_ours() {
            let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
        }
    }
}

/// Returns true if this process is in the foreground: the system stops a background process that
/// reads.
fn is_ours() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// The next key; `None` at the end of input.
fn next() -> Option<u8> {
    loop {
        let input = stdin();
        let mut waiting = [PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN)];
        let ready = poll(&mut waiting, Some(&TURN)).unwrap_or(0) > 0;
        if !is_ours() {
            std::thread::sleep(std::time::Duration::from_millis(200));
        } else if ready {
            let mut key = [0];
            // Not through the standard library's buffer: keys in it would not wake the next wait.
            return matches!(rustix::io::read(&input, &mut key), Ok(1)).then_some(key[0]);
        }
    }
}

const fn meaning(key: u8) -> Option<Change> {
    match key {
        b' ' | b'p' => Some(Change::TogglePause),
        b'+' | b'=' => Some(Change::Scale(STEP)),
        b'-' => Some(Change::Scale(1.0 / STEP)),
        b'u' => Some(Change::Limit(None)),
        _ => None,
    }
}
