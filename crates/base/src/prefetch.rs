#![allow(unsafe_code)]

/// A value whose parts can be brought into the processor's cache before they are used. It changes
/// nothing but the time that the use takes.
///
/// A part that lies behind a pointer is reached only if the pointer itself is in the cache, so a
/// caller prefetches a chain link by link, each at a [distance](crate::distance) of its own.
pub trait Prefetch {
    /// Names a part. Of a chain it is the number of pointers to follow; zero is the value itself.
    type Part;

    /// Prefetches a part; nothing happens if there is no such part.
    fn prefetch(&self, part: Self::Part);
}

/// Brings a value into the processor's cache while something else is done. It reads nothing and
/// changes nothing but the time that reading takes later; on processors other than x86-64 it does
/// nothing.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let first = core::ptr::from_ref(value).cast::<i8>();
        let bytes = size_of_val(value);
        // SAFETY: a prefetch is a hint: it faults at no address, and no program sees what it does.
        let near = |offset| unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(offset)) };
        (0..bytes).step_by(LINE).for_each(near);
        // A value that may begin anywhere in a line may end in one line more than its size has.
        if align_of_val(value) < LINE {
            near(bytes.saturating_sub(1));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Bytes of a line of the cache.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;
