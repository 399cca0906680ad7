//! Sending on what has come to others that fetch the same.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fontis::transfer::{self, Progress, Report, Sharing};
use fontis::{Dest, Endpoint, SinkOptions, Url};
use serde_json::json;

use crate::dial::{dial, persist};
use crate::failure::Failure;
use crate::json;
use crate::listen::{address, status, urls_of};
use crate::peer::{Keys, ReachArgs, positive};
use crate::runtime::interrupted;
use crate::text;

/// Whether and how long this side sends on what has come.
#[derive(Debug, clap::Args)]
pub struct ShareArgs {
    /// Fetch from all who fetch the same with --share too, and send on to them what has come, until
    /// everything is here; --limit holds for both. The server introduces them to each other, and
    /// may leave once it has sent everything
    #[arg(long)]
    share: bool,
    /// After the end, go on sending to others for so long, as in 10min
    #[arg(long, value_name = "TIME", requires = "share", value_parser = positive)]
    share_for: Option<fontis_base::Duration>,
    /// With --share, the address that others connect to [default: any port of all addresses]
    #[arg(long, value_name = "ADDR:PORT", requires = "share", value_parser = address)]
    listen: Option<SocketAddr>,
}

impl ShareArgs {
    /// Whether to share, and for how long after the end, as the flags have it.
    pub fn new(share: bool, share_for: Option<&str>) -> Result<Self, String> {
        if share_for.is_some() && !share {
            return Err("it needs share".to_owned());
        }
        Ok(Self { share, share_for: share_for.map(positive).transpose()?, listen: None })
    }

    pub(crate) const fn is_wanted(&self) -> bool {
        self.share
    }

    /// Refuses what cannot be shared.
    pub fn check(&self, urls: usize, dest: &Dest, options: &SinkOptions) -> Result<(), Failure> {
        let text = match dest {
            _ if !self.share => return Ok(()),
            Dest::Stdout => "blocks come in any order with --share: name a file or a folder, not -",
            Dest::Path(_) if urls > 1 => {
                "--share finds the others by itself: name one URL, or leave --share out"
            }
            Dest::Path(_) if !options.exclusions.is_empty() => {
                "--share sends on all that it fetches: leave out --share, or what excludes a part"
            }
            Dest::Path(_) => return Ok(()),
        };
        Err(Failure::Usage(text.to_owned()))
    }

    /// How long to send on after the end.
    pub fn time(&self) -> Duration {
        self.share_for.map(Duration::from).unwrap_or_default()
    }

    /// Sends on as long as the user wants.
    pub(crate) async fn go_on(&self, sharing: Sharing, url: &Url, as_json: bool) {
        let time = self.time();
        if !time.is_zero() {
            let urls = urls_of(sharing.endpoint(), url.path.as_deref(), url.secret.as_ref());
            if as_json {
                json::say(&json!({ "event": "sharing", "urls": urls }));
            } else {
                let url = urls.first().map_or_else(String::new, |url| format!(", also as {url}"));
                status(&format_args!("sharing for {}{url}; Ctrl-C ends it", text::time(time)));
            }
        }
        tokio::select! {
            () = sharing.last(time) => {}
            () = interrupted() => {}
        }
        let bytes = sharing.sent();
        if as_json {
            json::say(&json!({ "event": "shared", "bytes": bytes }));
        } else {
            status(&format_args!("sent {} on to others", text::size(bytes)));
        }
    }
}

/// Fetches the object of a URL from everybody who fetches it, and again after all connections were
/// lost. Calls `bound` with each endpoint that it tries.
pub async fn fetch(
    url: &Url,
    dest: &Dest,
    options: SinkOptions,
    keys: &Keys,
    (reach, share): (&ReachArgs, &ShareArgs),
    bound: impl Fn(&Endpoint) + Send + Sync,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<(Report, Sharing), Failure> {
    let restart = AtomicBool::new(options.restart);
    persist(reach.retries, async |connected| {
        dial(url, reach.timeout.into(), async |remote, answered| {
            let endpoint = keys.bind_sharing(remote, &reach.paths, share.listen)?;
            let _follower = reach.paths.follow(&endpoint, remote);
            bound(&endpoint);
            // Only the first attempt is to begin anew.
            let options =
                SinkOptions { restart: restart.load(Ordering::Relaxed), ..options.clone() };
            let progress = |now| {
                answered.see(&now);
                connected.fetch_or(matches!(now, Progress::Connected { .. }), Ordering::Relaxed);
                if matches!(now, Progress::Started { .. }) {
                    restart.store(false, Ordering::Relaxed);
                }
                progress(now);
            };
            let patience = Duration::from(reach.timeout);
            let shared = transfer::share(&endpoint, remote, url, dest, options, patience, progress);
            Ok(shared.await?)
        })
        .await
    })
    .await
}
