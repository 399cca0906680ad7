"""The reproduction report: a static site with a page a paper, each figure beside its claims.

>>> build(Site("site"), "dfcp")
"""

import base64
import html
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from fontis import claims, figures, plots
from fontis._native import Section, __version__, document
from fontis.claims import Checked
from fontis.figures import Figure

VERDICTS = ("reproduced", "differs", "undecidable", "not checkable")
#: The same in a sentence.
WORDS = ("reproduced", "differ", "undecidable", "not checked")


@dataclass
class Place:
    """A figure, a table or the text of a paper: what is claimed about it, and how it is redrawn."""

    name: str
    section: Section | None = None
    figures: list[Figure] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """Its name in addresses."""
        return re.sub(r"[^\w.]+", "-", self.name.lower())

    def order(self) -> tuple[bool, list[tuple[int, str]], str]:
        """Figures and tables in the order of their numbers, then the text."""
        kind, _, number = self.name.partition(" ")
        parts = re.findall(r"(\d+)([a-z]?)", number)
        return (not parts, [(int(digits), letter) for digits, letter in parts], kind)


@dataclass
class Paper:
    """A paper: what is claimed in it, by place."""

    id: str
    title: str
    claims: list[Checked]
    places: list[Place]
    #: Figures that are not redrawn.
    left: list[Figure]

    @property
    def count(self) -> Counter[str]:
        """How many claims have which verdict."""
        return Counter(claim.verdict for claim in self.claims)


def papers(judged: claims.Judged, works: Sequence[str] = ()) -> list[Paper]:
    """Put claims and figures together, by paper; of all papers, or of these works."""
    found: dict[str, Paper] = {}
    for claim in judged.claims:
        if not works or claim.paper in works:
            found.setdefault(claim.paper, Paper(claim.paper, claim.work, [], [], [])).claims.append(claim)
    for work, paper in found.items():
        places = {section.place: Place(section.place, section) for section in judged.sections if section.work == work}
        for figure in figures.figures():
            if figure.work != work:
                continue
            if figure.why:
                paper.left.append(figure)
                continue
            # What is said of Figure 4.8 is about 4.8a and 4.8b.
            names = [figure.place, figure.place.rstrip("abcdef")]
            name = next((name for name in names if name in places), names[0])
            places.setdefault(name, Place(name)).figures.append(figure)
        paper.places = sorted(places.values(), key=Place.order)
    return list(found.values())


class Site:
    """Where pages go: a folder, or one file that holds everything."""

    def __init__(self, folder: str | os.PathLike[str], *, single: bool = False) -> None:
        """Take a folder, or with ``single`` the path of a file."""
        self.path, self.single = Path(folder), single
        self.pages: list[tuple[str, str, str]] = []

    def figure(self, figure: Figure) -> str:
        """Draw a figure, and give the address of the picture."""
        drawn = figures.draw(figure)
        if self.single:
            with TemporaryDirectory() as made:
                svg = plots.save(drawn, Path(made) / "figure.svg").read_bytes()
            return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
        folder = self.path / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        plots.save(drawn, folder / f"{figure.id}.svg")
        return f"figures/{figure.id}.svg"

    def address(self, page: str, anchor: str = "") -> str:
        """Give the address of a page, or of a place on it."""
        if self.single:
            return f"#{page}" + (f"-{anchor}" if anchor else "")
        return f"{page}.html" + (f"#{page}-{anchor}" if anchor else "")

    def add(self, page: str, title: str, body: str) -> None:
        """Take a page."""
        self.pages.append((page, title, body))

    def write(self) -> Path:
        """Write what was added, and give the path to begin at."""
        links = [f'<a href="{self.address(page)}">{html.escape(title)}</a>' for page, title, _ in self.pages]
        nav = f"<nav>{' · '.join(links)}</nav>"
        if self.single:
            body = "".join(f'<article id="{page}">{body}</article>' for page, _, body in self.pages)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return _write(self.path, document(self.pages[0][1], nav + body))
        self.path.mkdir(parents=True, exist_ok=True)
        # The page to begin at comes last: it is there when all others are.
        written = [
            _write(self.path / f"{page}.html", document(title, f'{nav}<article id="{page}">{body}</article>'))
            for page, title, body in reversed(self.pages)
        ]
        return written[-1]


def build(site: Site, book: str = "dfcp", works: Sequence[str] = ()) -> Path:
    """Make the report of a book of claims from what is recorded; gives the path of what to open."""
    judged = claims.Book(book).judge(*(f"{work}-" for work in works))
    about = papers(judged, works)
    pages = [(paper.id, paper.title, _paper(site, paper, judged)) for paper in about]
    site.add("index", f"What of {book} is reproduced", _index(site, book, judged, about))
    for page in pages:
        site.add(*page)
    return site.write()


def _index(site: Site, book: str, judged: claims.Judged, about: Sequence[Paper]) -> str:
    rows = [
        (f'<a href="{site.address(paper.id)}">{html.escape(paper.title)}</a>', *(str(paper.count[name]) for name in VERDICTS))
        for paper in about
    ]
    computing = [
        (html.escape(scenario), str(runs), f"{seconds:.0f}") for scenario, (runs, seconds) in sorted(judged.seconds.items())
    ]
    total = sum(seconds for _, seconds in judged.seconds.values())
    return f"""<h1>What of {html.escape(book)} is reproduced</h1>
<p>Each page shows a paper: its figures, redrawn from runs of this version ({html.escape(__version__)}), beside what it claims
about them and what came of that here. Stars and dotted lines are published values.</p>
{_table(("paper", *WORDS), rows)}
{judged.findings}
<h2>Repeat it</h2>
<p>In the source folder, with the Python package installed (<code>pip install '.[lab]'</code>). Runs that are recorded in
<code>claims/results</code> are not repeated; <code>--fresh</code> repeats them. The same seeds give the same numbers on every
machine.</p>
<pre>fontis lab check {html.escape(book)}            # runs what is missing, judges every claim
fontis lab report --book {html.escape(book)}    # this site</pre>
<h2>How it was made</h2>
<p>By the simulator of this version, in virtual time, with the seeds that the scenarios state, and on the testbed, with
real kernels in real time, where a scenario's name ends in @testbed. All runs together took
{total / 3600:.1f} hours on one core:</p>
<details><summary>Computing, by scenario</summary>
{_table(("scenario", "runs", "seconds on one core"), computing)}</details>"""


def _paper(site: Site, paper: Paper, judged: claims.Judged) -> str:
    words = zip(VERDICTS, WORDS, strict=True)
    count = ", ".join(f"{paper.count[name]} {word}" for name, word in words)
    contents = " · ".join(
        f'<a href="{site.address(paper.id, place.anchor)}">{html.escape(place.name)}</a>' for place in paper.places
    )
    places = "".join(_place(site, paper, place, judged) for place in paper.places)
    left = _table(("figure", "why not"), [(html.escape(one.number), html.escape(one.why)) for one in paper.left])
    left = f"<h2>Figures that are not redrawn</h2>{left}" if paper.left else ""
    return f"<h1>{html.escape(paper.title)}</h1><p>{len(paper.claims)} claims: {count}.</p><p>{contents}</p>{places}{left}"


def _place(site: Site, paper: Paper, place: Place, judged: claims.Judged) -> str:
    drawn = "".join(_figure(site, figure) for figure in place.figures)
    told = place.section.html if place.section else "<p>No claim is about it.</p>"
    ids = place.section.ids if place.section else []
    scenarios = {name for claim in judged.claims if claim.id in ids for name in claim.scenarios}
    scenarios |= {figure.scenario for figure in place.figures if figure.scenario}
    commands = [f"fontis lab run {' '.join(sorted(scenarios))}"] if scenarios else []
    commands += [f"fontis lab figure {figure.id}" for figure in place.figures]
    if ids:
        commands.append(f"fontis lab check {paper.id.split('-')[0]} {_common(ids, paper.id)}")
    repeat = "\n".join(html.escape(command) for command in commands)
    body = f"""<section id="{paper.id}-{place.anchor}"><h2>{html.escape(place.name)}</h2>
<div class="pair"><div>{drawn}</div><div>{told}</div></div>
<details><summary>Repeat it</summary><pre>{repeat}</pre></details></section>"""
    return body if drawn else body.replace('class="pair"', 'class="alone"')


def _common(ids: Sequence[str], paper: str) -> str:
    """Give the parts that all identifiers begin with; the paper's at least."""
    parts = [one.split("-") for one in ids]
    same = list(itertools.takewhile(lambda at: len(set(at)) == 1, zip(*parts, strict=False)))
    return "-".join(at[0] for at in same) or paper


def _figure(site: Site, figure: Figure) -> str:
    there, runs = figures.coverage(figure)
    made = f"Scenario {html.escape(figure.scenario)}; of {runs} runs that it shows {there} are recorded."
    made = made if figure.scenario else "Computed."
    try:
        picture = f'<img src="{site.figure(figure)}" alt="{html.escape(figure.title)}">'
    except figures.MissingResults as error:
        picture = f"<p><em>Not drawn: {html.escape(str(error))}.</em></p>"
    note = f" {html.escape(figure.note[0].upper() + figure.note[1:])}." if figure.note else ""
    caption = f"<b>{html.escape(figure.number)}</b> {html.escape(figure.title)}.{note} <span>{made}</span>"
    return f"<figure>{picture}\n<figcaption>{caption}</figcaption></figure>"


def tables(folder: str | os.PathLike[str]) -> list[Path]:
    """Write tables in Markdown: of all papers (README.md) and of their figures (figures.md)."""
    rows = [
        (paper.title, f"[{book}]({book}.md)", str(len(paper.claims)), *(str(paper.count[name]) for name in VERDICTS))
        for book in claims.books()
        for paper in papers(claims.Book(book).judge())
    ]
    summary = f"""# What is reproduced

Made by `fontis lab report --tables docs/reproduction`, from the runs in `claims/results`.
The page of a book has every claim, [figures.md](figures.md) every figure;
`fontis lab report --book NAME` makes a site of both.

{_markdown(("paper", "book", "claims", *WORDS), rows)}"""
    drawn = []
    for figure in figures.figures():
        there, runs = figures.coverage(figure) if figure.scenario else (0, 0)
        state = f"not redrawn: {figure.why}" if figure.why else _state(there, runs)
        drawn.append((f"`{figure.id}`", figure.title, figure.scenario, state))
    shown = f"""# Figures

Every numbered figure of the works that shows data, and the tables that are drawn. Made by
`fontis lab report --tables docs/reproduction`; `fontis lab figure ID` draws one.

{_markdown(("figure", "what it shows", "scenario", "here"), drawn)}"""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return [_write(path / "README.md", summary), _write(path / "figures.md", shown)]


def _state(there: int, runs: int) -> str:
    if there == runs:
        return "redrawn"
    return f"redrawn from {there} of {runs} runs" if there else "waits for its runs"


def _write(path: Path, text: str) -> Path:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    return partial.replace(path)


def _table(names: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"


def _markdown(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    escaped = ((cell.replace("|", r"\|") for cell in line) for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in escaped)
