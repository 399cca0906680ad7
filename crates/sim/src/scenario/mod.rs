//! Scenarios: experiments as people write them, in TOML.
//!
//! Start here: [`Scenario::parse`] reads a file, [`Scenario::runs`] gives its runs: one for each
//! variant, point of the sweep and repetition. A [`Language`] lists the keys that can be set, those
//! of transports included. The reference page and the JSON Schema are made from it.

mod apps;
mod build;
mod entries;
mod files;
mod keys;
pub mod language;
mod network;
mod reference;
mod swarm;
mod toml_text;

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use crate::settings::catalogue::{Catalogue, Key};
pub use crate::settings::error::ScenarioError;
pub use crate::settings::form::{Form, Setting};
pub use files::Files;
pub use language::Language;

use crate::experiment::spec::Experiment;
use crate::scenario::entries::{bad_at, count, known, set, text, unknown};
use crate::scenario::toml_text::{leaves, line, list, place, plain, setting, table};
use crate::settings::reader::Traces;
use crate::settings::{Settings, SettingsEntry};

/// An experiment with all its cases.
#[derive(Clone, Debug)]
pub struct Scenario {
    language: Arc<Language>,
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
        Self::parse_in(Language::standard(), text, files)
    }

    /// Reads a scenario that may use the transports of `language`.
    pub fn parse_in(
        language: Arc<Language>,
        text: &str,
        files: Files,
    ) -> Result<Self, ScenarioError> {
        let document = DeTable::parse(text).map_err(|error| ScenarioError::Syntax {
            line: error.span().map_or(1, |span| line(text, span.start)),
            message: error.message().to_owned(),
        })?;
        let mut scenario = Self {
            language,
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
                _ if scenario.catalogue().is_list(name) => {
                    scenario.read_entries(text, name, item, &at)?;
                }
                _ if scenario.catalogue().table(name).is_some() => {
                    let table = table(item, name, &at)?;
                    for (key, item) in table.iter() {
                        let (key, at) = (key.get_ref(), place(text, key));
                        let path = format!("{name}.{key}");
                        scenario.set_at(&path, setting(item, key, &at)?, &at)?;
                    }
                }
                _ => {
                    let names = scenario.catalogue().tables().iter().map(|table| table.name);
                    let names = names.chain(["sweep", "variants", "quick"]);
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
        self.set_at(key, value.into(), "")?;
        // A swept key that is set is swept no more.
        self.sweep.retain(|(swept, _)| swept != key);
        self.load()
    }

    /// Sweeps a key over these values, inside of what is swept already, or in place of its present
    /// values.
    pub fn vary(&mut self, key: &str, values: Vec<Setting>) -> Result<(), ScenarioError> {
        let form = known(self.catalogue(), key, "")?.form.clone();
        if values.is_empty() {
            return Err(bad_at(key, "a sweep needs values", ""));
        }
        for value in &values {
            form.check(value).map_err(|message| bad_at(key, &message, ""))?;
        }
        match self.sweep.iter_mut().find(|(swept, _)| swept == key) {
            Some((_, old)) => *old = values,
            None => self.sweep.push((key.to_owned(), values)),
        }
        self.load()
    }

    /// What a key is set to, or its default; of flows, the first kind's. `flow.NAME.KEY` is that of
    /// the flows of this name, and the same for links, hosts and groups.
    pub fn get(&self, key: &str) -> String {
        let own = key.split_once('.').and_then(|(table, key)| {
            let entries = self.settings.entries(table)?;
            let named = key.split_once('.').and_then(|(name, key)| {
                let named =
                    |entry: &&SettingsEntry| entry.get("name").is_some_and(|n| n.text() == name);
                entries.iter().find(named)?.get(key)
            });
            let first = || entries.first().filter(|_| table == "flow")?.get(key);
            named.or_else(first)
        });
        own.map_or_else(|| text(&self.settings, self.catalogue(), key), Setting::text)
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
                None => quick.set_at(key, value.clone(), "").ok()?,
            }
        }
        Some(quick)
    }

    fn catalogue(&self) -> &Catalogue {
        self.language.catalogue()
    }

    fn set_at(&mut self, path: &str, value: Setting, at: &str) -> Result<(), ScenarioError> {
        set(&mut self.settings, self.language.catalogue(), path, value, at)
    }

    /// Reads all tables of a list, as `[[flow]]`.
    fn read_entries(
        &mut self,
        text: &str,
        name: &str,
        item: &Spanned<DeValue<'_>>,
        at: &str,
    ) -> Result<(), ScenarioError> {
        let wrong = || bad_at(name, &format!("write [[{name}]], once for each"), at);
        for item in item.get_ref().as_array().ok_or_else(wrong)?.iter() {
            let mut entry = BTreeMap::new();
            let keys = item.get_ref().as_table().ok_or_else(wrong)?;
            // A table in a flow is that of its transport.
            for (key, item, at) in leaves(text, keys, "") {
                let (path, value) = (format!("{name}.{key}"), setting(item, &key, &at)?);
                let form = &known(self.catalogue(), &path, &at)?.form;
                form.check(&value).map_err(|message| bad_at(&path, &message, &at))?;
                if key == "name" && self.catalogue().table(&value.text()).is_some() {
                    let message = format!("{:?} is the name of a table", value.text());
                    return Err(bad_at(&path, &message, &at));
                }
                entry.insert(key, value);
            }
            if let Some(entries) = self.settings.entries_mut(name) {
                entries.push(entry);
            }
        }
        Ok(())
    }

    /// How many runs there are.
    pub fn len(&self) -> usize {
        let repetitions =
            count(&self.settings, self.catalogue(), "scenario.repetitions").max(1) as usize;
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
            let repetitions = count(settings, self.catalogue(), "scenario.repetitions").max(1);
            for repetition in 0..repetitions {
                let seed =
                    count(settings, self.catalogue(), "scenario.seed").wrapping_add(repetition);
                let experiment = build::experiment(&self.language, settings, &self.traces, seed)?;
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
                build::experiment(&self.language, settings, &self.traces, 1).map(drop)
            })?;
        }
        self.check_length()?;
        self.each_case(|settings, _, _| {
            build::experiment(&self.language, settings, &self.traces, 1).map(drop)
        })
    }

    fn check_length(&self) -> Result<(), ScenarioError> {
        if self.len() > MOST_RUNS {
            return Err(ScenarioError::Contradiction {
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
            let loaded = self.files.load(self.language.catalogue(), &key, value, &mut self.traces);
            loaded.map_err(|message| bad_at(&key, &message, ""))?;
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
                set(&mut settings, self.catalogue(), key, value.clone(), "")?;
            }
            let points: usize = self.sweep.iter().map(|(_, values)| values.len()).product();
            for point in 0..points {
                let mut settings = settings.clone();
                let (mut rest, mut sweep) = (point, Vec::new());
                // The last axis moves fastest.
                for (key, values) in self.sweep.iter().rev() {
                    let value = &values[rest % values.len()];
                    rest /= values.len();
                    set(&mut settings, self.catalogue(), key, value.clone(), "")?;
                    sweep.insert(0, (key.clone(), value.text()));
                }
                call(&settings, variant, &sweep).map_err(|error| {
                    let case = core::iter::once(variant.clone())
                        .chain(sweep.iter().map(|(key, value)| format!("{key} = {value}")));
                    let case: Vec<String> = case.filter(|part| !part.is_empty()).collect();
                    match error {
                        ScenarioError::Contradiction { message, .. } if !case.is_empty() => {
                            ScenarioError::Contradiction {
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
            let form = known(self.catalogue(), &path, &at)?.form.clone();
            let values =
                item.get_ref().as_array().filter(|values| !values.is_empty()).ok_or_else(|| {
                    bad_at(
                        &path,
                        "a sweep needs a list of values, as in [\"10 ms\", \"20 ms\"]",
                        &at,
                    )
                })?;
            let mut axis = Vec::new();
            for value in values.iter().map(Spanned::get_ref) {
                let value = plain(value)
                    .or_else(|| value.as_array().and_then(list))
                    .ok_or_else(|| bad_at(&path, "a value must be a text or a number", &at))?;
                form.check(&value).map_err(|message| bad_at(&path, &message, &at))?;
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
            let form = known(self.catalogue(), &path, &at)?.form.clone();
            // A list is a shorter sweep.
            for one in value.list().iter().cloned().map(Setting::One) {
                form.check(&one).map_err(|message| bad_at(&path, &message, &at))?;
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
                let key = known(self.catalogue(), &path, &at)?;
                key.form.check(&value).map_err(|message| bad_at(&path, &message, &at))?;
                sets.push((path, value));
            }
            self.variants.push((name.to_string(), sets));
        }
        Ok(())
    }
}
