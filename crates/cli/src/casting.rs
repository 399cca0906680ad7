//! What all casts to groups have in common.

use std::path::Path;
use std::time::Duration;

use fontis::SourceOptions;
use fontis::transfer::{CastOptions, CastStatus, Caster};
use fontis_proto::cast::CastRate;

use crate::failure::Failure;
use crate::json;
use crate::listen::status;
use crate::text;

/// The interval at which the cast is looked at, and the looks from one line to the next.
const TICK: Duration = Duration::from_millis(50);
const TICKS_OF_A_LINE: u32 = 20;

/// What casts the file or folder at `path`.
pub(crate) async fn caster_of(
    path: &Path,
    selection: SourceOptions,
    options: CastOptions,
) -> Result<Caster, Failure> {
    let path = path.to_owned();
    let work = move || Caster::new(&path, &selection, options);
    let made = tokio::task::spawn_blocking(work).await;
    let failed = || Failure::Failed("internal error: a worker failed".to_owned());
    Ok(made.map_err(|_| failed())??)
}

/// Says in words how fast a cast is.
pub(crate) fn rate_text(rate: CastRate) -> String {
    match rate {
        CastRate::Fixed(rate) => text::rate(rate.as_mbps_f64()),
        CastRate::Adaptive { .. } => "a rate that all receivers bear".to_owned(),
    }
}

/// Tells how a cast goes, until all receivers have everything.
pub(crate) async fn watch(
    cast_status: impl Fn() -> Option<CastStatus>,
    as_json: bool,
    all: impl Fn() -> bool,
) -> Result<(), Failure> {
    let (mut ticks, mut last) = (0, String::new());
    loop {
        tokio::time::sleep(TICK).await;
        ticks += 1;
        let all = all();
        let Some(now) = cast_status() else { continue };
        if ticks % TICKS_OF_A_LINE != 0 && !all && !now.is_over {
            continue;
        }
        say(&now, as_json, &mut last);
        if let Some(failure) = now.failure {
            return Err(Failure::Failed(failure));
        }
        if all || now.is_over {
            return Ok(());
        }
    }
}

/// Tells how the receivers fare, if it differs from what was told last.
fn say(now: &CastStatus, as_json: bool, last: &mut String) {
    let open: Vec<_> = now.members.iter().filter(|(_, member)| !member.is_done).collect();
    let caused: u64 = now.members.values().map(|member| member.caused).sum();
    let line = if as_json {
        let members = now.members.iter().map(|(id, member)| {
            serde_json::json!({
                "receiver": id,
                "lacking": member.lacking,
                "loss": member.loss,
                "rtt_ms": member.round_trip.map(|time| time.as_secs_f64() * 1e3),
                "caused": member.caused,
                "done": member.is_done,
            })
        });
        let members: Vec<_> = members.collect();
        serde_json::json!({
            "event": "cast",
            "symbols": now.symbols,
            "needed": now.needed,
            "rate_mbps": now.rate.as_mbps_f64(),
            "limiting": now.limiting,
            "receivers": members,
        })
        .to_string()
    } else {
        let sent = now.symbols as f64 / now.needed.max(1) as f64;
        // Those with the most to come, by deficit.
        let mut behind = open.clone();
        behind.sort_by_key(|(_, member)| std::cmp::Reverse(member.lacking));
        let shown = behind.iter().take(4).map(|(id, member)| {
            if member.lacking == 0 {
                return format!("{id} loses {:.1} %", 100.0 * member.loss);
            }
            let lacking = 100.0 * member.lacking as f64 / now.needed.max(1) as f64;
            let cause = match caused {
                0 => String::new(),
                all => format!(
                    ", caused {:.0} % of the repairs",
                    100.0 * member.caused as f64 / all as f64
                ),
            };
            format!("{id} lacks {lacking:.0} % (loss {:.1} %{cause})", 100.0 * member.loss)
        });
        let shown: Vec<_> = shown.collect();
        let rate = text::rate(now.rate.as_mbps_f64());
        let bounded = now.limiting.map_or_else(String::new, |one| format!(", bounded by {one}"));
        format!(
            "sent {sent:.2} times at {rate}{bounded}; {} receivers go on: {}",
            open.len(),
            shown.join(", ")
        )
    };
    if line == *last || (!as_json && open.is_empty()) {
        return;
    }
    if as_json {
        json::say(&line);
    } else {
        status(&line);
    }
    *last = line;
}
