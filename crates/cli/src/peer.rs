//! Flags that several subcommands share: who this side is, how fast it sends, how long it waits.

use std::fs;
use std::io::{self, BufRead, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fontis::udp::source_towards;
use fontis::{
    Accept, Endpoint, EndpointConfig, Identity, KeyLog, PublicKey, TokenStore, Url, UrlError,
};
use fontis_base::{Duration, Rate};
use fontis_proto::dfcp::DfcpConfig;
use fontis_proto::rate::RateKind;
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::paths::PathArgs;

/// The heading of the flags about keys.
pub const SECURITY: &str = "Keys";
/// The least number of bytes of a pre-shared secret.
const MIN_PSK: usize = 16;
const MAX_PSK: u64 = 4096;
/// The secret of a URL that has none.
const SECRET_VARIABLE: &str = "FONTIS_SECRET";
/// Bytes of a URL that are read at most.
const MAX_URL: u64 = 16 << 10;
/// Names the purpose of the key that is derived from a file (BLAKE3, derive_key mode).
const PSK_CONTEXT: &str = "fontis 2026-11-01 pre-shared key from a file";

/// The identity and keys of this side.
#[derive(Debug, clap::Args)]
pub struct KeyArgs {
    /// The file with the identity of this side; made on first use. A client shows this identity to
    /// the server only if it is named here; else each server sees another key of it, always the
    /// same [default: fontis/identity in the user's configuration folder]
    #[arg(long, value_name = "FILE", help_heading = SECURITY)]
    pub identity: Option<PathBuf>,
    /// A file with a secret of at least 16 bytes that both sides hold; no connection succeeds
    /// without it
    #[arg(long, value_name = "FILE", help_heading = SECURITY)]
    pub psk_file: Option<PathBuf>,
    /// Write a qlog of every connection to this folder, for fontis view and qvis: each packet, its
    /// blocks and symbols, and the estimates
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,
    /// Append the keys of every connection to this file, for Wireshark. Debugging only. WARNING: a
    /// reader of the file can read everything that these connections carry
    #[arg(long, value_name = "FILE", env = "FONTIS_KEYLOG", hide_env_values = true, help_heading = SECURITY)]
    pub keylog: Option<PathBuf>,
}

impl KeyArgs {
    /// Reads the keys, and makes the identity on first use.
    pub fn load(&self) -> Result<Keys, Failure> {
        let psk = self.psk_file.as_deref().map(read_psk).transpose()?;
        let key_log = self.keylog.as_deref().map(|path| {
            KeyLog::append(path).map_err(|error| {
                let shown = path.display();
                Failure::Failed(format!("cannot write keys to {shown}: {error}"))
            })
        });
        let is_shown = self.identity.is_some();
        let identity = identity(self.identity.as_deref())?;
        let (qlog, key_log) = (self.qlog.clone(), key_log.transpose()?);
        Ok(Keys { identity, is_shown, psk, qlog, key_log, farewells: Mutex::default() })
    }
}

/// The identity in `file`, or the user's own.
pub fn identity(file: Option<&Path>) -> Result<Identity, Failure> {
    let path = match file {
        Some(path) => path.to_owned(),
        None => Identity::default_path()?,
    };
    Ok(Identity::load_or_create(&path)?)
}

/// The secrets of this side, and the endpoints that were bound with them.
pub struct Keys {
    /// This side's key pair.
    pub identity: Identity,
    /// Servers see it as it is.
    is_shown: bool,
    psk: Option<[u8; 32]>,
    qlog: Option<PathBuf>,
    key_log: Option<KeyLog>,
    farewells: Mutex<Vec<Farewell>>,
}

type Farewell = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Keys {
    /// Binds to `address`, to be connected to.
    pub fn bind(
        &self,
        address: SocketAddr,
        rate: RateKind,
        accept: Accept,
    ) -> Result<Endpoint, fontis::BindError> {
        self.bind_as(&self.identity, (address, None), rate, accept)
    }

    fn bind_as(
        &self,
        identity: &Identity,
        (address, device): (SocketAddr, Option<String>),
        rate: RateKind,
        accept: Accept,
    ) -> Result<Endpoint, fontis::BindError> {
        let config = EndpointConfig {
            psk: self.psk.map(Into::into),
            device,
            transport: DfcpConfig { rate, ..DfcpConfig::default() },
            accept,
            qlog: self.qlog.clone(),
            key_log: self.key_log.clone(),
            tokens: TokenStore::of_user(),
            ..EndpointConfig::new(*identity.secret())
        };
        let endpoint = Endpoint::bind(address, config)?;
        self.farewells().push(Box::pin(endpoint.farewell()));
        Ok(endpoint)
    }

    /// Closes every endpoint that was bound, and waits until the peers have acknowledged it or time
    /// is up.
    pub async fn farewell(&self) {
        let farewells: JoinSet<()> = self.farewells().drain(..).collect();
        farewells.join_all().await;
    }

    fn farewells(&self) -> MutexGuard<'_, Vec<Farewell>> {
        self.farewells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Binds to any port, to connect to the server with the key `server` at `remote`, at first over
    /// the first of `paths`.
    pub fn bind_towards(
        &self,
        remote: SocketAddr,
        server: &PublicKey,
        rate: RateKind,
        paths: &PathArgs,
    ) -> Result<Endpoint, Failure> {
        let identity = match self.is_shown {
            true => self.identity.clone(),
            false => self.identity.towards(server),
        };
        self.bind_with(remote, &identity, rate, paths, Accept::None)
    }

    /// The same, for one that accepts everybody's connections too, on `listen` if there is one.
    /// Others introduce it by its key, which tells nobody more than that.
    pub fn bind_sharing(
        &self,
        remote: SocketAddr,
        paths: &PathArgs,
        listen: Option<SocketAddr>,
    ) -> Result<Endpoint, Failure> {
        let identity = match self.is_shown {
            true => self.identity.clone(),
            false => Identity::generate(),
        };
        match listen {
            None => self.bind_with(remote, &identity, RateKind::Auto, paths, Accept::Anyone),
            Some(address) => {
                Ok(self.bind_as(&identity, (address, None), RateKind::Auto, Accept::Anyone)?)
            }
        }
    }

    fn bind_with(
        &self,
        remote: SocketAddr,
        identity: &Identity,
        rate: RateKind,
        paths: &PathArgs,
        accept: Accept,
    ) -> Result<Endpoint, Failure> {
        let first = paths.first(remote)?;
        let any = match remote {
            SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0; 8], 0)),
        };
        // The system knows at once whether there is a way at all; packets would be lost without a
        // word.
        source_towards(remote).map_err(|error| {
            Failure::Failed(format!("no way to {remote}: {error}; check this machine's network"))
        })?;
        let address = first.as_ref().map_or(any, |first| SocketAddr::new(first.address, 0));
        let device = first.map(|first| first.name);
        Ok(self.bind_as(identity, (address, device), rate, accept)?)
    }
}

/// Reads a pre-shared key: any file that is long enough. A line end, which editors add, does not
/// count.
fn read_psk(path: &Path) -> Result<[u8; 32], Failure> {
    let shown = path.display();
    let failed = |what: String| Failure::Failed(format!("{shown} {what}"));
    let metadata = fs::metadata(path);
    let metadata =
        metadata.map_err(|error| Failure::Failed(format!("cannot read {shown}: {error}")))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let mode = metadata.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(failed(format!(
                "is open to others (mode {mode:03o}): run chmod 600 {shown}"
            )));
        }
    }
    if metadata.len() > MAX_PSK {
        return Err(failed(format!("has over {MAX_PSK} bytes: name a file with a secret")));
    }
    let bytes =
        fs::read(path).map_err(|error| Failure::Failed(format!("cannot read {shown}: {error}")))?;
    let secret = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
    if secret.len() < MIN_PSK {
        return Err(failed(format!(
            "has under {MIN_PSK} bytes, which can be guessed: make one with head -c 32 /dev/urandom"
        )));
    }
    Ok(blake3::derive_key(PSK_CONTEXT, secret))
}

/// The sending rate of this side.
#[derive(Debug, clap::Args)]
pub struct RateArgs {
    /// The sending rate: auto measures the path, keeps its queue short and gives way to others;
    /// friendly takes the share of a TCP (CUBIC) flow. A rate as in 20mbit is kept and greedy sends
    /// as fast as the machine can: neither gives way to anybody
    #[arg(long, value_name = "auto|friendly|greedy|RATE", default_value_t, value_parser = rate)]
    pub rate: RateKind,
    /// Let greedy send to any network; it overloads networks on purpose
    #[arg(long)]
    pub force_greedy: bool,
}

/// Reads a rate as the flag has it.
pub fn rate(text: &str) -> Result<RateKind, String> {
    match text.parse() {
        Ok(RateKind::Fixed(rate)) if rate == Rate::default() || rate.as_bps() == 0 => {
            Err("at this rate nothing is ever sent; write something like 20mbit".to_owned())
        }
        Ok(kind) => Ok(kind),
        Err(error) => Err(format!("{error}; auto, friendly, fld and greedy are the other choices")),
    }
}

/// The reason why greedy is refused, and the repair.
const GREEDY: &str = "it overloads every network between the two machines on purpose, and takes the place of all \
                      who send with care; use --rate auto, or --force-greedy on a network of your own";

impl RateArgs {
    /// Refuses greedy for a listener that other machines reach: its clients are unknown.
    pub fn check_listener(&self, listener: SocketAddr) -> Result<(), Failure> {
        match self.rate {
            RateKind::Greedy
                if !self.force_greedy && !listener.ip().to_canonical().is_loopback() =>
            {
                Err(Failure::Usage(format!(
                    "greedy is refused on {listener}, which is not a loopback address: {GREEDY}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Refuses greedy towards a public address.
    pub fn check_remote(&self, remote: SocketAddr) -> Result<(), Failure> {
        match self.rate {
            RateKind::Greedy
                if !self.force_greedy && !crate::interfaces::is_private(remote.ip()) =>
            {
                Err(Failure::Usage(format!(
                    "greedy is refused towards {remote}, which is a public address: {GREEDY}"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// How the other side is reached.
#[derive(Debug, clap::Args)]
pub struct ReachArgs {
    /// Time to wait for an answer before giving up, as in 500ms; a number alone is in seconds
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = positive)]
    pub timeout: Duration,
    /// Attempts in a row to reconnect after a lost connection; received data is not sent twice
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub retries: u32,
    /// The interfaces.
    #[command(flatten)]
    pub paths: PathArgs,
}

/// Reads a time that is longer than zero; a number without a unit is in seconds.
pub(crate) fn positive(text: &str) -> Result<Duration, String> {
    let is_number = text.parse::<f64>().is_ok();
    let time = if is_number { format!("{text} s").parse() } else { text.parse::<Duration>() };
    match time {
        Ok(Duration::ZERO) => Err("it must be longer than zero, as in 15s".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads the URL of the command line: as it is, or from a file or standard input. A URL without a
/// secret takes the one of the environment. Other users of the machine can see arguments.
pub fn url_of_argument(text: &str) -> Result<Url, Failure> {
    let read = match text.strip_prefix('@') {
        None => Ok(text.to_owned()),
        Some("-") => read_first_line(io::stdin().lock(), "standard input"),
        Some(path) => fs::File::open(path)
            .map_err(|error| Failure::Failed(format!("cannot read {path}: {error}")))
            .and_then(|file| read_first_line(file, path)),
    };
    let mut url = url(&read?)?;
    if url.secret.is_none()
        && let Some(secret) = std::env::var_os(SECRET_VARIABLE)
    {
        let secret = secret.to_str().and_then(|text| text.parse().ok());
        let wrong = || Failure::Usage(format!("{SECRET_VARIABLE}: {}", UrlError::Secret));
        url.secret = Some(secret.ok_or_else(wrong)?);
    }
    Ok(url)
}

fn read_first_line(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut line = String::new();
    let read = io::BufReader::new(from.take(MAX_URL)).read_line(&mut line);
    read.map_err(|error| Failure::Failed(format!("cannot read a URL from {name}: {error}")))?;
    Ok(line.trim().to_owned())
}

/// Reads a URL. The message does not repeat a secret.
pub fn url(text: &str) -> Result<Url, Failure> {
    text.parse().map_err(|error: UrlError| Failure::Usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_needs_loopback_a_network_of_ones_own_or_force() {
        let args = |rate, force_greedy| RateArgs { rate, force_greedy };
        let greedy = args(RateKind::Greedy, false);
        for (address, listener, remote) in [
            ("127.0.0.1:1", true, true),
            ("[::1]:1", true, true),
            ("0.0.0.0:1", false, false),
            ("[::]:1", false, false),
            ("192.168.0.1:1", false, true),
            ("203.0.113.1:1", false, false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(greedy.check_listener(address).is_ok(), listener, "{address}");
            assert_eq!(greedy.check_remote(address).is_ok(), remote, "{address}");
            assert!(args(RateKind::Greedy, true).check_listener(address).is_ok());
            assert!(args(RateKind::Auto, false).check_remote(address).is_ok());
        }
    }

    #[test]
    fn a_time_without_a_unit_is_in_seconds_and_others_keep_theirs() {
        assert_eq!(positive("3"), Ok(Duration::from_secs(3)));
        assert_eq!(positive("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(positive("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(positive("2 min").ok(), "2 min".parse().ok());
        for text in ["0", "-3", "inf", "NaN", "soon", ""] {
            assert!(positive(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_rate_of_nothing_is_refused() {
        assert!(rate("0mbit").is_err() && rate("fast").unwrap_err().contains("greedy"));
        assert_eq!(rate("20mbit"), Ok(RateKind::Fixed(Rate::from_mbps(20))));
    }

    #[cfg(unix)]
    #[test]
    fn a_preshared_key_is_a_file_of_ones_own_that_cannot_be_guessed() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("psk");
        let write = |bytes: &[u8], mode| {
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            read_psk(&path).map_err(|failure| failure.to_string())
        };
        let key = write(b"sixteen bytes ok", 0o600).unwrap();
        assert_eq!(write(b"sixteen bytes ok\r\n", 0o600).unwrap(), key);
        assert_ne!(write(b"sixteen bytes OK", 0o600).unwrap(), key);
        assert!(write(b"fifteen bytes..\n", 0o600).unwrap_err().contains("under 16 bytes"));
        assert!(write(b"sixteen bytes ok", 0o640).unwrap_err().contains("chmod 600"));
        assert!(write(&[7; 5000], 0o600).unwrap_err().contains("over"));
    }
}
