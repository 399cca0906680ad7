"""Sweeps: a scenario over a grid of settings, on every core or on a cluster, into one dataset."""

import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError("sweeps keep their results as Parquet: pip install 'fontis[lab]', or pyarrow alone") from error

from fontis import _native
from fontis import scenario as scenarios
from fontis._native import FontisError, Stop, UsageError
from fontis.scenario import Recipe, Source, Value
from fontis.statistics import mean_and_half_width
from fontis.store import Done, Store

#: Runs of a chunk at most: what is lost when a worker dies.
LARGEST_CHUNK = 64


@dataclass(frozen=True)
class Progress:
    """How far a sweep has come."""

    #: Runs that are done, those from before included.
    done: int
    #: Runs in all.
    runs: int
    #: Runs that had been done before.
    kept: int
    #: Seconds since it began.
    elapsed: float
    #: Seconds that are left, if what remains takes as long as what was; None before the first run
    #: is done.
    left: float | None


class Point(NamedTuple):
    """A run of the plan: where it is in the grid, and the key of its result."""

    variant: str
    sweep: tuple[tuple[str, str], ...]
    repetition: int
    seed: int
    key: str


@dataclass(frozen=True)
class Sweep:
    """A sweep that is complete: its plan, and where its results lie."""

    points: tuple[Point, ...]
    folder: Path
    #: Runs that had been done before.
    kept: int

    @property
    def parameters(self) -> list[str]:
        """What varies: the keys of the grid and of the scenario's own sweep."""
        return list(dict.fromkeys(key for point in self.points for key, _ in point.sweep))

    def table(self) -> pa.Table:
        """Give a row for each run and metric, in the order of the plan.

        It has a column for each parameter, and variant, repetition, seed, metric, subject and
        value.
        """
        return pa.table(self._columns())

    def statistics(self, metric: str, subject: str = "all", confidence: float = 0.95) -> pa.Table:
        """Give the mean of a metric at each point of the grid, and its confidence interval.

        Columns are variant, the parameters, runs, mean, low and high; the bounds are NaN where
        there was one run only.
        """
        columns = self._columns(metric, subject)
        points: dict[tuple[str, ...], list[float]] = {}
        names = ["variant", *self.parameters]
        for row, value in enumerate(columns["value"]):
            points.setdefault(tuple(columns[name][row] for name in names), []).append(value)
        if not points:
            raise UsageError(f"no run measured {metric} of {subject}; .table() has what there is")
        rows: dict[str, list[Any]] = {name: [point[at] for point in points] for at, name in enumerate(names)}
        means = [mean_and_half_width(values, confidence) for values in points.values()]
        rows["runs"] = [len(values) for values in points.values()]
        rows["mean"] = [mean for mean, _ in means]
        rows["low"] = [mean - half for mean, half in means]
        rows["high"] = [mean + half for mean, half in means]
        return pa.table(rows)

    def _columns(self, metric: str | None = None, subject: str | None = None) -> dict[str, list[Any]]:
        found = Store(self.folder).read(point.key for point in self.points)
        of: dict[str, list[tuple[str, str, float]]] = {}
        names = ("key", "metric", "subject", "value")
        for key, name, whose, value in zip(*(found[column].to_pylist() for column in names), strict=True):
            if metric in (None, name) and subject in (None, whose):
                of.setdefault(key, []).append((name, whose, value))
        parameters = self.parameters
        columns: dict[str, list[Any]] = {
            name: [] for name in ("variant", *parameters, "repetition", "seed", "metric", "subject", "value")
        }
        for point in self.points:
            settings = dict(point.sweep)
            for name, whose, value in sorted(set(of.get(point.key, [])), key=lambda row: row[:2]):
                of_point = (point.variant, *(settings.get(key, "") for key in parameters), point.repetition, point.seed)
                row = (*of_point, name, whose, value)
                for cells, cell in zip(columns.values(), row, strict=True):
                    cells.append(cell)
        return columns


def sweep(
    scenario: Source,
    grid: Mapping[str, Sequence[Value]] | None = None,
    reps: int | None = None,
    executor: Any = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    set: Mapping[str, Value] | None = None,
    variants: Sequence[str] | None = None,
    quick: bool = False,
    seed: int | None = None,
    chunk: int | None = None,
    progress: Callable[[Progress], object] | bool | None = None,
) -> Sweep:
    """Run a scenario over a grid of settings, each point ``reps`` times with seeds of its own.

    ``grid`` is crossed with the sweep and the variants that the scenario has. ``executor`` is any
    ``concurrent.futures.Executor`` or a ``distributed.Client``; a thread for each core if there is
    none, which is as good as processes, since runs release the interpreter.

    Results go to ``folder`` (``sweeps/`` and the scenario's id) as chunks of runs finish. A run is
    known by its settings, its seed and this version: what is there is not run again, so an
    interrupted sweep, or one whose grid grew, does only what is missing. On a cluster, only this
    process writes.

    ``progress`` is called with a :class:`Progress`; True shows a line on standard error, None does
    so on a terminal.

    >>> grid = {"topology.rtt": ["10 ms", "50 ms"], "topology.loss": ["0", "1%"]}
    >>> done = fontis.sweep("ten.toml", grid, reps=5)
    >>> done.statistics("goodput").to_pandas()
    """
    recipe = scenarios.recipe(scenario, set=set, vary=grid, quick=quick, seed=seed)
    built = recipe.build()
    place = Path(folder) if folder is not None else Path("sweeps") / _name(built)
    recipe = _repeated(recipe, built, reps)
    runs = scenarios.runs(recipe)
    chosen = [index for index, run in enumerate(runs) if variants is None or run.variant in variants]
    if not chosen:
        names = sorted({run.variant or "-" for run in runs})
        raise UsageError(f"there is no variant {', '.join(variants or ())}; there are {', '.join(names)}")
    points = {index: _point(runs[index], first=int(built.get(SEED))) for index in chosen}
    store = Store(place)
    known = store.keys()
    # Points that come to the same settings are run once.
    missing = {point.key: index for index, point in reversed(points.items()) if point.key not in known}
    todo = sorted(missing.values())
    kept = sum(point.key in known for point in points.values())
    tell = _Teller(progress, len(points), kept)
    with _workers(executor) as (pool, count):
        _run_all(recipe, todo, store, pool, count, chunk, tell, in_process=executor is None)
    return Sweep(tuple(points.values()), place, kept)


SEED, REPETITIONS = "scenario.seed", "scenario.repetitions"


def _repeated(recipe: Recipe, built: _native.Scenario, reps: int | None) -> Recipe:
    """Repeat each run by sweeping the seed, so that a run's key holds no number of runs."""
    if any(step == "vary" and key == SEED for step, key, _ in recipe.steps):
        raise UsageError(f"{SEED}: seeds are swept by reps; the first is seed")
    count = int(built.get(REPETITIONS)) if reps is None else reps
    if count < 1:
        raise UsageError(f"a run is repeated at least once: reps is {count}")
    first = int(built.get(SEED))
    once = recipe._replace(steps=(*recipe.steps, ("set", REPETITIONS, "1")))
    return scenarios.varied(once, {SEED: range(first, first + count)})


def _point(run: _native.Run, first: int) -> Point:
    sweep = tuple((key, value) for key, value in run.sweep if key != SEED)
    return Point(run.variant, sweep, run.seed - first, run.seed, run.result_key)


def _name(scenario: _native.Scenario) -> str:
    name = scenario.get("scenario.id")
    return name if re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", name) else "scenario"


@contextmanager
def _workers(executor: Any) -> Iterator[tuple[Executor, int]]:
    """Give something to submit to, and how many workers it has."""
    if executor is None:
        count = os.cpu_count() or 1
        with ThreadPoolExecutor(count, "fontis-sweep") as threads:
            yield threads, count
    elif isinstance(executor, Executor):
        yield executor, getattr(executor, "_max_workers", None) or os.cpu_count() or 1
    elif hasattr(executor, "get_executor") and hasattr(executor, "ncores"):
        # A Dask client. Tasks of a worker that died are given to others.
        yield executor.get_executor(pure=False), max(1, sum(executor.ncores().values()))
    else:
        raise UsageError(f"{executor!r} is no executor: give a concurrent.futures.Executor or a distributed.Client")


#: What ends the runs of sweeps in this process, by sweep.
_stops: dict[str, Stop] = {}


def _run_all(
    recipe: Recipe,
    todo: Sequence[int],
    store: Store,
    pool: Executor,
    workers: int,
    chunk: int | None,
    tell: "_Teller",
    in_process: bool,
) -> None:
    token = uuid4().hex
    _stops[token] = Stop()
    waiting: set[Future[list[Done]]] = set()
    at = 0
    try:
        while at < len(todo) or waiting:
            # Two chunks for each worker: it need not wait for this process. They shrink towards the
            # end, so that all workers end at about the same time.
            while at < len(todo) and len(waiting) < 2 * workers:
                size = chunk or min(max(1, (len(todo) - at) // (4 * workers)), LARGEST_CHUNK)
                waiting.add(pool.submit(run_chunk, recipe, tuple(todo[at : at + size]), token))
                at += size
            # With a timeout, so that Ctrl-C is heard everywhere.
            finished, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
            done = [run for future in finished for run in future.result()]
            if done:
                store.write(done)
                tell(len(done))
    except BaseException:
        _stops[token].set()
        for future in waiting:
            future.cancel()
        if in_process:
            # Chunks that were under way give what they had finished.
            over, _ = wait(waiting)
            rest = [run for future in over if not future.cancelled() and not future.exception() for run in future.result()]
            if rest:
                store.write(rest)
        raise
    finally:
        del _stops[token]
        tell.end()


def run_chunk(recipe: Recipe, indices: Sequence[int], token: str) -> list[Done]:
    """Run some of a scenario's runs, on a worker. If it is stopped, give the runs that are done."""
    runs = scenarios.runs(recipe)
    stop = _stops.get(token)
    done: list[Done] = []
    for index in indices:
        run = runs[index]
        begin = time.perf_counter()
        try:
            recording = run.simulate(stop)
        except KeyboardInterrupt:
            # In a thread it is this sweep's stop; in a process it is the user's.
            if stop is None or not stop.is_set():
                raise
            break
        except FontisError as error:
            raise type(error)(f"{run.label}: {error}") from None
        metrics = [(name, subject, value) for (name, subject), value in sorted(recording.metrics.items())]
        done.append(Done(run.result_key, run.label, run.seed, time.perf_counter() - begin, metrics))
    return done


class _Teller:
    """Tells how far it is."""

    def __init__(self, progress: Callable[[Progress], object] | bool | None, runs: int, kept: int) -> None:
        shows = sys.stderr.isatty() if progress is None else progress is True
        self.call = progress if callable(progress) else (self._show if shows else None)
        self.runs, self.kept, self.done = runs, kept, 0
        self.begin = time.monotonic()
        self.shown = False
        self(0)

    def __call__(self, more: int) -> None:
        self.done += more
        elapsed = time.monotonic() - self.begin
        rest = self.runs - self.kept - self.done
        left = elapsed / self.done * rest if self.done else None
        if self.call:
            self.call(Progress(self.done + self.kept, self.runs, self.kept, elapsed, left))

    def end(self) -> None:
        if self.shown:
            print(file=sys.stderr)

    def _show(self, now: Progress) -> None:
        left = "" if now.left is None else f", {_clock(now.left)} left"
        before = f", {now.kept} of them from before" if now.kept else ""
        print(f"\r{now.done} of {now.runs} runs{before}{left}\033[K", end="", file=sys.stderr, flush=True)
        self.shown = True


def _clock(seconds: float) -> str:
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def write_summary(done: Sweep, path: str | os.PathLike[str]) -> None:
    """Write the table of a sweep as one Parquet or CSV file."""
    table = done.table()
    if str(path).endswith(".csv"):
        from pyarrow import csv

        csv.write_csv(table, path)
    else:
        pq.write_table(table, path)
