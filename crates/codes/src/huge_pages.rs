//! Large buffers on large pages.

/// Smaller buffers hold too few whole huge pages (2 MB on most machines) to gain from them.
#[cfg(all(feature = "std", target_os = "linux"))]
const LEAST: usize = 4 << 20;

/// Asks the system for huge pages behind these bytes, if they are many. It helps when they have not
/// been touched yet: fresh memory is then handed out 512 times as much at once, and walking through
/// it misses the translation buffer less. A system that has none to give gives ordinary ones.
#[cfg(all(feature = "std", target_os = "linux"))]
#[allow(unsafe_code)]
pub(crate) fn prefer<Byte>(room: &mut [Byte]) {
    const { assert!(size_of::<Byte>() == 1) };
    if room.len() < LEAST {
        return;
    }
    // SAFETY: it takes no pointers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Ok(page) = usize::try_from(page) else { return };
    let skipped = room.as_ptr().align_offset(page).min(room.len());
    let pages = &mut room[skipped..];
    // SAFETY: the pages lie within the slice, and the advice changes neither their content nor what
    // may be done with them.
    let advised = unsafe {
        libc::madvise(pages.as_mut_ptr().cast(), pages.len() / page * page, libc::MADV_HUGEPAGE)
    };
    // It is no more than a wish.
    let _ = advised;
}

/// There is nobody to ask.
#[cfg(not(all(feature = "std", target_os = "linux")))]
pub(crate) const fn prefer<Byte>(_room: &mut [Byte]) {}

#[cfg(all(test, feature = "std", target_os = "linux", not(miri)))]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;

    /// What the kernel notes of the mapping in which an address lies (proc(5), VmFlags).
    fn flags(address: usize) -> Option<String> {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut within = false;
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let parsed = |end: &str| usize::from_str_radix(end, 16).ok();
            if let Some((from, to)) =
                range.and_then(|(from, to)| Some((parsed(from)?, parsed(to)?)))
            {
                within = (from..to).contains(&address);
            }
            if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| within) {
                return Some(flags.into());
            }
        }
        None
    }

    #[test]
    fn a_large_buffer_asks_for_huge_pages_and_is_what_it_was() {
        if !std::fs::exists("/sys/kernel/mm/transparent_hugepage").unwrap() {
            std::println!("not tested: this kernel has no transparent huge pages");
            return;
        }
        let mut bytes: Vec<u8> = (0..LEAST + 12_345).map(|i| i as u8).collect();
        for skipped in [0, 1, 4095, 4096] {
            prefer(&mut bytes[skipped..]);
        }
        assert!((0..).zip(&bytes).all(|(i, byte): (usize, _)| *byte == i as u8));
        let middle = flags(bytes[LEAST / 2..].as_ptr().addr()).unwrap();
        assert!(middle.split(' ').any(|flag| flag == "hg"), "{middle}");
        for short in [0, 1, LEAST - 1] {
            prefer(&mut bytes[..short]);
        }
    }
}
