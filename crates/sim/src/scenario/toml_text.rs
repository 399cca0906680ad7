//! The reading of TOML with the places of its keys.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::scenario::entries::bad_at;
use crate::settings::error::ScenarioError;
use crate::settings::form::Setting;

/// The line of a byte, from 1.
pub(super) fn line(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1
}

/// "line 7: ", for a key.
pub(super) fn place<T>(text: &str, key: &Spanned<T>) -> String {
    format!("line {}: ", line(text, key.span().start))
}

pub(super) fn table<'a, 'i>(
    item: &'a Spanned<DeValue<'i>>,
    name: &str,
    at: &str,
) -> Result<&'a DeTable<'i>, ScenarioError> {
    item.get_ref().as_table().ok_or_else(|| bad_at(name, "it must be a table", at))
}

/// The values of a table and of the tables in it, each with its path and place.
pub(super) fn leaves<'a, 'i>(
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

pub(super) fn setting(
    item: &Spanned<DeValue<'_>>,
    key: &str,
    at: &str,
) -> Result<Setting, ScenarioError> {
    let value = item.get_ref();
    plain(value).or_else(|| value.as_array().and_then(list)).ok_or_else(|| {
        bad_at(key, "it must be a text, a number, true or false, or a list of these", at)
    })
}

pub(super) fn plain(value: &DeValue<'_>) -> Option<Setting> {
    let text = match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        _ => return None,
    };
    Some(Setting::One(text))
}

pub(super) fn list(values: &DeArray<'_>) -> Option<Setting> {
    let texts = values.iter().map(|value| plain(value.get_ref()).map(|setting| setting.text()));
    texts.collect::<Option<Vec<String>>>().map(Setting::List)
}
