#!/usr/bin/env python3
"""Runs the same random networks in the simulator and on the testbed, and compares the results.

    scripts/testbed_validate.py PAGE        writes the Markdown page

Cells are a seeded Latin hypercube over random loss (0 to 10 %), round-trip time (10 to 200 ms),
buffer (0.05 to 2 BDP), FIFO or DRR, and 1 to 10 flows, at a rate that this machine carries without
sweat. In each, every flow speaks the same protocol, and the kernel's (or the real Fontis) stands
beside ours in virtual time. What is recorded already is not run again: interrupted, the same
command goes on.

    FONTIS          the command [target/release/fontis]
    CELLS           how many [48]
    REPETITIONS     runs of each on either platform [3]
    RECORDINGS      where they go [results/validation]
    JOBS            testbed runs at the same time [2]
"""

import itertools
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
FONTIS = os.environ.get("FONTIS", str(HERE.parent / "target/release/fontis"))
CELLS = int(os.environ.get("CELLS") or 48)
REPETITIONS = int(os.environ.get("REPETITIONS") or 3)
RECORDINGS = pathlib.Path(os.environ.get("RECORDINGS") or HERE.parent / "results/validation")
JOBS = os.environ.get("JOBS") or "2"
SEED, RATE, SECONDS, WARMUP = 1, 40, 20, 5
# The kernel's CUBIC leaves slow start by HyStart and follows RFC 8312, so ours does.
PROTOCOLS = ["cubic-hystart", "newreno", "bbr", "dfcp"]
# Metric, subject, and below which value a ratio says nothing.
METRICS = [("goodput", "all", 0.05), ("mean_queue", "bottleneck", 2.0), ("drop_rate", "bottleneck", 1e-3), ("jain", "all", 0.0)]
# Fewer cells than these have no interval.
LEAST_CELLS = 5
# Of the t distribution, two-sided 95 %, by degrees of freedom.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 10: 2.23, 15: 2.13, 20: 2.09, 30: 2.04}

SCENARIO = """[scenario]
id = "cell{index:02}"
duration = "{seconds} s"
warmup = "{warmup} s"
seed = {seed}
repetitions = {repetitions}
sample = "500 ms"
[topology]
rate = "{rate} Mbit/s"
rtt = "{rtt:.1f} ms"
buffer = "{buffer:.3f} BDP"
queue = "{queue}"
loss = "{loss:.3f}%"
[tcp]
recovery = "rack-tlp"
[dfcp]
rate = "auto"
[[flow]]
count = {flows}
"""


def cells():
    """A Latin hypercube: each fifth, tenth, … of each axis is taken as often as any other."""
    chance = random.Random(SEED)
    axes = []
    for _ in range(5):
        strata = [(index + chance.random()) / CELLS for index in range(CELLS)]
        chance.shuffle(strata)
        axes.append(strata)
    for index, (loss, rtt, buffer, queue, flows) in enumerate(zip(*axes)):
        yield {
            "index": index, "loss": 10 * loss, "rtt": 10 * 20**rtt, "buffer": 0.05 * 40**buffer,
            "queue": "fifo" if queue < 0.5 else "drr", "flows": 1 + int(10 * flows),
        }


def run(platform, path, folder, jobs):
    command = [FONTIS, *platform, path, "-o", folder, "--json", *jobs]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"testbed_validate: {path.name}: {done.stderr.strip()}")
    runs = [json.loads(text) for text in done.stdout.splitlines()]
    found = {}
    for entry in runs:
        if entry["event"] == "run":
            values = {(m["metric"], m["subject"]): m["value"] for m in entry["metrics"]}
            found.setdefault(entry["variant"], []).append(values)
    return found


def interval(logs):
    """Mean of logarithms and half the width of its 95 % interval, both as factors."""
    mean = statistics.fmean(logs)
    student = STUDENT[max(n for n in STUDENT if n <= len(logs) - 1)]
    return math.exp(mean), math.exp(student * statistics.stdev(logs) / math.sqrt(len(logs)))


def main():
    page = pathlib.Path(sys.argv[1])
    RECORDINGS.mkdir(parents=True, exist_ok=True)
    logs = {key: [] for key in itertools.product(PROTOCOLS, [m[0] for m in METRICS])}
    rows = []
    for cell in cells():
        path = RECORDINGS / f"cell{cell['index']:02}.toml"
        variants = "".join(f'[variants.{p}]\nflow.protocol = "{p}"\n' for p in PROTOCOLS)
        path.write_text(SCENARIO.format(
            seconds=SECONDS, warmup=WARMUP, seed=SEED, repetitions=REPETITIONS, rate=RATE, **cell) + variants)
        ours = run(["sim"], path, RECORDINGS / "sim", [])
        real = run(["testbed", "run"], path, RECORDINGS / "testbed", ["--jobs", JOBS])
        for protocol in PROTOCOLS:
            row = []
            for metric, subject, least in METRICS:
                a = statistics.fmean(values[metric, subject] for values in ours[protocol])
                b = statistics.fmean(values[metric, subject] for values in real[protocol])
                if max(a, b) < least or min(a, b) <= 0:
                    row.append("–")
                    continue
                logs[protocol, metric].append(math.log(b / a))
                row.append(f"{b / a:.2f}")
            rows.append((cell, protocol, ours[protocol], real[protocol], row))
        print(f"cell {cell['index'] + 1} of {CELLS}", flush=True)
    text = [
        "# The simulator beside the testbed\n",
        f"{CELLS} cells of a Latin hypercube (seed {SEED}) at {RATE} Mbit/s, {SECONDS} s each without the first {WARMUP} s,\n"
        f"{REPETITIONS} repetitions on either platform. A ratio is the testbed's value ÷ the simulator's. Made by\n"
        "`scripts/testbed_validate.py`.\n",
        "| protocol | metric | cells | geometric mean of ratios, 95 % interval | within 10 % | within 25 % |",
        "|---|---|---|---|---|---|",
    ]
    for (protocol, metric), values in logs.items():
        if len(values) < LEAST_CELLS:
            continue
        mean, width = interval(values)
        close = [sum(abs(v) <= math.log(1 + by) for v in values) / len(values) for by in (0.1, 0.25)]
        text.append(f"| {protocol} | {metric} | {len(values)} | {mean:.3f} ({mean / width:.3f}–{mean * width:.3f}) "
                    f"| {close[0]:.0%} | {close[1]:.0%} |")
    names = " | ".join(f"{metric} ratio" for metric, _, _ in METRICS)
    text += ["\n## Cells\n", f"| loss | RTT | buffer | queue | flows | protocol | goodput sim / testbed, Mbit/s | {names} |",
             "|" + "---|" * (7 + len(METRICS))]
    for cell, protocol, ours, real, row in rows:
        goodput = [statistics.fmean(v["goodput", "all"] for v in values) for values in (ours, real)]
        text.append(f"| {cell['loss']:.2f} % | {cell['rtt']:.0f} ms | {cell['buffer']:.2f} BDP | {cell['queue']} | {cell['flows']} "
                    f"| {protocol} | {goodput[0]:.2f} / {goodput[1]:.2f} | {' | '.join(row)} |")
    page.write_text("\n".join(text) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
