//! How the two ends of a call agree, over a connection of Fontis.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration as Wait, Instant};

use fontis::{Connection, Secret};

use crate::carrier::VoiceCarrier;
use crate::codec::VoiceCodec;
use crate::error::CallError;
use crate::line::{Line, Opening, any};
use crate::refusal::Refusal;
use crate::session::{CallEvent, CallOptions, CallReport, FAREWELL, Session, next_signal, say};
use crate::signal::{Offer, Signal, VERSION};
use crate::voice::Voice;

/// How long an end waits for the other's answer.
const PATIENCE: Wait = Wait::from_secs(20);
/// Between two words that it rings at a callee, and for how long a caller lets it ring.
const RINGING: Wait = Wait::from_secs(3);
const LONGEST_RINGING: Wait = Wait::from_secs(180);

/// Calls the peer at the other end of `connection`. `secret` is the URL's. The call lasts until
/// both ends have nothing more to say, one hangs up, or `stop` completes.
///
/// # Errors
/// If it is refused, not admitted, given up, or breaks.
pub async fn call(
    connection: &Connection,
    secret: Option<&Secret>,
    options: &CallOptions,
    mut voice: Voice,
    tell: impl FnMut(CallEvent),
    stop: impl Future<Output = ()>,
) -> Result<CallReport, CallError> {
    let mut stop = std::pin::pin!(stop);
    let begun = tokio::select! {
        begun = agree(connection, secret, options) => begun,
        () = voice.hung_up() => Err(CallError::GivenUp),
        () = &mut stop => Err(CallError::GivenUp),
    };
    let begun = match begun {
        Ok(line) => voice.answer(options.codec).await.map(|()| line),
        Err(error) => Err(error),
    };
    let line = match begun {
        Ok(line) => line,
        Err(error) => {
            connection.close(0, "the call is over");
            let _ = voice.finish().await;
            return Err(error);
        }
    };
    let session = Session::new(Some(connection.clone()), line, options, true)?;
    session.run(voice, tell, stop).await
}

/// Asks for a call, and opens its line when the peer has answered.
async fn agree(
    connection: &Connection,
    secret: Option<&Secret>,
    options: &CallOptions,
) -> Result<Line, CallError> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    let (codec, rate) = options.codec.to_wire();
    let offer = Offer {
        version: VERSION,
        secret: secret.map(|secret| secret.as_bytes().to_vec()).unwrap_or_default(),
        codec,
        rate,
        carrier: options.carrier.to_wire(),
        calls: options.calls,
        key,
    };
    say(connection, &Signal::Offer(offer));
    let begin = Instant::now();
    let port = loop {
        let answer = tokio::time::timeout(PATIENCE, next_signal(connection)).await;
        match answer.map_err(|_| CallError::NoAnswer)?.ok_or(CallError::Lost)? {
            Signal::Answer { port } => break port,
            Signal::Refused(refusal) => return Err(CallError::Refused(refusal)),
            Signal::Ringing if begin.elapsed() < LONGEST_RINGING => {}
            _ => return Err(CallError::NoAnswer),
        }
    };
    let peer = SocketAddr::new(connection.remote_addr().ip(), port);
    let form = (options.codec, options.calls);
    let line = Line::connect(options.carrier, connection, peer, &key, form);
    tokio::time::timeout(PATIENCE, line).await.map_err(|_| CallError::NoVoice)?
}

/// A call that somebody makes and nobody has answered.
pub struct Ringing {
    connection: Connection,
    offer: Offer,
    form: (VoiceCodec, VoiceCarrier, u32),
}

/// Waits for the call that comes over `connection`. The caller must know `secret`, if there is one,
/// and may make `most` calls at once.
///
/// # Errors
/// If there is no call, or a wrong one, which is refused.
pub async fn ring(
    connection: Connection,
    secret: Option<&Secret>,
    most: u32,
) -> Result<Ringing, CallError> {
    let offer = tokio::time::timeout(PATIENCE, next_signal(&connection)).await;
    let Signal::Offer(offer) = offer.map_err(|_| CallError::NoAnswer)?.ok_or(CallError::Lost)?
    else {
        return Err(CallError::NoAnswer);
    };
    match check(&offer, secret, most) {
        Ok(form) => Ok(Ringing { connection, offer, form }),
        Err(refusal) => {
            refuse(&connection, refusal).await;
            Err(CallError::Refused(refusal))
        }
    }
}

impl Ringing {
    /// Refuses the call, because this end is in another.
    pub async fn refuse_busy(self) {
        refuse(&self.connection, Refusal::Busy).await;
    }

    /// Answers the call. `voice` opens this end's input and output for the codec that the caller
    /// chose; meanwhile the caller hears that it rings here.
    ///
    /// # Errors
    /// If it is not admitted, or breaks.
    pub async fn answer(
        self,
        options: &CallOptions,
        voice: impl AsyncFnOnce(VoiceCodec) -> Result<Voice, CallError>,
        tell: impl FnMut(CallEvent),
        stop: impl Future<Output = ()>,
    ) -> Result<CallReport, CallError> {
        let Self { connection, offer, form: (codec, carrier, calls) } = self;
        let mut stop = std::pin::pin!(stop);
        let opened = tokio::select! {
            opened = voice(codec) => opened,
            () = tell_ringing(&connection) => Err(CallError::GivenUp),
            () = &mut stop => Err(CallError::GivenUp),
        };
        let voice = match opened {
            Ok(voice) => voice,
            Err(error) => {
                refuse(&connection, Refusal::Voice).await;
                return Err(error);
            }
        };
        let at = bindable(options.voice_at, connection.remote_addr().ip());
        let (opening, port) = match Opening::open(carrier, at, codec, calls).await {
            Ok(opening) => opening,
            Err(error) => {
                let _ = voice.finish().await;
                refuse(&connection, Refusal::Socket).await;
                return Err(error.into());
            }
        };
        say(&connection, &Signal::Answer { port });
        let line = match opening.accept(&connection, &offer.key).await {
            Ok(line) => line,
            Err(error) => {
                let _ = voice.finish().await;
                return Err(error);
            }
        };
        let options = CallOptions { codec, carrier, calls, ..options.clone() };
        Session::new(Some(connection), line, &options, false)?.run(voice, tell, stop).await
    }
}

/// The address for voice from `peer`: all addresses of its family, if none is wanted.
fn bindable(wanted: Option<SocketAddr>, peer: IpAddr) -> SocketAddr {
    match wanted {
        Some(at) if !at.ip().is_unspecified() => at,
        Some(at) => SocketAddr::new(any(peer).ip(), at.port()),
        None => any(peer),
    }
}

/// Tells the caller now and then that it rings here, until the caller has gone.
async fn tell_ringing(connection: &Connection) {
    let mut ticks = tokio::time::interval(RINGING);
    ticks.tick().await;
    loop {
        tokio::select! {
            _ = ticks.tick() => say(connection, &Signal::Ringing),
            _ = connection.closed() => return,
        }
    }
}

/// What an offer asks for, if whoever makes it may call.
fn check(
    offer: &Offer,
    secret: Option<&Secret>,
    most: u32,
) -> Result<(VoiceCodec, VoiceCarrier, u32), Refusal> {
    if secret.is_some_and(|secret| !secret.is(&offer.secret)) {
        return Err(Refusal::Secret);
    }
    let form = offer.check()?;
    if form.2 > most { Err(Refusal::TooMany) } else { Ok(form) }
}

/// Refuses a call, and waits until the caller knows it.
async fn refuse(connection: &Connection, refusal: Refusal) {
    say(connection, &Signal::Refused(refusal));
    let _ = tokio::time::timeout(FAREWELL, connection.closed()).await;
}
