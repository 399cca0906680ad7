"""What papers claim, and what comes of it here: the engine of ``fontis lab check``.

>>> book = Book("dfcp")
>>> [claim.why for claim in book.check("dfcp-000-t3.3") if claim.verdict == "differs"]
"""

import os
from collections import Counter
from pathlib import Path

from fontis import _native
from fontis._native import Checked, Judged, UsageError

__all__ = ["Book", "Checked", "Judged", "books", "folder"]


def folder() -> Path:
    """Find the folder of claims: what FONTIS_CLAIMS names, or ``claims`` here or above."""
    if named := os.environ.get("FONTIS_CLAIMS"):
        return Path(named)
    here = Path.cwd()
    for above in (here, *here.parents):
        if (above / "claims").is_dir():
            return above / "claims"
    raise UsageError('there is no folder "claims" here or above; FONTIS_CLAIMS can name one')


def books() -> list[str]:
    """Give the names of the books in the folder of claims."""
    here = folder()
    return sorted(path.stem for path in here.glob("*.jsonl") if path.with_suffix(".toml").is_file())


class Book:
    """A paper's claims, each bound to scenarios and metrics or to formulas."""

    def __init__(self, name: str = "dfcp", claims: str | os.PathLike[str] | None = None) -> None:
        """Read ``NAME.jsonl`` and ``NAME.toml`` in the folder of claims."""
        self.name = name
        self.folder = Path(claims) if claims is not None else folder()
        self._book = _native.Book(self.folder, name)

    def __len__(self) -> int:
        """How many claims there are."""
        return len(self._book.ids())

    @property
    def ids(self) -> list[str]:
        """The identifiers of all claims."""
        return self._book.ids()

    def check(
        self,
        *ids: str,
        run: bool = False,
        quick: bool = False,
        fresh: bool = False,
        stale: bool = False,
        jobs: int | None = None,
    ) -> list[Checked]:
        """Judge the claims whose identifiers begin with one of these, or all.

        From what is recorded, unless ``run``: then what is missing is run, and kept; with
        ``stale`` the runs that other code made, too, and with ``fresh`` all.
        """
        return self.judge(*ids, run=run, quick=quick, fresh=fresh, stale=stale, jobs=jobs).claims

    def judge(
        self,
        *ids: str,
        run: bool = False,
        quick: bool = False,
        fresh: bool = False,
        stale: bool = False,
        jobs: int | None = None,
    ) -> Judged:
        """Check as above; give tables by figure, and the page as Markdown and as HTML."""
        repeat = "everything" if fresh else "stale" if stale else "nothing"
        return self._book.check(list(ids), recorded=not run, quick=quick, repeat=repeat, jobs=jobs or os.cpu_count() or 1)

    def page(self, *ids: str) -> str:
        """Give the page that ``fontis lab check --report`` writes, in Markdown."""
        return self.judge(*ids).markdown

    def html(self, *ids: str) -> str:
        """Give the same page as HTML, as ``fontis lab check --html`` prints it."""
        return self.judge(*ids).html

    def table(self, *ids: str) -> list[dict[str, object]]:
        """Give the claims as rows, for pandas.DataFrame and the like."""
        names = ("id", "verdict", "ours", "published", "unit", "criterion", "why", "scenarios", "metric")
        return [{name: getattr(claim, name) for name in names} for claim in self.check(*ids)]

    def count(self, *ids: str) -> Counter[str]:
        """Count the verdicts."""
        return Counter(claim.verdict for claim in self.check(*ids))
