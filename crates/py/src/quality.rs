//! The E-model, as calls rate themselves with it, and the model of video.

use fontis_call::quality::{self, Impairment};
use pyo3::prelude::*;

/// The rating factor for a delay in ms, a share of loss, and a codec's Ie and Bpl.
#[pyfunction]
pub(crate) fn rating(delay: f64, loss: f64, equipment: f64, robustness: f64) -> f64 {
    quality::r_factor(delay, loss, Impairment { equipment, robustness })
}

/// The rating factor in the thesis's short form.
#[pyfunction]
pub(crate) fn rating_simple(delay: f64, loss: f64, equipment: f64, robustness: f64) -> f64 {
    quality::r_factor_simple(delay, loss, Impairment { equipment, robustness })
}

/// The quality of a video of a rate in kbit/s, frames a second, and a share of loss.
#[pyfunction]
pub(crate) fn video(rate: f64, frames: f64, loss: f64) -> f64 {
    quality::mos_of_video(rate, frames, loss)
}

/// The impairment by a delay in ms.
#[pyfunction]
pub(crate) fn delay_impairment(delay: f64) -> f64 {
    quality::delay_impairment(delay)
}

/// The impairment by a codec and a share of loss.
#[pyfunction]
pub(crate) fn loss_impairment(loss: f64, equipment: f64, robustness: f64) -> f64 {
    quality::loss_impairment(loss, Impairment { equipment, robustness })
}

/// The mean opinion score of a rating factor.
#[pyfunction]
pub(crate) fn mos(r: f64) -> f64 {
    quality::mos(r)
}
