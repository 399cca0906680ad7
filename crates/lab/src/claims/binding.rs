use serde::Deserialize;

/// The check of the claims whose identifier has this pattern.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Binding {
    /// The patterns of identifiers; `{name}` matches letters, digits, dots and underscores, and
    /// stands for the match in all other texts of the binding. `{published}` stands for the
    /// published value.
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
    /// What claims state that other expressions decide as well, so that all are one fact.
    #[serde(default)]
    pub(super) fact: String,
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
    /// The papers of the book.
    #[serde(default)]
    pub(super) paper: Vec<Paper>,
    #[serde(default)]
    pub(super) binding: Vec<Binding>,
}

/// A paper whose claims a book has.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paper {
    /// The beginning of its claims' identifiers.
    pub(super) id: String,
    /// What pages call it.
    pub(super) title: String,
    /// Its figures, tables and sections, by what follows the paper in the claims' identifiers;
    /// the longest beginning counts.
    #[serde(default)]
    pub(super) places: std::collections::BTreeMap<String, String>,
}

impl Paper {
    /// What follows the paper in an identifier of one of its claims.
    pub(super) fn rest<'a>(&self, id: &'a str) -> Option<&'a str> {
        id.strip_prefix(&*self.id)?.strip_prefix('-')
    }

    /// The figure, table or section that an identifier names.
    pub(super) fn place(&self, id: &str) -> String {
        let rest = self.rest(id).unwrap_or(id);
        let begins = |name: &str| {
            rest.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let named = self.places.iter().filter(|(name, _)| begins(name));
        let longest = named.max_by_key(|(name, _)| name.len());
        longest.map_or_else(|| numbered(rest), |(_, place)| place.clone())
    }
}

/// The place that the first part of a name is: f4.1 is a figure, t4.1 a table.
fn numbered(rest: &str) -> String {
    let what = rest.split('-').next().unwrap_or("");
    let number = what.get(1..).unwrap_or("");
    let is_number = number.starts_with(|c: char| c.is_ascii_digit());
    match what.chars().next() {
        Some('f') if is_number => format!("Figure {number}"),
        Some('t') if is_number => format!("Table {number}"),
        _ => "text".to_owned(),
    }
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
    let usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
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
    fn a_claim_s_place_is_what_its_identifier_names_or_the_paper_s_own_list() {
        let places = [("t41", "Table 4.1"), ("sim", "Section 3.1"), ("sim-f32", "Figure 3.2")];
        let paper = Paper {
            id: "fld".to_owned(),
            title: "Dissertation of 2020".to_owned(),
            places: places.map(|(name, place)| (name.to_owned(), place.to_owned())).into(),
        };
        let place = |id: &str| paper.place(&format!("fld-{id}"));
        assert_eq!(place("t41-a1_0p2-xa"), "Table 4.1");
        assert_eq!(place("sim-f32-delay"), "Figure 3.2");
        assert_eq!(place("sim-f33-delay"), "Section 3.1");
        assert_eq!(place("t4.1-10G"), "Table 4.1");
        assert_eq!(place("f7-exception"), "Figure 7");
        assert_eq!(place("proto-syn"), "text");
    }

    #[test]
    fn a_pattern_s_captures_are_what_stands_in_their_places() {
        let found = captures("t4.1-{c}-{n}flows-{p}", "t4.1-0.1G-10flows-dfcp").expect("a match");
        let values: Vec<&str> = found.iter().map(|(_, value)| &**value).collect();
        assert_eq!(values, ["0.1G", "10", "dfcp"]);
        assert_eq!(captures("t4.1-{c}", "t4.1-a-b"), None);
        assert_eq!(captures("plain", "plain"), Some(vec![]));
    }
}
