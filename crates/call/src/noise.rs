//! Comfort noise of ends that send no silence (RFC 3389).

use bytes::Bytes;

/// The most coefficients that are heard.
const MOST: usize = 12;
/// The coefficients that are told: noise of rooms has no more shape.
const TOLD: usize = 8;
/// The greatest coefficient.
const GREATEST: f64 = 0.98;
/// The amplitude of the loudest sound, a sine of 0 dBov, as a root mean square.
const LOUDEST: f64 = 23_170.0;
/// The range of the random numbers that are shaped, as its own root mean square is one.
const RANGE: f64 = 3.464_101_615_137_754_6;

/// What noise sounds like: its correlation with itself, some samples later each.
#[derive(Clone, Debug, Default)]
pub(crate) struct NoiseMeter {
    sums: [f64; TOLD + 1],
    samples: usize,
}

impl NoiseMeter {
    /// Listens to more of it.
    pub(crate) fn add(&mut self, pcm: &[i16]) {
        for (lag, sum) in self.sums.iter_mut().enumerate() {
            let later = pcm.iter().skip(lag);
            let pairs = pcm.iter().zip(later);
            *sum += pairs.map(|(one, other)| f64::from(*one) * f64::from(*other)).sum::<f64>();
        }
        self.samples += pcm.len();
    }

    /// Forgets what it has heard.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Describes the noise to a peer, as section 3 has it: [`ComfortNoise::decode`] reads it.
    pub(crate) fn describe(&self) -> Bytes {
        let level = (self.sums[0] / self.samples.max(1) as f64).sqrt() / LOUDEST;
        // Silence is below every level.
        let level = if level > 0.0 { (-20.0 * level.log10()).round() } else { 127.0 };
        let mut payload = vec![level.clamp(0.0, 127.0) as u8];
        let quantised = |value: f64| (value * 32_768.0 / 258.0).round() as i32 + 127;
        let byte = |value: f64| quantised(value).clamp(0, 254) as u8;
        payload.extend(self.coefficients().into_iter().map(byte));
        payload.into()
    }

    /// Reflection coefficients, by the recursion of Levinson and Durbin.
    fn coefficients(&self) -> Vec<f64> {
        let mut predictor = [0.0; TOLD + 1];
        let mut left = self.sums[0];
        let mut coefficients = Vec::with_capacity(TOLD);
        for order in 1..=TOLD {
            if left <= 0.0 {
                break;
            }
            let past = (1..order).map(|lag| predictor[lag] * self.sums[order - lag]);
            let value = -(self.sums[order] + past.sum::<f64>()) / left;
            let value = value.clamp(-GREATEST, GREATEST);
            let before = predictor;
            for lag in 1..order {
                predictor[lag] += value * before[order - lag];
            }
            predictor[order] = value;
            left *= 1.0 - value * value;
            coefficients.push(value);
        }
        coefficients
    }
}

/// Noise as a peer describes it.
#[derive(Clone, Debug)]
pub(crate) struct ComfortNoise {
    /// The amplitude of what is shaped.
    amplitude: f64,
    /// Reflection coefficients, and the states of the filter that they make.
    coefficients: Vec<f64>,
    states: [f64; MOST + 1],
    random: u32,
}

impl ComfortNoise {
    /// Reads a description: a level in dB below the loudest sound, then coefficients of a filter.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let (level, rest) = payload.split_first()?;
        // As section 3.2 has them; greater ones would be no stable filter.
        let coefficient = |byte: &u8| {
            let value = 258.0 * (f64::from(*byte) - 127.0) / 32_768.0;
            value.clamp(-GREATEST, GREATEST)
        };
        let coefficients: Vec<f64> = rest.iter().take(MOST).map(coefficient).collect();
        // The filter strengthens what goes through it by the inverse of this.
        let gain: f64 = coefficients.iter().map(|value| 1.0 - value * value).product();
        let level = f64::from(level & 127);
        let amplitude = LOUDEST * 10_f64.powf(-level / 20.0) * gain.sqrt();
        Some(Self { amplitude, coefficients, states: [0.0; MOST + 1], random: 1 })
    }

    /// Goes on as `newer` describes it.
    pub(crate) fn follow(&mut self, newer: Self) {
        self.amplitude = newer.amplitude;
        self.coefficients = newer.coefficients;
    }

    /// Fills `pcm` with noise.
    pub(crate) fn sound(&mut self, pcm: &mut [i16]) {
        for sample in pcm {
            self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let random = f64::from(self.random >> 8) / f64::from(1 << 24) - 0.5;
            let mut forward = RANGE * random * self.amplitude;
            // An all-pole lattice, from the last stage to the first.
            for (stage, value) in self.coefficients.iter().enumerate().rev() {
                forward -= value * self.states[stage];
                self.states[stage + 1] = self.states[stage] + value * forward;
            }
            self.states[0] = forward;
            *sample = forward as i16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More coefficients than are heard.
    const MANY: &[u8] = &[40, 100, 150, 110, 140, 120, 130, 100, 150, 120, 130, 120, 110, 40, 40];

    fn heard(payload: &[u8]) -> Vec<i16> {
        let mut noise = ComfortNoise::decode(payload).expect("noise");
        let mut pcm = vec![0; 16_000];
        noise.sound(&mut pcm);
        pcm
    }

    fn energy(pcm: &[i16]) -> f64 {
        pcm.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / pcm.len() as f64
    }

    #[test]
    fn noise_has_its_level_with_a_shape_and_without() {
        for payload in [&[40][..], &[40, 27], &[40, 227, 87, 140], &[60], MANY] {
            let loudness = 20.0 * (energy(&heard(payload)).sqrt() / LOUDEST).log10();
            let level = -f64::from(payload[0]);
            assert!((loudness - level).abs() < 1.0, "{payload:?}: {loudness} dB");
        }
    }

    #[test]
    fn coefficients_shape_the_noise() {
        // The correlation of neighbours is the first coefficient with the other sign.
        for (byte, expected) in [(127, 0.0), (27, 0.78), (227, -0.78)] {
            let pcm = heard(&[30, byte]);
            let product: f64 =
                pcm.windows(2).map(|pair| f64::from(pair[0]) * f64::from(pair[1])).sum();
            let got = product / pcm.len() as f64 / energy(&pcm);
            assert!((got - expected).abs() < 0.05, "{byte}: {got}");
        }
    }

    #[test]
    fn what_is_described_is_heard_again() {
        for payload in [&[50][..], &[50, 27], &[40, 227, 87, 140], &[60, 60, 170, 110, 140, 120]] {
            let sent = heard(payload);
            let mut meter = NoiseMeter::default();
            sent.chunks(160).for_each(|frame| meter.add(frame));
            let described = meter.describe();
            assert_eq!(described.len(), 1 + TOLD);
            let back = heard(&described);
            let loudness = 10.0 * (energy(&back) / energy(&sent)).log10();
            assert!(loudness.abs() < 1.0, "{payload:?}: {loudness} dB");
            for lag in 1..=3 {
                let shape = |pcm: &[i16]| {
                    let pairs = pcm.iter().zip(&pcm[lag..]);
                    let sum: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    sum / pcm.len() as f64 / energy(pcm)
                };
                let (got, expected) = (shape(&back), shape(&sent));
                assert!((got - expected).abs() < 0.1, "{payload:?}, {lag}: {got} of {expected}");
            }
        }
    }

    #[test]
    fn silence_is_described_as_silence() {
        let mut meter = NoiseMeter::default();
        meter.add(&[0; 160]);
        assert_eq!(meter.describe()[..], [127]);
        assert_eq!(energy(&heard(&meter.describe())), 0.0);
        meter.add(&[7; 160]);
        meter.clear();
        assert_eq!(meter.describe()[..], [127]);
    }

    #[test]
    fn descriptions_of_any_kind_do_no_harm() {
        assert!(ComfortNoise::decode(&[]).is_none());
        for byte in 0..=255 {
            let mut noise = ComfortNoise::decode(&[byte; 30]).expect("noise");
            noise.follow(ComfortNoise::decode(&[byte, 255 - byte]).expect("noise"));
            let mut pcm = [0; 8000];
            noise.sound(&mut pcm);
            assert!(noise.states.iter().all(|state| state.is_finite()), "{byte}");
        }
    }
}
