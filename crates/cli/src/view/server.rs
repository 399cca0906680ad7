//! The page's server: this machine alone can reach it, and only who knows its URL can read from it.

use std::sync::{Arc, Mutex};
use std::thread;

use data_encoding::BASE64URL_NOPAD;
use fontis_base::Duration;
use fontis_trace::{Detail, stream};
use serde_json::json;
use tiny_http::{Header, Method, Request, Response, Server};

use super::page;
use super::source::Source;
use crate::failure::Failure;
use crate::json::say;

struct Shown {
    sources: Vec<Source>,
    detail: Detail,
    live: bool,
    ready: Vec<Mutex<Option<Ready>>>,
    /// The required Host of a request: a page elsewhere whose name resolves to this machine sends
    /// another.
    hosts: [String; 2],
    /// The first component of all paths: other users of this machine can reach the port, too.
    token: String,
}

/// The version of a source's files, and the trace as bytes.
type Ready = (String, Arc<[u8]>);

/// The settings of the server.
pub(crate) struct Settings {
    /// The port; zero takes any free one.
    pub(crate) port: u16,
    /// True if the sources grow.
    pub(crate) live: bool,
    /// True if the URL is that of the playground.
    pub(crate) playground: bool,
    /// True if a browser is opened.
    pub(crate) browser: bool,
}

/// Shows the page until interrupted.
pub(crate) fn serve(
    sources: Vec<Source>,
    detail: Detail,
    settings: &Settings,
) -> Result<(), Failure> {
    let server = Server::http(("127.0.0.1", settings.port)).map_err(|error| {
        Failure::Failed(format!("port {} cannot be used: {error}", settings.port))
    })?;
    let port = server.server_addr().to_ip().map_or(settings.port, |address| address.port());
    let shown = Arc::new(Shown {
        ready: sources.iter().map(|_| Mutex::new(None)).collect(),
        sources,
        detail,
        live: settings.live,
        hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
        token: token()?,
    });
    // What cannot be read is said here, not in the page.
    for index in 0..shown.sources.len() {
        shown.trace(index)?;
    }
    let place = if settings.playground { "playground" } else { "" };
    let url = format!("http://127.0.0.1:{port}/{}/{place}", shown.token);
    say(&url);
    if settings.browser && open::that_detached(&url).is_err() {
        eprintln!("fontis: no browser could be opened: open the page yourself; interrupt ends it");
    }
    let server = Arc::new(server);
    let workers = (0..4).map(|_| {
        let (server, shown) = (Arc::clone(&server), Arc::clone(&shown));
        thread::spawn(move || {
            while let Ok(request) = server.recv() {
                // Whoever went away needs no answer.
                let _ = shown.answer(request);
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.join().map_err(|_| Failure::Failed("the page's server broke down".to_owned()))?;
    }
    Ok(())
}

type Body = (u16, &'static str, Arc<[u8]>);

impl Shown {
    fn answer(&self, request: Request) -> std::io::Result<()> {
        let host = request.headers().iter().find(|header| header.field.equiv("Host"));
        let is_here =
            host.is_some_and(|host| self.hosts.iter().any(|own| host.value == own.as_str()));
        let (status, kind, body) = match (is_here, request.method()) {
            (false, _) => (403, TEXT, bytes("this page is for this machine alone")),
            (true, Method::Get) => match self.within(request.url()) {
                Some(url) => self.find(url),
                None => (403, TEXT, bytes("open the URL that fontis view printed")),
            },
            (true, _) => (405, TEXT, bytes("only GET is answered")),
        };
        let header = |name: &str, value: &str| {
            Header::from_bytes(name.as_bytes(), value.as_bytes()).expect("a header of ours is one")
        };
        let length = body.len();
        let response = Response::new(
            status.into(),
            vec![
                header("Content-Type", kind),
                header("Cache-Control", "no-store"),
                header("X-Content-Type-Options", "nosniff"),
                header("Content-Security-Policy", &format!("{}; connect-src 'self'", page::POLICY)),
                header("Referrer-Policy", "no-referrer"),
            ],
            std::io::Cursor::new(body),
            Some(length),
            None,
        );
        request.respond(response)
    }

    /// The URL without its token; none if that is wrong.
    fn within<'a>(&self, url: &'a str) -> Option<&'a str> {
        let (token, _) = url.strip_prefix('/')?.split_once('/')?;
        // Hashes are compared in constant time, so that the token cannot be found byte by byte.
        let is_ours = blake3::hash(token.as_bytes()) == blake3::hash(self.token.as_bytes());
        is_ours.then(|| &url[1 + token.len()..])
    }

    fn find(&self, url: &str) -> Body {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let page = |page: Result<&'static str, Failure>| match page {
            Ok(page) => (200, HTML, bytes(page)),
            Err(error) => (500, TEXT, bytes(&error.to_string())),
        };
        match path {
            "/" if self.sources.is_empty() => page(page::playground()),
            "/" => page(page::view()),
            "/playground" => page(page::playground()),
            "/fontis.wasm" if !page::wasm().is_empty() => {
                (200, "application/wasm", Arc::from(page::wasm()))
            }
            "/info" => {
                let traces = self.sources.iter();
                let traces: Vec<_> =
                    traces.map(|s| json!({ "title": s.title, "version": s.version() })).collect();
                let info = json!({ "traces": traces, "live": self.live, "most": self.detail.most });
                (200, "application/json", bytes(&info.to_string()))
            }
            _ => match path.strip_prefix("/data/").and_then(|index| index.parse().ok()) {
                Some(index) if index < self.sources.len() => self.data(index, query),
                _ => (404, TEXT, bytes("there is no such page")),
            },
        }
    }

    fn data(&self, index: usize, query: &str) -> Body {
        let part = part(query);
        let trace = match part {
            // A part is read anew, so that all of it is there.
            Some((from, until)) => {
                let detail = Detail { from, until, ..self.detail };
                self.sources[index].read(detail).map(|trace| stream::encode(&trace).into())
            }
            None => self.trace(index),
        };
        match trace {
            Ok(bytes) => (200, "application/octet-stream", bytes),
            Err(error) => (500, TEXT, bytes(&error.to_string())),
        }
    }

    /// A trace as bytes; of files that are being written, as they are now.
    fn trace(&self, index: usize) -> Result<Arc<[u8]>, Failure> {
        let source = &self.sources[index];
        let version = source.version();
        let mut ready = self.ready[index].lock().expect("no thread panics with it");
        if let Some((known, bytes)) = &*ready
            && (!self.live || *known == version)
        {
            return Ok(Arc::clone(bytes));
        }
        let bytes: Arc<[u8]> = stream::encode(&source.read(self.detail)?).into();
        *ready = Some((version, Arc::clone(&bytes)));
        Ok(bytes)
    }
}

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

/// A token that cannot be guessed.
fn token() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::Failed(format!("the system gives no random numbers ({error}): mount /dev"))
    })?;
    Ok(BASE64URL_NOPAD.encode(&bytes))
}

fn bytes(text: &str) -> Arc<[u8]> {
    Arc::from(text.as_bytes())
}

/// A span in nanoseconds, as in `from=5&until=9`.
fn part(query: &str) -> Option<(Duration, Duration)> {
    let field = |name: &str| {
        let value =
            query.split('&').find_map(|field| field.strip_prefix(name)?.strip_prefix('='))?;
        Some(Duration::from_nanos(value.parse().ok()?))
    };
    field("from").zip(field("until")).filter(|(from, until)| from < until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_token_reads() {
        let shown = Shown {
            sources: Vec::new(),
            detail: Detail::default(),
            live: false,
            ready: Vec::new(),
            hosts: [String::new(), String::new()],
            token: token().unwrap(),
        };
        let with = |path: &str| format!("/{}/{path}", shown.token);
        assert_eq!(shown.within(&with("info")), Some("/info"));
        assert_eq!(shown.find(shown.within(&with("info")).unwrap()).0, 200);
        assert_eq!(shown.within(&with("data/0?from=1&until=2")), Some("/data/0?from=1&until=2"));
        let cut = &shown.token[1..];
        for url in ["/", "/info", "//info", "info", "", &format!("/{cut}/info"), &with("")[..23]] {
            assert_eq!(shown.within(url), None, "{url}");
        }
        assert_ne!(token().unwrap(), shown.token);
    }
}
