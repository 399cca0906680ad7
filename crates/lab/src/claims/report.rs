use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use pulldown_cmark::{Options, Parser};

use super::{Checked, Evidence, Results, Verdict};

/// A figure, a table or the text of a paper, and the results of its claims.
#[derive(Clone, Debug)]
pub struct Section {
    /// The paper, as the beginning of its claims' identifiers.
    pub work: String,
    /// What pages call the paper.
    pub title: String,
    /// The place in the paper.
    pub place: String,
    /// Its claims.
    pub ids: Vec<String>,
    /// A table of them, and why what differs does: Markdown.
    pub markdown: String,
}

/// The page on a book's claims, in Markdown. `findings` precedes the tables.
pub fn report(book: &str, findings: &str, checked: &[Checked], results: &Results) -> String {
    let origin = format!(
        "This page is made by `fontis lab check {book} --report FILE`. Every number in its tables is \
         from there."
    );
    let mut text = format!("# What of {book} is reproduced\n\n{}\n\n", wrap(&origin));
    summary(&mut text, checked);
    facts(&mut text, checked);
    if !findings.trim().is_empty() {
        let _ = writeln!(text, "\n{}", findings.trim());
    }
    text.push_str("\n## Claims\n");
    for section in sections(checked) {
        let Section { title, place, markdown, .. } = section;
        let _ = write!(text, "\n### {title}, {place}\n\n{markdown}");
    }
    unchecked(&mut text, checked);
    let stale = results.stale();
    if !stale.is_empty() {
        text.push_str(
            "\n## Results of other code\n\n\
             Code made these runs that did something else than today's in a short experiment on \
             these\nparts.\n\n| scenario | runs | parts |\n|---|---|---|\n",
        );
        for (scenario, (runs, parts)) in stale {
            let parts = parts.into_iter().collect::<Vec<_>>().join("; ");
            let _ = writeln!(text, "| {scenario} | {runs} | {parts} |");
        }
    }
    text.push_str("\n## Computing\n\n| scenario | runs | seconds on one core |\n|---|---|---|\n");
    let mut sum = 0.0;
    let looked_at = results.seconds().into_iter();
    for (scenario, (runs, seconds)) in looked_at.filter(|(_, (runs, _))| *runs > 0) {
        sum += seconds;
        let _ = writeln!(text, "| {scenario} | {runs} | {:.0} |", seconds + 0.0);
    }
    let _ = writeln!(text, "| all | | {sum:.0} |");
    text
}

/// The claims that can be checked, by the place that they stand at.
pub fn sections(checked: &[Checked]) -> Vec<Section> {
    let mut groups: BTreeMap<(String, String), Vec<&Checked>> = BTreeMap::new();
    for one in checked.iter().filter(|one| is_checkable(one)) {
        groups.entry((one.paper.clone(), one.place.clone())).or_default().push(one);
    }
    let section = |((work, place), claims): (_, Vec<&Checked>)| Section {
        work,
        title: claims[0].title.clone(),
        place,
        ids: claims.iter().map(|one| one.claim.id.clone()).collect(),
        markdown: table(&claims),
    };
    groups.into_iter().map(section).collect()
}

/// Markdown as HTML, without what belongs around it.
pub fn html(markdown: &str) -> String {
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES);
    let mut text = String::new();
    pulldown_cmark::html::push_html(&mut text, events);
    text
}

/// A whole HTML page that needs nothing beside it; `title` is plain text, `body` HTML.
pub fn document(title: &str, body: &str) -> String {
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    let style = include_str!("page.css");
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>\n{style}</style>\n{body}\n</html>\n"
    )
}

fn table(claims: &[&Checked]) -> String {
    let mut text =
        "| claim | published | ours | criterion | verdict |\n|---|---|---|---|---|\n".to_owned();
    for one in claims {
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
        let _ = writeln!(text, "\n{}", wrap(&format!("{of}: {why}.")));
    }
    text
}

fn is_checkable(one: &Checked) -> bool {
    matches!(&*one.claim.checkable_in, "sim" | "analytic") || one.verdict != Verdict::NotCheckable
}

fn summary(text: &mut String, checked: &[Checked]) {
    text.push_str(
        "| checkable | claims | reproduced | differ | undecidable | not checked |\n\
         |---|---|---|---|---|---|\n",
    );
    for place in ["sim", "analytic", "testbed", "none"] {
        let of = |verdict: Option<Verdict>| {
            let of = checked.iter().filter(|one| one.claim.checkable_in == place);
            of.filter(|one| verdict.is_none_or(|verdict| one.verdict == verdict)).count()
        };
        let _ = writeln!(
            text,
            "| {place} | {} | {} | {} | {} | {} |",
            of(None),
            of(Some(Verdict::Reproduced)),
            of(Some(Verdict::Differs)),
            of(Some(Verdict::Undecidable)),
            of(Some(Verdict::NotCheckable))
        );
    }
}

/// The claims that no section has, by the reason why nothing here can check them.
fn unchecked(text: &mut String, checked: &[Checked]) {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for one in checked.iter().filter(|one| !is_checkable(one)) {
        reasons.entry(&one.why).or_default().push(format!("`{}`", one.claim.id));
    }
    if reasons.is_empty() {
        return;
    }
    text.push_str("\n## Not checked\n\n| why | claims |\n|---|---|\n");
    for (why, ids) in reasons {
        let _ = writeln!(text, "| {} | {} |", cell(why), ids.join(", "));
    }
}

/// How many facts stand behind the claims: several claims say the same, and some check a text
/// against itself.
fn facts(text: &mut String, checked: &[Checked]) {
    let intro = "Claims are not facts. Papers repeat each other's claims, and \
                 claims that the same numbers decide are one fact. A formula is checked by \
                 code that was written after it, and a setting is the claim's own number: that \
                 they agree shows that nothing was copied wrongly, and no more.";
    let _ = writeln!(text, "\n{}\n", wrap(intro));
    text.push_str(
        "| distinct facts | in all | reproduced | differ | undecidable |\n|---|---|---|---|---|\n",
    );
    let kinds = [
        (Evidence::Run, "measured in runs"),
        (Evidence::Formula, "formulas"),
        (Evidence::Setting, "settings"),
    ];
    for (kind, name) in kinds {
        let of = |verdict: Option<Verdict>| {
            let of = checked.iter().filter(|one| one.kind == kind && !one.fact.is_empty());
            let of = of.filter(|one| one.verdict != Verdict::NotCheckable);
            let of = of.filter(|one| verdict.is_none_or(|verdict| one.verdict == verdict));
            of.map(|one| &one.fact).collect::<BTreeSet<_>>().len()
        };
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} |",
            of(None),
            of(Some(Verdict::Reproduced)),
            of(Some(Verdict::Differs)),
            of(Some(Verdict::Undecidable)),
        );
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
        Verdict::Undecidable => "undecidable",
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

/// A paragraph of Markdown in lines of at most 100 columns. It is not broken inside code, nor
/// before a word that would begin a list, a heading or a table.
fn wrap(paragraph: &str) -> String {
    const COLUMNS: usize = 100;
    let begins_block = |word: &str| {
        let is_number =
            word.ends_with(['.', ')']) && word.starts_with(|c: char| c.is_ascii_digit());
        is_number || word.starts_with(['-', '+', '*', '>', '#', '|'])
    };
    let mut pieces: Vec<String> = Vec::new();
    let mut is_code = false;
    for word in paragraph.split_whitespace() {
        match pieces.last_mut() {
            Some(piece) if is_code || begins_block(word) => {
                piece.push(' ');
                piece.push_str(word);
            }
            _ => pieces.push(word.to_owned()),
        }
        is_code ^= word.matches('`').count() % 2 == 1;
    }
    let mut text = String::new();
    let mut column = 0;
    for piece in pieces {
        let length = piece.chars().count();
        let fits = column + 1 + length <= COLUMNS;
        if column > 0 {
            text.push(if fits { ' ' } else { '\n' });
        }
        column = if fits && column > 0 { column + 1 + length } else { length };
        text.push_str(&piece);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_html_has_the_tables_and_nothing_of_what_is_in_them_is_taken_for_markup() {
        let page = document("a < b", &html("# x\n\n| a | b |\n|---|---|\n| `<i>` | **c** |\n"));
        assert!(page.contains("<title>a &lt; b</title>"), "{page}");
        assert!(
            page.contains("<td><code>&lt;i&gt;</code></td><td><strong>c</strong></td>"),
            "{page}"
        );
    }

    #[test]
    fn paragraphs_are_wrapped_but_not_inside_code_or_before_what_begins_a_list() {
        let lengths = |text: &str| wrap(text).lines().map(str::len).collect::<Vec<_>>();
        assert_eq!(lengths(&"word ".repeat(30)), [99, 49]);
        let start = "x".repeat(90);
        assert_eq!(lengths(&format!("{start} y `a b c d e f`")), [92, 13]);
        assert_eq!(lengths(&format!("{start} by 123456 - 10 %")), [93, 13]);
    }
}
