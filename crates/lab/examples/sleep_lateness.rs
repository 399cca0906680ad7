//! How late a bare thread wakes from `clock_nanosleep` on this machine:
//! `sleep_lateness SECONDS INTERVAL_US`. What a link emulator adds is to be seen beside it, under
//! the same load.

#[cfg(target_os = "linux")]
fn main() {
    use rustix::thread::{ClockId, clock_nanosleep_absolute};
    use rustix::time::{Timespec, clock_gettime};

    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let seconds: u64 = arguments.next().unwrap_or(5);
    let interval = arguments.next().unwrap_or(120u64) * 1_000;
    let nanos = |time: Timespec| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    let now = || nanos(clock_gettime(rustix::time::ClockId::Monotonic));
    let end = now() + seconds * 1_000_000_000;
    let mut late = Vec::new();
    let mut due = now() + interval;
    while due < end {
        let time = Timespec {
            tv_sec: (due / 1_000_000_000) as i64,
            tv_nsec: (due % 1_000_000_000) as i64,
        };
        if clock_nanosleep_absolute(ClockId::Monotonic, &time).is_ok() {
            late.push(now().saturating_sub(due) / 1_000);
        }
        due = due.max(now()) + interval;
    }
    late.sort_unstable();
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
    println!("{{\"median\": {}, \"p99\": {}, \"max\": {}}}", at(0.5), at(0.99), at(1.0));
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("sleep_lateness: it needs Linux");
}
