//! The reference of scenarios and their JSON Schema, made from the catalogue.

use fontis_proto::congestion::CongestionKind;

use crate::scenario::language::Language;
use crate::settings::catalogue::{Catalogue, Key, Place};
use crate::settings::form::Form;

/// The beginning of the reference.
const INTRODUCTION: &str = "# Scenarios

A scenario is a TOML file: tables of keys, and `[[flow]]` once for each kind of flow. Without any
key it is one CUBIC flow over 100 Mbit/s and 50 ms. Numbers carry their units. This page is made
from the code (`crates/sim/src/scenario/keys.rs`, and `crates/sim/src/host/rows` for transports);
`fontis sim --explain KEY` prints the entry of one key.

```toml
[scenario]
duration = \"60 s\"
warmup = \"15 s\"

[topology]
rate = \"1 Gbit/s\"
buffer = \"0.1 BDP\"

[[flow]]
count = 10
protocol = \"cubic\"

[sweep]
topology.rtt = [\"10 ms\", \"50 ms\", \"100 ms\"]

[variants.fifo]
topology.queue = \"fifo\"

[variants.fair]
topology.queue = \"drr\"
```

`[sweep]` gives keys several values; there is a run for each combination. `[variants.NAME]` gives
sets of keys names; there are all those runs for each variant. `flow.KEY` in them stands for every
kind of flow, `flow.NAME.KEY` for those of that name; the same for `link`, `host` and `group`. A
sweep may set again what a variant sets.

`[tcp]`, `[dfcp]` and `[published]` configure the transport of all flows. In a flow,
`tcp = { sack = false }` configures its own; a sweep sets it as `flow.NAME.tcp.sack`.

`[quick]` sets keys of a variant that takes less time, and gives swept keys fewer values;
`fontis sim --quick` runs it.
";

/// The congestion controls of TCP, and what each is and does to a shared queue.
fn congestion_controls() -> impl Iterator<Item = (&'static str, String)> {
    CongestionKind::ALL.iter().map(|kind| {
        let warning = kind.warning().map_or(String::new(), |warning| format!(". {warning}"));
        (kind.name(), format!("{}{warning}", kind.help()))
    })
}

impl Language {
    /// All keys, for people: Markdown.
    pub fn reference(&self) -> String {
        let mut text = String::from(INTRODUCTION);
        for table in self.catalogue().tables() {
            text.push_str(&format!(
                "\n## {}\n\n{}\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
                table.name,
                wrapped(table.meaning)
            ));
            for key in self.catalogue().keys().iter().filter(|key| key.table == table.name) {
                let default = match key.default {
                    "" => String::new(),
                    default => format!("`{default}`"),
                };
                text.push_str(&format!(
                    "| `{}` | {} | {default} | {} |\n",
                    key.name,
                    key.form.describe(),
                    key.meaning
                ));
            }
            if table.name == "tcp" {
                text.push_str("\n| protocol | what it is |\n|---|---|\n");
                for (name, about) in congestion_controls() {
                    text.push_str(&format!("| `{name}` | {about} |\n"));
                }
            }
        }
        text
    }

    /// One key or table, for people; `None` if there is none of this name.
    pub fn explain(&self, path: &str) -> Option<String> {
        let one = |key: &Key| {
            let default = if key.default.is_empty() { "not set" } else { key.default };
            format!(
                "{}: {}\n  value    {}\n  default  {default}\n",
                key.path(),
                key.meaning,
                key.form.describe()
            )
        };
        if let Some(key) = self.catalogue().find(path) {
            let mut text = one(key);
            if path == "flow.protocol" {
                for (name, about) in congestion_controls() {
                    text.push_str(&format!("{}\n", wrapped(&format!("{name}: {about}"))));
                }
            }
            return Some(text);
        }
        let table = self.catalogue().table(path)?;
        let keys = self.catalogue().keys().iter().filter(|key| key.table == path);
        Some(format!("[{path}] {}\n{}", table.meaning, keys.map(one).collect::<String>()))
    }

    /// The JSON Schema of scenario files (draft 2020-12), for editors.
    pub fn schema(&self) -> String {
        let catalogue = self.catalogue();
        let tables = catalogue.tables().iter().map(|table| {
            let mut properties = properties(catalogue, table.name);
            if table.name == "flow" {
                let own = catalogue.tables().iter().filter(|t| t.place == Place::Transport);
                properties.extend(own.map(|table| {
                    let inner = properties_of(catalogue, table.name);
                    format!("{}: {inner}", quoted(table.name))
                }));
            }
            let object = format!(
                "{{\"type\": \"object\", \"description\": {}, \"additionalProperties\": false, \
                 \"properties\": {{\n      {}\n    }}}}",
                quoted(table.meaning),
                properties.join(",\n      ")
            );
            let whole = match table.place {
                Place::List => format!("{{\"type\": \"array\", \"items\": {object}}}"),
                Place::Single | Place::Transport => object,
            };
            format!("    {}: {whole}", quoted(table.name))
        });
        let free = ["sweep", "variants", "quick"]
            .map(|name| format!("    {}: {{\"type\": \"object\"}}", quoted(name)));
        let tables: Vec<String> = tables.chain(free).collect();
        format!(
            "{{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n  \
             \"title\": \"Fontis scenario\",\n  \"type\": \"object\",\n  \
             \"additionalProperties\": false,\n  \"properties\": {{\n{}\n  }}\n}}\n",
            tables.join(",\n")
        )
    }
}

/// A paragraph in lines of at most 100 columns.
pub(crate) fn wrapped(text: &str) -> String {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 100 {
            lines.push(core::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}

/// The properties of a table's keys.
fn properties(catalogue: &Catalogue, table: &str) -> Vec<String> {
    catalogue.keys().iter().filter(|key| key.table == table).map(property).collect()
}

/// A transport's table as an object in a flow.
fn properties_of(catalogue: &Catalogue, table: &str) -> String {
    format!(
        "{{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {{{}}}}}",
        properties(catalogue, table).join(", ")
    )
}

fn property(key: &Key) -> String {
    let kind = match &key.form {
        Form::Count => "\"type\": [\"integer\", \"string\"]".to_owned(),
        Form::Number | Form::Probability => "\"type\": [\"number\", \"string\"]".to_owned(),
        Form::Flag => "\"type\": \"boolean\"".to_owned(),
        Form::Changes | Form::Texts => {
            "\"type\": \"array\", \"items\": {\"type\": \"string\"}".to_owned()
        }
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
    use crate::settings::form::Setting;

    #[test]
    fn the_reference_and_the_schema_are_made_from_the_code() {
        let hint = "make them anew: fontis sim --reference docs";
        let language = Language::standard();
        assert!(include_str!("../../../../docs/scenario.md") == language.reference(), "{hint}");
        assert!(
            include_str!("../../../../docs/scenario.schema.json") == language.schema(),
            "{hint}"
        );
    }

    #[test]
    fn every_default_is_what_its_key_needs() {
        let language = Language::standard();
        for key in language.catalogue().keys() {
            assert!(language.catalogue().table(key.table).is_some(), "{}", key.path());
            if !key.default.is_empty() {
                let value = Setting::One(key.default.to_owned());
                assert_eq!(key.form.check(&value), Ok(()), "{}", key.path());
            }
        }
    }

    #[test]
    fn a_key_and_a_table_are_explained() {
        let language = Language::standard();
        let text = language.explain("topology.rtt").expect("a key");
        assert!(text.contains("50 ms") && text.contains("round-trip"), "{text}");
        assert!(language.explain("queue").expect("a table").contains("queue.quantum"));
        assert_eq!(language.explain("topology.rat"), None);
    }
}
