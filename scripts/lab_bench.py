#!/usr/bin/env python3
"""Measures the laboratory in Python: sweeps, what Python costs a run, and large recordings.

Run it in an environment that has the package, pandas, polars and distributed: scripts/bench.sh
does, in target/venv.

A sweep's efficiency is the share of its workers' time that runs took: the seconds that are recorded
of the runs, over wall time and number of workers. So what other programs take of the machine does
not count, and waiting, sending and writing do. The first sweep of a cluster, in which workers
import the package, is not counted.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import pyarrow.compute as pc

import fontis
from fontis.store import Store

REPEATS = int(os.environ.get("BENCH_RUNS", "3"))
WORKERS = 2
RUNS, SECONDS = 64, 0.25

SMALL = {
    "scenario": {"id": "small", "duration": "1 s"},
    "topology": {"rate": "10 Mbit/s", "rtt": "20 ms"},
    "flow": [{}],
}


def main() -> None:
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load average {load:.1f}, fontis {fontis.__version__}, medians of {REPEATS}", flush=True)
    scenario = calibrated()
    local = [efficiency(scenario, None) for _ in range(REPEATS)]
    show("sweep of 64 runs, threads: efficiency", local, "{:.3f}", "at least 0.97")
    show("sweep of 64 runs, Dask LocalCluster: efficiency", on_cluster(scenario), "{:.3f}", "at least 0.95")
    show("Python's part of a run, over fontis sim [ms]", [overhead() for _ in range(REPEATS)], "{:.2f}", "below 30")
    recording()


def show(name: str, values: list[float], form: str, target: str) -> None:
    low, middle, high = (form.format(value) for value in (min(values), statistics.median(values), max(values)))
    print(f"{name}: {middle} [{low}–{high}] (target: {target})", flush=True)


def calibrated() -> dict:
    """A scenario whose runs take about 0.25 s here."""
    scenario = {
        "scenario": {"id": "quarter", "duration": "20 s", "sample": "100 ms"},
        "topology": {"rate": "200 Mbit/s", "rtt": "20 ms"},
        "flow": [{"count": 4}],
    }
    begin = time.perf_counter()
    fontis.simulate(scenario)
    seconds = 20 * SECONDS / (time.perf_counter() - begin)
    return {**scenario, "scenario": {**scenario["scenario"], "duration": f"{seconds:.3f} s"}}


def efficiency(scenario: dict, executor: object, runs: int = RUNS) -> float:
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        done = fontis.sweep(scenario, reps=runs, executor=executor, folder=folder)
        wall = time.perf_counter() - begin
        found = Store(Path(folder)).read(point.key for point in done.points)
    of_runs = found.group_by("key").aggregate([("seconds", "max")])
    assert of_runs.num_rows == runs
    seconds = pc.sum(of_runs["seconds_max"]).as_py()
    print(f"  {runs} runs of {seconds / runs:.3f} s in {wall:.2f} s", file=sys.stderr)
    return seconds / (wall * WORKERS)


def on_cluster(scenario: dict) -> list[float]:
    import distributed

    options = {"n_workers": WORKERS, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        efficiency(scenario, client, runs=4)
        return [efficiency(scenario, client) for _ in range(REPEATS)]


def overhead(runs: int = 200) -> float:
    """Milliseconds that a run from Python takes longer than the command, which also records it."""
    text = fontis.Scenario(**SMALL).to_toml()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.toml"
        path.write_text(text)
        command = [Path(sys.executable).parent / "fontis", "sim", path, "--jobs", "1", "--json", "--output", folder]

        def seconds(count: int) -> float:
            begin = time.perf_counter()
            repeat = ["--set", f"scenario.repetitions={count}", "--seed", str(1000 * count)]
            subprocess.run([*command, *repeat], check=True, stdout=subprocess.DEVNULL)
            return time.perf_counter() - begin

        # Without what starting takes.
        of_command = (seconds(runs + 1) - seconds(1)) / runs
    fontis.simulate(SMALL)
    begin = time.perf_counter()
    for seed in range(runs):
        fontis.simulate(SMALL, seed=seed).metric("goodput")
    of_python = (time.perf_counter() - begin) / runs
    return (of_python - of_command) * 1e3


def recording() -> None:
    """Ten million rows: 20 flows, counted every millisecond for 500 s."""
    made = fontis.simulate(
        {
            "scenario": {"duration": "500 s", "sample": "1 ms"},
            "topology": {"rate": "1 Mbit/s", "rtt": "100 ms"},
            "flow": [{"count": 20}],
        }
    )
    flow = made.flow
    print(f"  {len(flow)} rows of {len(flow.column_names)} columns", file=sys.stderr)
    for name, read in {
        "ten million rows into pandas, to_pandas()": lambda table: table.to_pandas(),
        "the same by pandas itself, DataFrame.from_arrow": pd.DataFrame.from_arrow,
        "the same into polars, to_polars()": lambda table: table.to_polars(),
    }.items():
        times, grown = [], []
        for _ in range(REPEATS):
            before, begin = memory(), time.perf_counter()
            frame = read(flow)
            times.append(time.perf_counter() - begin)
            grown.append(memory() - before)
            assert len(frame) == len(flow) >= 10_000_000
            del frame
        show(f"{name} [s], {statistics.median(grown):.0f} MB more memory", times, "{:.3f}", "below 2")


def memory() -> float:
    """Megabytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


if __name__ == "__main__":
    main()
