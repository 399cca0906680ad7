//! Scenarios: experiments as people write them, in TOML.
//!
//! Start here: [`Scenario::parse`] reads a file, [`Scenario::runs`] gives the runs that it stands
//! for: one for each variant, point of the sweep and repetition. [`KEYS`] is the list of all that
//! can be set; the reference page and the JSON Schema are made from it.

mod build;
mod error;
mod files;
mod keys;
mod reference;
mod value;

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

pub use error::ScenarioError;
pub use files::Files;
pub use keys::{KEYS, Key, TABLES, find, nearest};
pub use reference::{explain, reference, schema};
pub use value::{Form, Setting};

use crate::experiment::Experiment;
use files::Traces;

/// An experiment with all its cases.
#[derive(Clone, Debug)]
pub struct Scenario {
    settings: Settings,
    /// The axes of the sweep, in the order of the file.
    sweep: Vec<(String, Vec<Setting>)>,
    /// Cases by name: what each sets.
    variants: Vec<(String, Vec<(String, Setting)>)>,
    /// What the quick variant sets, if there is one.
    quick: Vec<(String, Setting)>,
    files: Files,
    traces: Traces,
}

/// What is set, by path; and of each kind of flow and each link, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) keys: BTreeMap<String, Setting>,
    pub(crate) flows: Vec<BTreeMap<String, Setting>>,
    pub(crate) links: Vec<BTreeMap<String, Setting>>,
}

/// One run of a scenario.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its number, from 0.
    pub index: usize,
    /// The variant, or empty.
    pub variant: String,
    /// What the sweep sets in it.
    pub sweep: Vec<(String, String)>,
    /// The repetition, from 0.
    pub repetition: u64,
    /// Its seed.
    pub seed: u64,
    /// Every setting that is not its default, for the record.
    pub settings: Vec<(String, String)>,
    /// What is run.
    pub experiment: Experiment,
}

impl Run {
    /// What tells it from the scenario's other runs.
    pub fn label(&self) -> String {
        let variant = (!self.variant.is_empty()).then(|| self.variant.clone());
        let sweep = self.sweep.iter().map(|(key, value)| {
            let name = key.rsplit('.').next().unwrap_or(key);
            format!("{name} {value}")
        });
        let repetition = (self.repetition > 0).then(|| format!("repetition {}", self.repetition));
        let parts: Vec<String> = variant.into_iter().chain(sweep).chain(repetition).collect();
        parts.join(", ")
    }
}

/// More runs than anybody means: a slip in a sweep.
const MOST_RUNS: usize = 100_000;

impl Scenario {
    /// Reads a scenario that names no files.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, Files::default())
    }

    /// Reads a scenario, with what gives it the files that it names.
    pub fn parse_with(text: &str, files: Files) -> Result<Self, ScenarioError> {
        let document = DeTable::parse(text).map_err(|error| ScenarioError::Syntax {
            line: error.span().map_or(1, |span| line(text, span.start)),
            message: error.message().to_owned(),
        })?;
        let mut scenario = Self {
            settings: Settings::default(),
            sweep: Vec::new(),
            variants: Vec::new(),
            quick: Vec::new(),
            files,
            traces: Traces::new(),
        };
        for (key, item) in document.get_ref().iter() {
            let (name, at) = (&**key.get_ref(), place(text, key));
            match name {
                "sweep" => scenario.read_sweep(text, item, &at)?,
                "variants" => scenario.read_variants(text, item, &at)?,
                "quick" => scenario.read_quick(text, item, &at)?,
                "flow" | "link" => scenario.settings.read_entries(text, name, item, &at)?,
                _ if TABLES.iter().any(|(table, _)| *table == name) => {
                    let table = table(item, name, &at)?;
                    for (key, item) in table.iter() {
                        let (key, at) = (key.get_ref(), place(text, key));
                        scenario.settings.set(
                            &format!("{name}.{key}"),
                            setting(item, key, &at)?,
                            &at,
                        )?;
                    }
                }
                _ => {
                    let names = TABLES
                        .iter()
                        .map(|(table, _)| *table)
                        .chain(["sweep", "variants", "quick"]);
                    return Err(unknown(name, names.map(str::to_owned), &at));
                }
            }
        }
        if scenario.settings.flows.is_empty() {
            scenario.settings.flows.push(BTreeMap::new());
        }
        // What is wrong with a case is best known before any of them runs.
        scenario.check()?;
        Ok(scenario)
    }

    /// Sets a key as if the file had; a sweep or a variant that sets it too has the last word.
    /// Whether it goes with the others is seen when the runs are asked for: there may be more to be
    /// set.
    pub fn set(&mut self, key: &str, value: impl Into<Setting>) -> Result<(), ScenarioError> {
        self.settings.set(key, value.into(), "")?;
        // A swept key that is set is swept no more.
        self.sweep.retain(|(swept, _)| swept != key);
        self.load()
    }

    /// Sweeps a key over these values, inside of what is swept already, or in place of its present
    /// values.
    pub fn vary(&mut self, key: &str, values: Vec<Setting>) -> Result<(), ScenarioError> {
        let form = known(key, "")?.form;
        if values.is_empty() {
            return Err(bad(key, "a sweep needs values", ""));
        }
        for value in &values {
            form.check(value).map_err(|message| bad(key, &message, ""))?;
        }
        match self.sweep.iter_mut().find(|(swept, _)| swept == key) {
            Some((_, old)) => *old = values,
            None => self.sweep.push((key.to_owned(), values)),
        }
        self.load()
    }

    /// What a key is set to, or its default; of flows, the first kind's.
    pub fn get(&self, key: &str) -> String {
        let flow = key.strip_prefix("flow.").and_then(|key| self.settings.flows.first()?.get(key));
        flow.map_or_else(|| self.settings.text(key), Setting::text)
    }

    /// The values that a sweep gives a key.
    pub fn swept(&self, key: &str) -> Option<Vec<String>> {
        let (_, values) = self.sweep.iter().find(|(swept, _)| swept == key)?;
        Some(values.iter().map(Setting::text).collect())
    }

    /// Its quick variant, which takes less time and says less, if there is one: the table `quick`
    /// sets keys, and where a key is swept, other values for it.
    pub fn quick(&self) -> Option<Self> {
        if self.quick.is_empty() {
            return None;
        }
        let mut quick = self.clone();
        for (key, value) in &self.quick {
            match quick.sweep.iter_mut().find(|(swept, _)| swept == key) {
                Some((_, values)) => {
                    *values = value.list().iter().cloned().map(Setting::One).collect();
                }
                // It was accepted when the file was read.
                None => quick.settings.set(key, value.clone(), "").ok()?,
            }
        }
        Some(quick)
    }

    /// How many runs there are.
    pub fn len(&self) -> usize {
        let repetitions = self.settings.count("scenario.repetitions").max(1) as usize;
        let points =
            self.sweep.iter().fold(1usize, |n, (_, values)| n.saturating_mul(values.len()));
        points.saturating_mul(self.variants.len().max(1)).saturating_mul(repetitions)
    }

    /// Whether there are none, which is never: an axis of a sweep has a value at least.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All runs: variants, in each the points of the sweep, in each the repetitions.
    pub fn runs(&self) -> Result<Vec<Run>, ScenarioError> {
        self.check_length()?;
        let mut runs = Vec::with_capacity(self.len());
        self.each_case(|settings, variant, sweep| {
            let repetitions = settings.count("scenario.repetitions").max(1);
            for repetition in 0..repetitions {
                let seed = settings.count("scenario.seed").wrapping_add(repetition);
                let experiment = build::experiment(settings, &self.traces, seed)?;
                runs.push(Run {
                    index: runs.len(),
                    variant: variant.to_owned(),
                    sweep: sweep.to_vec(),
                    repetition,
                    seed,
                    settings: settings.listed(),
                    experiment,
                });
            }
            Ok(())
        })?;
        Ok(runs)
    }

    fn check(&mut self) -> Result<(), ScenarioError> {
        self.load()?;
        if let Some(quick) = self.quick() {
            quick.each_case(|settings, _, _| {
                build::experiment(settings, &self.traces, 1).map(drop)
            })?;
        }
        self.check_length()?;
        self.each_case(|settings, _, _| build::experiment(settings, &self.traces, 1).map(drop))
    }

    fn check_length(&self) -> Result<(), ScenarioError> {
        if self.len() > MOST_RUNS {
            return Err(ScenarioError::Senseless {
                run: String::new(),
                message: format!("{} runs are more than the {MOST_RUNS} allowed", self.len()),
            });
        }
        Ok(())
    }

    /// Reads the files that are named anywhere and have not been read.
    fn load(&mut self) -> Result<(), ScenarioError> {
        let variants = self.variants.iter().flat_map(|(_, sets)| sets);
        let sets = self.quick.iter().chain(variants).map(|(key, value)| (key.clone(), value));
        let swept = self.sweep.iter();
        let swept = swept.flat_map(|(key, values)| values.iter().map(|value| (key.clone(), value)));
        let keys = self.settings.keys.iter().map(|(key, value)| (key.clone(), value));
        let links = self.settings.links.iter().flatten();
        let links = links.map(|(key, value)| (format!("link.{key}"), value));
        for (key, value) in sets.chain(swept).chain(keys).chain(links) {
            let loaded = self.files.load(&key, value, &mut self.traces);
            loaded.map_err(|message| bad(&key, &message, ""))?;
        }
        Ok(())
    }

    /// Calls for every variant and point of the sweep, with what is set there.
    fn each_case(
        &self,
        mut call: impl FnMut(&Settings, &str, &[(String, String)]) -> Result<(), ScenarioError>,
    ) -> Result<(), ScenarioError> {
        let plain = [(String::new(), Vec::new())];
        let variants = if self.variants.is_empty() { &plain[..] } else { &self.variants };
        for (variant, sets) in variants {
            let mut settings = self.settings.clone();
            for (key, value) in sets {
                settings.set(key, value.clone(), "")?;
            }
            let points: usize = self.sweep.iter().map(|(_, values)| values.len()).product();
            for point in 0..points {
                let mut settings = settings.clone();
                let (mut rest, mut sweep) = (point, Vec::new());
                // The last axis moves fastest.
                for (key, values) in self.sweep.iter().rev() {
                    let value = &values[rest % values.len()];
                    rest /= values.len();
                    settings.set(key, value.clone(), "")?;
                    sweep.insert(0, (key.clone(), value.text()));
                }
                call(&settings, variant, &sweep).map_err(|error| {
                    let case = core::iter::once(variant.clone())
                        .chain(sweep.iter().map(|(key, value)| format!("{key} = {value}")));
                    let case: Vec<String> = case.filter(|part| !part.is_empty()).collect();
                    match error {
                        ScenarioError::Senseless { message, .. } if !case.is_empty() => {
                            ScenarioError::Senseless {
                                run: format!("{}: ", case.join(", ")),
                                message,
                            }
                        }
                        error => error,
                    }
                })?;
            }
        }
        Ok(())
    }

    fn read_sweep(
        &mut self,
        text: &str,
        item: &Spanned<DeValue<'_>>,
        at: &str,
    ) -> Result<(), ScenarioError> {
        for (path, item, at) in leaves(text, table(item, "sweep", at)?, "") {
            let key = known(&path, &at)?;
            let values =
                item.get_ref().as_array().filter(|values| !values.is_empty()).ok_or_else(|| {
                    bad(&path, "a sweep needs a list of values, as in [\"10 ms\", \"20 ms\"]", &at)
                })?;
            let mut axis = Vec::new();
            for value in values.iter().map(Spanned::get_ref) {
                let value = plain(value)
                    .or_else(|| value.as_array().and_then(list))
                    .ok_or_else(|| bad(&path, "a value must be a text or a number", &at))?;
                key.form.check(&value).map_err(|message| bad(&path, &message, &at))?;
                axis.push(value);
            }
            self.sweep.push((path, axis));
        }
        Ok(())
    }

    fn read_quick(
        &mut self,
        text: &str,
        item: &Spanned<DeValue<'_>>,
        at: &str,
    ) -> Result<(), ScenarioError> {
        for (path, item, at) in leaves(text, table(item, "quick", at)?, "") {
            let value = setting(item, &path, &at)?;
            let key = known(&path, &at)?;
            // A list is a shorter sweep.
            for one in value.list().iter().cloned().map(Setting::One) {
                key.form.check(&one).map_err(|message| bad(&path, &message, &at))?;
            }
            self.quick.push((path, value));
        }
        Ok(())
    }

    fn read_variants(
        &mut self,
        text: &str,
        item: &Spanned<DeValue<'_>>,
        at: &str,
    ) -> Result<(), ScenarioError> {
        let variants = table(item, "variants", at)?;
        for (name, item) in variants.iter() {
            let (name, at) = (name.get_ref(), place(text, name));
            let mut sets = Vec::new();
            for (path, item, at) in leaves(text, table(item, name, &at)?, "") {
                let value = setting(item, &path, &at)?;
                let key = known(&path, &at)?;
                key.form.check(&value).map_err(|message| bad(&path, &message, &at))?;
                sets.push((path, value));
            }
            self.variants.push((name.to_string(), sets));
        }
        Ok(())
    }
}

impl Settings {
    /// Sets a key; `flow.KEY` sets it of every kind of flow, `flow.NAME.KEY` of those of that name;
    /// the same for links.
    fn set(&mut self, path: &str, value: Setting, at: &str) -> Result<(), ScenarioError> {
        let key = known(path, at)?;
        key.form.check(&value).map_err(|message| bad(path, &message, at))?;
        let Some((table, rest)) = path.split_once('.').filter(|(table, _)| is_list(table)) else {
            self.keys.insert(path.to_owned(), value);
            return Ok(());
        };
        let (name, key) =
            rest.rsplit_once('.').map_or((None, rest), |(name, key)| (Some(name), key));
        let mut found = false;
        for entry in self.entries(table) {
            if name.is_none() || name == name_of(entry).as_deref() {
                found = true;
                entry.insert(key.to_owned(), value.clone());
            }
        }
        if !found {
            let names = self.entries(table).iter().filter_map(name_of);
            let names = names.map(|name| format!("{table}.{name}.{key}"));
            return Err(unknown(path, names.collect::<Vec<_>>().into_iter(), at));
        }
        Ok(())
    }

    /// The kinds of flows, or the links.
    fn entries(&mut self, table: &str) -> &mut Vec<BTreeMap<String, Setting>> {
        if table == "link" { &mut self.links } else { &mut self.flows }
    }

    /// Reads all `[[flow]]` or `[[link]]`.
    fn read_entries(
        &mut self,
        text: &str,
        name: &str,
        item: &Spanned<DeValue<'_>>,
        at: &str,
    ) -> Result<(), ScenarioError> {
        let wrong = || bad(name, &format!("write [[{name}]], once for each"), at);
        for item in item.get_ref().as_array().ok_or_else(wrong)?.iter() {
            let mut entry = BTreeMap::new();
            for (key, item) in item.get_ref().as_table().ok_or_else(wrong)?.iter() {
                let (key, at) = (key.get_ref(), place(text, key));
                let (path, value) = (format!("{name}.{key}"), setting(item, key, &at)?);
                let form = known(&path, &at)?.form;
                form.check(&value).map_err(|message| bad(&path, &message, &at))?;
                entry.insert(key.to_string(), value);
            }
            self.entries(name).push(entry);
        }
        Ok(())
    }

    /// What a key is set to, or its default, as text.
    pub(crate) fn text(&self, path: &str) -> String {
        let default = || find(path).map_or("", |key| key.default).to_owned();
        self.keys.get(path).map_or_else(default, Setting::text)
    }

    pub(crate) fn count(&self, path: &str) -> u64 {
        self.text(path).parse().unwrap_or(0)
    }

    /// Everything that is set, for the record.
    fn listed(&self) -> Vec<(String, String)> {
        let keys = self.keys.iter().map(|(path, value)| (path.clone(), value.text()));
        let lists = [("flow", &self.flows), ("link", &self.links)];
        let entries = lists.into_iter().flat_map(|(table, entries)| {
            entries.iter().enumerate().flat_map(move |(index, entry)| {
                let path = move |key: &String| format!("{table}[{index}].{key}");
                entry.iter().map(move |(key, value)| (path(key), value.text()))
            })
        });
        keys.chain(entries).collect()
    }
}

/// Whether a table is one that there may be several of.
fn is_list(table: &str) -> bool {
    matches!(table, "flow" | "link")
}

/// The name of a kind of flow or of a link; a link without one has that of its ends.
fn name_of(entry: &BTreeMap<String, Setting>) -> Option<String> {
    let text = |key| entry.get(key).map(Setting::text);
    text("name").or_else(|| Some(format!("{}-{}", text("from")?, text("to")?)))
}

/// The path without the name in `flow.NAME.KEY`.
fn plain_path(path: &str) -> String {
    match (path.split_once('.'), path.rsplit_once('.')) {
        (Some((table, _)), Some((_, key))) if is_list(table) => format!("{table}.{key}"),
        _ => path.to_owned(),
    }
}

fn known(path: &str, at: &str) -> Result<&'static Key, ScenarioError> {
    let plain = plain_path(path);
    find(&plain).ok_or_else(|| ScenarioError::UnknownKey {
        place: at.to_owned(),
        key: path.to_owned(),
        hint: nearest(&plain).map_or(String::new(), |name| format!("; did you mean {name:?}?")),
    })
}

fn unknown(key: &str, names: impl Iterator<Item = String>, at: &str) -> ScenarioError {
    let names: Vec<String> = names.collect();
    let hint = keys::closest(key, names.iter().cloned());
    let hint = match hint {
        Some(name) => format!("; did you mean {name:?}?"),
        None if names.is_empty() => String::new(),
        None => format!("; there are {}", names.join(", ")),
    };
    ScenarioError::UnknownKey { place: at.to_owned(), key: key.to_owned(), hint }
}

fn bad(key: &str, message: &str, at: &str) -> ScenarioError {
    ScenarioError::BadValue {
        place: at.to_owned(),
        key: key.to_owned(),
        message: message.to_owned(),
    }
}

/// The line of a byte, from 1.
fn line(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1
}

/// "line 7: ", for a key.
fn place<T>(text: &str, key: &Spanned<T>) -> String {
    format!("line {}: ", line(text, key.span().start))
}

fn table<'a, 'i>(
    item: &'a Spanned<DeValue<'i>>,
    name: &str,
    at: &str,
) -> Result<&'a DeTable<'i>, ScenarioError> {
    item.get_ref().as_table().ok_or_else(|| bad(name, "it must be a table", at))
}

/// The values of a table and of the tables in it, each with its path and place.
fn leaves<'a, 'i>(
    text: &str,
    table: &'a DeTable<'i>,
    prefix: &str,
) -> Vec<(String, &'a Spanned<DeValue<'i>>, String)> {
    let mut found = Vec::new();
    for (key, item) in table.iter() {
        let name = key.get_ref();
        let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
        match item.get_ref().as_table() {
            Some(inner) => found.extend(leaves(text, inner, &path)),
            None => found.push((path, item, place(text, key))),
        }
    }
    found
}

fn setting(item: &Spanned<DeValue<'_>>, key: &str, at: &str) -> Result<Setting, ScenarioError> {
    let value = item.get_ref();
    plain(value).or_else(|| value.as_array().and_then(list)).ok_or_else(|| {
        bad(key, "it must be a text, a number, true or false, or a list of these", at)
    })
}

fn plain(value: &DeValue<'_>) -> Option<Setting> {
    let text = match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        _ => return None,
    };
    Some(Setting::One(text))
}

fn list(values: &DeArray<'_>) -> Option<Setting> {
    let texts = values.iter().map(|value| plain(value.get_ref()).map(|setting| setting.text()));
    texts.collect::<Option<Vec<String>>>().map(Setting::List)
}
