"""One run over time, as the thesis on FLD_TCP shows its bursts: goodput, windows, losses, delay."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from fontis import plots
from fontis._native import Run

#: Seconds over which losses are counted.
SPAN = 1.0


def over_time(run: Run, flows: Sequence[tuple[str, str]], segment: float, rate: float, delay: float) -> Any:
    """Draw flows, each a label and a name, of a run that is made anew.

    Windows are in segments of so many bytes. The delay is the one-way delay of the path in seconds,
    with what waits before a link of so many bits per second.
    """
    import pyarrow as pa

    recording = run.simulate()
    rows = pa.table(recording.flow).select(["name", "time", "received", "window", "lost"]).to_pylist()
    drawn, panels = plots.new(4)
    total, window, losses, late = panels
    for place, (label, name) in enumerate(flows):
        look = {**plots.look(place), "marker": ""}
        own = [row for row in rows if row["name"] == name]
        times = [row["time"] for row in own]
        total.plot(times, [row["received"] * 1e-6 for row in own], label=label, **look)
        # Before it connects and after its end a flow has no window to show.
        whole = own[-1]["received"]
        has = [row for row in own if row["window"] > 0 and row["received"] < whole]
        window.plot([row["time"] for row in has], [row["window"] / segment for row in has], **look)
        sums: dict[int, float] = {}
        for before, row in pairwise(own):
            span = int(row["time"] / SPAN)
            sums[span] = sums.get(span, 0.0) + (row["lost"] - before["lost"]) / SPAN
        losses.plot([(span + 0.5) * SPAN for span in sums], list(sums.values()), **look)
    queue = pa.table(recording.queue).select(["queue", "time", "mean_bytes"]).to_pylist()
    waits = [row for row in queue if row["queue"] == queue[0]["queue"]]
    late.plot([row["time"] for row in waits], [1e3 * (delay + 8 * row["mean_bytes"] / rate) for row in waits], color="black")
    names = ("goodput in all [MB]", "window [segments]", f"lost in {SPAN:g} s", "delay [ms]")
    for axes, name in zip(panels, names, strict=True):
        axes.set_ylabel(name)
    total.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    late.set_xlabel("time [s]")
    return drawn
