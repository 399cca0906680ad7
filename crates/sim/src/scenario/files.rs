//! Files that scenarios name.

use fontis_base::{Duration, Probability, Rate};
use fontis_net::DeliveryTrace;

use crate::analysis::cellular::Cellular;
use crate::settings::catalogue::Catalogue;
use crate::settings::form::{Form, Setting};
use crate::settings::reader::Traces;

/// How a scenario gets at the files that it names: this crate reads none itself.
#[derive(Clone, Debug)]
pub struct Files {
    /// Where the scenario is.
    pub folder: String,
    /// Gives the text of a file, by the scenario's folder and the name that it gives; or what is
    /// wrong.
    pub read: fn(folder: &str, name: &str) -> Result<String, String>,
}

impl Default for Files {
    /// There are none.
    fn default() -> Self {
        let read = |_: &str, name: &str| {
            Err(format!("{}: files cannot be read here", name.escape_debug()))
        };
        Self { folder: String::new(), read }
    }
}

impl Files {
    /// Adds the traces that a key's value names, if it is a key for such.
    pub(super) fn load(
        &self,
        catalogue: &Catalogue,
        path: &str,
        value: &Setting,
        traces: &mut Traces,
    ) -> Result<(), String> {
        if catalogue.key_of(path).is_none_or(|key| key.form != Form::Trace) {
            return Ok(());
        }
        for name in value.list() {
            if !traces.contains_key(name) {
                let trace = match name.strip_prefix(CELLULAR) {
                    Some(model) => cellular(model)?,
                    None => {
                        let text = (self.read)(&self.folder, name)?;
                        text.parse().map_err(|error| format!("{}: {error}", name.escape_debug()))?
                    }
                };
                traces.insert(name.clone(), trace);
            }
        }
        Ok(())
    }
}

const CELLULAR: &str = "cellular:";

/// The most opportunities of a trace that is made, of eight bytes each: an hour at 160 Mbit/s.
const MOST: f64 = 5e7;

/// A trace of the model in [`cellular`](crate::analysis::cellular), by mean rate, coefficient of
/// variation, length and seed.
fn cellular(model: &str) -> Result<DeliveryTrace, String> {
    let form = "write cellular:MEAN,VARIATION,LENGTH[,SEED], as in \"cellular:10 Mbit/s,30%,60 s\"";
    let parts: Vec<&str> = model.split(',').map(str::trim).collect();
    let (mean, variation, length, seed) = match parts[..] {
        [mean, variation, length] => (mean, variation, length, "1"),
        [mean, variation, length, seed] => (mean, variation, length, seed),
        _ => return Err(form.to_owned()),
    };
    let wrong = |error: String| format!("{error}; {form}");
    let mean: Rate = mean.parse().map_err(|error| wrong(format!("{error}")))?;
    let variation: Probability = variation.parse().map_err(|error| wrong(format!("{error}")))?;
    let length: Duration = length.parse().map_err(|error| wrong(format!("{error}")))?;
    let seed: u64 = seed.parse().map_err(|_| wrong(format!("{seed:?} is no seed")))?;
    let (mean, seconds) = (mean.as_bps() as f64, length.as_secs_f64());
    if mean * seconds / 12_000.0 > MOST {
        return Err("a trace of more than fifty million opportunities is too long".to_owned());
    }
    let trace = Cellular::varying(seed, mean, variation.get(), seconds).trace();
    trace.map_err(|(_, reason)| format!("the trace is empty: an opportunity {reason}; {form}"))
}
