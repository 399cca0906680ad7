//! Calls that are not encrypted: RTP in DCCP (RFC 5762) over UDP (RFC 6773), with peers of any
//! make. The ends tell each other nothing but voice, so that each must know the codec, and nothing
//! proves who the peer is.

use std::net::SocketAddr;
use std::time::Duration as Wait;

use fontis::dccp::{DccpEndpoint, DccpError};
use fontis_proto::dccp::ResetCode;

use crate::carrier::VoiceCarrier;
use crate::error::CallError;
use crate::line::Line;
use crate::session::{CallEvent, CallOptions, CallReport, Session};
use crate::voice::Voice;

/// Calls the peer at `peer`, without encryption. The call lasts until one end hangs up, `stop`
/// completes, or this end has said all and has heard nothing for some seconds.
///
/// # Errors
/// If nobody answers within `patience`, it is refused, given up, not admitted, or breaks.
pub async fn call_plain(
    peer: SocketAddr,
    patience: Wait,
    options: &CallOptions,
    mut voice: Voice,
    tell: impl FnMut(CallEvent),
    stop: impl Future<Output = ()>,
) -> Result<CallReport, CallError> {
    let mut stop = std::pin::pin!(stop);
    let line = tokio::select! {
        line = Line::connect_plain(peer, options.codec) => line,
        () = tokio::time::sleep(patience) => Err(CallError::NoPlainAnswer(peer)),
        () = voice.hung_up() => Err(CallError::GivenUp),
        () = &mut stop => Err(CallError::GivenUp),
    };
    let line = match line {
        Err(CallError::Dccp(DccpError::Aborted(ResetCode::ConnectionRefused))) => {
            Err(CallError::IsEncrypted(peer))
        }
        line => line,
    };
    let begun = match line {
        Ok(line) => voice.answer(options.codec).await.map(|()| line),
        Err(error) => Err(error),
    };
    match begun {
        Ok(line) => Session::new(None, line, &alone(options), true)?.run(voice, tell, stop).await,
        Err(error) => {
            let _ = voice.finish().await;
            Err(error)
        }
    }
}

/// Waits for a call without encryption at `endpoint`, and answers it with `voice`.
///
/// # Errors
/// If it is given up, not admitted, or breaks.
pub async fn answer_plain(
    endpoint: &DccpEndpoint,
    options: &CallOptions,
    voice: impl AsyncFnOnce() -> Result<Voice, CallError>,
    tell: impl FnMut(CallEvent),
    stop: impl Future<Output = ()>,
) -> Result<CallReport, CallError> {
    let mut stop = std::pin::pin!(stop);
    let begun = async {
        let line = Line::accept_plain(endpoint, options.codec).await?;
        Ok::<_, CallError>((line, voice().await?))
    };
    let (line, voice) = tokio::select! {
        begun = begun => begun?,
        () = &mut stop => return Err(CallError::GivenUp),
    };
    Session::new(None, line, &alone(options), false)?.run(voice, tell, stop).await
}

/// One call over DCCP, without repair packets, which no other knows.
fn alone(options: &CallOptions) -> CallOptions {
    CallOptions {
        carrier: VoiceCarrier::Dccp,
        calls: 1,
        repair: 0.0,
        copies: None,
        ..options.clone()
    }
}
