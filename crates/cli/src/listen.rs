//! Flags of the commands that wait for others, and how they bind.

use std::fmt::Display;
use std::io::{Write, stderr};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use fontis::{Accept, AllowList, BindError, Endpoint, PublicKey, Secret, Url};
use fontis_proto::rate::RateKind;
use serde_json::json;

use crate::failure::Failure;
use crate::interfaces::reachable;
use crate::json;
use crate::peer::{Keys, SECURITY};

/// The address to listen on, and the allowed clients.
#[allow(rustdoc::broken_intra_doc_links, reason = "help texts have addresses in brackets")]
#[derive(Debug, clap::Args)]
pub struct ListenArgs {
    /// Address to listen on, as in 192.0.2.1:4433; 0.0.0.0 and [::] are all addresses of the
    /// machine, port 0 is any free port [default: all addresses; port 4433 to serve, 4434 to
    /// receive]
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// Accept only clients whose public keys are in this file, one a line as `fontis keygen` prints
    /// it
    #[arg(long, value_name = "FILE", help_heading = SECURITY)]
    pub allow: Option<PathBuf>,
}

/// Reads an address with its port; a name is looked up.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let form = "write ADDR:PORT, as in 0.0.0.0:4433 or [::1]:4433";
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; {form}"))?;
    found.next().ok_or_else(|| format!("the name has no address; {form}"))
}

impl ListenArgs {
    /// The requested address, or all addresses of the machine with a port.
    pub fn address(&self, port: u16) -> SocketAddr {
        self.listen.unwrap_or_else(|| SocketAddr::from(([0; 8], port)))
    }

    /// Binds to [`address`](Self::address). By default IPv4 alone suffices if the system has no
    /// IPv6.
    pub fn bind(&self, port: u16, keys: &Keys, rate: RateKind) -> Result<Endpoint, Failure> {
        let accept = match &self.allow {
            None => Accept::Anyone,
            Some(file) => {
                let list = AllowList::read(file)?;
                Accept::Keys(list.keys().map(|key| *key.as_bytes()).collect())
            }
        };
        let bound = keys.bind(self.address(port), rate, accept.clone());
        match bound {
            Err(BindError::Io { .. }) if self.listen.is_none() => {
                Ok(keys.bind(SocketAddr::from(([0, 0, 0, 0], port)), rate, accept)?)
            }
            bound => Ok(bound?),
        }
    }
}

/// The URLs of an endpoint, the likeliest to be reachable first.
pub fn urls(endpoint: &Endpoint, secret: Option<&Secret>) -> Vec<String> {
    urls_of(endpoint, None, secret)
}

/// The URLs of one object at an endpoint.
pub fn urls_of(endpoint: &Endpoint, path: Option<&str>, secret: Option<&Secret>) -> Vec<String> {
    let Ok(key) = PublicKey::new(endpoint.public_key()) else { return Vec::new() };
    let url = |address: SocketAddr| Url {
        host: address.ip().to_string(),
        port: address.port(),
        path: path.map(str::to_owned),
        key,
        secret: secret.cloned(),
    };
    reachable(endpoint.local_addr()).into_iter().map(|address| url(address).to_string()).collect()
}

/// The secret of the URLs of a folder.
pub fn read_secret(dir: &Path, keys: &Keys) -> Result<Secret, Failure> {
    let shown = dir.display();
    let failed = |error| Failure::Failed(format!("cannot open the folder {shown}: {error}"));
    Ok(Secret::of_folder(&keys.identity, &dir.canonicalize().map_err(failed)?))
}

/// Prints the URLs on standard output, for the program that started this one.
pub fn announce(urls: &[String], as_json: bool) {
    if as_json {
        json::say(&json!({ "event": "listening", "urls": urls }));
    } else {
        urls.iter().for_each(|url| json::say(url));
    }
}

/// Fails if the path is no folder.
pub fn check_folder(dir: &Path, what: &str) -> Result<(), Failure> {
    let shown = dir.display();
    match dir.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(Failure::Failed(format!("{shown} is not a folder: {what}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::Failed(format!("there is no folder {shown}: make it, or name another")))
        }
        Err(error) => Err(Failure::Failed(format!("cannot open the folder {shown}: {error}"))),
    }
}

/// Checks a folder to receive into.
pub fn check_inbox(dir: &Path) -> Result<(), Failure> {
    check_folder(dir, "name the folder to receive into")?;
    // Better now than when somebody has sent something.
    tempfile::tempfile_in(dir).map(drop).map_err(|error| {
        let shown = dir.display();
        Failure::Failed(format!("cannot write into {shown}: {error}: choose another folder"))
    })
}

/// Prints a status line. A closed output is no error.
pub fn status(line: &dyn Display) {
    let _ = writeln!(stderr(), "{line}");
}
