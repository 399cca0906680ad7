use serde::Deserialize;

/// The check of the claims whose identifier has this pattern.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Binding {
    /// The patterns of identifiers; `{name}` matches letters, digits and dots, and stands for the
    /// match in all other texts of the binding.
    pub(super) claims: Vec<String>,
    /// An expression for our value, in the claim's unit, or with `holds` to be shown.
    #[serde(default)]
    pub(super) value: String,
    /// An expression that says whether the claim holds.
    #[serde(default)]
    pub(super) holds: String,
    /// The published value, if the claim's own value is no number.
    pub(super) published: Option<f64>,
    /// The tolerance, as in `10%` or `3`; a tenth of the published value by default.
    #[serde(default)]
    pub(super) tolerance: String,
    /// The reason for another tolerance.
    #[serde(default)]
    pub(super) reason: String,
    /// What the check rests on.
    #[serde(default)]
    pub(super) kind: Evidence,
    /// The reason why the texts do not decide it, whatever is measured. Our value is shown.
    #[serde(default)]
    pub(super) undecidable: String,
    /// What belongs beside a claim that holds.
    #[serde(default)]
    pub(super) remark: String,
    /// The reason why it cannot be checked.
    #[serde(default)]
    pub(super) unchecked: String,
    /// The cause of the difference, if there is one.
    #[serde(default)]
    pub(super) cause: String,
    /// True if only full runs can check it.
    #[serde(default)]
    pub(super) full: bool,
    /// Texts for captures: `names.c."0.1G"` is what `{c}` stands for in expressions where it was
    /// `0.1G`.
    #[serde(default)]
    pub(super) names:
        std::collections::BTreeMap<String, std::collections::BTreeMap<String, String>>,
}

/// What the check of a claim rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// Something that was run or measured, so that it could have come out otherwise.
    #[default]
    Run,
    /// A formula, computed by code that was written after the same formula.
    Formula,
    /// A constant of the protocol or of the scenario that was taken from the claim.
    Setting,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bindings {
    #[serde(default)]
    pub(super) binding: Vec<Binding>,
}

impl Binding {
    /// The values of its captures in an identifier, if one of its patterns matches.
    pub(super) fn captures(&self, id: &str) -> Option<Vec<(String, String)>> {
        self.claims.iter().find_map(|pattern| captures(pattern, id))
    }

    /// A text of the binding with the captures put in.
    pub(super) fn fill(&self, text: &str, captures: &[(String, String)]) -> String {
        let mut text = text.to_owned();
        for (name, value) in captures {
            let named = self.names.get(name).and_then(|names| names.get(value)).unwrap_or(value);
            text = text.replace(&format!("{{{name}}}"), named);
        }
        text
    }
}

fn captures(pattern: &str, id: &str) -> Option<Vec<(String, String)>> {
    let Some(open) = pattern.find('{') else { return (pattern == id).then(Vec::new) };
    let close = open + pattern[open..].find('}')?;
    let rest = id.strip_prefix(&pattern[..open])?;
    let name = &pattern[open + 1..close];
    let usable = |c: char| c.is_ascii_alphanumeric() || c == '.';
    // The shortest that leaves a match for the others.
    let ends = rest.char_indices().take_while(|(_, c)| usable(*c)).map(|(at, c)| at + c.len_utf8());
    for end in ends {
        if let Some(mut more) = captures(&pattern[close + 1..], &rest[end..]) {
            more.insert(0, (name.to_owned(), rest[..end].to_owned()));
            return Some(more);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_s_captures_are_what_stands_in_their_places() {
        let found = captures("t4.1-{c}-{n}flows-{p}", "t4.1-0.1G-10flows-dfcp").expect("a match");
        let values: Vec<&str> = found.iter().map(|(_, value)| &**value).collect();
        assert_eq!(values, ["0.1G", "10", "dfcp"]);
        assert_eq!(captures("t4.1-{c}", "t4.1-a-b"), None);
        assert_eq!(captures("plain", "plain"), Some(vec![]));
    }
}
