use alloc::vec;
use alloc::vec::Vec;

/// What each column takes of the inactive ones, as bits: its *echo*.
#[derive(Clone, Debug)]
pub(crate) struct Echoes {
    /// The inactive columns, in the order of the bits.
    inactive: Vec<u16>,
    /// Words of 64 bits for each column.
    words: usize,
    bits: Vec<u64>,
}

impl Echoes {
    /// Those of so many columns. `sums` gives each peeled column, and the columns that it is the
    /// sum of, in an order in which each needs only those before it and inactive ones; that it is
    /// among them itself makes no difference.
    pub(crate) fn new<'a>(
        columns: usize,
        inactive: Vec<u16>,
        sums: impl Iterator<Item = (u16, &'a [u16])>,
    ) -> Self {
        let words = inactive.len().div_ceil(64);
        let mut bits = vec![0; columns * words];
        for (index, column) in inactive.iter().enumerate() {
            bits[usize::from(*column) * words + index / 64] |= 1 << (index % 64);
        }
        match words {
            1 => follow::<1>(&mut bits, sums),
            2 => follow::<2>(&mut bits, sums),
            3 => follow::<3>(&mut bits, sums),
            4 => follow::<4>(&mut bits, sums),
            _ => follow_any(&mut bits, words, sums),
        }
        Self { inactive, words, bits }
    }

    pub(crate) fn inactive(&self) -> &[u16] {
        &self.inactive
    }

    /// Words of an echo.
    pub(crate) const fn words(&self) -> usize {
        self.words
    }

    /// Column after column.
    pub(crate) fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// Adds the echo of the sum of some columns.
    pub(crate) fn add(&self, echo: &mut [u64], columns: &[u16]) {
        add(echo, &self.bits, columns);
    }

    /// Bytes that those of so many columns take in memory.
    pub(crate) const fn memory(columns: usize, inactive: usize) -> usize {
        size_of::<Self>() + 2 * inactive + 8 * columns * inactive.div_ceil(64)
    }
}

fn follow<'a, const W: usize>(bits: &mut [u64], sums: impl Iterator<Item = (u16, &'a [u16])>) {
    let bits = bits.as_chunks_mut::<W>().0;
    for (target, columns) in sums {
        let mut echo = [0; W];
        for column in columns {
            let other = &bits[usize::from(*column)];
            echo.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
        }
        bits[usize::from(target)] = echo;
    }
}

/// The same for any number of words.
fn follow_any<'a>(bits: &mut [u64], words: usize, sums: impl Iterator<Item = (u16, &'a [u16])>) {
    let mut echo = vec![0; words];
    for (target, columns) in sums {
        echo.fill(0);
        add(&mut echo, bits, columns);
        bits[usize::from(target) * words..][..words].copy_from_slice(&echo);
    }
}

fn add(echo: &mut [u64], bits: &[u64], columns: &[u16]) {
    let words = echo.len();
    for column in columns {
        let other = &bits[usize::from(*column) * words..][..words];
        echo.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
    }
}
