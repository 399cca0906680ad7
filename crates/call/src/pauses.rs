//! Pauses of voice, in which codecs that have no such mode of their own need send nothing.

use bytes::Bytes;
use earshot::Detector;

use crate::noise::NoiseMeter;

/// Samples that the detector takes at once: 16 ms at its rate.
const CHUNK: usize = 256;
/// Samples a second of the detector.
const RATE: u32 = 16_000;
/// Scores of the detector from which on something is said.
const VOICE: f32 = 0.5;
/// The root mean square above which a frame is sent whatever it holds: 45 dB below the loudest
/// sound. Music and noise are no pauses.
const LOUD: f64 = 130.0;
/// How far frames of a pause are above the least that was heard of late: 6 dB. Quiet voice is
/// further above its background.
const ABOVE: f64 = 2.0;
/// The growth of that least in a frame, 2 dB in a second, and its smallest value, the steps of
/// G.711.
const FORGETTING: f64 = 1.005;
const LEAST: f64 = 8.0;
/// Quiet frames before a pause begins: 200 ms, so that the ends of words are sent.
const PATIENCE: u32 = 10;
/// Frames of a pause between two descriptions of its noise: a second, so that a lost one does no
/// harm for long, and a peer knows that the voice will go on.
const AGAIN: u32 = 50;

/// What is to be sent for a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Uttered {
    Voice,
    /// The noise of a pause, as RFC 3389 describes it.
    Noise(Bytes),
    Nothing,
}

/// Leaves pauses out.
pub(crate) struct Pauses {
    detector: PauseDetector,
    noise: NoiseMeter,
    /// Frames since the noise was described, in a pause.
    told: Option<u32>,
}

impl Pauses {
    /// For voice with so many samples a second: 8000 or 16,000.
    pub(crate) fn new(rate: u32) -> Self {
        Self { detector: PauseDetector::new(rate), noise: NoiseMeter::default(), told: None }
    }

    /// Takes the next frame.
    pub(crate) fn take(&mut self, pcm: &[i16]) -> Uttered {
        let is_pause = self.detector.is_pause(pcm);
        if self.detector.is_quiet() {
            self.noise.add(pcm);
        } else {
            self.noise.clear();
        }
        if !is_pause {
            self.told = None;
            return Uttered::Voice;
        }
        match &mut self.told {
            Some(frames) if *frames < AGAIN => {
                *frames += 1;
                Uttered::Nothing
            }
            _ => {
                self.told = Some(1);
                let noise = self.noise.describe();
                self.noise.clear();
                Uttered::Noise(noise)
            }
        }
    }
}

/// Finds pauses.
struct PauseDetector {
    detector: Box<Detector>,
    /// Whether the samples must be doubled for the detector.
    doubles: bool,
    /// What waits until a chunk is full.
    samples: Vec<i16>,
    /// The sample before.
    last: i16,
    /// The last score.
    score: f32,
    /// The least root mean square of late.
    floor: f64,
    /// Frames since something was said.
    quiet: u32,
}

impl PauseDetector {
    fn new(rate: u32) -> Self {
        Self {
            detector: Detector::default_boxed(),
            doubles: rate < RATE,
            samples: Vec::with_capacity(3 * CHUNK),
            last: 0,
            score: 0.0,
            floor: LOUD,
            quiet: 0,
        }
    }

    /// Takes the next frame. Whether nothing was said for a while.
    fn is_pause(&mut self, pcm: &[i16]) -> bool {
        for &sample in pcm {
            if self.doubles {
                let between = (i32::from(self.last) + i32::from(sample)) / 2;
                self.samples.push(between as i16);
            }
            self.samples.push(sample);
            self.last = sample;
        }
        let scores = self.samples.chunks_exact(CHUNK).map(|chunk| self.detector.predict_i16(chunk));
        self.score = scores.reduce(f32::max).unwrap_or(self.score);
        self.samples.drain(..self.samples.len() / CHUNK * CHUNK);
        let level = level(pcm);
        self.floor = level.min(FORGETTING * self.floor).max(LEAST);
        let is_quiet = self.score < VOICE && level < LOUD.min(ABOVE * self.floor);
        self.quiet = if is_quiet { self.quiet.saturating_add(1) } else { 0 };
        self.quiet > PATIENCE
    }

    /// Whether the last frame was quiet, in a pause or before one.
    const fn is_quiet(&self) -> bool {
        self.quiet > 0
    }
}

/// The root mean square.
pub(crate) fn level(pcm: &[i16]) -> f64 {
    let energy: f64 = pcm.iter().map(|sample| f64::from(*sample).powi(2)).sum();
    (energy / pcm.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::ComfortNoise;

    /// Frames of noise so many dB below the loudest sound, all different.
    fn noise(frames: usize, below: u8) -> Vec<[i16; 160]> {
        let mut noise = ComfortNoise::decode(&[below]).expect("a level");
        let mut next = || {
            let mut frame = [0; 160];
            noise.sound(&mut frame);
            frame
        };
        (0..frames).map(|_| next()).collect()
    }

    fn pauses(frames: &[[i16; 160]]) -> Vec<bool> {
        let mut detector = PauseDetector::new(8000);
        frames.iter().map(|frame| detector.is_pause(frame)).collect()
    }

    #[test]
    fn quiet_noise_is_a_pause_after_a_while_and_loud_noise_is_none() {
        for below in [127, 67, 52] {
            let found = pauses(&noise(100, below));
            assert!(!found[..10].contains(&true), "{below}: too early");
            assert!(!found[20..].contains(&false), "{below}: {found:?}");
        }
        assert!(!pauses(&noise(100, 35)).contains(&true));
    }

    #[test]
    fn what_is_quiet_and_above_its_background_is_no_pause() {
        // As voice at 52 dB below the loudest sound: 200 ms each, over noise 12 dB below it.
        let words = |frame: usize| if (frame / 10).is_multiple_of(2) { 64 } else { 52 };
        let frames: Vec<_> = (0..100).flat_map(|frame| noise(1, words(frame))).collect();
        let found = pauses(&frames);
        assert!(!found.contains(&true), "{found:?}");
    }

    #[test]
    fn what_is_loud_is_sent_at_once_and_a_while_longer() {
        let mut frames = noise(50, 61);
        frames.extend(noise(1, 27));
        frames.extend(noise(50, 61));
        let found = pauses(&frames);
        assert!(found[49], "a pause before it");
        assert!(!found[50..61].contains(&true), "{found:?}");
        assert!(found[75], "a pause after it");
    }

    #[test]
    fn the_noise_of_a_pause_is_described_at_its_begin_and_each_second() {
        let mut pauses = Pauses::new(8000);
        let said: Vec<Uttered> = noise(150, 55).iter().map(|frame| pauses.take(frame)).collect();
        let voice = said.iter().take_while(|spoken| **spoken == Uttered::Voice).count();
        assert!((10..20).contains(&voice), "{voice}");
        for (frame, spoken) in said.iter().enumerate().skip(voice) {
            match spoken {
                Uttered::Noise(noise) => assert!(noise[0].abs_diff(55) <= 1, "{noise:?}"),
                spoken => assert_eq!(*spoken, Uttered::Nothing),
            }
            let is_due = (frame - voice).is_multiple_of(50);
            assert_eq!(is_due, *spoken != Uttered::Nothing, "frame {frame}");
        }
        assert_eq!(pauses.take(&[3000; 160]), Uttered::Voice);
    }
}
