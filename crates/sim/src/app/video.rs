//! The model of a video encoder.

use fontis_base::{Duration, Rate, Stream, Time};

/// A video: groups of pictures at a frame rate, with a rate that the encoder follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Video {
    /// The rate of the encoded video when nothing limits it.
    pub rate: Rate,
    /// The least rate that the encoder produces.
    pub least: Rate,
    /// Frames a second.
    pub frames: u32,
    /// Frames from one I frame to the next.
    pub gop: u32,
    /// B frames between two frames that are references.
    pub b_frames: u32,
    /// The size of an I, a P and a B frame, relative to each other.
    pub weights: [f64; 3],
    /// The coefficient of variation of the sizes of frames of a kind.
    pub variation: f64,
    /// Whether the encoder follows the rate that the transport reports.
    pub adaptive: bool,
}

/// A kind of frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Needs no other frame.
    I,
    /// Needs the reference before it.
    P,
    /// Needs the references around it.
    B,
}

impl FrameKind {
    /// Its letter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::I => "I",
            Self::P => "P",
            Self::B => "B",
        }
    }
}

/// A frame as the encoder gives it, in the order in which frames are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoFrame {
    /// Its kind.
    pub kind: FrameKind,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The part of the reported rate that the encoder uses: the rest carries headers and repairs.
const USED: f64 = 0.85;
/// The share of a new report in the rate that the encoder follows.
const GAIN: f64 = 0.2;

/// An encoder at work.
#[derive(Clone, Debug)]
pub struct Encoder {
    video: Video,
    start: Time,
    /// Frames made.
    count: u64,
    /// The rate that it follows, in bit/s.
    rate: f64,
    stream: Stream,
}

impl Encoder {
    /// An encoder whose first frame is made at `start`.
    pub fn new(video: Video, start: Time, stream: Stream) -> Self {
        Self { video, start, count: 0, rate: video.rate.as_bps() as f64, stream }
    }

    /// When the next frame is made.
    pub const fn due(&self) -> Time {
        let frames = if self.video.frames == 0 { 1 } else { self.video.frames } as u64;
        let nanos = (self.count as u128 * 1_000_000_000 / frames as u128) as u64;
        Time::from_nanos(self.start.as_nanos().saturating_add(nanos))
    }

    /// The next frame; `reported` is the rate that the transport reports.
    pub fn next(&mut self, reported: Option<Rate>) -> VideoFrame {
        let Video { rate, least, adaptive, variation, .. } = self.video;
        if let Some(reported) = reported.filter(|_| adaptive) {
            let told = reported.as_bps() as f64 * USED;
            let bounded =
                told.clamp(least.as_bps() as f64, rate.as_bps().max(least.as_bps()) as f64);
            self.rate += GAIN * (bounded - self.rate);
        }
        let kind = self.kind(self.count % u64::from(self.video.gop.max(1)));
        self.count += 1;
        let mean = self.rate / 8.0 / f64::from(self.video.frames.max(1));
        let size = mean * self.weight(kind) / self.mean_weight() * self.factor(variation);
        VideoFrame { kind, bytes: (size as u64).max(1) }
    }

    /// The kind of a group's frame, by its place.
    fn kind(&self, place: u64) -> FrameKind {
        match place {
            0 => FrameKind::I,
            place if place % (u64::from(self.video.b_frames) + 1) == 0 => FrameKind::P,
            _ => FrameKind::B,
        }
    }

    const fn weight(&self, kind: FrameKind) -> f64 {
        let [i, p, b] = self.video.weights;
        match kind {
            FrameKind::I => i,
            FrameKind::P => p,
            FrameKind::B => b,
        }
    }

    /// The mean weight of a group's frames.
    fn mean_weight(&self) -> f64 {
        let gop = u64::from(self.video.gop.max(1));
        let sum: f64 = (0..gop).map(|place| self.weight(self.kind(place))).sum();
        (sum / gop as f64).max(f64::MIN_POSITIVE)
    }

    /// A log-normal factor of mean one.
    fn factor(&mut self, variation: f64) -> f64 {
        if variation <= 0.0 {
            return 1.0;
        }
        let sigma2 = libm::log1p(variation * variation);
        // Box and Muller, 1958.
        let (u, v) = (1.0 - self.stream.unit(), self.stream.unit());
        let normal = libm::sqrt(-2.0 * libm::log(u)) * libm::cos(core::f64::consts::TAU * v);
        libm::exp(libm::sqrt(sigma2) * normal - sigma2 / 2.0)
    }
}

impl Default for Video {
    fn default() -> Self {
        Self {
            rate: Rate::from_mbps(2),
            least: Rate::from_bps(200_000),
            frames: 25,
            gop: 12,
            b_frames: 2,
            weights: [5.0, 2.0, 1.0],
            variation: 0.2,
            adaptive: false,
        }
    }
}

/// How long after it was made a frame of an interactive video is of use.
pub const DEADLINE: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(video: Video, count: usize, reported: Option<Rate>) -> Vec<VideoFrame> {
        let mut encoder = Encoder::new(video, Time::ZERO, Stream::new(5, "video"));
        (0..count).map(|_| encoder.next(reported)).collect()
    }

    #[test]
    fn a_group_begins_with_an_i_frame_and_has_b_frames_between_references() {
        let kinds = frames(Video::default(), 13, None).into_iter().map(|frame| frame.kind.name());
        assert_eq!(kinds.collect::<String>(), "IBBPBBPBBPBBI");
    }

    #[test]
    fn the_mean_rate_is_the_one_asked_for() {
        let video = Video::default();
        let frames = frames(video, 12_000, None);
        let bytes: u64 = frames.iter().map(|frame| frame.bytes).sum();
        let seconds = frames.len() as f64 / f64::from(video.frames);
        let ratio = bytes as f64 * 8.0 / seconds / video.rate.as_bps() as f64;
        // The sizes' coefficient of variation is below one: five standard deviations of the mean.
        assert!((ratio - 1.0).abs() < 5.0 / (frames.len() as f64).sqrt(), "{ratio}");
    }

    #[test]
    fn an_adaptive_encoder_follows_the_reported_rate_between_its_bounds() {
        let video = Video { adaptive: true, variation: 0.0, ..Video::default() };
        let rate_of = |reported| {
            let last = &frames(video, 1200, Some(reported))[1188..];
            last.iter().map(|frame| frame.bytes).sum::<u64>() * 8 * 25 / 12
        };
        let near = |got: u64, expected: f64| (got as f64 / expected - 1.0).abs() < 0.01;
        assert!(near(rate_of(Rate::from_mbps(1)), 0.85e6));
        assert!(near(rate_of(Rate::from_bps(1000)), 0.2e6));
        assert!(near(rate_of(Rate::from_mbps(100)), 2e6));
    }
}
