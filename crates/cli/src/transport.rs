//! The transport that carries the content of files.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use fontis::sctp::{SCTP_UDP_PORT, SctpEndpoint};
use fontis_proto::sctp::{CodingConfig, SctpCode};

use crate::failure::Failure;
use crate::listen::status;

/// A transport for the content of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileTransport {
    /// The connection's own.
    #[default]
    Dfcp,
    /// SCTP, beside the connection.
    Sctp,
}

impl FileTransport {
    /// Whether it can fetch from so many servers, and share what it fetches.
    pub fn check(self, servers: usize, shares: bool) -> Result<(), Failure> {
        if self == Self::Sctp && (servers > 1 || shares) {
            let text = "sctp fetches from one server, and does not share: leave out the others";
            return Err(Failure::Usage(text.to_owned()));
        }
        Ok(())
    }
}

impl fmt::Display for FileTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dfcp => "dfcp",
            Self::Sctp => "sctp",
        })
    }
}

impl FromStr for FileTransport {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "dfcp" => Ok(Self::Dfcp),
            "sctp" => Ok(Self::Sctp),
            _ => Err("write dfcp or sctp".to_owned()),
        }
    }
}

/// What a server sends over beside its own transport.
#[derive(Debug, clap::Args)]
pub(crate) struct ServedTransportArgs {
    /// What the content is sent over: dfcp, or with sctp also SCTP, to those who ask for it with
    /// fontis get --transport sctp
    #[arg(long, default_value_t)]
    transport: FileTransport,
    /// The UDP port of SCTP; 0 is any that is free. A firewall must permit it
    #[arg(long, value_name = "PORT", default_value_t = SCTP_UDP_PORT)]
    sctp_port: u16,
    /// An erasure code over SCTP: tetrys:adaptive,128 sends as many repairs as the measured loss
    /// asks for, raptorq:adaptive,64 those of RaptorQ; tetrys:10,9,43, conv:10,9,20, block:10,9 or
    /// raptorq:10,9 sends one after every nine packets. For
    /// links that lose packets at random. Do not use it where others share a link with short
    /// queues: losses that are restored pass for chance there, and it takes their part
    #[arg(long, value_name = "CODE")]
    sctp_code: Option<SctpCode>,
}

impl ServedTransportArgs {
    /// The sockets of SCTP beside those of an endpoint that listens at `address`, if they are
    /// wanted.
    pub(crate) fn bind(&self, address: SocketAddr) -> Result<Option<SctpEndpoint>, Failure> {
        if self.transport == FileTransport::Dfcp {
            if self.sctp_code.is_some() {
                let text = "--sctp-code is for SCTP: add --transport sctp, or leave it out";
                return Err(Failure::Usage(text.to_owned()));
            }
            return Ok(None);
        }
        let address = SocketAddr::new(address.ip(), self.sctp_port);
        let bound = SctpEndpoint::bind(&[address]);
        bound.map(Some).map_err(|error| {
            Failure::Failed(format!(
                "cannot take UDP port {} for SCTP: {error}; choose another with --sctp-port",
                self.sctp_port
            ))
        })
    }

    /// The code of what is sent over SCTP; tells what it does to others.
    pub(crate) fn coding(&self) -> Option<CodingConfig> {
        let code = self.sctp_code?;
        status(&format_args!(
            "over SCTP with the code {code}: where queues are too short to show, it does not give \
             way to others (docs/sctp.md, Safety)"
        ));
        Some(CodingConfig::of(code))
    }
}
