"""Figures of papers, redrawn from recorded runs, with published values where the text gives them.

``figures.toml`` has every numbered figure of the works that shows data: how it is redrawn, or why
it is not.

>>> figure = find("dfcp-000-f4.1")[0]
>>> plots.save(draw(figure), "figure.pdf")
"""

import json
import math
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from fontis import claims, drawn_runs, drawn_tables, fairness, plots
from fontis import scenario as scenarios
from fontis._native import FontisError, UsageError
from fontis.results import Result, queue_series, results

#: Bins that the simulator cuts a run into (goodput_bin_NN).
BINS = 30


@dataclass(frozen=True)
class Series:
    """A line, or a group of bars."""

    variant: str
    label: str = ""
    subject: str = ""
    #: The flow that this one is relative to.
    over: str = ""
    panel: str = ""
    where: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Point:
    """A published value: of a series at x, or at every x."""

    series: str
    claim: str
    x: float | None = None
    #: The series that the claim gives the ratio of, to this one.
    over: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure or a table of a paper."""

    id: str
    #: Why it is not redrawn, if it is not.
    why: str = ""
    title: str = ""
    note: str = ""
    scenario: str = ""
    kind: str = ""
    x: str = ""
    x_label: str = ""
    x_log: bool = False
    x_most: float = math.inf
    y: str = ""
    y_label: str = ""
    y_log: bool = False
    subject: str = "all"
    #: What distribution a CDF shows.
    of: str = ""
    where: dict[str, str] = field(default_factory=dict)
    panels: tuple[str, ...] = ()
    series: tuple[Series, ...] = ()
    points: tuple[Point, ...] = ()
    theory: dict[str, str] = field(default_factory=dict)
    #: In percent lost of the first value, or of the most.
    relative: bool = False
    of_most: bool = False
    #: As rate increase over the metric's equivalent redundancy, by a fountain of this redundancy.
    gain: float | None = None
    #: All flows of a run, and their sum.
    all_flows: bool = False
    #: Of a table: the identifiers of its claims, with ``{row}`` and ``{column}``. ``groups`` are
    #: the rows, ``variant`` is the column, and ``subject`` the variant of runs that it rests on.
    claims: str = ""
    #: Variants, a group of bars each, or values of the weight on the x axis.
    groups: tuple[str, ...] = ()

    @property
    def work(self) -> str:
        """The work that it is from: the beginning of its identifier."""
        return self.id.rsplit("-", 1)[0]

    @property
    def number(self) -> str:
        """Its number there."""
        return self.id.rsplit("-", 1)[1][1:]

    @property
    def place(self) -> str:
        """What it is called there."""
        kind = "Table" if self.id.rsplit("-", 1)[1].startswith("t") else "Figure"
        return f"{kind} {self.number}"


class MissingResults(FontisError):
    """The runs that a figure rests on are not recorded."""


@lru_cache(maxsize=1)
def figures() -> tuple[Figure, ...]:
    """Give all figures, drawn or not."""
    text = (files("fontis") / "figures.toml").read_text(encoding="utf-8")
    return tuple(_read(table) for table in tomllib.loads(text)["figure"])


def _read(table: dict[str, Any]) -> Figure:
    series = tuple(Series(**one) for one in table.pop("series", ()))
    points = tuple(Point(**one) for one in table.pop("points", ()))
    lists = {name: tuple(table.get(name, ())) for name in ("panels", "groups")}
    return Figure(**{**table, **lists, "series": series, "points": points})


def find(name: str) -> list[Figure]:
    """Give the figures of this identifier: one, or the parts a, b of one, or all of a work."""
    found = [one for one in figures() if re.fullmatch(re.escape(name) + r"(|[a-z]|-[ft]\d.*)", one.id)]
    if not found:
        near = ", ".join(one.id for one in figures() if one.work == re.split(r"-[ft](?=\d)", name)[0])
        raise UsageError(f"there is no figure {name!r}; there are {near or ', '.join(one.id for one in figures())}")
    return found


def draw(figure: Figure, *, run: bool = False) -> Any:
    """Draw a figure from what is recorded; with ``run``, what is missing is run first."""
    if figure.why:
        raise UsageError(f"{figure.id} is not redrawn: {figure.why}")
    if figure.kind == "settings":
        return _rates(figure)
    if figure.kind == "indifference":
        with plots.style():
            return _indifference(figure)
    if figure.kind == "table":
        with plots.style():
            columns = [(series.label, series.variant) for series in figure.series]
            return drawn_tables.table(figure.id.split("-", 1)[0], figure.claims, figure.groups, columns, figure.note)
    if figure.kind == "run":
        return _over_time(figure)
    known = [one for one in results(figure.scenario, run=run) if one.metrics is not None]
    if not known:
        raise MissingResults(f"{figure.id}: nothing is recorded of {figure.scenario}: run fontis lab run {figure.scenario}")
    with plots.style():
        if figure.kind == "cascade":
            nodes = [(float(series.subject), float(series.variant)) for series in figure.series]
            found = [one.metrics for one in known if one.metrics and _is_at(one, figure.where)]
            return drawn_tables.cascade(nodes, found)
        drawing = _Drawing(figure, known, run)
        KINDS[figure.kind](drawing)
        return drawing.finish()


def _over_time(figure: Figure) -> Any:
    """A run's first repetition, made anew: it takes a moment in virtual time."""
    variant = figure.series[0].variant
    run = next(run for run in scenarios.runs(scenarios.recipe(figure.scenario)) if run.variant == variant)
    settings = run.settings
    segment = number(settings["tcp.mtu"]) - 40.0
    path = 1e6 * number(settings["topology.rate"]), number(settings["topology.rtt"]) / 2000.0
    with plots.style():
        return drawn_runs.over_time(run, [(series.label, series.subject) for series in figure.series], segment, *path)


def coverage(figure: Figure) -> tuple[int, int]:
    """How many of the runs that a figure shows are recorded, and how many it shows."""
    if not figure.scenario:
        return 0, 0
    shown = [
        one
        for one in results(figure.scenario)
        if any(_fits(one, series, figure) for series in figure.series)
        or figure.kind == "settings"
        or one.run.variant in figure.groups
        or (figure.kind in ("weights", "indices", "cascade") and _is_at(one, figure.where))
    ]
    if figure.kind == "queue":
        return sum(queue_series(one.run) is not None for one in shown), len(shown)
    if figure.kind == "settings":
        return len(shown), len(shown)
    if figure.kind == "table":
        shown = [one for one in results(figure.scenario) if one.run.variant in {series.subject for series in figure.series}]
    return sum(one.metrics is not None for one in shown), len(shown)


def number(text: str) -> float:
    """Give a setting as a number, in percent, ms, Mbit/s, packets or BDP as it is written."""
    match = re.fullmatch(r"\s*([-+.\deE]+)\s*(.*)", text)
    if not match:
        raise UsageError(f"{text!r} is no number with a unit")
    scale = {"Gbit/s": 1000.0, "kbit/s": 0.001, "s": 1000.0, "us": 0.001}.get(match[2], 1.0)
    return float(match[1]) * scale


def _fits(one: Result, series: Series, figure: Figure) -> bool:
    return one.run.variant == series.variant and _is_at(one, {**figure.where, **series.where})


def _is_at(one: Result, where: dict[str, str]) -> bool:
    return all(one.setting(key) == value for key, value in where.items())


class _Drawing:
    """A figure on its way."""

    def __init__(self, figure: Figure, known: Sequence[Result], run: bool) -> None:
        self.figure, self.known, self.run = figure, known, run
        self.drawn, panels = plots.new(max(1, len(figure.panels)))
        self.axes = dict(zip(figure.panels or ("",), panels, strict=True))
        #: What was drawn, for the points: x and y by label.
        self.curves: dict[str, list[tuple[float, float]]] = {}
        #: Whether values begin at zero.
        self.from_zero = False

    @property
    def main(self) -> Any:
        return next(iter(self.axes.values()))

    def of(self, series: Series) -> list[Result]:
        return [one for one in self.known if _fits(one, series, self.figure)]

    def values(self, series: Series) -> list[tuple[float, float]]:
        """The metric over x; repetitions are averaged."""
        figure = self.figure
        found: dict[float, list[float]] = {}
        for one in self.of(series):
            x = number(one.setting(figure.x)) if one.setting(figure.x) != "none" else 0.0
            value = (one.metrics or {}).get((figure.y, series.subject or figure.subject))
            # 10⁹ stands for never.
            if value is not None and value < 1e9 and x <= figure.x_most:
                found.setdefault(x, []).append(value)
        curve = [(x, math.fsum(values) / len(values)) for x, values in sorted(found.items())]
        if figure.of_most and curve:
            most = max(y for _, y in curve)
            curve = [(x, 100.0 * y / most) for x, y in curve]
        if figure.relative and curve:
            curve = [(x, 100.0 * (1.0 - y / curve[0][1])) for x, y in curve]
        if figure.gain is not None:
            curve = [(x, 100.0 * ((1.0 + y) / (1.0 + figure.gain) - 1.0)) for x, y in curve]
        self.curves[series.label] = curve
        return curve

    def finish(self) -> Any:
        figure = self.figure
        _points(self)
        for name, axes in self.axes.items():
            axes.set_ylabel(figure.y_label or "share of samples")
            axes.set_title(name)
            if self.from_zero:
                # A curve that is flat keeps its marks too.
                axes.set_ylim(0, 1.06 * axes.dataLim.y1 or 1)
            if figure.x_log:
                plots.logarithmic(axes, "x")
            if figure.y_log:
                plots.logarithmic(axes, "y")
            handles, labels = axes.get_legend_handles_labels()
            if 0 < len(labels) <= 12:
                # Above the plot, where it covers nothing.
                width = 3 if max(map(len, labels)) < 12 else 2
                axes.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0 if not name else 1.12), ncols=width)
        list(self.axes.values())[-1].set_xlabel(figure.x_label or "time [s]")
        return self.drawn


def _lines(drawing: _Drawing) -> None:
    figure = drawing.figure
    for place, series in enumerate(figure.series):
        if curve := drawing.values(series):
            drawing.main.plot(*zip(*curve, strict=True), label=series.label, **plots.look(place))
    if figure.theory:
        xs = [x for curve in drawing.curves.values() for x, _ in curve]
        formulas: dict[str, Callable[[float], float]] = {
            # A gigabit, of which 28 bytes of header and 20 of IP in 1500 are not goodput.
            "goodput": lambda e: 1000.0 * 1452.0 / 1500.0 / (1.0 + e),
            "cost": lambda e: 100.0 * (1.0 - 1.0 / (1.0 + e)),
        }
        formula = formulas[figure.theory["formula"]]
        drawing.main.plot(xs, [formula(x) for x in xs], label=figure.theory["label"], **{**plots.look(6), "marker": ""})
    drawing.from_zero = not figure.y_log and not figure.relative


def _bars(drawing: _Drawing) -> None:
    curves = [(series, dict(drawing.values(series))) for series in drawing.figure.series]
    xs = sorted({x for _, curve in curves for x in curve})
    width = 0.8 / len(curves)
    hatches = ("", "///", "...", "\\\\\\", "xxx", "---")
    for place, (series, curve) in enumerate(curves):
        at = [group + (place - (len(curves) - 1) / 2) * width for group, x in enumerate(xs) if x in curve]
        style = {"color": plots.COLOURS[place], "hatch": hatches[place % len(hatches)], "edgecolor": "white", "linewidth": 0.2}
        drawing.main.bar(at, [curve[x] for x in xs if x in curve], width, label=series.label, **style)
    drawing.main.set_xticks(range(len(xs)), [f"{x:g}" for x in xs])
    drawing.main.axhline(0, color="black", linewidth=0.6)


def _binned(one: Result, flow: str, metric: str = "goodput_bin") -> list[tuple[float, float]]:
    """A flow's goodput or window in thirtieths of the run, at their middles."""
    # The length is that of the scenario: no run whose bins are drawn ends early.
    length = number(one.run.settings.get("scenario.duration", "60 s")) / 1000.0 / BINS
    metrics = one.metrics or {}
    values = ((at, metrics.get((f"{metric}_{at:02}", flow))) for at in range(BINS))
    return [((at + 0.5) * length, value) for at, value in values if value is not None]


def _flows(one: Result) -> list[str]:
    names = {subject for metric, subject in one.metrics or {} if metric == "goodput_bin_00"}
    return sorted(names, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)])


def _bins(drawing: _Drawing) -> None:
    figure = drawing.figure
    places: dict[str, int] = {}
    for series in figure.series:
        found = drawing.of(series)
        if not found:
            continue
        if figure.all_flows:
            curves = [_binned(found[0], flow) for flow in _flows(found[0])]
            if len(curves) > plots.SINGLE:
                plots.curves(drawing.main, {str(place): curve for place, curve in enumerate(curves)})
            else:
                for place, curve in enumerate(curves):
                    drawing.main.plot(*zip(*curve, strict=True), color="0.65", linewidth=0.6, label="" if place else "each flow")
            total = [(at[0][0], math.fsum(value for _, value in at)) for at in zip(*curves, strict=True)]
            drawing.main.plot(*zip(*total, strict=True), label="all flows", **{**plots.look(1), "marker": ""})
            _rate_line(drawing.main, found[0])
            continue
        curve = _binned(found[0], series.subject, figure.y or "goodput_bin")
        if series.over:
            other = dict(_binned(found[0], series.over))
            curve = [(x, y / other[x]) for x, y in curve if other.get(x)]
        place = places.setdefault(series.panel, 0)
        places[series.panel] += 1
        look = plots.look(place)
        drawing.axes[series.panel].plot(*zip(*curve, strict=True), label=series.label, **look)
    drawing.from_zero = True


def _cdf(drawing: _Drawing) -> None:
    for place, series in enumerate(drawing.figure.series):
        for one in drawing.of(series)[:1]:
            look = plots.look(place)
            if drawing.figure.of == "error":
                rates = _changes(one)
                flows = _flows(one)
                fair = [(time, rate / len(flows)) for time, rate in rates]
                errors = sorted(
                    abs(value - share) / share
                    for flow in flows
                    for time, value in _binned(one, flow)
                    for share in [next(rate for since, rate in reversed(fair) if since <= time)]
                )
                shares = [rank / len(errors) for rank in range(1, len(errors) + 1)]
                drawing.main.step(errors, shares, where="post", label=series.label, **{**look, "marker": ""})
            else:
                metrics = one.metrics or {}
                low, high = metrics["underloaded", "all"], 1.0 - metrics["overloaded", "all"]
                curve = sorted([(0.2, low), (metrics["median_utilisation", "all"], 0.5), (0.8, high)])
                drawing.main.plot(*zip((0.0, 0.0), *curve, (1.0, 1.0), strict=True), label=series.label, **look)
    drawing.main.set_ylim(0, 1.02)
    drawing.main.set_xlim(left=0)


def _queue(drawing: _Drawing) -> None:
    drawn = 0
    for place, series in enumerate(drawing.figure.series):
        for one in drawing.of(series)[:1]:
            curve = queue_series(one.run, run=drawing.run)
            buffer = number(one.setting("topology.buffer"))
            if curve:
                scaled = [(time, 100.0 * packets / buffer) for time, packets in curve]
                drawing.main.plot(*zip(*scaled, strict=True), label=series.label, **{**plots.look(place), "marker": ""})
                drawing.curves[series.label] = scaled
                drawn += 1
    if not drawn:
        name = drawing.figure.id
        raise MissingResults(f"{name}: no queue is recorded over time: fontis lab figure {name} --run records it")


def _of_flows(one: Result, metric: str, begin: str) -> list[float]:
    """A metric of the flows whose names begin so, in their order."""
    found = [(subject, value) for (name, subject), value in (one.metrics or {}).items() if name == metric]
    found = [(subject, value) for subject, value in found if subject != "all" and subject.startswith(begin)]
    return [value for _, value in sorted(found, key=lambda item: int(re.sub(r"\D", "", item[0]) or 0))]


def _cumulative(drawing: _Drawing) -> None:
    """Completion times added up, one flow after the other."""
    for place, series in enumerate(drawing.figure.series):
        for one in drawing.of(series)[:1]:
            times = _of_flows(one, "fct", series.subject)
            sums = [math.fsum(times[: count + 1]) for count in range(len(times))]
            drawing.main.plot(range(1, len(sums) + 1), sums, label=series.label, **{**plots.look(place), "marker": ""})
    drawing.from_zero = True


def _mixes(drawing: _Drawing) -> None:
    """The mean rate of each kind of flow in each of some variants: size over completion time."""
    figure = drawing.figure
    width = 0.8 / len(figure.series)
    for place, series in enumerate(figure.series):
        means = []
        for group in figure.groups:
            runs = [one for one in drawing.known if one.run.variant == group]
            size = {
                setting: number(value) for one in runs for setting, value in one.run.settings.items() if setting.endswith(".size")
            }
            bits = 8e-6 * max(size.values(), default=0.0)
            rates = [bits / time for one in runs for time in _of_flows(one, "fct", series.subject)]
            means.append(math.fsum(rates) / len(rates) if rates else 0.0)
        at = [group + (place - (len(figure.series) - 1) / 2) * width for group in range(len(means))]
        drawing.main.bar(at, means, width, label=series.label, color=plots.COLOURS[place], edgecolor="white", linewidth=0.2)
    drawing.main.set_xticks(range(len(figure.groups)), [group.upper() for group in figure.groups])


def _weights(drawing: _Drawing) -> None:
    """Shares of two users of one node over the second's weight: closed form, and by packets."""
    found = {one.setting("queue.quanta"): one.metrics or {} for one in drawing.known}
    weights = [float(weight) for weight in drawing.figure.groups]
    for place, series in enumerate(drawing.figure.series):
        alpha = float(series.variant)
        line = [fairness.allocate(100.0, [fairness.User(1.0), fairness.User(weight)], alpha)[1] for weight in weights]
        look = plots.look(place)
        drawing.main.plot(weights, line, label=series.label, **{**look, "marker": ""})
        # Quanta are whole bytes beside 300.
        packets = [(weight, found.get(f"300:{round(300 * weight ** (1 / alpha))}")) for weight in weights]
        dots = [(weight, of) for weight, of in packets if of]
        share = [100 * of["goodput", "heavy"] / (of["goodput", "heavy"] + of["goodput", "light"]) for _, of in dots]
        drawing.main.plot([weight for weight, _ in dots], share, **{**look, "linestyle": ""})
    drawing.from_zero = True


def _indices(drawing: _Drawing) -> None:
    """Jain's index of twenty users of whom some have more weight: closed form, and by packets."""
    for panel, axes in drawing.axes.items():
        alpha = float(panel.rpartition(" ")[2])
        for place, weight in enumerate(float(group) for group in drawing.figure.groups):
            ratio = weight ** (1 / alpha)
            look = plots.look(place)
            line = [fairness.jain_of_classes(k / 20, ratio) for k in range(21)]
            axes.plot(range(21), line, label=f"weight {weight:g}", **{**look, "marker": ""})
            quanta = f"300:{round(300 * ratio)}"
            runs = [one for one in drawing.known if one.setting("queue.quanta") == quanta]
            dots = sorted((int(one.run.variant[1:]), (one.metrics or {})["jain", "all"]) for one in runs)
            axes.plot([k for k, _ in dots], [index for _, index in dots], **{**look, "linestyle": ""})


def _indifference(figure: Figure) -> Any:
    """What a second user must have so that the sum of both utilities stays, for two capacities."""
    drawn, (axes, *_) = plots.new(1)
    xs = [10.0 + place for place in range(91)]
    for place, series in enumerate(figure.series):
        notion = {"0": "throughput"}.get(series.variant, float(series.variant))
        for share in (50.0, 35.0):
            curve = [(x, fairness.indifferent(notion, (1.0, 1.0), (share, share), x)) for x in xs]
            points = [(x, y) for x, y in curve if y is not None]
            if notion == math.inf:
                # The curve is a corner: whatever the second has, the first must not have less.
                points.insert(0, (share, 120.0))
            label = series.label if share == 50.0 else ""
            axes.plot(*zip(*points, strict=True), label=label, **{**plots.look(place), "marker": ""})
    axes.set_ylim(0, 120)
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    axes.legend()
    return drawn


KINDS: dict[str, Callable[[_Drawing], None]] = {
    "lines": _lines,
    "bars": _bars,
    "bins": _bins,
    "ratio": _bins,
    "cdf": _cdf,
    "queue": _queue,
    "cumulative": _cumulative,
    "mixes": _mixes,
    "weights": _weights,
    "indices": _indices,
}


def _changes(one: Result) -> list[tuple[float, float]]:
    """The bottleneck's rate in Mbit/s, from when on."""
    settings = one.run.settings
    text = settings.get("topology.rate_changes", "[]").strip("[]")
    changes = [change.split(":") for change in text.split(",") if ":" in change]
    since = [(number(time) / 1000.0, number(rate)) for time, rate in changes]
    return [(0.0, number(settings["topology.rate"])), *since]


def _rate_line(axes: Any, one: Result) -> None:
    changes = _changes(one)
    end = number(one.run.settings.get("scenario.duration", "60 s")) / 1000.0
    times, rates = zip(*changes, (end, changes[-1][1]), strict=True)
    axes.step(times, rates, where="post", label="bottleneck", **{**plots.look(6), "marker": "", "linestyle": ":"})


def _rates(figure: Figure) -> Any:
    with plots.style():
        drawing = _Drawing(figure, [], False)
        runs = scenarios.runs(scenarios.recipe(figure.scenario))
        _rate_line(drawing.main, Result(runs[0], None))
        drawing.from_zero = True
        return drawing.finish()


@lru_cache(maxsize=8)
def _published(book: str) -> dict[str, dict[str, Any]]:
    lines = (claims.folder() / f"{book}.jsonl").read_text(encoding="utf-8").splitlines()
    return {claim["id"]: claim for claim in map(json.loads, filter(None, lines))}


def published(point: Point) -> tuple[float, str]:
    """Give a published value and how it is meant: eq, le, ge, ratio or trend."""
    claim = _published(point.claim.split("-", 1)[0]).get(point.claim)
    if claim is None or not isinstance(claim["value"], int | float):
        raise UsageError(f"{point.claim}: there is no such claim with a number")
    return float(claim["value"]), claim["comparison"]


def _points(drawing: _Drawing) -> None:
    """Draw published values: hollow marks or thin lines, in the colour of their series."""
    labels = [series.label for series in drawing.figure.series]
    named: set[str] = set()
    for point in drawing.figure.points:
        value, comparison = published(point)
        colour = plots.COLOURS[labels.index(point.series) % len(plots.COLOURS)]
        sign = {"le": " (at most)", "ge": " (at least)"}.get(comparison, "")
        if point.over:
            # As many times below ours as it is said to be: a claim of ratios has no value of its
            # own.
            base = dict(drawing.curves.get(point.over, ())).get(point.x or 0.0)
            if base is None:
                continue
            value, label = base / value, f"published ratio to {point.over}"
        else:
            label = f"published{sign}"
        label = "" if label in named else label
        named.add(label)
        if point.x is None:
            drawing.main.axhline(value, color=colour, linestyle=(0, (2, 2)), linewidth=0.9, label=label)
        else:
            style = {"marker": "*", "markersize": 8, "markerfacecolor": "none", "markeredgecolor": colour, "linestyle": ""}
            drawing.main.plot([point.x], [value], label=label, zorder=5, **style)
