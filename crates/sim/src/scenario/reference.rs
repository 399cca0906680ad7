use super::keys::{KEYS, Key, TABLES};
use super::value::Form;

/// All keys, for people: Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# Scenarios\n\nA scenario is a TOML file: tables of keys, and `[[flow]]` once for each kind of flow. Without \
         any key it is one CUBIC flow over 100 Mbit/s and 50 ms. Numbers carry their units. This page is made from the \
         code (`crates/sim/src/scenario/keys.rs`); `fontis sim --explain KEY` says the same of one key.\n\n\
         ```toml\n[scenario]\nduration = \"60 s\"\nwarmup = \"15 s\"\n\n[topology]\nrate = \"1 Gbit/s\"\nbuffer = \"0.1 BDP\"\n\n\
         [[flow]]\ncount = 10\nprotocol = \"cubic\"\n\n[sweep]\ntopology.rtt = [\"10 ms\", \"50 ms\", \"100 ms\"]\n\n\
         [variants.fifo]\ntopology.queue = \"fifo\"\n\n[variants.fair]\ntopology.queue = \"drr\"\n```\n\n\
         `[sweep]` gives keys several values; there is a run for each combination. `[variants.NAME]` gives sets of \
         keys names; there are all those runs for each variant. `flow.KEY` in them stands for every kind of flow, \
         `flow.NAME.KEY` for those of that name; the same for `link`. What a variant sets, a sweep may set again.\n\n\
         `[quick]` sets keys of a variant that takes less time, and gives swept keys fewer values; `fontis sim --quick` runs it.\n",
    );
    for (table, meaning) in TABLES {
        text.push_str(&format!(
            "\n## {table}\n\n{meaning}\n\n| key | value | default | meaning |\n|---|---|---|---|\n"
        ));
        for key in KEYS.iter().filter(|key| key.table == *table) {
            let default =
                if key.default.is_empty() { String::new() } else { format!("`{}`", key.default) };
            text.push_str(&format!(
                "| `{}` | {} | {default} | {} |\n",
                key.name,
                key.form.describe(),
                key.meaning
            ));
        }
    }
    text
}

/// One key or table, for people; `None` if there is none of this name.
pub fn explain(path: &str) -> Option<String> {
    let one = |key: &Key| {
        let default = if key.default.is_empty() { "not set" } else { key.default };
        format!(
            "{}: {}\n  value    {}\n  default  {default}\n",
            key.path(),
            key.meaning,
            key.form.describe()
        )
    };
    if let Some(key) = super::find(path) {
        return Some(one(key));
    }
    let (_, meaning) = TABLES.iter().find(|(table, _)| *table == path)?;
    let keys: String = KEYS.iter().filter(|key| key.table == path).map(one).collect();
    Some(format!("[{path}] {meaning}\n{keys}"))
}

/// The JSON Schema of scenario files (draft 2020-12), for editors.
pub fn schema() -> String {
    let tables: Vec<String> = TABLES
        .iter()
        .map(|(table, meaning)| {
            let keys = KEYS.iter().filter(|key| key.table == *table).map(property);
            let keys: Vec<String> = keys.collect();
            let object = format!(
                "{{\"type\": \"object\", \"description\": {}, \"additionalProperties\": false, \"properties\": {{\n      {}\n    }}}}",
                quoted(meaning),
                keys.join(",\n      ")
            );
            let whole = if super::is_list(table) {
                format!("{{\"type\": \"array\", \"items\": {object}}}")
            } else {
                object
            };
            format!("    {}: {whole}", quoted(table))
        })
        .chain(["sweep", "variants", "quick"].map(|name| format!("    {}: {{\"type\": \"object\"}}", quoted(name))))
        .collect();
    format!(
        "{{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n  \"title\": \"Fontis scenario\",\n  \
         \"type\": \"object\",\n  \"additionalProperties\": false,\n  \"properties\": {{\n{}\n  }}\n}}\n",
        tables.join(",\n")
    )
}

fn property(key: &Key) -> String {
    let kind = match key.form {
        Form::Count => "\"type\": [\"integer\", \"string\"]".to_owned(),
        Form::Number | Form::Probability => "\"type\": [\"number\", \"string\"]".to_owned(),
        Form::Flag => "\"type\": \"boolean\"".to_owned(),
        Form::Changes => "\"type\": \"array\", \"items\": {\"type\": \"string\"}".to_owned(),
        form => match form.names() {
            Some(names) => {
                let names: Vec<String> = names.into_iter().map(quoted).collect();
                format!("\"enum\": [{}]", names.join(", "))
            }
            None => "\"type\": [\"string\", \"number\"]".to_owned(),
        },
    };
    format!("{}: {{{kind}, \"description\": {}}}", quoted(key.name), quoted(key.meaning))
}

/// A text as a JSON string; the texts here are our own and hold nothing but quotation marks to
/// escape.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_and_the_schema_are_made_from_the_code() {
        let hint = "make them anew: fontis sim --reference docs";
        assert!(include_str!("../../../../docs/scenario.md") == reference(), "{hint}");
        assert!(include_str!("../../../../docs/scenario.schema.json") == schema(), "{hint}");
    }

    #[test]
    fn every_default_is_what_its_key_needs() {
        for key in KEYS.iter().filter(|key| !key.default.is_empty()) {
            let value = super::super::Setting::One(key.default.to_owned());
            assert_eq!(key.form.check(&value), Ok(()), "{}", key.path());
            assert!(TABLES.iter().any(|(table, _)| *table == key.table));
        }
    }

    #[test]
    fn a_key_and_a_table_are_explained() {
        let text = explain("topology.rtt").expect("a key");
        assert!(text.contains("50 ms") && text.contains("round-trip"), "{text}");
        assert!(explain("queue").expect("a table").contains("queue.quantum"));
        assert_eq!(explain("topology.rat"), None);
    }
}
