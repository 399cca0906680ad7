#!/usr/bin/env python3
"""Runs the same dumbbells in ns-2.35 and in Fontis, and writes what came out side by side.

    scripts/ns2_fidelity.py PAGE        writes the Markdown page

FONTIS is the command (target/release/fontis). ns-2 is Debian's package ns2. Everything is seeded;
each cell is the mean of three seeds.
"""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FONTIS = os.environ.get("FONTIS", str(HERE.parent / "target/release/fontis"))
SECONDS, WARMUP, SEEDS = 120, 30, (1, 2, 3)
# Below these, a ratio says nothing: a hundredth of a percent of loss, and two packets.
LEAST = {"goodput": 0.0, "loss": 1e-4, "jain": 0.0, "queue": 2.0}
NAMES = ("goodput", "loss", "jain", "queue")

RATES = (10, 100)  # Mbit/s
RTTS = (20, 100)  # ms
BUFFERS = (0.2, 1.0)  # bandwidth-delay products
LOSSES = (0.0, 0.005)
FLOWS = (1, 10)

SCENARIO = """
[scenario]
id = "cell"
duration = "{seconds} s"
warmup = "{warmup} s"
sample = "1 s"
seed = {seed}
[topology]
rate = "{rate} Mbit/s"
rtt = "{rtt} ms"
access = "1 Gbit/s"
buffer = "{packets} packets"
loss = "{loss}"
loss_at = "before"
[tcp]
timestamps = false
delayed_ack = "{delayed} ms"
[[flow]]
count = {flows}
protocol = "{protocol}"
"""


def packets(rate, rtt, buffer):
    return max(4, round(rate * 1e6 * rtt * 1e-3 / 8 / 1500 * buffer))


def fontis(cell, seed):
    rate, rtt, buffer, loss, flows, algorithm, delayed = cell
    text = SCENARIO.format(
        seconds=SECONDS, warmup=WARMUP, seed=seed, rate=rate, rtt=rtt, loss=loss, flows=flows,
        packets=packets(rate, rtt, buffer), protocol="newreno" if algorithm == "reno" else algorithm, delayed=40 if delayed else 0,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "cell.toml")
        path.write_text(text)
        out = subprocess.run(
            [FONTIS, "sim", path, "-o", folder, "--json"], check=True, capture_output=True, text=True
        ).stdout
    metrics = {(m["metric"], m["subject"]): m["value"] for m in json.loads(out.splitlines()[0])["metrics"]}
    return {
        "goodput": metrics["goodput", "all"],
        "loss": metrics["drop_rate", "bottleneck"],
        "jain": metrics["jain", "all"],
        "queue": metrics["mean_queue", "bottleneck"],
    }


def ns2(cell, seed):
    rate, rtt, buffer, loss, flows, algorithm, delayed = cell
    arguments = [flows, rate, rtt, packets(rate, rtt, buffer), loss, SECONDS, WARMUP, algorithm, seed, delayed]
    out = subprocess.run(
        ["ns", HERE / "ns2/dumbbell.tcl", *map(str, arguments)], check=True, capture_output=True, text=True
    ).stdout
    line = next(line for line in out.splitlines() if line and line[0].isdigit())
    return dict(zip(NAMES, map(float, line.split()[:4])))


def mean(run, cell):
    samples = [run(cell, seed) for seed in SEEDS]
    return {name: sum(sample[name] for sample in samples) / len(samples) for name in NAMES}


def differs(name, ours, theirs):
    if max(ours, theirs) < LEAST[name]:
        return False
    return abs(ours - theirs) > 0.1 * max(abs(theirs), LEAST[name])


def main():
    page = pathlib.Path(sys.argv[1])
    cells = list(itertools.product(RATES, RTTS, BUFFERS, LOSSES, FLOWS, ("cubic", "reno"), (0,)))
    # With delayed acknowledgements the two count differently; a few cells show by how much.
    cells += itertools.product((100,), (20,), (1.0,), LOSSES, FLOWS, ("cubic", "reno"), (1,))
    rows, far = [], {name: 0 for name in NAMES}
    for number, cell in enumerate(cells):
        ours, theirs = mean(fontis, cell), mean(ns2, cell)
        marks = {name: differs(name, ours[name], theirs[name]) for name in NAMES}
        for name in NAMES:
            far[name] += marks[name]
        rate, rtt, buffer, loss, flows, algorithm, delayed = cell
        form = {"goodput": "{:.2f}", "loss": "{:.5f}", "jain": "{:.3f}", "queue": "{:.1f}"}
        columns = [
            f"{form[name].format(ours[name])} / {form[name].format(theirs[name])}{' *' if marks[name] else ''}"
            for name in NAMES
        ]
        rows.append(f"| {algorithm} | {'yes' if delayed else 'no'} | {rate} | {rtt} | {buffer} | {loss:.1%} | {flows} | " + " | ".join(columns) + " |")
        print(f"{number + 1} of {len(cells)}: {rows[-1]}", file=sys.stderr)
    notes = page.read_text().split(MARK, 1)[1] if page.exists() and MARK in page.read_text() else "\n"
    head = HEAD.format(cells=len(cells), seconds=SECONDS, warmup=WARMUP, seeds=len(SEEDS), **far)
    page.write_text(head + "\n".join(rows) + "\n\n" + MARK + notes)


MARK = "## Causes of the differences"

HEAD = """# Beside ns-2.35

The same dumbbells in Fontis and in ns-2.35: {cells} cells, {seconds} s each without the first
{warmup} s, means of {seeds} seeds. ns-2 runs `scripts/ns2/dumbbell.tcl`: TCP/Linux with its CUBIC,
and Sack1 as Reno, with selective acknowledgements.

Each field is *Fontis / ns-2*: goodput of all flows in Mbit/s, packets dropped by the queue relative
to arrivals, Jain's index, mean queue in packets. A star marks a difference of more than 10 % (of
{cells} cells: goodput {goodput}, drops {loss}, Jain {jain}, queue {queue}). Rates are in Mbit/s,
round trips in ms, buffers in bandwidth-delay products. Random loss is before the queue.

Made by `scripts/ns2_fidelity.py docs/ns2.md`; `make bench` runs it into `results/`.

| algorithm | delayed ACK | rate | RTT | buffer | loss | flows | goodput | drops | Jain | queue |
|---|---|---|---|---|---|---|---|---|---|---|
"""

main()
