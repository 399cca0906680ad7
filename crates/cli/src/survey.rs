//! Measuring what each interface of this machine carries.

use std::net::SocketAddr;

use fontis::Url;
use fontis::transfer::{self, Trial};
use fontis_base::Duration;
use fontis_proto::rate::RateKind;
use serde_json::{Value, json};

use crate::dial::dial;
use crate::failure::Failure;
use crate::json;
use crate::listen::status;
use crate::paths::PathArgs;
use crate::peer::{KeyArgs, Keys, positive, url_of_argument};
use crate::runtime::{block_on, until_interrupted};
use crate::text::{rate, round};

/// Two paths that carry less than this share of their sum together share a bottleneck.
const SHARED: f64 = 0.8;

/// Measure what each interface of this machine carries from a server
///
/// Content of the URL is fetched over each interface alone, and over all at once, each for a few
/// seconds, and thrown away. The report gives each interface's rate, round-trip time and loss, says
/// what it adds to the others, and names those that share a bottleneck.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The URL that fontis serve printed, or @FILE or @- as for fontis get: of content that takes
    /// longer to come than each trial lasts
    url: String,
    /// How long each trial lasts
    #[arg(long = "for", value_name = "TIME", default_value = "3s", value_parser = positive)]
    span: Duration,
    /// Time to wait for an answer over each interface
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = positive)]
    timeout: Duration,
    #[command(flatten)]
    paths: PathArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// Print JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  What does the telephone add to the Wi-Fi?
    fontis paths 'fontis://192.0.2.1:4433/?key=KEY&secret=SECRET'
  The same of two interfaces, for ten seconds each:
    fontis paths --paths wlan0,wwan0 --for 10s @url";

/// What was measured.
#[derive(Debug)]
struct Survey {
    /// The interfaces, in order; none that the system chooses alone.
    rows: Vec<Row>,
    /// All that answered at once, in Mbit/s, if they are several.
    together: Option<f64>,
    /// Pairs that share a bottleneck.
    shared: Vec<(String, String)>,
}

/// An interface alone.
#[derive(Debug)]
struct Row {
    /// Its name; none if the system chooses.
    name: Option<String>,
    measured: Result<Trial, String>,
    /// What it adds to all others, in Mbit/s.
    adds: Option<f64>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let url = url_of_argument(&args.url)?;
    let keys = args.keys.load()?;
    let survey = block_on(&keys, async {
        until_interrupted(survey(args, &url, &keys), "interrupted").await
    })?;
    if args.json {
        json::say(&report(&survey));
    } else {
        println!("{}", describe(&survey));
    }
    match survey.rows.iter().find_map(|row| row.measured.as_ref().err()) {
        Some(text) if survey.rows.iter().all(|row| row.measured.is_err()) => {
            Err(Failure::Failed(format!("no interface reaches the server: {text}")))
        }
        _ => Ok(()),
    }
}

/// Content that is fetched over some interfaces.
struct Fetching<'a> {
    args: &'a Args,
    url: &'a Url,
    keys: &'a Keys,
}

impl Fetching<'_> {
    /// Over these interfaces; over the system's choice if there are none.
    async fn over(&self, names: &[&str]) -> Result<Trial, Failure> {
        let said = if names.is_empty() { "one".to_owned() } else { names.join(",") };
        status(&format!("measuring {}", if names.is_empty() { "the path" } else { &said }));
        let paths = PathArgs::new(&said, Vec::new()).map_err(Failure::Usage)?;
        dial(self.url, self.args.timeout.into(), async |remote, answered| {
            let endpoint = self.keys.bind_towards(remote, &self.url.key, RateKind::Auto, &paths)?;
            let _follower = (names.len() > 1).then(|| paths.follow(&endpoint, remote));
            let span = self.args.span.into();
            let see = |now| answered.see(&now);
            Ok(transfer::measure(&endpoint, remote, self.url, span, see).await?)
        })
        .await
    }

    async fn mbps(&self, names: &[&str]) -> Result<f64, Failure> {
        Ok(mbps(&self.over(names).await?))
    }
}

fn mbps(trial: &Trial) -> f64 {
    trial.bytes_per_second * 8.0 / 1e6
}

async fn survey(args: &Args, url: &Url, keys: &Keys) -> Result<Survey, Failure> {
    let remote: SocketAddr = crate::dial::addresses(url).await?[0];
    let names = args.paths.names(remote)?;
    let fetching = Fetching { args, url, keys };
    if names.is_empty() {
        let measured = fetching.over(&[]).await?;
        let row = Row { name: None, measured: Ok(measured), adds: None };
        return Ok(Survey { rows: vec![row], together: None, shared: Vec::new() });
    }
    let mut rows = Vec::new();
    for name in &names {
        let measured = fetching.over(&[name]).await.map_err(|failure| failure.to_string());
        rows.push(Row { name: Some(name.clone()), measured, adds: None });
    }
    let good: Vec<(usize, &str, f64)> = (0..)
        .zip(&names)
        .zip(&rows)
        .filter_map(|((at, name), row)| {
            Some((at, name.as_str(), mbps(row.measured.as_ref().ok()?)))
        })
        .collect();
    if good.len() < 2 {
        return Ok(Survey { rows, together: None, shared: Vec::new() });
    }
    let all: Vec<&str> = good.iter().map(|(_, name, _)| *name).collect();
    let together = fetching.mbps(&all).await?;
    let mut shared = Vec::new();
    let mut pairs = Vec::new();
    for (number, one) in good.iter().enumerate() {
        for other in &good[number + 1..] {
            let both =
                if good.len() == 2 { together } else { fetching.mbps(&[one.1, other.1]).await? };
            pairs.push(((one.1, other.1), both));
            if both < SHARED * (one.2 + other.2) {
                shared.push((one.1.to_owned(), other.1.to_owned()));
            }
        }
    }
    let mut adds = Vec::new();
    for (at, name, _) in &good {
        let others: Vec<&str> = all.iter().copied().filter(|other| other != name).collect();
        let without = match others[..] {
            [other] => good.iter().find(|(_, name, _)| *name == other).map(|(_, _, rate)| *rate),
            [one, other] => {
                pairs.iter().find(|(pair, _)| *pair == (one, other)).map(|(_, both)| *both)
            }
            _ => Some(fetching.mbps(&others).await?),
        };
        adds.push((*at, without.map(|without| (together - without).max(0.0))));
    }
    for (at, adds) in adds {
        rows[at].adds = adds;
    }
    Ok(Survey { rows, together: Some(together), shared })
}

fn report(survey: &Survey) -> Value {
    let row = |row: &Row| match &row.measured {
        Ok(trial) => json!({
            "interface": row.name,
            "rate_mbps": round(mbps(trial)),
            "rtt_ms": round(trial.stats.min_rtt.as_nanos() as f64 / 1e6),
            "loss": round(trial.stats.incoming_loss),
            "ended": trial.ended,
            "adds_mbps": row.adds.map(round),
        }),
        Err(error) => json!({ "interface": row.name, "error": error }),
    };
    json!({
        "event": "paths",
        "paths": survey.rows.iter().map(row).collect::<Vec<_>>(),
        "together_mbps": survey.together.map(round),
        "shared": survey.shared,
    })
}

fn describe(survey: &Survey) -> String {
    let mut lines = Vec::new();
    for row in &survey.rows {
        let name = row.name.as_deref().unwrap_or("the system's choice");
        lines.push(match &row.measured {
            Ok(trial) => {
                let rtt = trial.stats.min_rtt.as_nanos() as f64 / 1e6;
                let loss = trial.stats.incoming_loss * 100.0;
                let least = if trial.ended { "at least " } else { "" };
                let adds = row.adds.map(|adds| format!(", adds {}", rate(adds)));
                let adds = adds.unwrap_or_default();
                format!(
                    "{name}: {least}{}, rtt {rtt:.1} ms, loss {loss:.2} %{adds}",
                    rate(mbps(trial))
                )
            }
            Err(error) => format!("{name}: {error}"),
        });
    }
    if let Some(together) = survey.together {
        lines.push(format!("together: {}", rate(together)));
        lines.extend(
            survey
                .shared
                .iter()
                .map(|(one, other)| format!("{one} and {other} share a bottleneck")),
        );
    }
    let ended = |row: &Row| row.measured.as_ref().is_ok_and(|trial| trial.ended);
    if survey.rows.iter().any(ended) {
        lines.push("the content ended before its time: name a larger file to measure more".into());
    }
    lines.join("\n")
}
