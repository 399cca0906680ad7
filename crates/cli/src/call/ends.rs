//! The two ends of an encrypted call.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;

use fontis::transfer::Progress;
use fontis::{Endpoint, Secret};
use fontis_call::{CallError, CallReport, Ringing, Voice, call, ring};
use tokio::sync::{mpsc, oneshot};

use super::args::{Args, MOST_CALLS, PORT, is_dash};
use super::bridge::{Softphone, voice_of_caller};
use super::monitor::Monitor;
use crate::dial::dial;
use crate::failure::Failure;
use crate::listen::{ListenArgs, announce, status, urls};
use crate::peer::{self, Keys};
use crate::runtime::interrupted;

/// Calls the URL.
pub(super) async fn make(
    args: &Args,
    keys: &Keys,
    monitor: &Monitor,
) -> Result<CallReport, Failure> {
    let url = peer::url_of_argument(args.url.as_deref().unwrap_or_default())?;
    let (voice, options) = voice_of_caller(args).await?;
    let (voice, is_doubted) = (RefCell::new(Some(voice)), Cell::new(false));
    let called = dial(&url, args.timeout.into(), async |remote, answered| {
        let endpoint = keys.bind_towards(remote, &url.key, args.rate(), &args.paths)?;
        let _follower = args.paths.follow(&endpoint, remote);
        let (doubts, doubted) = oneshot::channel();
        let see = async {
            if doubted.await.is_ok() {
                is_doubted.set(true);
                answered.see(&Progress::Doubted { remote });
            }
            std::future::pending().await
        };
        let connection = tokio::select! {
            biased;
            connection = endpoint.connect_doubting(remote, *url.key.as_bytes(), None, doubts) => {
                connection
            }
            never = see => never,
        };
        let connection = connection
            .map_err(|error| Failure::from(fontis::transfer::TransferError::from(error)))?;
        answered.see(&Progress::Connected { remote });
        // An address that answered is the only one.
        let Some(voice) = voice.take() else { return Err(CallError::Lost.into()) };
        let tell = |event| monitor.see(&event);
        Ok(call(&connection, url.secret.as_ref(), &options, voice, tell, interrupted()).await?)
    })
    .await;
    if let Some(Voice::Phone(phone)) = voice.take() {
        // Nobody was reached.
        let _ = phone.hang_up().await;
    }
    if called.is_err() && is_doubted.get() {
        status(&"a listener with --plain has no key: it is called by its dccp:// URL and --plain");
    }
    called
}

/// Waits for a call. Others that come during it hear that the line is busy.
pub(super) async fn listen(
    args: &Args,
    keys: &Keys,
    at: Option<SocketAddr>,
    monitor: &Monitor,
) -> Result<CallReport, Failure> {
    let listen = ListenArgs { listen: at, allow: args.allow.clone() };
    let endpoint = listen.bind(PORT, keys, args.rate())?;
    let secret = Secret::generate();
    announce_to(&urls(&endpoint, Some(&secret)), args);
    let softphone = Softphone::of(args).await?;
    status(&"waiting for a call; Ctrl-C ends it");
    let (sender, mut rings) = mpsc::channel(1);
    let most = args.calls.unwrap_or(MOST_CALLS);
    let accepting = tokio::spawn(accept(endpoint, secret, most, sender));
    let ringing = tokio::select! {
        ringing = rings.recv() => ringing,
        () = interrupted() => {
            return Err(Failure::Failed("interrupted: nobody called".to_owned()));
        }
    };
    let Some(ringing) = ringing else {
        return Err(Failure::Failed("the socket failed".to_owned()));
    };
    let busy = tokio::spawn(async move {
        while let Some(other) = rings.recv().await {
            other.refuse_busy().await;
        }
    });
    let voice = async |codec| match softphone {
        Some(softphone) => softphone.answer(codec).await,
        None => args.sound(codec),
    };
    let tell = |event| monitor.see(&event);
    let report = ringing.answer(&args.options(), voice, tell, interrupted()).await;
    accepting.abort();
    busy.abort();
    Ok(report?)
}

/// Hands on the calls of those who know the secret. Others cannot keep them waiting.
async fn accept(endpoint: Endpoint, secret: Secret, most: u32, rings: mpsc::Sender<Ringing>) {
    while let Some(connection) = endpoint.accept().await {
        let (secret, rings) = (secret.clone(), rings.clone());
        tokio::spawn(async move {
            let remote = connection.remote_addr();
            match ring(connection, Some(&secret), most).await {
                Ok(ringing) => drop(rings.send(ringing).await),
                Err(error) => status(&format_args!("{remote}: {error}")),
            }
        });
    }
}

/// Prints the URLs; on standard error, if standard output is voice.
pub(super) fn announce_to(urls: &[String], args: &Args) {
    if is_dash(args.output.as_ref()) {
        urls.iter().for_each(|url| status(url));
    } else {
        announce(urls, args.json);
    }
}
