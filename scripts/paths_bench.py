#!/usr/bin/env python3
"""Races files over several paths at once, beside Multipath TCP, QUIC over several paths, and the
better path alone; prints the table of docs/performance.md.

    scripts/paths_bench.py [CELL…]      names of CELLS below, pairs, small [all]

    FONTIS        the command [target/release/fontis]
    BENCH_RUNS    races of each cell [3]
    BENCH_PAIRS   random pairs of paths [16]
    BENCH_SMALL   races with 100 KB at each loss [20]
    BENCH_SEED    the seed of the pairs and the losses [a random one, printed]

It needs root, or a user who may make namespaces. The runners of a race run one after the other, so
that they do not share the processors. tquic takes part where its programs are installed
(cargo install tquic_tools). A figure is the bound's time ÷ the time that the transfer took; the
bound is two round trips of the shorter path and the content at the sum of rate × (1 − loss) ×
1472/1500.
"""

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FONTIS = os.environ.get("FONTIS") or str(HERE.parent / "target/release/fontis")
RUNS = int(os.environ.get("BENCH_RUNS") or 3)
PAIRS = int(os.environ.get("BENCH_PAIRS") or 16)
SMALL = int(os.environ.get("BENCH_SMALL") or 20)
SEED = int(os.environ.get("BENCH_SEED") or random.randrange(1 << 32))
OTHERS = ["mptcp-cubic", "mptcp-bbr"] + (["tquic"] if shutil.which("tquic_client") else [])

# Paths as Mbit/s, round trip in ms, and loss; and what is to be reached.
CELLS = {
    "equal rates": ([(50, 20, 0), (50, 100, 0)], 0.93),
    "equal rates, 1 % loss": ([(50, 20, 0.01), (50, 100, 0.01)], 0.93),
    "10 % loss on one": ([(30, 40, 0.1), (30, 40, 0)], 0.93),
    "fast and slow": ([(300, 10, 0), (80, 30, 0)], 0.93),
    "alike": ([(100, 25, 0), (100, 25, 0)], 0.94),
    "narrow": ([(1.6, 20, 0), (0.4, 200, 0)], 0.94),
    "unequal": ([(60, 30, 0), (12, 80, 0)], 0.94),
}

missed = 0


def carried(paths):
    """Content in Mbit/s that paths carry."""
    return sum(rate * (1 - loss) for rate, _, loss in paths) * 1472 / 1500


def race(file, paths, runners, seed, limit=90):
    """The times of runners; those that did not arrive have none."""
    command = [FONTIS, "race", file, "--json", "--in-turn", "--seed", str(seed), "--limit", f"{limit}s"]
    command += ["--against", ",".join(runners), "--picture", "/dev/null"]
    for rate, rtt, loss in paths:
        command += ["--path", f"{rate}mbit,{rtt}ms,{loss:.6f}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"paths_bench: {' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
    finishes = [json.loads(line) for line in done.stdout.splitlines()]
    return {finish["runner"]: finish["seconds"] for finish in finishes}


def content(folder, size):
    file = Path(folder, f"{size}")
    if not file.exists():
        # A million bytes again and again: nothing here looks for what repeats.
        part = random.Random(size).randbytes(min(size, 1_000_000))
        file.write_bytes((part * (size // len(part) + 1))[:size])
    return file


def shares(folder, paths, seed, size=None, runs=1):
    """The bound's time ÷ a runner's, by runner; 0 for one that did not arrive."""
    # Ten seconds and some.
    size = size or int(carried(paths) * 125_000 * 11)
    bound = 2 * min(rtt for _, rtt, _ in paths) / 1e3 + size * 8e-6 / carried(paths)
    found = {}
    for run in range(runs):
        limit = max(60, int(6 * bound))
        times = race(content(folder, size), paths, ["fontis-one", *OTHERS], seed + run, limit)
        for runner, seconds in times.items():
            found.setdefault(runner, []).append(bound / seconds if seconds else 0.0)
    return found


def row(name, found, verdict=""):
    columns = " | ".join(f"{found[runner]:>6}" for runner in ["fontis", "fontis-one", *OTHERS])
    print(f"| {name:44} | {columns} | {verdict} |", flush=True)


def cells(folder, names):
    global missed
    for name in names:
        paths, target = CELLS[name]
        # The narrow paths carry no more in 10 s.
        found = shares(folder, paths, SEED, 2_000_000 if name == "narrow" else None, RUNS)
        medians = {runner: statistics.median(values) for runner, values in found.items()}
        good = medians["fontis"] >= target
        missed += not good
        text = ", ".join(f"{rate:g} M/{rtt:g} ms" for rate, rtt, _ in paths)
        row(f"{name}: {text}", {r: f"{v:.3f}" for r, v in medians.items()}, f">= {target} {'ok' if good else 'MISSED'}")


def pair(stream):
    """Two paths of stated kinds: rates and round trips are log-uniform, losses uniform."""
    kinds = {
        "wired": ((20, 200), (5, 50), (0, 0)),
        "Wi-Fi": ((20, 150), (3, 20), (0, 0.02)),
        "LTE": ((5, 60), (30, 90), (0, 0.02)),
        "5G": ((40, 200), (15, 40), (0, 0.01)),
        "low orbit": ((20, 150), (30, 90), (0, 0.01)),
        "high orbit": ((2, 25), (560, 650), (0, 0.02)),
    }
    names, paths = stream.sample(list(kinds), 2), []
    for name in names:
        rate, rtt, loss = kinds[name]
        between = lambda low, high: low * (high / low) ** stream.random()
        paths.append((round(between(*rate), 1), round(between(*rtt)), stream.uniform(*loss)))
    return names, paths


def pairs(folder):
    global missed
    stream, gains, sums = random.Random(SEED), [], []
    for number in range(PAIRS):
        names, paths = pair(stream)
        found = {runner: values[0] for runner, values in shares(folder, paths, SEED + number).items()}
        sums.append(found["fontis"])
        gains.append(found["fontis"] / found["fontis-one"] if found["fontis-one"] else float("inf"))
        text = ", ".join(f"{name} {rate:g} M/{rtt:g} ms/{loss:.1%}" for name, (rate, rtt, loss) in zip(names, paths))
        row(text, {r: f"{v:.3f}" for r, v in found.items()}, f"{gains[-1]:.2f} x the better")
    most = sum(share >= 0.93 for share in sums)
    good = min(gains) >= 0.98 and most >= PAIRS * 14 / 16
    missed += not good
    print(f"pairs: {most} of {PAIRS} have 0.93 of the sum, least {min(sums):.3f}; "
          f"least gain {min(gains):.2f}  {'ok' if good else 'MISSED'}", flush=True)


def small(folder):
    """100 KB over two paths beside the better one alone."""
    global missed
    for paths in [[(20, 20, 0), (20, 100, 0)], [(20, 30, 0), (20, 80, 0)]]:
        for loss in [0, 0.02]:
            lossy = [(rate, rtt, loss) for rate, rtt, _ in paths]
            both, one = [], []
            for run in range(SMALL):
                times = race(content(folder, 100_000), lossy, ["fontis-one"], SEED + run)
                both.append(times["fontis"] or 1e9)
                one.append(times["fontis-one"] or 1e9)
            p95 = lambda times: sorted(times)[int(0.95 * (len(times) - 1))]
            ratios = statistics.median(both) / statistics.median(one), p95(both) / p95(one)
            good = max(ratios) <= 1.02
            missed += not good
            print(f"100 KB, {paths[0][1]} and {paths[1][1]} ms, {loss:.0%} loss: time ÷ the better path's, "
                  f"median {ratios[0]:.3f}, p95 {ratios[1]:.3f}  {'ok' if good else 'MISSED'}", flush=True)


def main():
    names = sys.argv[1:] or [*CELLS, "pairs", "small"]
    unknown = [name for name in names if name not in [*CELLS, "pairs", "small"]]
    if unknown:
        sys.exit(f"paths_bench: there is no cell {unknown[0]!r}: choose of {', '.join(CELLS)}, pairs, small")
    print(f"seed {SEED}, load {os.getloadavg()[0]:.1f}")
    row("paths", {name: name for name in ["fontis", "fontis-one", *OTHERS]})
    with tempfile.TemporaryDirectory() as folder:
        cells(folder, [name for name in names if name in CELLS])
        if "pairs" in names:
            pairs(folder)
        if "small" in names:
            small(folder)
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
