//! The socket by which other processes of the same user query and change a running command, with
//! lines of JSON.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use crate::control::Control;
use crate::request::parse;

/// The most bytes of a request.
const MAX_REQUEST: u64 = 4096;
/// The time in which a command must answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The folder of the sockets, which belongs to the user alone. Commands started by a timer, without
/// XDG_RUNTIME_DIR, must find the same folder as those of a session.
fn folder() -> io::Result<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let named = std::env::var_os("XDG_RUNTIME_DIR").filter(|name| !name.is_empty());
    let usual = PathBuf::from(format!("/run/user/{own}"));
    let folder = match named.map(PathBuf::from).or_else(|| usual.is_dir().then_some(usual)) {
        Some(folder) => folder.join("fontis"),
        None => std::env::temp_dir().join(format!("fontis-{own}")),
    };
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = folder.symlink_metadata()?;
    if !found.is_dir() || found.uid() != own || found.mode() & 0o077 != 0 {
        let text = format!("{} is not a folder that only you may open", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(folder)
}

/// A socket that is removed when this value is dropped.
pub(crate) struct Socket {
    path: PathBuf,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.task.abort();
        let _ = fs::remove_file(&self.path);
    }
}

/// Listens for `control`. If the system does not permit it, the command works without a socket.
pub(crate) fn listen(control: &Control) -> Option<Socket> {
    let path = folder().ok()?.join(format!("{}.sock", std::process::id()));
    // What a process of the same number left behind.
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path).ok()?;
    let control = control.clone();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(control.clone(), stream));
        }
    });
    Some(Socket { path, task })
}

async fn answer(control: Control, stream: tokio::net::UnixStream) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    tokio::io::BufReader::new(read.take(MAX_REQUEST)).read_line(&mut line).await?;
    let answer = match parse(&line) {
        Ok(Some(change)) => {
            control.change(change).await;
            control.tell();
            control.report().await
        }
        Ok(None) => control.report().await,
        Err(error) => json!({ "event": "error", "message": error }),
    };
    write.write_all(format!("{answer}\n").as_bytes()).await
}

/// The processes with a socket, or the chosen one.
pub(crate) fn processes(pid: Option<u32>) -> io::Result<Vec<(u32, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder()?)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        if let Some(number) = number.filter(|number| pid.is_none_or(|pid| pid == *number)) {
            found.push((number, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Queries a process; `None` if it has ended.
pub(crate) fn ask(path: &Path, request: &Value) -> io::Result<Option<Value>> {
    let mut stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let _ = fs::remove_file(path);
            return Ok(None);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    writeln!(stream, "{request}")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    serde_json::from_str(&line).map(Some).map_err(io::Error::other)
}
