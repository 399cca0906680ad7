//! The language of scenarios: keys, the forms of their values, and typed reading.

pub mod catalogue;
pub mod error;
pub mod form;
pub(crate) mod profile;
pub mod reader;
pub(crate) mod suggestion;

use std::collections::BTreeMap;

use crate::settings::form::Setting;

/// The settings of one run, by path. Of tables that a scenario may have several of, each entry has
/// its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The settings of single tables, as `topology.rate`.
    pub keys: BTreeMap<String, Setting>,
    /// The kinds of flow, in the order of the file.
    pub flows: Vec<SettingsEntry>,
    /// The links.
    pub links: Vec<SettingsEntry>,
    /// The hosts.
    pub hosts: Vec<SettingsEntry>,
    /// The groups.
    pub groups: Vec<SettingsEntry>,
}

/// The settings of one `[[flow]]`, `[[link]]`, `[[host]]` or `[[group]]`.
pub type SettingsEntry = BTreeMap<String, Setting>;

impl Settings {
    /// The setting of a single table's key: the scenario's own, or its profile's.
    pub(crate) fn single(&self, path: &str) -> Option<Setting> {
        let profile = || {
            let name = self.keys.get("topology.profile")?.text();
            profile::value(&name, path).map(|value| Setting::One(value.to_owned()))
        };
        self.keys.get(path).cloned().or_else(profile)
    }

    /// The entries of a table that a scenario may have several of; `None` for another table.
    pub fn entries(&self, table: &str) -> Option<&Vec<SettingsEntry>> {
        Some(match table {
            "flow" => &self.flows,
            "link" => &self.links,
            "host" => &self.hosts,
            "group" => &self.groups,
            _ => return None,
        })
    }

    /// The same, to be changed.
    pub fn entries_mut(&mut self, table: &str) -> Option<&mut Vec<SettingsEntry>> {
        Some(match table {
            "flow" => &mut self.flows,
            "link" => &mut self.links,
            "host" => &mut self.hosts,
            "group" => &mut self.groups,
            _ => return None,
        })
    }

    /// Every setting, for the record.
    pub fn listed(&self) -> Vec<(String, String)> {
        let keys = self.keys.iter().map(|(path, value)| (path.clone(), value.text()));
        let tables = ["flow", "link", "host", "group"];
        let lists = tables.into_iter().filter_map(|table| Some((table, self.entries(table)?)));
        let entries = lists.flat_map(|(table, entries)| {
            entries.iter().enumerate().flat_map(move |(index, entry)| {
                let path = move |key: &String| format!("{table}[{index}].{key}");
                entry.iter().map(move |(key, value)| (path(key), value.text()))
            })
        });
        keys.chain(entries).collect()
    }
}
