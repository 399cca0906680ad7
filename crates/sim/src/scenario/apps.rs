//! The applications that scenarios name.

use fontis_base::{Duration, Rate};

use crate::app::Application;
use crate::app::message::{Messages, Model};
use crate::app::requests::Requests;
use crate::app::source::Pattern;
use crate::app::video::{DEADLINE, Video};
use crate::settings::error::{ScenarioError, bad};
use crate::settings::reader::Reader;

/// The names of applications, with those that stand for several flows.
pub(super) const NAMES: &[&str] = &[
    "bulk",
    "object",
    "constant",
    "poisson",
    "on-off",
    "requests",
    "short-flows",
    "list",
    "messages",
    "voice",
    "video",
];

/// G.711 in frames of 20 ms.
const VOICE_RATE: Rate = Rate::from_bps(64_000);
const VOICE_FRAME: u32 = 160;
/// The delay from mouth to ear that calls bear without notice (ITU-T G.114).
const VOICE_DEADLINE: Duration = Duration::from_millis(150);

/// The application of a flow.
pub(super) fn application(read: &Reader<'_>, name: &str) -> Result<Application, ScenarioError> {
    let rate = read.get("flow.rate").unwrap_or(Rate::ZERO);
    let piece = read.size("flow.piece").clamp(1, 65_000) as u32;
    let (on, off) = (read.duration("flow.on"), read.duration("flow.off"));
    Ok(Application::Source(match name {
        "object" => Pattern::Object { size: read.size("flow.size") },
        "constant" => Pattern::ConstantRate { rate, piece, lasts: read.get("flow.lasts") },
        "poisson" => Pattern::Poisson { rate, piece },
        "on-off" => Pattern::OnOff { rate, piece, on, off },
        "requests" => {
            let count = read.count("flow.requests");
            return Ok(Application::Requests(Requests {
                request: read.size("flow.request").max(1),
                response: read.size("flow.size"),
                think: read.duration("flow.think"),
                count: (count > 0).then_some(count),
            }));
        }
        "messages" => {
            let (mean, sigma) = (read.size("flow.size").max(1), sigma(read)?.unwrap_or(0.0));
            let model = Model::Pieces(Pattern::Spread { rate, mean, sigma });
            let deadline = read.get("flow.deadline").unwrap_or(Duration::from_secs(1));
            return Ok(Application::Messages(Messages { model, deadline }));
        }
        "voice" => {
            let rate = if read.sets("flow.rate") { rate } else { VOICE_RATE };
            let piece = if read.sets("flow.piece") { piece } else { VOICE_FRAME };
            let model = Model::Pieces(Pattern::OnOff { rate, piece, on, off });
            let deadline = read.get("flow.deadline").unwrap_or(VOICE_DEADLINE);
            return Ok(Application::Messages(Messages { model, deadline }));
        }
        "video" => {
            let model = Model::Video(video(read)?);
            let deadline = read.get("flow.deadline").unwrap_or(DEADLINE);
            return Ok(Application::Messages(Messages { model, deadline }));
        }
        _ => Pattern::Bulk,
    }))
}

/// How far sizes spread, if that is set.
pub(super) fn sigma(read: &Reader<'_>) -> Result<Option<f64>, ScenarioError> {
    let sigma: Option<f64> = read.get("flow.sigma");
    match sigma {
        Some(sigma) if !(0.0..=5.0).contains(&sigma) => {
            Err(bad("flow.sigma", format!("{sigma} must be from 0 to 5")))
        }
        sigma => Ok(sigma),
    }
}

fn video(read: &Reader<'_>) -> Result<Video, ScenarioError> {
    let count = |key| u32::try_from(read.count(key)).unwrap_or(u32::MAX);
    let positive = |key: &str, value: u32| match value {
        0 => Err(bad(key, "0 must be at least 1".to_owned())),
        value => Ok(value),
    };
    let text = read.text("flow.weights");
    let weights: Vec<f64> = text.split(':').filter_map(|part| part.trim().parse().ok()).collect();
    let weights = <[f64; 3]>::try_from(weights)
        .ok()
        .filter(|all| all.iter().all(|weight| weight.is_finite() && *weight > 0.0));
    let weights = weights.ok_or_else(|| {
        bad("flow.weights", format!("{text:?} must be three numbers above zero, as in \"5:2:1\""))
    })?;
    let default = Video::default();
    Ok(Video {
        rate: if read.sets("flow.rate") {
            read.get("flow.rate").unwrap_or(default.rate)
        } else {
            default.rate
        },
        least: read.get("flow.least").unwrap_or(default.least),
        frames: positive("flow.fps", count("flow.fps"))?,
        gop: positive("flow.gop", count("flow.gop"))?,
        b_frames: count("flow.b_frames"),
        weights,
        variation: read.get("flow.variation").unwrap_or(0.0),
        adaptive: read.flag("flow.adaptive"),
    })
}
