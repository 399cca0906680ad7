use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fontis::transfer::{FileServer, InboxOptions, Progress, Receiver, Report, ServerEvent};
use fontis::{Dest, Exclusions, Printable, Secret, SinkOptions, SourceOptions};
use fontis_cli::failure::Failure;
use fontis_cli::listen::{self, ListenArgs};
use fontis_cli::paths::PathArgs;
use fontis_cli::peer::{self, KeyArgs, Keys, RateArgs, ReachArgs};
use fontis_cli::send::Parcel;
use fontis_cli::share::ShareArgs;
use fontis_cli::transport::FileTransport;
use fontis_proto::dfcp::DfcpStats;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::error::{failed, failure, usage};
use crate::interrupt::{Stop, Watch};

/// Fetches what `urls` name, each server sends a part, into `dest`; gives what came, as a dict.
#[pyfunction]
#[pyo3(signature = (
    urls, dest, *, overwrite, restart, outward_links, exclude, identity, psk_file, timeout, retries,
    transport, interfaces, spare, share, share_for, progress, stop
))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are keywords, named in python/fontis/transfer.py"
)]
pub(crate) fn get(
    py: Python<'_>,
    urls: Vec<String>,
    dest: PathBuf,
    overwrite: bool,
    restart: bool,
    outward_links: bool,
    exclude: Vec<String>,
    identity: Option<PathBuf>,
    psk_file: Option<PathBuf>,
    timeout: &str,
    retries: u32,
    transport: &str,
    interfaces: &str,
    spare: Vec<String>,
    share: bool,
    share_for: Option<&str>,
    progress: Option<Py<PyAny>>,
    stop: Option<&Stop>,
) -> PyResult<Py<PyDict>> {
    let urls = urls.iter().map(|url| peer::url(url).map_err(failure));
    let urls = urls.collect::<PyResult<Vec<_>>>()?;
    let dest = Dest::new(&dest);
    if dest == Dest::Stdout {
        return Err(usage("name a file or a folder to fetch into"));
    }
    let keys = keys(identity, psk_file)?;
    let reach = reach(timeout, retries, interfaces, spare)?;
    let transport: FileTransport =
        transport.parse().map_err(|error| usage(format!("transport: {error}")))?;
    transport.check(urls.len(), share).map_err(failure)?;
    let sharing =
        ShareArgs::new(share, share_for).map_err(|error| usage(format!("share_for: {error}")))?;
    let exclusions = Exclusions::new(exclude.iter().map(String::as_str), false)
        .map_err(|error| usage(format!("exclude: {error}")))?;
    let options =
        SinkOptions { overwrite, restart, outward_links, exclusions, ..SinkOptions::default() };
    sharing.check(urls.len(), &dest, &options).map_err(failure)?;
    let report = drive(py, stop, progress, async |tell| match &urls[..] {
        [] => Err(Failure::Usage("name a URL to fetch".to_owned())),
        [url] if share => {
            let args = (&reach, &sharing);
            let fetched =
                fontis_cli::share::fetch(url, &dest, options, &keys, args, |_| (), tell).await;
            let (report, onward) = fetched?;
            onward.last(sharing.time()).await;
            Ok(report)
        }
        [url] => {
            let way = (transport, &reach);
            fontis_cli::get::fetch(url, &dest, options, &keys, way, |_| (), tell).await
        }
        urls => {
            let bound = |_| ();
            fontis_cli::get::fetch_parts(urls, &dest, options, &keys, &reach, bound, tell).await
        }
    })?;
    report_dict(py, &report)
}

/// Sends files and folders to the receiver that `url` names; gives what was stored, as dicts.
#[pyfunction]
#[pyo3(signature = (paths, url, *, rate, identity, psk_file, timeout, retries, interfaces, spare, progress, stop))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are keywords, named in python/fontis/transfer.py"
)]
pub(crate) fn send(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    url: &str,
    rate: &str,
    identity: Option<PathBuf>,
    psk_file: Option<PathBuf>,
    timeout: &str,
    retries: u32,
    interfaces: &str,
    spare: Vec<String>,
    progress: Option<Py<PyAny>>,
    stop: Option<&Stop>,
) -> PyResult<Vec<Py<PyDict>>> {
    let url = peer::url(url).map_err(failure)?;
    let rate = RateArgs { rate: peer::rate(rate).map_err(usage)?, force_greedy: false };
    let keys = keys(identity, psk_file)?;
    let reach = reach(timeout, retries, interfaces, spare)?;
    let stored = Mutex::new(Vec::new());
    let parcel = Parcel { paths: &paths, options: &SourceOptions::default() };
    drive(py, stop, progress, async |tell| {
        let see = |now: Progress| {
            if let Progress::Stored(report) = &now {
                stored.lock().unwrap_or_else(PoisonError::into_inner).push((**report).clone());
            }
            tell(now);
        };
        fontis_cli::send::deliver(parcel, &url, &rate, &keys, &reach, |_| (), see).await
    })?;
    let stored = stored.into_inner().unwrap_or_else(PoisonError::into_inner);
    stored.iter().map(|report| report_dict(py, report)).collect()
}

fn keys(identity: Option<PathBuf>, psk_file: Option<PathBuf>) -> PyResult<Keys> {
    KeyArgs { identity, psk_file, qlog: None, keylog: None }.load().map_err(failure)
}

fn reach(timeout: &str, retries: u32, interfaces: &str, spare: Vec<String>) -> PyResult<ReachArgs> {
    let timeout = timeout.parse().map_err(|error| usage(format!("timeout: {error}")))?;
    let paths =
        PathArgs::new(interfaces, spare).map_err(|error| usage(format!("interfaces: {error}")))?;
    Ok(ReachArgs { timeout, retries, paths })
}

fn runtime() -> PyResult<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| failed(format!("cannot start threads: {error}")))
}

/// Runs a transfer to its end, without the interpreter but for callbacks and signals. A callback
/// that raises ends it.
fn drive<T>(
    py: Python<'_>,
    stop: Option<&Stop>,
    progress: Option<Py<PyAny>>,
    transfer: impl AsyncFnOnce(&(dyn Fn(Progress) + Send + Sync)) -> Result<T, Failure> + Send,
) -> PyResult<T>
where
    T: Send,
{
    let watch = Watch::new(stop);
    let runtime = runtime()?;
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let (failing, failures) = oneshot::channel::<()>();
    let failing = Mutex::new(Some(failing));
    let keep = Arc::clone(&raised);
    let tell = move |now: Progress| {
        let Some(progress) = &progress else { return };
        let told = Python::attach(|py| progress.call1(py, (progress_dict(py, &now)?,)).map(drop));
        if let Err(error) = told {
            keep.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            if let Some(failing) = failing.lock().unwrap_or_else(PoisonError::into_inner).take() {
                let _ = failing.send(());
            }
        }
    };
    let (watch, result) = py.detach(move || {
        let result = runtime.block_on(async {
            tokio::select! {
                biased;
                result = transfer(&tell) => Some(result),
                () = watch.end() => None,
                Ok(()) = failures => None,
            }
        });
        // What still runs is of no more use, and may wait for a disk.
        runtime.shutdown_background();
        (watch, result)
    });
    if let Some(error) = raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    result.ok_or_else(|| watch.error())?.map_err(failure)
}

fn stats_dict<'py>(py: Python<'py>, stats: &DfcpStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("srtt", stats.srtt.as_secs_f64())?;
    dict.set_item("min_rtt", stats.min_rtt.as_secs_f64())?;
    dict.set_item("loss", stats.data_loss())?;
    dict.set_item("symbols_sent", stats.symbols_sent)?;
    dict.set_item("repair_symbols_sent", stats.repair_symbols_sent)?;
    dict.set_item("symbols_received", stats.symbols_received)?;
    dict.set_item("symbols_wasted", stats.symbols_wasted)?;
    dict.set_item("blocks_decoded", stats.blocks_decoded)?;
    Ok(dict)
}

fn report_dict(py: Python<'_>, report: &Report) -> PyResult<Py<PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", Printable(&report.name).to_string())?;
    dict.set_item("path", &report.path)?;
    dict.set_item("bytes", report.bytes)?;
    dict.set_item("resumed", report.resumed)?;
    dict.set_item("hash", &report.hash)?;
    dict.set_item("seconds", report.duration.as_secs_f64())?;
    dict.set_item("stats", stats_dict(py, &report.stats)?)?;
    dict.set_item("left_out", report.left_out.total())?;
    dict.set_item("excluded", report.left_out.excluded)?;
    Ok(dict.unbind())
}

fn progress_dict<'py>(py: Python<'py>, progress: &Progress) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    match progress {
        Progress::Connected { remote } => {
            dict.set_item("event", "connected")?;
            dict.set_item("remote", remote.to_string())?;
        }
        Progress::Met { remote } => {
            dict.set_item("event", "met")?;
            dict.set_item("remote", remote.to_string())?;
        }
        Progress::Fed { remote, keys, block, bytes, took } => {
            let [from, to] = &**keys;
            dict.set_item("event", "block")?;
            dict.set_item("remote", remote.to_string())?;
            dict.set_item("from", from)?;
            dict.set_item("to", to)?;
            dict.set_item("block", block)?;
            dict.set_item("bytes", bytes)?;
            dict.set_item("seconds", took.as_secs_f64())?;
        }
        Progress::Doubted { remote } => {
            dict.set_item("event", "doubted")?;
            dict.set_item("remote", remote.to_string())?;
        }
        Progress::Dropped { remote, error } => {
            dict.set_item("event", "dropped")?;
            dict.set_item("remote", remote.to_string())?;
            dict.set_item("error", error)?;
        }
        Progress::Started { name, bytes, entries, resumed } => {
            dict.set_item("event", "started")?;
            dict.set_item("name", Printable(name).to_string())?;
            dict.set_item("bytes", bytes)?;
            dict.set_item("entries", entries)?;
            dict.set_item("resumed", resumed)?;
        }
        Progress::Moved { done, stats } => {
            dict.set_item("event", "moved")?;
            dict.set_item("done", done)?;
            dict.set_item("stats", stats_dict(py, stats)?)?;
        }
        Progress::Gaps { blocks } => {
            dict.set_item("event", "gaps")?;
            dict.set_item("blocks", blocks)?;
        }
        Progress::Forged { from, packets } => {
            dict.set_item("event", "forged")?;
            dict.set_item("from", from.to_string())?;
            dict.set_item("packets", packets)?;
        }
        Progress::Stored(report) => {
            dict.set_item("event", "stored")?;
            dict.set_item("report", report_dict(py, report)?)?;
        }
    }
    Ok(dict)
}

fn event_dict<'py>(py: Python<'py>, event: &ServerEvent) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let (name, remote) = match event {
        ServerEvent::Connected { remote, key } => {
            dict.set_item("key", key)?;
            ("connected", remote)
        }
        ServerEvent::Started { remote, name, bytes } => {
            dict.set_item("name", Printable(name).to_string())?;
            dict.set_item("bytes", bytes)?;
            ("started", remote)
        }
        ServerEvent::Finished { remote, report } => {
            dict.set_item("report", report_dict(py, report)?)?;
            ("finished", remote)
        }
        ServerEvent::Failed { remote, error } => {
            dict.set_item("error", error)?;
            ("failed", remote)
        }
    };
    dict.set_item("event", name)?;
    dict.set_item("remote", remote.to_string())?;
    Ok(dict)
}

/// Serves a folder, or receives into one, until it is closed.
#[pyclass(frozen, module = "fontis")]
pub(crate) struct Server {
    /// Under which others reach it, the likeliest first.
    #[pyo3(get)]
    urls: Vec<String>,
    runtime: Mutex<Option<Runtime>>,
}

#[pymethods]
impl Server {
    /// `receives` says which of the two; `events` is called with a dict for all that happens, from
    /// another thread.
    #[new]
    #[pyo3(signature = (folder, *, receives, public, overwrite, hidden, max_size, outward_links, listen, rate, identity, psk_file, allow, events))]
    #[expect(
        clippy::too_many_arguments,
        reason = "they are keywords, named in python/fontis/transfer.py"
    )]
    fn new(
        folder: PathBuf,
        receives: bool,
        public: bool,
        overwrite: bool,
        hidden: bool,
        max_size: Option<u64>,
        outward_links: bool,
        listen: Option<&str>,
        rate: &str,
        identity: Option<PathBuf>,
        psk_file: Option<PathBuf>,
        allow: Option<PathBuf>,
        events: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let port = if receives { 4434 } else { 4433 };
        let listen: Option<SocketAddr> = listen.map(listen::address).transpose().map_err(usage)?;
        let args = ListenArgs { listen, allow };
        let rate = RateArgs { rate: peer::rate(rate).map_err(usage)?, force_greedy: false };
        rate.check_listener(args.address(port)).map_err(failure)?;
        let checked = match receives {
            true => listen::check_inbox(&folder),
            false => listen::check_folder(&folder, "name the folder to serve"),
        };
        checked.map_err(failure)?;
        let keys = keys(identity, psk_file)?;
        let runtime = runtime()?;
        let endpoint = {
            let _in_runtime = runtime.enter();
            args.bind(port, &keys, rate.rate).map_err(failure)?
        };
        let tell = move |event: ServerEvent| {
            let Some(events) = &events else { return };
            Python::attach(|py| {
                let told = event_dict(py, &event).and_then(|dict| events.call1(py, (dict,)));
                if let Err(error) = told {
                    // There is no caller to raise it to; the interpreter prints it.
                    error.write_unraisable(py, None);
                }
            });
        };
        let urls = if receives {
            let secret = Secret::generate();
            let urls = listen::urls(&endpoint, Some(&secret));
            let options = InboxOptions {
                overwrite,
                hidden,
                max_size,
                outward_links,
                ..InboxOptions::default()
            };
            let receiver = Receiver::new(endpoint, &folder, secret, options);
            drop(runtime.spawn(receiver.map_err(failed)?.run(tell)));
            urls
        } else {
            let secret = if public { None } else { Some(listen::read_secret(&folder, &keys)) };
            let secret = secret.transpose().map_err(failure)?;
            let urls = listen::urls(&endpoint, secret.as_ref());
            let server = FileServer::new(endpoint, &folder, secret).map_err(failed)?;
            drop(runtime.spawn(server.run(tell)));
            urls
        };
        Ok(Self { urls, runtime: Mutex::new(Some(runtime)) })
    }

    /// Stops it; connections end.
    fn close(&self, py: Python<'_>) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Its threads may be waiting for the interpreter.
        py.detach(|| drop(runtime));
    }

    fn __enter__(server: Py<Self>) -> Py<Self> {
        server
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let runtime = self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}
