/// L'Ecuyer's combined Tausworthe generator taus88 (1996), whose three words are the S1, S2, S3 of
/// the 2015 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taus88 {
    s: [u32; 3],
}

impl Taus88 {
    /// A generator in this state; words that would make it degenerate are raised to the least that
    /// do not (S1 > 1, S2 > 7, S3 > 15).
    pub const fn new([s1, s2, s3]: [u32; 3]) -> Self {
        Self {
            s: [
                if s1 < 2 { 2 } else { s1 },
                if s2 < 8 { 8 } else { s2 },
                if s3 < 16 { 16 } else { s3 },
            ],
        }
    }

    /// The state.
    pub const fn state(&self) -> [u32; 3] {
        self.s
    }

    /// 32 random bits.
    #[inline(always)]
    pub fn next_u32(&mut self) -> u32 {
        let [s1, s2, s3] = &mut self.s;
        *s1 = (*s1 & 0xffff_fffe) << 12 ^ (*s1 << 13 ^ *s1) >> 19;
        *s2 = (*s2 & 0xffff_fff8) << 4 ^ (*s2 << 2 ^ *s2) >> 25;
        *s3 = (*s3 & 0xffff_fff0) << 17 ^ (*s3 << 3 ^ *s3) >> 11;
        *s1 ^ *s2 ^ *s3
    }

    /// Uniform in `0..bound`, by multiplication.
    #[inline(always)]
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.next_u32()) * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_those_of_the_specification() {
        let mut generator = Taus88::new([12_345, 67_890, 13_579]);
        let outputs = [0; 5].map(|_| generator.next_u32());
        assert_eq!(
            outputs,
            [1_762_857_971, 962_756_195, 1_349_868_690, 3_172_171_919, 2_881_600_251]
        );
        assert_eq!(generator.state(), [940_311_149, 2_466_251_414, 13_482_496]);
        let mut generator = Taus88::new([0, 0, 0]);
        let outputs = [0; 5].map(|_| generator.next_u32());
        assert_eq!(outputs, [2_105_472, 33_565_824, 1_208_516_706, 2_152_538_112, 1_115_703_712]);
    }
}
