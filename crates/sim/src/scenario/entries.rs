//! Setting keys, with checks and suggestions.

use crate::settings::catalogue::{Catalogue, Key};
use crate::settings::error::ScenarioError;
use crate::settings::form::Setting;
use crate::settings::suggestion::closest;
use crate::settings::{Settings, SettingsEntry};

/// Sets a key; `flow.KEY` sets it of every kind of flow, `flow.NAME.KEY` of those of that name; the
/// same for links, hosts and groups.
pub(super) fn set(
    settings: &mut Settings,
    catalogue: &Catalogue,
    path: &str,
    value: Setting,
    at: &str,
) -> Result<(), ScenarioError> {
    let key = known(catalogue, path, at)?;
    key.form.check(&value).map_err(|message| bad_at(path, &message, at))?;
    let Some((table, name, key)) = catalogue.split(path) else {
        settings.keys.insert(path.to_owned(), value);
        return Ok(());
    };
    let Some(entries) = settings.entries_mut(table) else { return Ok(()) };
    let mut found = false;
    for entry in entries.iter_mut() {
        if name.is_none() || name == name_of(entry).as_deref() {
            found = true;
            entry.insert(key.to_owned(), value.clone());
        }
    }
    if !found {
        let names = entries.iter().filter_map(name_of);
        let names = names.map(|name| format!("{table}.{name}.{key}"));
        return Err(unknown(path, names.collect::<Vec<_>>().into_iter(), at));
    }
    Ok(())
}

/// The text of a setting, or of its key's default.
pub(super) fn text(settings: &Settings, catalogue: &Catalogue, path: &str) -> String {
    let default = || catalogue.find(path).map_or("", |key| key.default).to_owned();
    settings.single(path).map_or_else(default, |setting| setting.text())
}

/// The number of a setting, or of its key's default.
pub(super) fn count(settings: &Settings, catalogue: &Catalogue, path: &str) -> u64 {
    text(settings, catalogue, path).parse().unwrap_or(0)
}

/// The name of a kind of flow, a link, a host or a group; a link without one has that of its ends.
pub(super) fn name_of(entry: &SettingsEntry) -> Option<String> {
    let text = |key| entry.get(key).map(Setting::text);
    text("name").or_else(|| Some(format!("{}-{}", text("from")?, text("to")?)))
}

/// The key that a path sets.
pub(super) fn known<'a>(
    catalogue: &'a Catalogue,
    path: &str,
    at: &str,
) -> Result<&'a Key, ScenarioError> {
    catalogue.key_of(path).ok_or_else(|| {
        let plain = match catalogue.split(path) {
            Some((_, _, key)) if key.contains('.') => key.to_owned(),
            Some((table, _, key)) => format!("{table}.{key}"),
            None => path.to_owned(),
        };
        ScenarioError::UnknownKey {
            place: at.to_owned(),
            key: path.to_owned(),
            hint: match catalogue.nearest(&plain) {
                Some(name) => format!("; did you mean {name:?}?"),
                None => String::new(),
            },
        }
    })
}

pub(super) fn unknown(key: &str, names: impl Iterator<Item = String>, at: &str) -> ScenarioError {
    let names: Vec<String> = names.collect();
    let hint = closest(key, names.iter().cloned());
    let hint = match hint {
        Some(name) => format!("; did you mean {name:?}?"),
        None if names.is_empty() => String::new(),
        None => format!("; there are {}", names.join(", ")),
    };
    ScenarioError::UnknownKey { place: at.to_owned(), key: key.to_owned(), hint }
}

pub(super) fn bad_at(key: &str, message: &str, at: &str) -> ScenarioError {
    ScenarioError::BadValue {
        place: at.to_owned(),
        key: key.to_owned(),
        message: message.to_owned(),
    }
}
