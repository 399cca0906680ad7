"""The runs in ``claims/results``: their summaries, and the curves that summaries do not hold."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from fontis import _native, claims
from fontis import scenario as scenarios
from fontis._native import Run

#: Points of a kept curve at most: print shows no more.
POINTS = 300


@dataclass(frozen=True)
class Result:
    """A run, and what was measured in it; None if it is not recorded."""

    run: Run
    metrics: Mapping[tuple[str, str], float] | None

    def setting(self, key: str) -> str:
        """Give what the sweep sets a key to in it."""
        return dict(self.run.sweep).get(key, "")


def results(scenario: str, *, run: bool = False, folder: Path | None = None) -> list[Result]:
    """Give a scenario's runs as they are recorded; with ``run``, run those that miss."""
    folder = folder or claims.folder() / "results"
    if run:
        _native.run_scenario(folder, scenario, os.cpu_count() or 1)
    # Works share experiments: what one scenario recorded serves another with the same settings.
    recorded: dict[str, Mapping[tuple[str, str], float]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        recorded.update(_read(path, path.stat().st_mtime_ns))
    name, on, _ = scenario.partition("@testbed")
    runs = scenarios.runs(scenarios.recipe(name))
    begin = "testbed-" if on else ""
    return [Result(one, recorded.get(begin + one.key)) for one in runs]


@lru_cache(maxsize=256)
def _read(path: Path, _changed: int) -> Mapping[str, Mapping[tuple[str, str], float]]:
    """Read a file of summaries, by key; ``_changed`` tells versions of the file apart."""
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    # What long probes gave stands beside the runs, without a key.
    of = ((one["key"], one["metrics"]) for one in lines if "key" in one)
    return {key: dict(_metrics(rows)) for key, rows in of}


def _metrics(rows: Sequence[tuple[str, str, float | list[float] | None]]) -> Iterator[tuple[tuple[str, str], float]]:
    """Give (metric, subject), value. A row may hold NAME_00, NAME_01 and so on of a subject."""
    for metric, subject, value in rows:
        if isinstance(value, list):
            yield from (((f"{metric}_{number:02}", subject), one) for number, one in enumerate(value) if one is not None)
        elif value is not None:
            yield (metric, subject), value


def queue_series(one: Run, *, run: bool = False, folder: Path | None = None) -> Sequence[tuple[float, float]] | None:
    """Give (time, mean packets in the queue) of a run's first bottleneck; None without a run."""
    path = (folder or claims.folder() / "results") / "series" / f"{one.key}.csv"
    if not path.is_file():
        if not run:
            return None
        import pyarrow as pa

        table = pa.table(one.simulate().queue)
        first = table["queue"][0].as_py()
        rows = zip(*(table[name].to_pylist() for name in ("queue", "time", "mean_packets")), strict=True)
        series = _thinned([(time, packets) for name, time, packets in rows if name == first])
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{time:.6g},{packets:.6g}\n" for time, packets in series)
        partial = path.with_suffix(".partial")
        partial.write_text(f"time,packets\n{text}", encoding="utf-8")
        partial.replace(path)
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return [(float(time), float(packets)) for time, packets in (line.split(",") for line in lines)]


def _thinned(series: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Mean over groups of samples, so that there are no more than POINTS."""
    size = -(-len(series) // POINTS)
    groups = [series[at : at + size] for at in range(0, len(series), size)]
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]
