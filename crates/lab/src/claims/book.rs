use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value as Json;

use super::binding::{Binding, Bindings, Evidence, Paper};
use super::expression::{World, evaluate};
use super::results::Results;
use super::value::Value;
use super::{functions, results};

/// A claim of a paper, as `claims/NAME.jsonl` has it.
#[derive(Clone, Debug, Deserialize)]
pub struct Claim {
    /// Its identifier.
    pub id: String,
    /// The paper; empty if the book has one only.
    #[serde(default)]
    pub source: String,
    /// Its place there: lines, or offsets in the text.
    #[serde(alias = "source_offsets")]
    pub source_lines: String,
    /// Its subject.
    pub system: String,
    /// In which experiment.
    pub scenario: String,
    /// The metric.
    pub metric: String,
    /// The value.
    pub value: Json,
    /// In which unit.
    pub unit: String,
    /// `eq`, `le`, `ge`, `ratio`, or `trend`.
    pub comparison: String,
    /// The criterion that the specification suggests.
    pub tolerance_suggestion: String,
    /// `sim`, `analytic`, `testbed`, or `none`.
    pub checkable_in: String,
    /// Remarks.
    #[serde(default)]
    pub note: String,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It is reproduced here.
    Reproduced,
    /// It differs here.
    Differs,
    /// The texts leave open what decides it.
    Undecidable,
    /// It cannot be checked here, or not by the permitted runs.
    NotCheckable,
}

/// A claim and its verdict.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The claim.
    pub claim: Claim,
    /// The paper that it is from: the beginning of its identifier.
    pub paper: String,
    /// What pages call the paper.
    pub title: String,
    /// The figure, table or section there.
    pub place: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Our value.
    pub ours: Option<f64>,
    /// The published value, as a number.
    pub published: Option<f64>,
    /// The criterion.
    pub criterion: String,
    /// What the check rests on.
    pub kind: Evidence,
    /// The expressions that decide. Claims with the same ones are one fact.
    pub fact: String,
    /// The reason why it differs, or cannot be checked.
    pub why: String,
    /// The scenarios that it rests on.
    pub scenarios: BTreeSet<String>,
    /// True if a quick variant was among them.
    pub quick: bool,
}

/// Claims and their bindings.
pub struct Book {
    papers: Vec<Paper>,
    claims: Vec<Claim>,
    bindings: Vec<Binding>,
}

impl Book {
    /// Reads `NAME.jsonl` and `NAME.toml` in a folder; an error says where and what.
    pub fn read(folder: &Path, name: &str) -> Result<Self, String> {
        let path = folder.join(format!("{name}.jsonl"));
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut claims: Vec<Claim> = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let claim = serde_json::from_str(line)
                .map_err(|error| format!("{}: line {}: {error}", path.display(), number + 1))?;
            claims.push(claim);
        }
        let path = folder.join(format!("{name}.toml"));
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let bindings: Bindings =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let papers = match &*bindings.paper {
            // A book that names none is one paper's.
            [] => {
                let (id, title) = (name.to_owned(), name.to_owned());
                vec![Paper { id, title, places: BTreeMap::new() }]
            }
            papers => papers.to_vec(),
        };
        let book = Self { papers, claims, bindings: bindings.binding };
        for binding in &book.bindings {
            if !book.claims.iter().any(|claim| binding.captures(&claim.id).is_some()) {
                return Err(format!("{}: no claim is {:?}", path.display(), binding.claims));
            }
        }
        Ok(book)
    }

    /// The claims.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// Checks the claims whose identifier begins with one of these, or all if there are none; runs
    /// what that takes.
    pub fn check(
        &self,
        wanted: &[String],
        results: &mut Results,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<Vec<Checked>, String> {
        let is_wanted = |claim: &&Claim| {
            wanted.is_empty() || wanted.iter().any(|wanted| claim.id.starts_with(wanted))
        };
        let claims: Vec<&Claim> = self.claims.iter().filter(is_wanted).collect();
        if claims.is_empty() {
            return Err(format!("no claim's identifier begins with {}", wanted.join(" or ")));
        }
        // First what is needed, so that a scenario runs once and all its runs side by side.
        let mut needed = Needed::default();
        for claim in &claims {
            let mut survey = Survey { results, needed: &mut needed };
            let _ = self.judge(claim, &mut survey);
        }
        for (scenario, runs) in &needed.runs {
            results.run(scenario, Some(runs), tell)?;
        }
        for name in &needed.probes {
            results.run_probe(name, tell)?;
        }
        Ok(claims
            .into_iter()
            .map(|claim| {
                let mut looking = Looking { results, scenarios: BTreeSet::new(), quick: false };
                let mut checked = self.judge(claim, &mut looking);
                checked.scenarios = looking.scenarios;
                checked.quick = looking.quick;
                checked
            })
            .collect())
    }

    fn judge(&self, claim: &Claim, world: &mut impl Judging) -> Checked {
        let paper = self.papers.iter().find(|paper| paper.rest(&claim.id).is_some());
        let paper = paper.unwrap_or(&self.papers[0]);
        let mut checked = Checked {
            claim: claim.clone(),
            paper: paper.id.clone(),
            title: paper.title.clone(),
            place: paper.place(&claim.id),
            verdict: Verdict::NotCheckable,
            ours: None,
            published: claim.value.as_f64(),
            criterion: String::new(),
            kind: Evidence::Run,
            fact: String::new(),
            why: String::new(),
            scenarios: BTreeSet::new(),
            quick: false,
        };
        let found = self
            .bindings
            .iter()
            .find_map(|binding| binding.captures(&claim.id).map(|captures| (binding, captures)));
        let Some((binding, captures)) = found else {
            checked.why = match &*claim.checkable_in {
                "none" => "a statement, not a measurement".to_owned(),
                "testbed" => "measured on a testbed of machines of their own; not bound".to_owned(),
                _ => "not bound".to_owned(),
            };
            return checked;
        };
        if !binding.unchecked.is_empty() {
            checked.why = binding.unchecked.clone();
            return checked;
        }
        if binding.full && world.is_quick() {
            checked.why = "needs the full run".to_owned();
            return checked;
        }
        checked.published = binding.published.or(checked.published);
        checked.kind = binding.kind;
        let mut captures = captures;
        if let Some(published) = checked.published {
            captures.push(("published".to_owned(), published.to_string()));
        }
        checked.fact = [&binding.value, &binding.holds, &binding.undecidable]
            .map(|text| binding.fill(text, &captures))
            .join("\n");
        if !binding.fact.is_empty() {
            checked.fact = binding.fill(&binding.fact, &captures);
        }
        if !binding.undecidable.is_empty() {
            checked.verdict = Verdict::Undecidable;
            checked.why = binding.fill(&binding.undecidable, &captures);
            let value = binding.fill(&binding.value, &captures);
            if !value.is_empty() {
                checked.ours = evaluate(&value, world).and_then(|value| value.number()).ok();
            }
            return checked;
        }
        match self.holds(binding, &captures, &mut checked, world) {
            Ok(true) => {
                checked.verdict = Verdict::Reproduced;
                checked.why = binding.fill(&binding.remark, &captures);
            }
            Ok(false) => {
                checked.verdict = Verdict::Differs;
                checked.why = binding.fill(&binding.cause, &captures);
            }
            Err(error) => checked.why = error,
        }
        checked
    }

    fn holds(
        &self,
        binding: &Binding,
        captures: &[(String, String)],
        checked: &mut Checked,
        world: &mut impl Judging,
    ) -> Result<bool, String> {
        let fill = |text: &str| binding.fill(text, captures);
        if !binding.value.is_empty() {
            checked.ours = Some(evaluate(&fill(&binding.value), world)?.number()?);
        }
        if !binding.holds.is_empty() {
            let text = fill(&binding.holds);
            let holds = evaluate(&text, world)?.number()? != 0.0;
            checked.criterion = text;
            return Ok(holds);
        }
        let ours = checked.ours.ok_or("the binding has neither value nor holds")?;
        if ours.is_nan() {
            return Err("nothing was measured".to_owned());
        }
        let published = checked.published.ok_or("the published value is no number")?;
        let tolerance = match fill(&binding.tolerance) {
            text if text.is_empty() => 0.1 * published.abs(),
            text => match text.strip_suffix('%') {
                Some(percent) => {
                    let share: f64 =
                        percent.trim().parse().map_err(|_| format!("tolerance {text:?}"))?;
                    share / 100.0 * published.abs()
                }
                None => text.trim().parse().map_err(|_| format!("tolerance {text:?}"))?,
            },
        };
        let (holds, sign) = match &*checked.claim.comparison {
            "le" => (ours <= published + tolerance, "at most"),
            "ge" => (ours >= published - tolerance, "at least"),
            _ => ((ours - published).abs() <= tolerance, "within"),
        };
        let of = fill(&binding.tolerance);
        let of = if of.is_empty() { "10%".to_owned() } else { of };
        checked.criterion = match sign {
            "within" => format!("within {of}"),
            sign => format!("{sign} published, give or take {of}"),
        };
        if !binding.reason.is_empty() {
            checked.criterion.push_str(&format!(" ({})", binding.reason));
        }
        Ok(holds)
    }
}

trait Judging: World {
    fn is_quick(&self) -> bool;
}

/// The runs that are needed.
#[derive(Default)]
struct Needed {
    runs: BTreeMap<String, BTreeSet<usize>>,
    probes: BTreeSet<String>,
}

/// Records the requests, and answers with ones.
struct Survey<'a> {
    results: &'a mut Results,
    needed: &'a mut Needed,
}

impl World for Survey<'_> {
    fn measured(
        &mut self,
        scenario: &str,
        selectors: &[(Option<String>, String)],
        _metric: &str,
        _subject: &str,
    ) -> Result<Vec<f64>, String> {
        let groups = self.results.scenario(scenario)?.select(selectors)?;
        let runs = self.needed.runs.entry(scenario.to_owned()).or_default();
        runs.extend(groups.iter().flatten());
        Ok(vec![1.0])
    }

    fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        if let ("long_probe", [name]) = (name, arguments) {
            self.needed.probes.insert(name.text()?.to_owned());
        }
        // What is computed is of no matter yet; what is asked for in arguments was noted.
        Ok(Value::List(vec![1.0]))
    }
}

impl Judging for Survey<'_> {
    fn is_quick(&self) -> bool {
        self.results.is_quick()
    }
}

/// Looks up measured values.
struct Looking<'a> {
    results: &'a mut Results,
    scenarios: BTreeSet<String>,
    quick: bool,
}

impl World for Looking<'_> {
    fn measured(
        &mut self,
        scenario: &str,
        selectors: &[(Option<String>, String)],
        metric: &str,
        subject: &str,
    ) -> Result<Vec<f64>, String> {
        self.scenarios.insert(scenario.to_owned());
        let missing = self.results.missing(scenario);
        let loaded = self.results.scenario(scenario)?;
        self.quick |= loaded.is_quick;
        let mut values = Vec::new();
        for group in loaded.select(selectors)? {
            let mut of_group: Vec<Vec<f64>> = Vec::new();
            for run in group {
                let found = loaded.values(run, metric, subject);
                of_group.push(found.ok_or_else(|| missing.clone())?);
            }
            // Repetitions are averaged, subject by subject.
            let repetitions = of_group.len() as f64;
            let width = of_group.iter().map(Vec::len).min().unwrap_or(0);
            values.extend((0..width).map(|subject| {
                of_group.iter().map(|values| values[subject]).sum::<f64>() / repetitions
            }));
        }
        Ok(values)
    }

    fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        if name == "setting" {
            let [scenario, key] = arguments else {
                return Err("it takes a scenario and a key".to_owned());
            };
            let loaded = self.results.scenario(scenario.text()?)?;
            return results::setting(loaded, key.text()?);
        }
        if name == "long_probe" {
            let [name] = arguments else { return Err("it takes one name".to_owned()) };
            let values = self.results.probe(name.text()?).cloned();
            return values.map(Value::List).ok_or(format!("{} has not been probed", name.text()?));
        }
        functions::call(name, arguments)
    }
}

impl Judging for Looking<'_> {
    fn is_quick(&self) -> bool {
        self.results.is_quick()
    }
}
