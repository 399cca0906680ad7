//! The `fontis` command.

use std::ffi::{OsString, c_int};
use std::process::ExitCode;

/// Keeps the buffers of blocks instead of asking the system for each, and makes the static binary
/// as fast as the other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of `mimalloc.h`, which the crate does not define: the milliseconds for
/// which the allocator keeps freed memory before it returns it to the system.
const PURGE_DELAY: c_int = 15;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if args.get(1).is_some_and(|command| command == "sim") {
        // The queues of a simulation grow, and nothing is of the size again that they leave behind.
        // A transfer's buffers come again and again: it takes half as long again if they are given
        // back so soon.
        set_purge_delay(1);
        // They are many and none is large: a huge page is cleared whole where a few kilobytes of it
        // are wanted. That this cannot be set is no loss but of time.
        #[cfg(target_os = "linux")]
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }
    ExitCode::from(fontis_cli::run(args, &fontis_cli::Python::OnPath))
}

#[allow(unsafe_code)]
fn set_purge_delay(milliseconds: i32) {
    // SAFETY: it sets a number that the allocator reads, before there are other threads.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, milliseconds.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(unsafe_code)]
    fn the_option_is_the_one_that_is_meant() {
        // SAFETY: it reads a number.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 1000, "what mimalloc 3 begins with");
        set_purge_delay(1);
        assert_eq!(delay(), 1);
    }
}
