use std::collections::BTreeMap;

use fontis_base::{Duration, Size};
use fontis_net::{DeliveryTrace, SpecError};

use crate::scenario::Settings;
use crate::scenario::error::ScenarioError;
use crate::scenario::files::Traces;
use crate::scenario::keys::find;
use crate::scenario::value::BufferSize;
use crate::scenario::value::Setting;

/// A run's settings, typed. Every value was checked when it was set, so reading one cannot fail.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) settings: &'a Settings,
    pub(super) traces: &'a Traces,
    /// What is set of a kind of flow or of a link: the table, and its keys.
    pub(super) entry: Option<(&'static str, &'a BTreeMap<String, Setting>)>,
}

impl<'a> Reader<'a> {
    /// The same for one of the flows or links.
    pub(super) fn of(self, table: &'static str, entry: &'a BTreeMap<String, Setting>) -> Self {
        Self { entry: Some((table, entry)), ..self }
    }

    fn setting(&self, path: &str) -> Option<Setting> {
        let own = || {
            let (table, entry) = self.entry?;
            let key = path.strip_prefix(table)?.strip_prefix('.')?;
            entry.get(key).cloned()
        };
        own().or_else(|| self.settings.keys.get(path).cloned()).or_else(|| {
            let default = find(path)?.default;
            (!default.is_empty()).then(|| Setting::One(default.to_owned()))
        })
    }

    pub(super) fn get<T: core::str::FromStr>(&self, path: &str) -> Option<T> {
        self.setting(path)?.one().parse().ok()
    }

    pub(super) fn list(&self, path: &str) -> Vec<String> {
        self.setting(path).map_or(Vec::new(), |setting| setting.list().to_vec())
    }

    /// The entries of a list, each of a time and something.
    pub(super) fn changes<T>(&self, path: &str) -> Result<Vec<T>, ScenarioError>
    where
        T: core::str::FromStr<Err = SpecError>,
    {
        let entries = self.list(path);
        let entries = entries.iter().map(|text| text.replace(' ', "").parse());
        entries.collect::<Result<_, SpecError>>().map_err(|error| bad(path, error.to_string()))
    }

    pub(super) fn duration(&self, path: &str) -> Duration {
        self.get(path).unwrap_or(Duration::ZERO)
    }

    pub(super) fn size(&self, path: &str) -> u64 {
        self.get::<Size>(path).map_or(0, Size::as_bytes)
    }

    pub(super) fn count(&self, path: &str) -> u64 {
        self.get(path).unwrap_or(0)
    }

    pub(super) fn flag(&self, path: &str) -> bool {
        self.get(path).unwrap_or(false)
    }

    pub(super) fn text(&self, path: &str) -> String {
        self.setting(path).map_or(String::new(), |setting| setting.text())
    }

    pub(super) fn buffer(&self, path: &str) -> Option<BufferSize> {
        BufferSize::parse(self.setting(path)?.one()).ok()
    }

    pub(super) fn trace(&self, path: &str) -> Option<DeliveryTrace> {
        self.traces.get(self.setting(path)?.one()).cloned()
    }
}

pub(super) fn senseless<T>(message: String) -> Result<T, ScenarioError> {
    Err(ScenarioError::Senseless { run: String::new(), message })
}

pub(super) fn bad(key: &str, message: String) -> ScenarioError {
    ScenarioError::BadValue { place: String::new(), key: key.to_owned(), message }
}
