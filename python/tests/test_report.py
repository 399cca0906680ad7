import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fontis import UsageError, claims, figures, report

WORK = "dfcp-001"


class Addresses(HTMLParser):
    """What a page refers to, and what in it can be referred to."""

    def __init__(self, text):
        super().__init__()
        self.to, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, _tag, attrs):
        found = dict(attrs)
        self.to += [found[name] for name in ("href", "src") if name in found]
        self.ids |= {found["id"]} if "id" in found else set()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    import os

    from conftest import ROOT

    os.chdir(ROOT)
    folder = tmp_path_factory.mktemp("site")
    return report.build(report.Site(folder), works=[WORK]).parent


def test_a_site_has_a_page_for_a_paper_with_its_figures_and_its_claims(site):
    page = (site / f"{WORK}.html").read_text()
    for figure in figures.find(WORK):
        assert figure.number in page
    drawn = {path.stem for path in (site / "figures").glob("*.svg")}
    recorded = [figure for figure in figures.find(WORK) if not figure.why and figures.coverage(figure)[0]]
    assert drawn == {figure.id for figure in recorded} and len(drawn) >= 5
    for claim in claims.Book("dfcp").check(f"{WORK}-"):
        if claim.verdict != "not checkable":
            assert claim.id in page
    assert f"fontis lab figure {recorded[0].id}" in page and f"fontis lab run {recorded[0].scenario}" in page


def test_every_address_on_the_site_leads_somewhere(site):
    for path in site.glob("*.html"):
        for address in Addresses(path.read_text()).to:
            name, _, anchor = address.partition("#")
            assert (site / name).is_file(), address
            assert not anchor or anchor in Addresses((site / name).read_text()).ids, address


def test_one_file_needs_nothing_beside_it(command, tmp_path):
    path = tmp_path / "new" / "one.html"
    said = subprocess.run([command, "lab", "report", WORK, "--single", path], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == str(path)
    addresses = Addresses(path.read_text())
    assert any(address.startswith("data:image/svg+xml") for address in addresses.to)
    for address in addresses.to:
        assert address.startswith("data:") or address.removeprefix("#") in addresses.ids, address
    wrong = subprocess.run([command, "lab", "report", "dfcp-009"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "there are dfcp-000, dfcp-001, dfcp-002" in wrong.stderr


def test_tables_name_every_figure_and_those_that_are_committed_do_too(tmp_path):
    summary, drawn = report.tables(tmp_path)
    committed = Path("docs/reproduction")
    named = [re.findall(r"^\| `([\w.-]+)`", path.read_text(), re.MULTILINE) for path in (drawn, committed / drawn.name)]
    assert named[0] == named[1] == [figure.id for figure in figures.figures()]
    title = r"^\| ([^|]+ of \d+) \| \S+ \| (\d+)"
    both = (summary, committed / summary.name)
    papers = [re.findall(title, path.read_text(), re.MULTILINE) for path in both]
    total = sum(len(claims.Book(name)) for name in claims.books())
    assert papers[0] == papers[1] and sum(int(count) for _, count in papers[0]) == total


def test_the_command_prints_claims_as_html(command):
    said = subprocess.run(
        [command, "lab", "check", "dfcp", "dfcp-000-t3.3", "--recorded", "--html"], check=True, capture_output=True, text=True
    ).stdout
    assert said == claims.Book("dfcp").html("dfcp-000-t3.3")
    assert said.startswith("<!doctype html>") and "<code>dfcp-000-t3.3-ns2-loss5</code>" in said


def test_a_figure_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(UsageError, match=r"there are dfcp-000-f3\.14a"):
        figures.find("dfcp-000-f9.9")
    with pytest.raises(UsageError, match="is not redrawn: "):
        figures.draw(figures.find("dfcp-000-f2.2")[0])


def test_a_book_of_one_paper_has_a_site_too(tmp_path):
    start = report.build(report.Site(tmp_path / "site"), "fld")
    page = (start.parent / "fld.html").read_text()
    assert "Table 4.1" in page and "fontis lab check fld fld-t41" in page and "fontis lab run FB3@testbed" in page
    drawn = {path.stem for path in (start.parent / "figures").glob("*.svg")}
    assert drawn == {figure.id for figure in figures.find("fld") if not figure.why} and len(drawn) >= 10


def test_every_published_point_of_a_figure_is_a_claim_with_a_number():
    points = [point for figure in figures.figures() for point in figure.points]
    assert len(points) > 20 and all(figures.published(point)[0] > 0 for point in points)
