use std::io;
use std::sync::Arc;
use std::time::Instant;

use fontis_proto::data_channel::DataChannelOptions;
use is::{Candidate, IceCreds};
use tokio::net::UdpSocket;

use crate::channel::RtcChannel;
use crate::config::RtcConfig;
use crate::core::{self, Core, Handle, Phase};
use crate::description::{Description, Setup};
use crate::link::Link;
use crate::{RtcError, certificate};

/// One end of a connection with one other. The connection is closed when the peer and all of its
/// channels are dropped, after what was sent.
pub struct RtcPeer {
    handle: Arc<Handle>,
    credentials: IceCreds,
    fingerprint: String,
    longest: u64,
    /// The number of its session in descriptions.
    session: u64,
}

/// A name or a password of random letters.
fn letters(count: usize) -> io::Result<String> {
    let mut bytes = vec![0; count / 2];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl RtcPeer {
    /// Binds sockets. Belongs to the runtime that runs.
    ///
    /// # Errors
    /// If there is no address, or an address cannot be bound.
    pub async fn bind(config: RtcConfig) -> Result<Self, RtcError> {
        let begin = Instant::now();
        let mut sockets = Vec::new();
        for address in config.bound()? {
            let socket = UdpSocket::bind(address).await?;
            sockets.push((socket.local_addr()?, socket));
        }
        let credentials = IceCreds { ufrag: letters(8)?, pass: letters(32)? };
        let certificate = certificate::fresh()?;
        let fingerprint = certificate::fingerprint(&certificate.certificate);
        let locals: Vec<_> = sockets.iter().map(|(address, _)| *address).collect();
        let link = Link::new(begin, credentials.clone(), certificate, &locals);
        let (own, longest) = (core::sctp(&config)?, config.longest_message.into());
        let core = Core::new(config, begin, link, own, sockets);
        tokio::spawn(core.clone().drive());
        // A number of 62 bits (RFC 9429 section 5.2.1).
        let session = u64::from_str_radix(&letters(16)?, 16).unwrap_or(1) >> 2;
        let handle = Arc::new(Handle(core));
        Ok(Self { handle, credentials, fingerprint, longest, session })
    }

    fn description(&self) -> Description {
        let candidates = self.handle.0.inner().link.candidates();
        let (credentials, fingerprint) = (self.credentials.clone(), self.fingerprint.clone());
        Description::new(credentials, candidates, fingerprint, self.longest)
    }

    /// The offer, in SDP, that this end makes.
    ///
    /// # Errors
    /// If it has answered one.
    pub fn offer(&self) -> Result<String, RtcError> {
        let text = self.description().write(self.session);
        let mut inner = self.handle.0.inner();
        if !matches!(inner.phase, Phase::New | Phase::Offered) {
            return Err(RtcError::Order("an offer is made before anything else"));
        }
        inner.phase = Phase::Offered;
        Ok(text)
    }

    /// The answer, in SDP, to the peer's offer, which it begins to connect with.
    ///
    /// # Errors
    /// If the offer is none for a data channel, or this end has made or answered one.
    pub fn answer(&self, offer: &str) -> Result<String, RtcError> {
        let offer = Description::parse(offer)?;
        let setup = match offer.setup {
            Setup::Active => Setup::Passive,
            Setup::Passive | Setup::Either => Setup::Active,
        };
        let text = self.description().answering(&offer, setup).write(self.session);
        let mut inner = self.handle.0.inner();
        if inner.phase != Phase::New {
            return Err(RtcError::Order("an offer is answered before anything else"));
        }
        inner.begin(offer, false);
        drop(inner);
        self.handle.0.wake();
        Ok(text)
    }

    /// Takes the peer's answer to this end's offer, and begins to connect.
    ///
    /// # Errors
    /// If it is none for a data channel, or no offer was made.
    pub fn accept(&self, answer: &str) -> Result<(), RtcError> {
        let answer = Description::parse(answer)?;
        if answer.setup == Setup::Either {
            return Err(RtcError::Description("leaves open who begins (a=setup:actpass)".into()));
        }
        let mut inner = self.handle.0.inner();
        if inner.phase != Phase::Offered {
            return Err(RtcError::Order("an answer is taken once, after the offer"));
        }
        inner.begin(answer, true);
        drop(inner);
        self.handle.0.wake();
        Ok(())
    }

    /// Another candidate of the peer, as it tells them one by one: `candidate:…`.
    ///
    /// # Errors
    /// If it is none that can be used; names that only the peer's own network resolves are not.
    pub fn add_candidate(&self, candidate: &str) -> Result<(), RtcError> {
        let text = candidate.trim().trim_start_matches("a=");
        let parsed = Candidate::from_sdp_string(text);
        let parsed =
            parsed.map_err(|error| RtcError::Description(format!("has {text}: {error}")))?;
        self.handle.0.inner().link.add_candidate(parsed);
        self.handle.0.wake();
        Ok(())
    }

    /// Waits until both ends are connected.
    ///
    /// # Errors
    /// If that fails.
    pub async fn connected(&self) -> Result<(), RtcError> {
        let connected = self.handle.0.until(|inner| match inner.check() {
            Ok(()) => (inner.phase == Phase::Connected).then_some(Ok(())),
            Err(error) => Some(Err(error)),
        });
        connected.await
    }

    /// Opens a channel, once both ends are connected.
    ///
    /// # Errors
    /// If the connection is over, or there cannot be another channel.
    pub async fn open(&self, options: DataChannelOptions) -> Result<RtcChannel, RtcError> {
        let core = &self.handle.0;
        let place = core.until(|inner| inner.open(core.now(), &options)).await?;
        core.wake();
        Ok(RtcChannel::new(self.handle.clone(), place, options))
    }

    /// The next channel that the peer opens; `None` when the connection was closed.
    ///
    /// # Errors
    /// If the connection has failed.
    pub async fn incoming(&self) -> Result<Option<RtcChannel>, RtcError> {
        let next = self.handle.0.until(|inner| match inner.take_incoming() {
            Some(incoming) => Some(Ok(Some(incoming))),
            None => match inner.check() {
                Ok(()) => None,
                Err(RtcError::Closed) => Some(Ok(None)),
                Err(error) => Some(Err(error)),
            },
        });
        let next = next.await?;
        self.handle.0.wake();
        let channel =
            |(number, id, options)| RtcChannel::new(self.handle.clone(), (number, id), options);
        Ok(next.map(channel))
    }
}
