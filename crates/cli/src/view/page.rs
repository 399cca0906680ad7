//! The pages, and one that holds its traces.

use std::io::Write;

use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use fontis_trace::{Detail, stream};
use serde_json::json;

use super::source::Source;
use crate::failure::Failure;

const VIEW: &str = include_str!(concat!(env!("OUT_DIR"), "/view.html"));
const PLAYGROUND: &str = include_str!(concat!(env!("OUT_DIR"), "/playground.html"));
const WASM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fontis.wasm"));

/// The pages load nothing from elsewhere, and send nothing there.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; \
                                 style-src 'unsafe-inline'; img-src data: blob:; \
                                 base-uri 'none'; form-action 'none'";

/// The places of an exported page's traces and simulator.
fn place(id: &str, content: &str) -> String {
    format!("<script type=\"application/json\" id=\"{id}\">{content}</script>")
}

/// The page that shows traces.
pub(crate) fn view() -> Result<&'static str, Failure> {
    built(VIEW)
}

/// The page in which simulations run.
pub(crate) fn playground() -> Result<&'static str, Failure> {
    built(PLAYGROUND)
}

/// The simulator for the page; empty if it was not built.
pub(crate) const fn wasm() -> &'static [u8] {
    WASM
}

fn built(page: &'static str) -> Result<&'static str, Failure> {
    if page.is_empty() {
        let text = "this fontis was built without its pages: run make viewer, then build it again; --svg works without them";
        return Err(Failure::Failed(text.to_owned()));
    }
    Ok(page)
}

/// The page with traces in it.
pub(crate) fn export(sources: &[Source], detail: Detail) -> Result<Vec<u8>, Failure> {
    let page = view()?;
    let mut traces = Vec::new();
    for source in sources {
        let bytes = stream::encode(&source.read(detail)?);
        traces.push(json!({ "title": source.title, "gzip": pack(&bytes)? }));
    }
    // No title may end the script.
    let text = json!(traces).to_string().replace('<', "\\u003c");
    fill(page, "traces", &text)
}

/// The playground with its simulator in it.
pub(crate) fn export_playground() -> Result<Vec<u8>, Failure> {
    let page = playground()?;
    if WASM.is_empty() {
        return built("").map(|_| Vec::new());
    }
    fill(page, "wasm", &json!([pack(WASM)?]).to_string())
}

/// As gzip, in base64.
fn pack(bytes: &[u8]) -> Result<String, Failure> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let packed = gzip.write_all(bytes).and_then(|()| gzip.finish());
    Ok(BASE64.encode(&packed.map_err(|error| Failure::Failed(error.to_string()))?))
}

fn fill(page: &str, id: &str, content: &str) -> Result<Vec<u8>, Failure> {
    let empty = place(id, "[]");
    if !page.contains(&empty) {
        let text = format!("the page has no place for its {id}: build the viewer again");
        return Err(Failure::Failed(text));
    }
    // A file has no headers.
    let head = format!("<head><meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">");
    let page = page.replacen("<head>", &head, 1);
    Ok(page.replacen(&empty, &place(id, content), 1).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exported_page_may_load_and_send_nothing() {
        let page = format!("<!doctype html><html><head></head>{}</html>", place("traces", "[]"));
        let filled = String::from_utf8(fill(&page, "traces", "[1]").unwrap()).unwrap();
        let meta =
            "<head><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';";
        assert!(filled.contains(meta) && filled.contains("[1]"), "{filled}");
        assert!(!POLICY.contains("connect-src"), "what is not named is not allowed");
    }
}
