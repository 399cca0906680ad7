//! Calls without encryption.

use std::net::{Ipv4Addr, SocketAddr};

use fontis::dccp::DccpEndpoint;
use fontis_call::{CallReport, answer_plain, call_plain};

use super::args::{Args, PLAIN_PORT, PLAIN_SCHEME};
use super::bridge::{Softphone, voice_of_caller};
use super::ends::announce_to;
use super::monitor::Monitor;
use crate::failure::Failure;
use crate::interfaces::reachable;
use crate::listen::status;
use crate::runtime::interrupted;

/// What both sides of such a call are told.
const WARNING: &str = "this call is not encrypted: anybody on the path can listen and speak";

/// Calls the URL.
pub(super) async fn make(args: &Args, monitor: &Monitor) -> Result<CallReport, Failure> {
    let url = args.url.as_deref().unwrap_or_default();
    let peer = address(url).await?;
    status(&WARNING);
    let (voice, options) = voice_of_caller(args).await?;
    let tell = |event| monitor.see(&event);
    let patience = args.timeout.into();
    Ok(call_plain(peer, patience, &options, voice, tell, interrupted()).await?)
}

/// The address of a URL, as in dccp://192.0.2.1:6511.
async fn address(url: &str) -> Result<SocketAddr, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{url:?} is no address of a call: {why}"));
    let host = url.strip_prefix(PLAIN_SCHEME).unwrap_or_default().trim_end_matches('/');
    let found = tokio::net::lookup_host(host).await;
    let mut found = found.map_err(|error| wrong(error.to_string()))?;
    found.next().ok_or_else(|| wrong("the name has no address".to_owned()))
}

/// Waits for a call.
pub(super) async fn listen(
    args: &Args,
    at: Option<SocketAddr>,
    monitor: &Monitor,
) -> Result<CallReport, Failure> {
    let failed = |error: std::io::Error| {
        Failure::Failed(format!("cannot listen: {error}: name another address after --listen"))
    };
    let all = SocketAddr::from(([0; 8], PLAIN_PORT));
    let endpoint = match at {
        Some(at) => DccpEndpoint::bind(at),
        None => DccpEndpoint::bind(all)
            .or_else(|_| DccpEndpoint::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, PLAIN_PORT)))),
    };
    let endpoint = endpoint.map_err(failed)?;
    let bound = endpoint.local_addr().map_err(failed)?;
    let urls: Vec<String> =
        reachable(bound).into_iter().map(|at| format!("{PLAIN_SCHEME}{at}")).collect();
    announce_to(&urls, args);
    let options = args.options();
    let softphone = Softphone::of(args).await?;
    status(&WARNING);
    status(&format_args!("waiting for a call with {}; Ctrl-C ends it", options.codec));
    let voice = async || match softphone {
        Some(softphone) => softphone.answer(options.codec).await,
        None => args.sound(options.codec),
    };
    let tell = |event| monitor.see(&event);
    Ok(answer_plain(&endpoint, &options, voice, tell, interrupted()).await?)
}
