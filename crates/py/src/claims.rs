use std::collections::BTreeMap;
use std::path::PathBuf;

use fontis_lab::claims::{self, Budget, Repeat, Results, Verdict};
use pyo3::prelude::*;

use crate::error::{failed, usage};
use crate::interrupt::Watch;

/// A paper's claims, each bound to what checks it.
#[pyclass(frozen, module = "fontis.claims")]
pub(crate) struct Book {
    book: claims::Book,
    folder: PathBuf,
    name: String,
}

/// What came of claims.
#[pyclass(frozen, get_all, module = "fontis.claims")]
pub(crate) struct Judged {
    /// Each claim.
    claims: Vec<Py<Checked>>,
    /// The same by figure, table or text.
    sections: Vec<Py<Section>>,
    /// What people conclude, as HTML.
    findings: String,
    /// The page that `fontis lab check --report` writes, and the same as HTML.
    markdown: String,
    html: String,
    /// How many runs each scenario has, and the seconds of computing that those took that are
    /// recorded.
    seconds: BTreeMap<String, (usize, f64)>,
}

/// A figure, a table or the text of a paper, with a table of its claims.
#[pyclass(frozen, get_all, module = "fontis.claims")]
pub(crate) struct Section {
    work: String,
    place: String,
    ids: Vec<String>,
    html: String,
}

/// A claim and what came of it.
#[pyclass(frozen, get_all, module = "fontis.claims")]
pub(crate) struct Checked {
    /// The claim's identifier.
    id: String,
    /// The paper that it is from: the beginning of its identifier; its title; and the place there.
    paper: String,
    work: String,
    place: String,
    /// reproduced, differs, undecidable or not checkable.
    verdict: &'static str,
    /// What we have, if it is a number.
    ours: Option<f64>,
    /// What was published, as JSON.
    published: String,
    /// The published number that ours is held against, if it is one.
    published_number: Option<f64>,
    /// The unit of both.
    unit: String,
    /// When it counts as reproduced.
    criterion: String,
    /// Why it differs or cannot be checked.
    why: String,
    /// The scenarios that it rests on.
    scenarios: Vec<String>,
    /// Whether quick runs were enough.
    quick: bool,
    /// What was measured, in which experiment, of what.
    metric: String,
    scenario: String,
    system: String,
    /// Where it can be checked: sim, analytic, testbed or none.
    checkable_in: String,
    /// The paper, and where it stands there.
    source: String,
    lines: String,
}

const fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::Differs => "differs",
        Verdict::Undecidable => "undecidable",
        Verdict::NotCheckable => "not checkable",
    }
}

#[pymethods]
impl Book {
    /// Reads the book of this name in a folder of claims.
    #[new]
    fn new(folder: PathBuf, name: &str) -> PyResult<Self> {
        let book = claims::Book::read(&folder, name).map_err(usage)?;
        Ok(Self { book, folder, name: name.to_owned() })
    }

    /// The identifiers of all claims.
    fn ids(&self) -> Vec<String> {
        self.book.claims().iter().map(|claim| claim.id.clone()).collect()
    }

    /// Judges the claims whose identifiers begin with one of these, or all.
    #[pyo3(signature = (ids, *, recorded=true, quick=false, repeat="nothing", jobs=1))]
    fn check(
        &self,
        py: Python<'_>,
        ids: Vec<String>,
        recorded: bool,
        quick: bool,
        repeat: &str,
        jobs: usize,
    ) -> PyResult<Judged> {
        let repeat = match repeat {
            "everything" => Repeat::Everything,
            "stale" => Repeat::Stale,
            _ => Repeat::Nothing,
        };
        let budget = Budget { quick, nothing: recorded, repeat, jobs };
        let watch = Watch::new(None);
        let (watch, done) = py.detach(move || {
            let mut results = Results::new(&self.folder.join("results"), budget);
            let stop = results.stop();
            let done = watch.over(&stop, || {
                let checked = self.book.check(&ids, &mut results, &|_| ())?;
                let findings = self.folder.join(format!("{}.md", self.name));
                let findings = std::fs::read_to_string(findings).unwrap_or_default();
                let page = claims::report(&self.name, &findings, &checked, &results);
                Ok((checked, findings, page, results.seconds()))
            });
            (watch, done)
        });
        if watch.ended() {
            return Err(watch.error());
        }
        let (checked, findings, markdown, seconds) = done.map_err(|error: String| failed(error))?;
        let section = |one: claims::Section| {
            let claims::Section { work, place, ids, markdown, .. } = one;
            Py::new(py, Section { work, place, ids, html: claims::html(&markdown) })
        };
        let title = format!("What of {} is reproduced", self.name);
        Ok(Judged {
            sections: claims::sections(&checked)
                .into_iter()
                .map(section)
                .collect::<PyResult<_>>()?,
            claims: checked
                .into_iter()
                .map(|one| Py::new(py, Checked::from(one)))
                .collect::<PyResult<_>>()?,
            findings: claims::html(&findings),
            html: claims::document(&title, &claims::html(&markdown)),
            markdown,
            seconds,
        })
    }
}

/// A whole HTML page in the house's style.
#[pyfunction]
pub(crate) fn document(title: &str, body: &str) -> String {
    claims::document(title, body)
}

/// Runs what is not recorded yet of a scenario, and keeps summaries in a folder, as
/// `fontis lab run` does.
#[pyfunction]
pub(crate) fn run_scenario(
    py: Python<'_>,
    folder: PathBuf,
    scenario: &str,
    jobs: usize,
) -> PyResult<()> {
    let watch = Watch::new(None);
    let repeat = Repeat::Nothing;
    let budget = Budget { quick: false, nothing: false, repeat, jobs };
    let (watch, done) = py.detach(move || {
        let mut results = Results::new(&folder, budget);
        let stop = results.stop();
        let done = watch.over(&stop, || results.run(scenario, None, &|_| ()));
        (watch, done)
    });
    if watch.ended() { Err(watch.error()) } else { done.map_err(failed) }
}

impl From<claims::Checked> for Checked {
    fn from(one: claims::Checked) -> Self {
        let claims::Claim {
            id,
            source,
            source_lines,
            system,
            scenario,
            metric,
            value,
            unit,
            checkable_in,
            ..
        } = one.claim;
        Self {
            paper: one.paper,
            work: one.title,
            place: one.place,
            id,
            verdict: name(one.verdict),
            ours: one.ours,
            published: value.to_string(),
            published_number: one.published,
            unit,
            criterion: one.criterion,
            why: one.why,
            scenarios: one.scenarios.into_iter().collect(),
            quick: one.quick,
            metric,
            scenario,
            system,
            checkable_in,
            source,
            lines: source_lines,
        }
    }
}

#[pymethods]
impl Checked {
    fn __repr__(&self) -> String {
        format!("<fontis.claims.Checked {}: {}>", self.id, self.verdict)
    }
}
