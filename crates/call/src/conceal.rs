/// Samples of the past that are searched for the pitch: 48.75 ms at 8000 a second (G.711
/// appendix I).
const HISTORY: usize = 390;
/// The longest and the shortest pitch period: 66 and 200 Hz.
const LONGEST: usize = 120;
const SHORTEST: usize = 40;
/// Samples that are compared to find it.
const COMPARED: usize = 160;
/// Samples over which the sound fades to nothing, after those that are repeated in full.
const FULL: usize = 80;
const FADE: usize = 400;

/// Conceals missing frames of G.711 in the manner of its appendix I: the last pitch period is
/// repeated, and fades to silence within 60 ms. The edges of periods are not overlapped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Concealer {
    history: Vec<i16>,
    /// Samples that were concealed since the last good one.
    concealed: usize,
    period: usize,
}

impl Concealer {
    /// Takes a good frame; its begin is blended with the concealment that it ends.
    pub(crate) fn played(&mut self, pcm: &mut [i16]) {
        if self.concealed > 0 {
            let len = (SHORTEST / 2).min(pcm.len());
            for (at, sample) in pcm[..len].iter_mut().enumerate() {
                let old = f64::from(self.next());
                let new = f64::from(*sample);
                let weight = (at + 1) as f64 / (len + 1) as f64;
                *sample = (old + (new - old) * weight) as i16;
            }
        }
        self.concealed = 0;
        self.history.extend_from_slice(pcm);
        let surplus = self.history.len().saturating_sub(HISTORY);
        self.history.drain(..surplus);
    }

    /// Fills a missing frame.
    pub(crate) fn conceal(&mut self, pcm: &mut [i16]) {
        if self.history.len() < HISTORY {
            pcm.fill(0);
            return;
        }
        if self.concealed == 0 {
            self.period = pitch(&self.history);
        }
        for sample in pcm {
            *sample = self.next();
        }
    }

    /// The next sample of the concealment.
    fn next(&mut self) -> i16 {
        let at = self.history.len() - self.period + self.concealed % self.period;
        let faded = self.concealed.saturating_sub(FULL).min(FADE);
        self.concealed += 1;
        (f64::from(self.history[at]) * (FADE - faded) as f64 / FADE as f64) as i16
    }
}

/// The period of the end of `history`, by the greatest normalised correlation.
fn pitch(history: &[i16]) -> usize {
    let end = history.len() - COMPARED;
    let recent = &history[end..];
    let similarity = |period: usize| {
        let earlier = &history[end - period..history.len() - period];
        let (mut product, mut energy) = (0.0, 1.0);
        for (a, b) in recent.iter().zip(earlier) {
            product += f64::from(*a) * f64::from(*b);
            energy += f64::from(*b).powi(2);
        }
        product / energy.sqrt()
    };
    (SHORTEST..=LONGEST).max_by(|a, b| similarity(*a).total_cmp(&similarity(*b))).unwrap_or(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_tone_goes_on_in_phase() {
        let tone = |at: usize| (8000.0 * (std::f64::consts::TAU * at as f64 / 64.0).sin()) as i16;
        let mut concealer = Concealer::default();
        for frame in 0..4 {
            let mut pcm: Vec<i16> = (0..160).map(|at| tone(frame * 160 + at)).collect();
            concealer.played(&mut pcm);
        }
        let mut pcm = [0; 160];
        concealer.conceal(&mut pcm);
        for (at, sample) in pcm[..FULL].iter().enumerate() {
            let expected = f64::from(tone(640 + at));
            assert!((f64::from(*sample) - expected).abs() < 900.0, "{at}: {sample}, {expected}");
        }
    }
}
