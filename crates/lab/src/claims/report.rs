use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Checked, Results, Verdict};

/// The page on what was reproduced of a book's claims: Markdown. `findings` stands above the tables.
pub fn report(book: &str, findings: &str, checked: &[Checked], results: &Results) -> String {
    let mut text = format!(
        "# What of {book} is reproduced\n\nThis page is made by `fontis lab check {book} --report FILE`; \
         every number in its tables comes from there.\n\n"
    );
    summary(&mut text, checked);
    if !findings.trim().is_empty() {
        let _ = writeln!(text, "\n{}", findings.trim());
    }
    let mut groups: BTreeMap<String, Vec<&Checked>> = BTreeMap::new();
    for one in checked.iter().filter(|one| is_checkable(one)) {
        groups.entry(group(&one.claim.id)).or_default().push(one);
    }
    text.push_str("\n## Claims\n");
    for (name, claims) in groups {
        let _ = writeln!(
            text,
            "\n### {name}\n\n| claim | published | ours | criterion | verdict |\n|---|---|---|---|---|"
        );
        for one in &claims {
            let _ = writeln!(
                text,
                "| `{}` {} | {} | {} | {} | {} |",
                one.claim.id,
                cell(&one.claim.metric),
                cell(&published(one)),
                one.ours.map_or(String::new(), number),
                cell(&criterion(one)),
                verdict(one),
            );
        }
        // One cause often serves a whole table.
        let mut causes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for one in claims.iter().filter(|one| !one.why.is_empty()) {
            causes.entry(&one.why).or_default().push(&one.claim.id);
        }
        for (why, ids) in causes {
            let of = match ids[..] {
                [id] => format!("`{id}`"),
                [first, ..] => format!("`{first}` and {} more", ids.len() - 1),
                [] => continue,
            };
            let _ = writeln!(text, "\n{of}: {why}.");
        }
    }
    text.push_str("\n## Computing\n\n| scenario | runs | seconds on one core |\n|---|---|---|\n");
    let mut sum = 0.0;
    for (scenario, (runs, seconds)) in results.seconds() {
        sum += seconds;
        let _ = writeln!(text, "| {scenario} | {runs} | {seconds:.0} |");
    }
    let _ = writeln!(text, "| all | | {sum:.0} |");
    text
}

fn is_checkable(one: &Checked) -> bool {
    matches!(&*one.claim.checkable_in, "sim" | "analytic") || one.verdict != Verdict::NotCheckable
}

fn summary(text: &mut String, checked: &[Checked]) {
    text.push_str(
        "| checkable | claims | reproduced | differ | not checked |\n|---|---|---|---|---|\n",
    );
    for place in ["sim", "analytic", "testbed", "none"] {
        let of = |verdict: Option<Verdict>| {
            let of = checked.iter().filter(|one| one.claim.checkable_in == place);
            of.filter(|one| verdict.is_none_or(|verdict| one.verdict == verdict)).count()
        };
        let _ = writeln!(
            text,
            "| {place} | {} | {} | {} | {} |",
            of(None),
            of(Some(Verdict::Reproduced)),
            of(Some(Verdict::Differs)),
            of(Some(Verdict::NotCheckable))
        );
    }
}

/// The figure, table or section that an identifier names: its second and third part.
fn group(id: &str) -> String {
    let mut parts = id.split('-').skip(1);
    let source = match parts.next().unwrap_or("") {
        "000" => "Dissertation of 2015",
        "001" => "Paper of 2014",
        "002" => "Report of 2011",
        other => other,
    };
    let what = parts.next().unwrap_or("");
    let is_figure = |text: &str| {
        let rest = text.get(1..).unwrap_or("");
        text.starts_with(['f', 't']) && rest.starts_with(|c: char| c.is_ascii_digit())
    };
    if is_figure(what) {
        let kind = if what.starts_with('f') { "Figure" } else { "Table" };
        format!("{source}, {kind} {}", &what[1..])
    } else {
        format!("{source}, text")
    }
}

fn published(one: &Checked) -> String {
    let unit = if one.claim.unit == "-" { "" } else { &one.claim.unit };
    match &one.claim.value {
        serde_json::Value::String(text) => format!("{text} {unit}"),
        other => format!("{other} {unit}"),
    }
}

fn criterion(one: &Checked) -> String {
    // Expressions are in the bindings, for whoever wants them.
    if one.criterion.len() > 90 { "see the binding".to_owned() } else { one.criterion.clone() }
}

fn verdict(one: &Checked) -> &'static str {
    match one.verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::Differs => "**differs**",
        Verdict::NotCheckable => "not checked",
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// A text as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_grouped_by_the_figure_or_table_that_they_name() {
        assert_eq!(group("dfcp-000-t4.1-10G-10flows-dfcp"), "Dissertation of 2015, Table 4.1");
        assert_eq!(group("dfcp-002-f7-exception"), "Report of 2011, Figure 7");
        assert_eq!(group("dfcp-000-proto-syn-timeout"), "Dissertation of 2015, text");
    }
}
