/// The pseudo-random generator TinyMT32 with the parameters of RFC 8682.
#[derive(Clone, Debug)]
pub(crate) struct TinyMt32 {
    state: [u32; 4],
}

const MAT1: u32 = 0x8f70_11ee;
const MAT2: u32 = 0xfc78_ff1f;
const TMAT: u32 = 0x3793_fdff;

impl TinyMt32 {
    pub(crate) fn new(seed: u32) -> Self {
        let mut state = [seed, MAT1, MAT2, TMAT];
        for i in 1..8 {
            let last = state[(i - 1) % 4];
            let product = (last ^ last >> 30).wrapping_mul(1_812_433_253);
            state[i % 4] ^= product.wrapping_add(i as u32);
        }
        let mut generator = Self { state };
        (0..8).for_each(|_| generator.step());
        generator
    }

    fn step(&mut self) {
        let [s0, s1, s2, s3] = self.state;
        let mut x = (s0 & 0x7fff_ffff) ^ s1 ^ s2;
        x ^= x << 1;
        let y = s3 ^ s3 >> 1 ^ x;
        let is_odd = (y & 1).wrapping_neg();
        self.state = [s1, s2 ^ (is_odd & MAT1), x ^ y << 10 ^ (is_odd & MAT2), y];
    }

    /// 32 random bits.
    pub(crate) fn next_u32(&mut self) -> u32 {
        self.step();
        let [s0, _, s2, s3] = self.state;
        let sum = s0.wrapping_add(s2 >> 8);
        s3 ^ sum ^ ((sum & 1).wrapping_neg() & TMAT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_those_of_rfc_8682() {
        let mut generator = TinyMt32::new(1);
        let outputs = [0; 10].map(|_| generator.next_u32());
        assert_eq!(
            outputs,
            [
                2_545_341_989,
                981_918_433,
                3_715_302_833,
                2_387_538_352,
                3_591_001_365,
                3_820_442_102,
                2_114_400_566,
                2_196_103_051,
                2_783_359_912,
                764_534_509,
            ]
        );
    }
}
