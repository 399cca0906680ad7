//! The stamp of a file: it distinguishes states of the file without reading it.

use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::Metadata;

use crate::manifest::{self, MAX_SECONDS, Modified};

/// Identity, size and modification time of a file, as `stat` told them at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Device and inode; zeros where the system has none.
    pub(crate) file: (u64, u64),
    pub(crate) size: u64,
    pub(crate) modified: Modified,
    /// The time of any change, also of the modification time, which users can set; they cannot set
    /// this one. The modification time if the system has none.
    pub(crate) touched: Modified,
}

/// Seconds of the coarsest clock by which a file system notes when a file was changed (FAT's).
pub(crate) const COARSEST_CLOCK: i64 = 2;

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            file: file_id(metadata),
            size: metadata.len(),
            modified: modified(metadata),
            touched: {
                let Modified { seconds, nanos } = touched(metadata);
                Modified { seconds: seconds.clamp(-TOUCHED, TOUCHED), nanos }
            },
        }
    }

    /// Returns true if the content counts as unchanged: a new mode or link is no new content.
    pub(crate) fn is_same_content(&self, other: &Self) -> bool {
        (self.file, self.size, self.modified) == (other.file, other.size, other.modified)
    }

    pub(crate) fn to_bytes(self) -> [u8; 48] {
        let mut bytes = [0; 48];
        bytes[..8].copy_from_slice(&self.file.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.file.1.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.size.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.modified.seconds.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.modified.nanos.to_le_bytes());
        bytes[36..44].copy_from_slice(&self.touched.seconds.to_le_bytes());
        bytes[44..].copy_from_slice(&self.touched.nanos.to_le_bytes());
        bytes
    }
}

/// Stamps of files whose sizes and times of modification are known elsewhere: 16 bytes each,
/// because there may be a million of them.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    rows: Vec<Row>,
    /// Where another device begins, and which: a folder rarely has more than one.
    devices: Vec<(usize, u64)>,
    /// The latest second of any time of theirs.
    latest: Option<i64>,
}

#[derive(Debug)]
struct Row {
    inode: u64,
    /// Nanoseconds since 1970 of the last change of any kind.
    touched: i64,
}

impl Stamps {
    pub(crate) fn push(&mut self, stamp: &Stamp) {
        let Stamp { file: (device, inode), modified, touched, .. } = *stamp;
        if self.devices.last().is_none_or(|(_, last)| *last != device) {
            self.devices.push((self.rows.len(), device));
        }
        let nanos = touched.seconds * NANOS + i64::from(touched.nanos);
        manifest::reserve(&mut self.rows);
        self.rows.push(Row { inode, touched: nanos });
        self.latest = self.latest.max(Some(touched.seconds.max(modified.seconds)));
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if all files were last changed before this second.
    pub(crate) fn are_before(&self, second: i64) -> bool {
        self.latest.is_none_or(|latest| latest < second)
    }

    /// The stamp of this index, of a file of this size and time of modification.
    pub(crate) fn get(&self, index: usize, size: u64, modified: Modified) -> Stamp {
        let Row { inode, touched } = self.rows[index];
        let behind = self.devices.partition_point(|(first, _)| *first <= index);
        let device = self.devices[behind - 1].1;
        let (seconds, nanos) = (touched.div_euclid(NANOS), touched.rem_euclid(NANOS) as u32);
        Stamp { file: (device, inode), size, modified, touched: Modified { seconds, nanos } }
    }
}

const NANOS: i64 = 1_000_000_000;
/// The seconds, before and after 1970, in which a file can have been touched: what 64 bits of
/// nanoseconds hold.
const TOUCHED: i64 = i64::MAX / NANOS - 1;

#[cfg(unix)]
fn touched(metadata: &Metadata) -> Modified {
    use cap_std::fs::MetadataExt;
    let nanos = u32::try_from(metadata.ctime_nsec()).unwrap_or(0);
    Modified { seconds: metadata.ctime(), nanos }
}

#[cfg(not(unix))]
fn touched(metadata: &Metadata) -> Modified {
    modified(metadata)
}

/// Device and inode.
#[cfg(unix)]
pub(crate) fn file_id(metadata: &Metadata) -> (u64, u64) {
    use cap_std::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
pub(crate) fn file_id(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// Returns true if it is a folder of this user, or a file of this user that has one name.
#[cfg(unix)]
pub(crate) fn is_own(metadata: &Metadata) -> bool {
    use cap_std::fs::MetadataExt;
    let has_one_name = metadata.is_dir() || metadata.is_file() && metadata.nlink() == 1;
    has_one_name && metadata.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
pub(crate) fn is_own(metadata: &Metadata) -> bool {
    !metadata.is_symlink()
}

/// Returns true if the file takes at least as much room on the disk as it has bytes, so that it has
/// no holes; also where the system does not tell.
#[cfg(unix)]
pub(crate) fn is_dense(metadata: &Metadata) -> bool {
    use cap_std::fs::MetadataExt;
    metadata.blocks().saturating_mul(512) >= metadata.len()
}

#[cfg(not(unix))]
pub(crate) fn is_dense(_: &Metadata) -> bool {
    true
}

/// Bytes that a file has on the disk, holes left out, where the system tells.
#[cfg(unix)]
pub(crate) fn allocated(metadata: &Metadata) -> Option<u64> {
    use cap_std::fs::MetadataExt;
    Some(metadata.blocks().saturating_mul(512))
}

#[cfg(not(unix))]
pub(crate) fn allocated(_: &Metadata) -> Option<u64> {
    None
}

/// The permission bits; set-id and sticky bits, which must not travel, are left out.
#[cfg(unix)]
pub(crate) fn mode(metadata: &Metadata) -> u32 {
    use cap_std::fs::MetadataExt;
    metadata.mode() & 0o777
}

#[cfg(not(unix))]
pub(crate) fn mode(metadata: &Metadata) -> u32 {
    match (metadata.is_dir(), metadata.permissions().readonly()) {
        (true, _) => 0o755,
        (false, true) => 0o444,
        (false, false) => 0o644,
    }
}

pub(crate) fn modified(metadata: &Metadata) -> Modified {
    metadata.modified().map_or_else(|_| Modified::default(), |time| to_modified(time.into_std()))
}

/// A time as a manifest can hold it: one beyond its limits becomes the limit.
pub(crate) fn to_modified(time: SystemTime) -> Modified {
    let limit = MAX_SECONDS as i64;
    let (seconds, nanos) = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (i64::try_from(after.as_secs()).unwrap_or(i64::MAX), after.subsec_nanos()),
        Err(error) => {
            let before = error.duration();
            let seconds = i64::try_from(before.as_secs()).map_or(i64::MIN, |seconds| -seconds);
            match before.subsec_nanos() {
                0 => (seconds, 0),
                nanos => (seconds.saturating_sub(1), 1_000_000_000 - nanos),
            }
        }
    };
    if seconds.abs_diff(0) > MAX_SECONDS {
        return Modified { seconds: seconds.clamp(-limit, limit), nanos: 0 };
    }
    Modified { seconds, nanos }
}

/// The inverse of [`to_modified`]; `None` where this system has no such time.
pub(crate) fn to_system_time(modified: Modified) -> Option<SystemTime> {
    use std::time::Duration;
    let seconds = Duration::from_secs(modified.seconds.unsigned_abs());
    let whole = match modified.seconds {
        0.. => UNIX_EPOCH.checked_add(seconds),
        _ => UNIX_EPOCH.checked_sub(seconds),
    };
    whole?.checked_add(Duration::from_nanos(u64::from(modified.nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_kept_in_little_room_and_come_back() {
        let time = |seconds, nanos| Modified { seconds, nanos };
        let stamp = |device, inode, modified, touched| Stamp {
            file: (device, inode),
            size: 7,
            modified,
            touched,
        };
        let all = [
            stamp(1, 5, time(3, 4), time(1 << 31, 999_999_999)),
            stamp(1, u64::MAX, time(-3, 4), time(-1, 1)),
            stamp(9, 0, time(0, 0), time(-TOUCHED, 0)),
            stamp(1, 6, time(2, 2), time(TOUCHED, 999_999_999)),
        ];
        let mut kept = Stamps::default();
        all.iter().for_each(|one| kept.push(one));
        for (i, one) in all.iter().enumerate() {
            assert_eq!(kept.get(i, 7, one.modified), *one, "{i}");
        }
        assert!(kept.are_before(TOUCHED + 1) && !kept.are_before(TOUCHED));
        assert!(Stamps::default().are_before(i64::MIN));
        assert_eq!(std::mem::size_of::<Row>(), 16);
    }

    #[test]
    fn times_before_and_after_1970_survive() {
        for (seconds, nanos) in
            [(0, 0), (1, 1), (-1, 0), (-1, 999_999_999), (-2, 1), (1 << 33, 5), (-(1 << 36), 0)]
        {
            let modified = Modified { seconds, nanos };
            assert_eq!(to_modified(to_system_time(modified).unwrap()), modified);
        }
    }

    #[test]
    fn a_time_that_no_manifest_holds_becomes_the_limit() {
        let limit = MAX_SECONDS as i64;
        let far = to_system_time(Modified { seconds: limit * 2, nanos: 7 }).unwrap();
        assert_eq!(to_modified(far), Modified { seconds: limit, nanos: 0 });
    }
}
