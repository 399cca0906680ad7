//! The softphone of a call.

use std::net::{Ipv4Addr, SocketAddr};

use fontis_call::{CallError, CallOptions, Phone, PhoneBridge, PhoneError, Voice, VoiceCodec};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::args::{Args, BRIDGE_PORT};
use crate::failure::Failure;
use crate::json;
use crate::listen::status;
use crate::runtime::interrupted;

/// A softphone that a call can have.
pub(super) enum Softphone {
    /// It is to ring.
    Ring(PhoneBridge, String),
    /// It calls, and is taken when it is wanted.
    Wait(JoinHandle<Result<Phone, PhoneError>>, oneshot::Sender<()>),
}

/// Binds the bridge, if there is to be one, and says where it is.
async fn bind(args: &Args) -> Result<Option<PhoneBridge>, Failure> {
    let Some(at) = args.bridge else { return Ok(None) };
    let at = at.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, BRIDGE_PORT)));
    let failed = |error| Failure::Failed(format!("cannot bind the bridge to {at}: {error}"));
    let bridge = PhoneBridge::bind(at).await.map_err(failed)?;
    let at = bridge.local_addr().map_err(failed)?;
    if !at.ip().is_loopback() {
        status(&"the bridge is open to other machines, and its voice is not encrypted");
    }
    if args.json {
        json::say(&json!({ "event": "bridge", "sip": format!("sip:fontis@{at}") }));
    }
    if args.ring.is_none() {
        status(&format_args!("a softphone may call sip:fontis@{at}"));
    }
    Ok(Some(bridge))
}

/// The voice of a caller, with the wishes for its call: a softphone that has called the bridge, or
/// files, which are opened before anybody's telephone rings.
pub(super) async fn voice_of_caller(args: &Args) -> Result<(Voice, CallOptions), Failure> {
    let mut options = args.options();
    let voice = match caller(args).await? {
        Some((phone, codec)) => {
            options.codec = codec;
            Voice::Phone(Box::new(phone))
        }
        None => args.sound(options.codec)?,
    };
    Ok((voice, options))
}

/// Waits until a softphone wants to call, if one is to. Returns it with the codec of the call.
async fn caller(args: &Args) -> Result<Option<(Phone, VoiceCodec)>, Failure> {
    let Some(bridge) = bind(args).await? else { return Ok(None) };
    let opus = args.codec.unwrap_or(VoiceCodec::OPUS);
    let phone = tokio::select! {
        phone = bridge.wait(opus, async {}) => phone.map_err(CallError::from)?,
        () = interrupted() => {
            return Err(Failure::Failed("interrupted: no softphone called".to_owned()));
        }
    };
    let favourite = phone.codecs().first().copied().unwrap_or(opus);
    // A call without encryption needs the codec that both sides have named.
    let codec = args.codec.unwrap_or(if args.plain { args.options().codec } else { favourite });
    Ok(Some((phone, codec)))
}

impl Softphone {
    /// The softphone of a listener, if there is to be one.
    pub(super) async fn of(args: &Args) -> Result<Option<Self>, Failure> {
        let Some(bridge) = bind(args).await? else { return Ok(None) };
        Ok(Some(match &args.ring {
            Some(uri) => Self::Ring(bridge, uri.clone()),
            None => {
                let (want, wanted) = oneshot::channel();
                let wanted = async {
                    let _ = wanted.await;
                };
                Self::Wait(tokio::spawn(bridge.wait(VoiceCodec::OPUS, wanted)), want)
            }
        }))
    }

    /// Waits until it is there.
    pub(super) async fn answer(self, codec: VoiceCodec) -> Result<Voice, CallError> {
        let phone = match self {
            Self::Ring(bridge, uri) => {
                status(&format_args!("{uri} rings"));
                bridge.ring(&uri, codec).await?
            }
            Self::Wait(waiting, want) => {
                status(&"somebody calls: the softphone must call the bridge");
                let _ = want.send(());
                let mut phone = waiting.await.map_err(std::io::Error::other)??;
                phone.accept(codec).await?;
                phone
            }
        };
        Ok(Voice::Phone(Box::new(phone)))
    }
}
