use super::parameters::Parameters;
use super::random_tables::{V0, V1, V2, V3};

/// The cumulative degree distribution, times 2²⁰ (RFC 6330, table 1): degree d below entry d − 1.
const DEGREES: [u32; 30] = [
    5243, 529_531, 704_294, 791_675, 844_104, 879_057, 904_023, 922_747, 937_311, 948_962, 958_494,
    966_438, 973_160, 978_921, 983_914, 988_283, 992_138, 995_565, 998_631, 1_001_391, 1_003_887,
    1_006_157, 1_008_229, 1_010_129, 1_011_876, 1_013_490, 1_014_983, 1_016_370, 1_017_662,
    1_048_576,
];

/// The most intermediate symbols in an encoding symbol: 40 of R10, or 30 LT and 3 permanently
/// inactive ones.
const MAX_NEIGHBOURS: usize = 40;

/// Which intermediate symbols make an encoding symbol (RFC 6330, section 5.3.5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuple {
    pub(crate) d: u32,
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) d1: u32,
    pub(crate) a1: u32,
    pub(crate) b1: u32,
}

/// The intermediate symbols of one encoding symbol, the LT symbols first.
#[derive(Clone, Copy)]
pub(crate) struct Neighbours {
    columns: [u16; MAX_NEIGHBOURS],
    lt: u8,
    len: u8,
}

/// Rand[y, i, m] (section 5.3.5.1).
pub(crate) fn rand(y: u32, i: u8, m: u32) -> u32 {
    let at = |shift: u32| usize::from(((y >> shift) as u8).wrapping_add(i));
    (V0[at(0)] ^ V1[at(8)] ^ V2[at(16)] ^ V3[at(24)]) % m
}

/// Deg[v] (section 5.3.5.2).
fn degree(v: u32, lt: usize) -> u32 {
    // Without a branch, for none could be predicted.
    let index: u32 = DEGREES.iter().map(|bound| u32::from(v >= *bound)).sum();
    (index + 1).min(lt as u32 - 2)
}

impl Tuple {
    pub(crate) fn new(parameters: &Parameters, isi: u32) -> Self {
        let j = parameters.systematic_index;
        let (w, p1) = (parameters.lt as u32, parameters.prime);
        let a = 53_591 + j * 997;
        let a = a | 1;
        let b = 10_267 * (j + 1);
        let y = b.wrapping_add(isi.wrapping_mul(a));
        let d = degree(rand(y, 0, 1 << 20), parameters.lt);
        Self {
            d,
            a: 1 + rand(y, 1, w - 1),
            b: rand(y, 2, w),
            d1: if d < 4 { 2 + rand(isi, 3, 2) } else { 2 },
            a1: 1 + rand(isi, 4, p1 - 1),
            b1: rand(isi, 5, p1),
        }
    }

    /// The intermediate symbols that Enc[] adds up (section 5.3.5.3).
    pub(crate) fn neighbours(&self, parameters: &Parameters) -> Neighbours {
        let (w, p) = (parameters.lt as u32, parameters.permanent as u32);
        let p1 = parameters.prime;
        let mut columns = [0; MAX_NEIGHBOURS];
        let step = |at: u32, by: u32, modulus: u32| {
            let next = at + by;
            if next >= modulus { next - modulus } else { next }
        };
        let mut b = self.b;
        for column in &mut columns[..self.d as usize] {
            *column = b as u16;
            b = step(b, self.a, w);
        }
        let mut b1 = self.b1;
        let len = (self.d + self.d1) as usize;
        for column in &mut columns[self.d as usize..len] {
            while b1 >= p {
                b1 = step(b1, self.a1, p1);
            }
            *column = (w + b1) as u16;
            b1 = step(b1, self.a1, p1);
        }
        Neighbours { columns, lt: self.d as u8, len: len as u8 }
    }
}

impl Neighbours {
    /// LT symbols only.
    pub(crate) fn all_lt(lt: &[u16]) -> Self {
        let mut columns = [0; MAX_NEIGHBOURS];
        columns[..lt.len()].copy_from_slice(lt);
        Self { columns, lt: lt.len() as u8, len: lt.len() as u8 }
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[u16] {
        &self.columns[..usize::from(self.len)]
    }

    /// Those that are LT symbols.
    pub(crate) fn lt(&self) -> &[u16] {
        &self.columns[..usize::from(self.lt)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_change_at_the_printed_bounds() {
        assert_eq!([0, 5242, 5243, 529_530, 529_531].map(|v| degree(v, 1000)), [1, 1, 2, 2, 3]);
        assert_eq!([1_017_661, 1_017_662, 1_048_575].map(|v| degree(v, 1000)), [29, 30, 30]);
        assert_eq!(degree(1_048_575, 17), 15, "at most W - 2");
    }

    #[test]
    fn neighbours_are_distinct_and_inside_the_block() {
        for parameters in Parameters::all().step_by(13) {
            for isi in (0..200).chain((1 << 24) - 200..1 << 24) {
                let neighbours = parameters.neighbours(isi);
                let mut all = neighbours.all().to_vec();
                all.sort_unstable();
                all.dedup();
                assert_eq!(all.len(), neighbours.all().len(), "{parameters:?} {isi}");
                assert!(neighbours.lt().iter().all(|c| usize::from(*c) < parameters.lt));
                assert!(usize::from(*all.last().unwrap()) < parameters.intermediate);
            }
        }
    }
}
