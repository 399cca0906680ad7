//! The pages, and one that holds its traces.

use std::io::Write;

use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use fontis_sim::trace::{Detail, stream};
use serde_json::json;

use super::source::Source;
use crate::failure::Failure;

const VIEW: &str = include_str!(concat!(env!("OUT_DIR"), "/view.html"));
const PLAYGROUND: &str = include_str!(concat!(env!("OUT_DIR"), "/playground.html"));
const WASM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fontis.wasm"));

/// Where an exported page's traces stand.
const PLACE: &str = "<script type=\"application/json\" id=\"traces\">[]</script>";

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
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let packed = gzip.write_all(&bytes).and_then(|()| gzip.finish());
        let packed = packed.map_err(|error| Failure::Failed(error.to_string()))?;
        traces.push(json!({ "title": source.title, "gzip": BASE64.encode(&packed) }));
    }
    // No title may end the script.
    let text = json!(traces).to_string().replace('<', "\\u003c");
    let filled = PLACE.replace("[]", &text);
    if !page.contains(PLACE) {
        return Err(Failure::Failed(
            "the page has no place for traces: build the viewer again".to_owned(),
        ));
    }
    Ok(page.replacen(PLACE, &filled, 1).into_bytes())
}
