//! Typed reading of a run's settings.

use std::collections::BTreeMap;

use fontis_base::{Duration, Size};
use fontis_net::{DeliveryTrace, SpecError};

use crate::settings::catalogue::Catalogue;
use crate::settings::error::{ScenarioError, bad};
use crate::settings::form::{BufferSize, Setting};
use crate::settings::{Settings, SettingsEntry};

/// Traces by the names that scenarios give them.
pub(crate) type Traces = BTreeMap<String, DeliveryTrace>;

/// A run's settings, typed. Every value was checked when it was set, so reading one cannot fail.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) settings: &'a Settings,
    pub(crate) traces: &'a Traces,
    /// The table and the settings of a kind of flow, a link, a host or a group.
    pub(crate) entry: Option<(&'static str, &'a SettingsEntry)>,
}

impl<'a> Reader<'a> {
    /// The same for one of the flows or links.
    pub(crate) fn of(self, table: &'static str, entry: &'a SettingsEntry) -> Self {
        Self { entry: Some((table, entry)), ..self }
    }

    /// The setting of a key, if the scenario sets it. A flow's own setting of a transport's key
    /// comes before that of all flows.
    fn explicit(&self, path: &str) -> Option<Setting> {
        let own = || {
            let (table, entry) = self.entry?;
            let key = path.strip_prefix(table).and_then(|key| key.strip_prefix('.'));
            let key = key.or_else(|| (table == "flow").then_some(path))?;
            entry.get(key).cloned()
        };
        own().or_else(|| self.settings.single(path))
    }

    /// Whether the scenario sets a key.
    pub(crate) fn sets(&self, path: &str) -> bool {
        self.explicit(path).is_some()
    }

    fn setting(&self, path: &str) -> Option<Setting> {
        self.explicit(path).or_else(|| {
            let default = self.catalogue.find(path)?.default;
            (!default.is_empty()).then(|| Setting::One(default.to_owned()))
        })
    }

    /// The value of a key, if there is one.
    pub fn get<T: core::str::FromStr>(&self, path: &str) -> Option<T> {
        self.setting(path)?.one().parse().ok()
    }

    /// The values of a key that takes a list.
    pub fn list(&self, path: &str) -> Vec<String> {
        self.setting(path).map_or(Vec::new(), |setting| setting.list().to_vec())
    }

    /// The entries of a list, each of a time and something.
    pub(crate) fn changes<T>(&self, path: &str) -> Result<Vec<T>, ScenarioError>
    where
        T: core::str::FromStr<Err = SpecError>,
    {
        let entries = self.list(path);
        let entries = entries.iter().map(|text| text.replace(' ', "").parse());
        entries.collect::<Result<_, SpecError>>().map_err(|error| bad(path, error.to_string()))
    }

    /// The time that a key says; zero if none.
    pub fn duration(&self, path: &str) -> Duration {
        self.get(path).unwrap_or(Duration::ZERO)
    }

    /// The bytes that a key says; zero if none.
    pub fn size(&self, path: &str) -> u64 {
        self.get::<Size>(path).map_or(0, Size::as_bytes)
    }

    /// The number that a key says; zero if none.
    pub fn count(&self, path: &str) -> u64 {
        self.get(path).unwrap_or(0)
    }

    /// Whether a key is true.
    pub fn flag(&self, path: &str) -> bool {
        self.get(path).unwrap_or(false)
    }

    /// The text of a key; empty if none.
    pub fn text(&self, path: &str) -> String {
        self.setting(path).map_or(String::new(), |setting| setting.text())
    }

    pub(crate) fn buffer(&self, path: &str) -> Option<BufferSize> {
        BufferSize::parse(self.setting(path)?.one()).ok()
    }

    pub(crate) fn trace(&self, path: &str) -> Option<DeliveryTrace> {
        self.traces.get(self.setting(path)?.one()).cloned()
    }
}
