use core::fmt;
use core::str::FromStr;

use crate::notation::{self, NotationError};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(u64);

impl Size {
    /// A size in bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The size in bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] = [
            (1_000_000_000_000, "TB"),
            (1_000_000_000, "GB"),
            (1_000_000, "MB"),
            (1_000, "kB"),
            (1, "B"),
        ];
        let (unit, name) = UNITS.into_iter().find(|(unit, _)| self.0 >= *unit).unwrap_or(UNITS[4]);
        write!(f, "{} {name}", self.0 as f64 / unit as f64)
    }
}

impl FromStr for Size {
    type Err = NotationError;

    /// Reads `"1.25MB"`, `"64 KiB"`, `"1500 B"`, `"1500"`. Decimal prefixes are powers of 1000,
    /// `Ki`… of 1024.
    fn from_str(text: &str) -> Result<Self, NotationError> {
        const UNITS: [(&str, u64); 10] = [
            ("", 1),
            ("B", 1),
            ("kB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("TB", 1_000_000_000_000),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
            ("TiB", 1 << 40),
        ];
        notation::parse(text, "a size", "1.25 MB", &UNITS).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_what_people_write() {
        for (text, bytes) in
            [("1.25MB", 1_250_000), ("64 KiB", 65_536), ("1500 B", 1500), ("1500", 1500), ("0", 0)]
        {
            assert_eq!(text.parse::<Size>().unwrap().as_bytes(), bytes, "{text}");
        }
        assert!("18446744073709551616".parse::<Size>().is_err());
        assert!("ten".parse::<Size>().is_err());
    }
}
