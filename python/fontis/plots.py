"""Plots in one style: colours that the colour-blind tell apart (Okabe and Ito), marks, dashes.

Each takes ``axes`` to draw into, or makes them, and gives them back:
``save(time_series(recording), "goodput.pdf")``.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

try:
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
except ImportError as error:
    raise ImportError("plots need matplotlib: pip install 'fontis[lab]', or matplotlib alone") from error

import numpy as np
import pyarrow as pa

from fontis._native import Recording, Table, UsageError

#: Okabe and Ito, Color Universal Design (2008), without the yellow, which paper does not show.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))

#: A column of a two-column paper is 3.4 inches wide; text is of 8 points there.
STYLE: dict[Any, Any] = {
    "figure.figsize": (3.4, 2.4),
    "figure.dpi": 150,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 300,
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    # The same figure gives the same bytes.
    "svg.hashsalt": "fontis",
}

FORMATS = ("svg", "pdf", "png")

#: The most curves that are drawn one by one. More cannot be told apart: their mean and range are
#: drawn instead.
SINGLE = 8

Curve = Sequence[tuple[float, float]]


@contextmanager
def style() -> Iterator[None]:
    """Draw in the house's style."""
    with mpl.rc_context(STYLE):
        yield


def look(place: int) -> dict[str, Any]:
    """Colour, mark and dashes of the line at this place; no two of 49 are alike."""
    turn = place // len(COLOURS)
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKS[(place + turn) % len(MARKS)],
        "linestyle": DASHES[(place + turn) % len(DASHES)],
    }


def new(panels: int = 1) -> tuple[Figure, list[Any]]:
    """Make a figure with panels one above the other."""
    width, height = STYLE["figure.figsize"]
    figure = Figure(figsize=(width, height * (1 + 0.7 * (panels - 1))))
    return figure, list(figure.subplots(panels, 1, squeeze=False)[:, 0])


def save(drawn: Any, path: str | os.PathLike[str]) -> Path:
    """Write a figure, or the one that axes are in, as SVG, PDF or PNG by the path's ending."""
    path = Path(path)
    kind = path.suffix.lstrip(".")
    if kind not in FORMATS:
        raise UsageError(f"{path}: name it .svg, .pdf or .png")
    figure = drawn if isinstance(drawn, Figure) else drawn.figure
    # A date would make every file another.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with style():
        partial = path.with_name(f".{path.name}.partial")
        figure.savefig(partial, format=kind, metadata=metadata)
        partial.replace(path)
    return path


def logarithmic(axes: Any, which: str) -> None:
    """Make an axis logarithmic, with plain numbers at it, and as many as its span needs."""
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low)
    axis.set_major_formatter("{x:g}")
    if decades < 0.5:
        axis.set_major_locator(MaxNLocator(5))
        axis.set_minor_locator(NullLocator())
    digits = ("2", "5") if decades < 2 else ()
    axis.set_minor_formatter(FuncFormatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in digits else ""))


def curves(axes: Any, named: Mapping[str, Curve]) -> None:
    """Draw curves with their names, one by one if they can be told apart.

    If there are more than :data:`SINGLE`, those whose names differ in the part after the last dot
    alone, as the flows ``web.1`` and ``web.2``, become one curve of their mean over a band from the
    least to the most; if that leaves more than :data:`SINGLE`, all become one. A curve counts from
    its first to its last point.
    """
    if len(named) <= SINGLE:
        for place, (label, curve) in enumerate(named.items()):
            axes.plot(*zip(*curve, strict=True), label=label, **{**look(place), "marker": ""})
        return
    kinds: dict[str, list[Curve]] = {}
    for label, curve in named.items():
        kinds.setdefault(label.rpartition(".")[0], []).append(curve)
    if len(kinds) > SINGLE:
        kinds = {"": list(named.values())}
    for place, (kind, several) in enumerate(kinds.items()):
        xs = [x for x, _ in max(several, key=len)]
        values = [np.interp(xs, [x for x, _ in curve], [y for _, y in curve], left=np.nan, right=np.nan) for curve in several]
        _band(axes, xs, values, kind, place)


def time_series(
    recording: Recording | Table | Any,
    column: str = "goodput",
    *,
    flows: Sequence[str] | None = None,
    smooth: float = 0.0,
    axes: Any = None,
) -> Any:
    """Plot a column of the flow or queue table over time, a line for each flow or bottleneck.

    ``goodput`` is made of ``received``, in Mbit/s. ``smooth`` is the span of a moving mean, in
    seconds. More than :data:`SINGLE` flows are drawn as :func:`curves` does.
    """
    table = _table(recording, column)
    name = "name" if "name" in table.column_names else "queue"
    wanted = "received" if column == "goodput" else column
    if wanted not in table.column_names:
        raise UsageError(f"there is no column {column!r}; there are goodput, {', '.join(table.column_names)}")
    with style():
        axes = axes if axes is not None else new()[1][0]
        named: dict[str, Curve] = {}
        for label, rows in _groups(table, name, ("time", wanted)).items():
            if flows is not None and label not in flows:
                continue
            times, values = [time for time, _ in rows], [float(value) for _, value in rows]
            if column == "goodput":
                pairs = list(pairwise(rows))
                times = [later[0] for _, later in pairs]
                values = [(b[1] - a[1]) * 8e-6 / (b[0] - a[0]) if b[0] > a[0] else 0.0 for a, b in pairs]
            values = _moving_mean(times, values, smooth) if smooth > 0 else values
            named[label] = list(zip(times, values, strict=True))
        curves(axes, named)
        axes.set_xlabel("time [s]")
        unit = "Mbit/s" if column == "goodput" else _unit(table, wanted)
        axes.set_ylabel(f"{column.replace('_', ' ')} [{unit}]" if unit else column.replace("_", " "))
        legend(axes)
    return axes


def time_sequence(recording: Recording | Table | Any, *, flows: Sequence[str] | None = None, axes: Any = None) -> Any:
    """Plot the delivered bytes of each flow over time: its time–sequence plot.

    More than :data:`SINGLE` flows are drawn as :func:`curves` does.
    """
    table = _table(recording, "received")
    with style():
        axes = axes if axes is not None else new()[1][0]
        groups = _groups(table, "name", ("time", "received"))
        named = {
            label: [(time, received / 1e6) for time, received in rows]
            for label, rows in groups.items()
            if flows is None or label in flows
        }
        curves(axes, named)
        axes.set_xlabel("time [s]")
        axes.set_ylabel("delivered [MB]")
        legend(axes)
    return axes


def cdf(values: Mapping[str, Sequence[float]] | Sequence[float], *, label: str = "value", axes: Any = None) -> Any:
    """Plot the cumulative distribution of values, a line for each name.

    More than :data:`SINGLE` names become the mean of their distributions and its range.
    """
    named = values if isinstance(values, Mapping) else {"": values}
    with style():
        axes = axes if axes is not None else new()[1][0]
        known = {name: sorted(value for value in some if not math.isnan(value)) for name, some in named.items()}
        if len(known) > SINGLE:
            xs = sorted({value for some in known.values() for value in some})
            shares = [np.searchsorted(some, xs, "right") / len(some) for some in known.values() if some]
            _band(axes, xs, shares, "", 0, step="post")
        else:
            for place, (name, some) in enumerate(known.items()):
                ranks = [rank / len(some) for rank in range(1, len(some) + 1)]
                axes.step(some, ranks, where="post", label=name, **{**look(place), "marker": ""})
        axes.set_xlabel(label)
        axes.set_ylabel("share of samples")
        axes.set_ylim(0, 1.02)
        legend(axes)
    return axes


def heat_map(
    sweep: Any, x: str, y: str, metric: str = "goodput", *, subject: str = "all", variant: str = "", axes: Any = None
) -> Any:
    """Plot a metric's mean over two parameters of a :class:`fontis.Sweep`."""
    rows = [row for row in sweep.statistics(metric, subject).to_pylist() if row["variant"] == variant]
    for key in (x, y):
        if key not in sweep.parameters:
            raise UsageError(f"{key!r} is not swept; {', '.join(sweep.parameters) or 'nothing'} is")
    columns = list(dict.fromkeys(row[x] for row in rows))
    lines = list(dict.fromkeys(row[y] for row in rows))
    cells: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        cells.setdefault((row[y], row[x]), []).append(row["mean"])
    if any(len(values) > 1 for values in cells.values()):
        raise UsageError(f"more than {x} and {y} varies: choose a variant, or sweep these two alone")
    grid = [[cells.get((line, column), [math.nan])[0] for column in columns] for line in lines]
    with style():
        axes = axes if axes is not None else new()[1][0]
        # Cividis looks the same to those who do not see red or green.
        image = axes.imshow(grid, cmap="cividis", aspect="auto", origin="lower")
        axes.set_xticks(range(len(columns)), columns)
        axes.set_yticks(range(len(lines)), lines)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.grid(False)
        low, high = image.get_clim()
        for down, line in enumerate(grid):
            for across, value in enumerate(line):
                colour = "white" if value < (low + high) / 2 else "black"
                axes.text(across, down, f"{value:.3g}", ha="center", va="center", color=colour, fontsize=6)
        axes.figure.colorbar(image, ax=axes, label=metric)
    return axes


def lines(
    sweep: Any, x: str, metric: str = "goodput", *, subject: str = "all", confidence: float = 0.95, axes: Any = None
) -> Any:
    """Plot a metric's mean and confidence interval over a parameter of a :class:`fontis.Sweep`.

    There is a line for each combination of the other parameters; more than :data:`SINGLE` of them
    become one line of their mean, and its range.
    """
    if x not in sweep.parameters:
        raise UsageError(f"{x!r} is not swept; {', '.join(sweep.parameters) or 'nothing'} is")
    others = [name for name in ("variant", *sweep.parameters) if name != x]
    series: dict[str, list[dict[str, Any]]] = {}
    for row in sweep.statistics(metric, subject, confidence).to_pylist():
        series.setdefault(", ".join(row[name] for name in others if row[name]), []).append(row)
    ticks = list(dict.fromkeys(row[x] for rows in series.values() for row in rows))
    with style():
        axes = axes if axes is not None else new()[1][0]
        if len(series) > SINGLE:
            values = np.full((len(series), len(ticks)), np.nan)
            for line, rows in zip(values, series.values(), strict=True):
                for row in rows:
                    line[ticks.index(row[x])] = row["mean"]
            _band(axes, range(len(ticks)), values, "", 0)
        else:
            for place, (label, rows) in enumerate(series.items()):
                means = [row["mean"] for row in rows]
                bounds = [0.0 if math.isnan(row["high"]) else row["high"] - row["mean"] for row in rows]
                axes.errorbar([ticks.index(row[x]) for row in rows], means, bounds, label=label, capsize=2, **look(place))
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set_xlabel(x)
        axes.set_ylabel(metric)
        legend(axes)
    return axes


def _table(recording: Any, column: str) -> pa.Table:
    if isinstance(recording, Recording):
        in_queue = column in recording.queue.column_names and column not in recording.flow.column_names
        return pa.table(recording.queue if in_queue else recording.flow)
    return pa.table(recording)


def _unit(table: pa.Table, column: str) -> str:
    metadata = table.schema.field(column).metadata or {}
    return str(metadata.get(b"unit", b"").decode())


def _groups(table: pa.Table, name: str, columns: Sequence[str]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for label, *row in zip(*(table[column].to_pylist() for column in (name, *columns)), strict=True):
        groups.setdefault(label, []).append(tuple(row))
    return groups


def _moving_mean(times: Sequence[float], values: Sequence[float], span: float) -> list[float]:
    means, first, total = [], 0, 0.0
    for at, value in enumerate(values):
        total += value
        while times[first] <= times[at] - span:
            total -= values[first]
            first += 1
        means.append(total / (at - first + 1))
    return means


def _band(axes: Any, xs: Sequence[float], values: Any, name: str, place: int, step: str | None = None) -> None:
    """Draw the mean of several curves at ``xs`` as a line, and the least to the most as a band."""
    values = np.asarray(values)
    label = f"{name}: mean\nand range of {len(values)}" if name else f"mean and\nrange of {len(values)}"
    drawstyle = f"steps-{step}" if step else "default"
    axes.plot(xs, np.nanmean(values, 0), label=label, **{**look(place), "marker": ""}, drawstyle=drawstyle)
    least, most = np.nanmin(values, 0), np.nanmax(values, 0)
    band = {"color": COLOURS[place % len(COLOURS)], "alpha": 0.2, "linewidth": 0.0}
    axes.fill_between(xs, least, most, step=step, **band)


def legend(axes: Any) -> None:
    """Name the curves beside the axes, where the legend covers none of them."""
    if any(axes.get_legend_handles_labels()[1]):
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
