use super::systematic_table::TABLE;

/// The most source symbols in a block: K'_max (RFC 6330, section 5.1.2).
pub const MAX_SOURCE_SYMBOLS: u32 = 56_403;

/// Which of the two codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    /// RFC 6330.
    RaptorQ,
    /// RFC 5053.
    Raptor10,
}

/// How the code is laid out for one K' (RFC 6330, sections 5.1.2 and 5.3.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) family: Family,
    /// K', the number of symbols in the extended source block.
    pub(crate) extended: usize,
    /// J(K'), the systematic index.
    pub(crate) systematic_index: u32,
    /// S, the number of LDPC symbols.
    pub(crate) ldpc: usize,
    /// H, the number of HDPC symbols.
    pub(crate) hdpc: usize,
    /// The number of half symbols of R10.
    pub(crate) half: usize,
    /// W, the number of intermediate symbols that are LT symbols.
    pub(crate) lt: usize,
    /// L = K' + S + H, the number of intermediate symbols.
    pub(crate) intermediate: usize,
    /// P = L − W, the number of intermediate symbols that are permanently inactive.
    pub(crate) permanent: usize,
    /// P1, the least prime that is not less than P; for R10 L', the same of L.
    pub(crate) prime: u32,
}

impl Parameters {
    /// The parameters of a block of `k` source symbols: those of the least K' ≥ k. `None` for more
    /// than [`MAX_SOURCE_SYMBOLS`].
    pub(crate) fn for_source_symbols(k: u32) -> Option<Self> {
        let index = TABLE.partition_point(|row| u32::from(row.0) < k);
        TABLE.get(index).map(|row| Self::from_row(*row))
    }

    fn from_row((extended, systematic_index, ldpc, hdpc, lt): (u16, u16, u16, u16, u16)) -> Self {
        let [extended, ldpc, hdpc, lt] = [extended, ldpc, hdpc, lt].map(usize::from);
        let intermediate = extended + ldpc + hdpc;
        let permanent = intermediate - lt;
        Self {
            family: Family::RaptorQ,
            extended,
            systematic_index: u32::from(systematic_index),
            ldpc,
            hdpc,
            half: 0,
            lt,
            intermediate,
            permanent,
            prime: next_prime(permanent as u32),
        }
    }

    /// Every K' there is.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        TABLE.into_iter().map(Self::from_row)
    }

    /// The internal identifier (ISI) of encoding symbol `esi` of a block of `k` symbols: padding
    /// symbols have internal identifiers only (section 5.3.1).
    pub(crate) const fn isi(&self, k: u32, esi: u32) -> u32 {
        if esi < k { esi } else { esi + (self.extended as u32 - k) }
    }
}

pub(crate) fn next_prime(from: u32) -> u32 {
    let is_prime =
        |n: &u32| *n > 1 && (2..).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    (from..).find(is_prime).expect("there is always a next prime")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fnv1a;

    #[test]
    fn the_table_is_the_rfcs() {
        let numbers = TABLE.iter().flat_map(|row| [row.0, row.1, row.2, row.3, row.4]);
        let bytes = numbers.flat_map(|n| u32::from(n).to_be_bytes());
        assert_eq!(fnv1a(bytes), 0x434a_7def_4f28_b414);
        assert_eq!(TABLE[0], (10, 254, 7, 10, 17));
        assert_eq!(TABLE[476], (56_403, 471, 907, 16, 56_951));
    }

    #[test]
    fn the_parameters_have_the_properties_that_the_rfc_states() {
        for p in Parameters::all() {
            assert!(next_prime(p.ldpc as u32) == p.ldpc as u32, "S is prime");
            assert!(next_prime(p.lt as u32) == p.lt as u32, "W is prime");
            assert!(p.lt > p.ldpc && p.permanent >= p.hdpc && p.prime >= p.permanent as u32);
            // All indices of intermediate symbols, and the scratch of a solver, fit 16 bits.
            assert!(p.intermediate < 60_000);
        }
    }

    #[test]
    fn a_block_is_extended_to_the_next_tabulated_size() {
        let extended = |k| Parameters::for_source_symbols(k).map(|p| p.extended);
        assert_eq!(extended(1), Some(10));
        assert_eq!(extended(10), Some(10));
        assert_eq!(extended(11), Some(12));
        assert_eq!(extended(56_403), Some(56_403));
        assert_eq!(extended(56_404), None);
    }
}
