//! The tables and keys that scenarios may have.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::settings::form::Form;
use crate::settings::suggestion::closest;

/// A key that scenario files may set.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its table: `scenario`, `topology`, `queue`, `link`, `tcp`, `dfcp`, `flow` and so on.
    pub table: &'static str,
    /// Its name in the table.
    pub name: &'static str,
    /// The form of its value.
    pub form: Form,
    /// The value if it is not set; empty if there is none.
    pub default: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

impl Key {
    /// The name with its table, as sweeps and `--set` write it.
    pub fn path(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }
}

/// A key, in the order of its columns in the reference.
pub const fn key(
    table: &'static str,
    name: &'static str,
    form: Form,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key { table, name, form, default, meaning }
}

/// The form of a key whose value is one of these names.
pub const fn names(names: &'static [&'static str]) -> Form {
    Form::Names(Cow::Borrowed(names))
}

/// A table of keys.
#[derive(Clone, Copy, Debug)]
pub struct TableRow {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub meaning: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// How it may be written.
    pub place: Place,
}

/// How a table may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Once, as `[name]`.
    Single,
    /// Any number of times, as `[[name]]`.
    List,
    /// Once as `[name]`, for all flows, and in a flow as `name = { … }`, for that flow.
    Transport,
}

/// Everything that scenarios may set. Checks, suggestions, the reference and the JSON Schema come
/// from it.
#[derive(Clone, Debug)]
pub struct Catalogue {
    tables: Vec<TableRow>,
    keys: Vec<Key>,
    /// The places of the keys, by their tables and names: a scenario asks for thousands.
    places: BTreeMap<(&'static str, &'static str), usize>,
}

impl Catalogue {
    /// A catalogue of these tables. The key `flow.protocol` takes these `protocols`.
    pub fn new(tables: Vec<TableRow>, protocols: Vec<&'static str>) -> Self {
        let mut keys: Vec<Key> = tables.iter().flat_map(|table| table.keys).cloned().collect();
        if let Some(key) = keys.iter_mut().find(|key| key.path() == "flow.protocol") {
            key.form = Form::Names(protocols.into());
        }
        let places = keys.iter().enumerate().map(|(at, key)| ((key.table, key.name), at)).collect();
        Self { tables, keys, places }
    }

    /// The tables.
    pub fn tables(&self) -> &[TableRow] {
        &self.tables
    }

    /// The keys, table by table.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&TableRow> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Whether this is the table of a transport, which a flow may have, too.
    pub fn is_transport(&self, name: &str) -> bool {
        self.table(name).is_some_and(|table| table.place == Place::Transport)
    }

    /// Whether a scenario may have several tables of this name.
    pub fn is_list(&self, name: &str) -> bool {
        self.table(name).is_some_and(|table| table.place == Place::List)
    }

    /// The key of this path, as `topology.rate`.
    pub fn find(&self, path: &str) -> Option<&Key> {
        let (table, name) = path.split_once('.')?;
        self.places.get(&(table, name)).map(|at| &self.keys[*at])
    }

    /// The path that is written most like this one.
    pub fn nearest(&self, path: &str) -> Option<String> {
        closest(path, self.keys.iter().map(Key::path))
    }

    /// The parts of a path in a list: its table, the name of an entry if one is named, and the key,
    /// which is that of a transport in `flow.NAME.tcp.sack`. `None` for a path of a single table.
    pub fn split<'a>(&self, path: &'a str) -> Option<(&'a str, Option<&'a str>, &'a str)> {
        let (table, rest) = path.split_once('.').filter(|(table, _)| self.is_list(table))?;
        // No flow has the name of a table, so that a transport's key is known by its table.
        if table == "flow"
            && let Some((before, _)) = rest.rsplit_once('.')
        {
            let (name, of) =
                before.rsplit_once('.').map_or((None, before), |(n, of)| (Some(n), of));
            if self.is_transport(of) {
                let key = &rest[name.map_or(0, |name| name.len() + 1)..];
                return Some((table, name, key));
            }
        }
        Some(match rest.rsplit_once('.') {
            Some((name, key)) => (table, Some(name), key),
            None => (table, None, rest),
        })
    }

    /// The key that a path sets: `flow.NAME.start` sets `flow.start`, `flow.NAME.tcp.sack` sets
    /// `tcp.sack`.
    pub fn key_of(&self, path: &str) -> Option<&Key> {
        match self.split(path) {
            Some((_, _, key)) if key.contains('.') => self.find(key),
            Some((table, _, key)) => self.find(&format!("{table}.{key}")),
            None => self.find(path),
        }
    }
}
