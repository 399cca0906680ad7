//! The quality of a call as the E-model (ITU-T G.107) estimates it, with its default settings, and
//! that of video by G.1070.
//!
//! Start here: [`r_factor`] rates delay and loss with a codec, and [`mos`] turns the factor into a
//! mean opinion score; [`mos_of_video`] is that of a video. Delays are in milliseconds, from mouth
//! to ear; losses are shares.

/// A codec in the E-model (G.113 appendix I).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairment {
    /// The equipment impairment factor without loss, Ie.
    pub equipment: f64,
    /// The robustness against random loss, in percent, Bpl.
    pub robustness: f64,
}

const SEND_LOUDNESS: f64 = 8.0;
const RECEIVE_LOUDNESS: f64 = 2.0;
const OVERALL_LOUDNESS: f64 = SEND_LOUDNESS + RECEIVE_LOUDNESS;
const SIDETONE: f64 = 15.0;
const LISTENER_SIDETONE: f64 = 18.0;
const SEND_SHAPE: f64 = 3.0;
const TALKER_ECHO: f64 = 65.0;
const ECHO_PATH: f64 = 110.0;
const CIRCUIT_NOISE: f64 = -70.0;
const RECEIVE_FLOOR: f64 = -64.0;
const ROOM_NOISE: f64 = 35.0;

fn power_sum(levels: &[f64]) -> f64 {
    10.0 * levels.iter().map(|level| 10_f64.powf(level / 10.0)).sum::<f64>().log10()
}

/// The noise at the send side in dBm0p (G.107 equations 7-3 to 7-7).
fn noise() -> f64 {
    let room = ROOM_NOISE - OVERALL_LOUDNESS - SEND_SHAPE - 14.0;
    let send = ROOM_NOISE - SEND_LOUDNESS - SEND_SHAPE - 100.0 + 0.004 * room.powi(2);
    let effective =
        ROOM_NOISE + 10.0 * (1.0 + 10_f64.powf((10.0 - LISTENER_SIDETONE) / 10.0)).log10();
    let receive = RECEIVE_LOUDNESS - 121.0 + effective + 0.008 * (effective - 35.0).powi(2);
    power_sum(&[CIRCUIT_NOISE, send, receive, RECEIVE_FLOOR + RECEIVE_LOUDNESS])
}

/// The basic signal-to-noise ratio, Ro (equation 7-2).
fn signal_to_noise() -> f64 {
    15.0 - 1.5 * (SEND_LOUDNESS + noise())
}

/// The impairments that come with the voice: loudness, sidetone, quantising, Is (equations 7-8 to
/// 7-17).
fn simultaneous(delay: f64) -> f64 {
    let loudness = OVERALL_LOUDNESS + 0.2 * (64.0 + noise() - RECEIVE_LOUDNESS);
    let too_loud = 20.0 * ((1.0 + (loudness / 8.0).powi(8)).powf(0.125) - loudness / 8.0);
    let echo = (-delay / 4.0).exp() * 10_f64.powf(-TALKER_ECHO / 10.0);
    let sidetone = -10.0 * (10_f64.powf(-SIDETONE / 10.0) + echo).log10();
    let bent = |base: f64, power: f64| (1.0 + base.powf(power)).powf(1.0 / power);
    let wrong_sidetone = 12.0 * bent((sidetone - 13.0) / 6.0, 8.0)
        - 28.0 * bent((sidetone + 1.0) / 19.4, 35.0)
        - 13.0 * bent((sidetone - 3.0) / 33.0, 13.0)
        + 29.0;
    // One quantising unit.
    let distortion = 37.0_f64;
    let grade = 1.07 + 0.258 * distortion + 0.0602 * distortion.powi(2);
    let first = (signal_to_noise() - 100.0) / 15.0 + 46.0 / 8.4 - grade / 9.0;
    let second = 46.0 / 30.0 - grade / 40.0;
    let quantising = 15.0 * (1.0 + 10_f64.powf(first) + 10_f64.powf(second)).log10();
    too_loud + wrong_sidetone + quantising
}

/// The impairment by the delay: echoes and delay itself, Id (section 7.4).
pub fn delay_impairment(delay: f64) -> f64 {
    let echo_rating = TALKER_ECHO - 40.0 * ((1.0 + delay / 10.0) / (1.0 + delay / 150.0)).log10()
        + 6.0 * (-0.3 * delay.powi(2)).exp();
    let noise_rating = -1.5 * (noise() - RECEIVE_LOUDNESS);
    let talker = noise_rating - (80.0 + 2.5 * (echo_rating - 14.0));
    let talker_echo =
        (talker / 2.0 + (talker.powi(2) / 4.0 + 100.0).sqrt() - 1.0) * (1.0 - (-delay).exp());
    let listener = signal_to_noise() - 10.5 * (ECHO_PATH + 7.0) * (2.0 * delay + 1.0).powf(-0.25);
    let listener_echo = listener / 2.0 + (listener.powi(2) / 4.0 + 169.0).sqrt();
    let mut too_late = 0.0;
    if delay > 100.0 {
        let doublings = (delay / 100.0).log2();
        let bent = |base: f64| (1.0 + base.powi(6)).powf(1.0 / 6.0);
        too_late = 25.0 * (bent(doublings) - 3.0 * bent(doublings / 3.0) + 2.0);
    }
    talker_echo + listener_echo + too_late
}

/// The impairment by a codec and a share of random loss, Ie-eff (equation 7-29).
pub fn loss_impairment(loss: f64, codec: Impairment) -> f64 {
    let percent = 100.0 * loss.clamp(0.0, 1.0);
    codec.equipment + (95.0 - codec.equipment) * percent / (percent + codec.robustness)
}

/// The rating factor: 93.2 at best. A negative delay counts as none.
///
/// ```
/// use fontis_call::{VoiceCodec, quality};
/// let r = quality::r_factor(100.0, 0.02, VoiceCodec::G729Sized.impairment());
/// assert!((quality::mos(r) - 3.67).abs() < 0.005);
/// ```
pub fn r_factor(delay: f64, loss: f64, codec: Impairment) -> f64 {
    let delay = delay.max(0.0);
    let plain = signal_to_noise() - simultaneous(delay) - delay_impairment(delay);
    plain - loss_impairment(loss, codec)
}

/// The rating factor in the short form of Sarwar's thesis of 2014, chapter 5: 94.2 less a linear
/// impairment by delay. It is for delays up to some 400 ms.
pub fn r_factor_simple(delay: f64, loss: f64, codec: Impairment) -> f64 {
    94.2 - 0.024 * delay - 0.11 * (delay - 177.3).max(0.0) - loss_impairment(loss, codec)
}

/// The coefficients v1 to v12 of MPEG-4 at QVGA on 4.2 inches (G.1070 appendix).
const VIDEO: [f64; 12] =
    [1.431, 2.228e-2, 3.759, 184.1, 1.161, 1.446, 3.881e-4, 2.116, 467.4, 2.736, 15.28, 4.170];

/// The quality of a video of `rate` kbit/s and `frames` frames a second, of whose packets a share
/// `loss` is lost (G.1070, Vq): MPEG-4 with 320 × 240 points on a screen of 4.2 inches.
pub fn mos_of_video(rate: f64, frames: f64, loss: f64) -> f64 {
    let [v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12] = VIDEO;
    let best_frames = (v1 + v2 * rate).clamp(1.0, 30.0);
    let best = v3 * (1.0 - 1.0 / (1.0 + (rate / v4).powf(v5)));
    let tolerance = v6 + v7 * rate;
    let off = frames.ln() - best_frames.ln();
    let coding = best * (-off.powi(2) / (2.0 * tolerance.powi(2))).exp();
    let robustness = v10 + v11 * (-frames / v8).exp() + v12 * (-rate / v9).exp();
    1.0 + coding * (-100.0 * loss.clamp(0.0, 1.0) / robustness).exp()
}

/// The mean opinion score of a rating factor, from 1 to 4.5 (equation B-4).
pub fn mos(r: f64) -> f64 {
    if r <= 0.0 {
        return 1.0;
    }
    if r >= 100.0 {
        return 4.5;
    }
    (1.0 + 0.035 * r + 7e-6 * r * (r - 60.0) * (100.0 - r)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Impairment = Impairment { equipment: 0.0, robustness: 4.3 };

    #[test]
    fn the_defaults_give_the_factor_of_the_standard() {
        // G.107 section 7.7: 93.2 with the default settings, and a MOS of 4.41.
        assert!((r_factor(0.0, 0.0, PLAIN) - 93.2).abs() < 0.05);
        assert!((mos(93.2) - 4.41).abs() < 0.005);
        assert_eq!((mos(-3.0), mos(120.0)), (1.0, 4.5));
    }

    #[test]
    fn delay_and_loss_only_make_it_worse() {
        let mut last = f64::INFINITY;
        for delay in (0..2000).step_by(10) {
            let r = r_factor(f64::from(delay), 0.01, PLAIN);
            assert!(r <= last + 1e-9, "{delay}");
            last = r;
        }
        assert!(r_factor(100.0, 0.1, PLAIN) < r_factor(100.0, 0.01, PLAIN));
    }
}
