//! Names, sizes and times as people read them.

use std::time::Duration;

use fontis_base::{Rate, Size};

/// A name from the network or the disk, with what would steer a terminal escaped.
pub(crate) fn safe(name: &str) -> String {
    fontis::Printable(name).to_string()
}

/// Bytes with three digits or so, as in `64.0 MB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => Size::from_bytes(bytes).to_string(),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

/// Megabits in a second, for a report.
pub(crate) fn mbps(bytes: u64, span: Duration) -> f64 {
    match span.as_secs_f64() {
        0.0 => 0.0,
        seconds => round(bytes as f64 * 8.0 / 1e6 / seconds),
    }
}

/// A rate with three digits or so, as in `94.8 Mbit/s`.
pub(crate) fn rate(megabits: f64) -> String {
    match megabits {
        ..0.1 => format!("{:.1} kbit/s", megabits * 1e3),
        1_000.0.. => format!("{:.2} Gbit/s", megabits / 1e3),
        _ => format!("{megabits:.1} Mbit/s"),
    }
}

/// A controller's rate; the greedy one has none.
pub(crate) fn pacing(of: Rate) -> String {
    if of == Rate::MAX { "no limit".to_owned() } else { rate(of.as_mbps_f64()) }
}

/// A time with three digits or so, as in `5.43 s`.
pub(crate) fn time(span: Duration) -> String {
    match span.as_secs_f64() {
        ..1.0 => format!("{:.1} ms", span.as_secs_f64() * 1e3),
        ..60.0 => format!("{:.2} s", span.as_secs_f64()),
        seconds => format!("{:.0} s", seconds),
    }
}

/// To three decimals, which is as much as a report means.
pub(crate) fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_rates_and_times_have_a_unit_that_fits() {
        assert_eq!([size(0), size(999), size(1_500)], ["0 B", "999 B", "1.5 kB"]);
        assert_eq!([size(64_000_000), size(2_500_000_000)], ["64.0 MB", "2.50 GB"]);
        assert_eq!(rate(mbps(12_500_000, Duration::from_secs(1))), "100.0 Mbit/s");
        assert_eq!([rate(0.05), rate(1_500.0)], ["50.0 kbit/s", "1.50 Gbit/s"]);
        assert_eq!(time(Duration::from_millis(12)), "12.0 ms");
        assert_eq!(time(Duration::from_millis(5_430)), "5.43 s");
        assert_eq!(mbps(1, Duration::ZERO), 0.0);
    }

    #[test]
    fn names_cannot_steer_a_terminal() {
        assert_eq!(safe("it's \"größe\"\x1b[2J"), "it's \"größe\"\\u{1b}[2J");
    }
}
