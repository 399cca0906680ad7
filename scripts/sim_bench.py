#!/usr/bin/env python3
"""Measures the simulator, with ns-2.35 beside it if it is installed (Debian's package ns2).

    scripts/sim_bench.py

A figure is packets through the bottleneck per second of processor time, start and recording included: the median of
BENCH_RUNS (3) runs, and the range. FONTIS is the command (target/release/fontis).
"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
FONTIS = os.environ.get("FONTIS", str(HERE.parent / "target/release/fontis"))
RUNS = int(os.environ.get("BENCH_RUNS", "3"))
SECONDS = 60

SCENARIO = """
[scenario]
id = "bench"
duration = "{seconds} s"
warmup = "{warmup} s"
[topology]
rate = "{rate}"
rtt = "50 ms"
access = "{access}"
buffer = "1 BDP"
queue = "{queue}"
[[flow]]
count = {flows}
protocol = "{protocol}"
"""


def measured(command, **options):
    """Runs a command; its processor seconds, peak memory in MB, wall seconds, and output."""
    with tempfile.TemporaryFile("w+") as out:
        begin = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, **options)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - begin
        if status != 0:
            sys.exit(f"{command}: status {status}")
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, wall, out.read()


def simulate(rate="1 Gbit/s", access="10 Gbit/s", queue="fifo", flows=10, protocol="cubic", seconds=SECONDS):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "bench.toml")
        path.write_text(SCENARIO.format(
            rate=rate, access=access, queue=queue, flows=flows, protocol=protocol, seconds=seconds,
            warmup=seconds // 5))
        cpu, memory, _, _ = measured([FONTIS, "sim", str(path), "-o", folder, "--jobs", "1", "--json"])
        run = json.loads(pathlib.Path(folder, "bench/00000/run.json").read_text())
        summary = {(m, s): v for m, s, v, _ in run["summary"]}
    return {
        "rate": run["packets"] / cpu,
        "events": run["events"] / run["packets"],
        "memory": memory,
        "goodput": summary["goodput", "all"],
        "dropped": summary["drop_rate", "bottleneck"],
    }


def ns2(algorithm, trace=None):
    environment = dict(os.environ, **({"NS2_TRACE": trace} if trace else {}))
    seconds = 20 if trace else SECONDS
    arguments = ["10", "1000", "50", "4167", "0", str(seconds), "10", algorithm, "1", "1"]
    cpu, memory, _, out = measured(["ns", str(HERE / "ns2/dumbbell.tcl"), *arguments], env=environment)
    values = next(line for line in out.splitlines() if line and line[0].isdigit()).split()
    return {"rate": int(values[4]) / cpu, "memory": memory, "goodput": float(values[0])}


def several(run, **options):
    return [run(**options) for _ in range(RUNS)]


def line(name, samples):
    rates = [sample["rate"] for sample in samples]
    middle = statistics.median(rates)
    last = samples[-1]
    events = f"  {last['events']:.2f} events/packet" if "events" in last else ""
    print(
        f"{name:<44} {middle / 1e6:6.3f} M packets/s [{min(rates) / 1e6:.3f}–{max(rates) / 1e6:.3f}]"
        f"  {last['memory']:5.0f} MB  {last['goodput']:8.1f} Mbit/s{events}", flush=True)
    return middle


def main():
    print(f"10 flows, 1 Gbit/s, 50 ms, 1 BDP, {SECONDS} s, medians of {RUNS}")
    cubic = line("CUBIC over FIFO", several(simulate))
    reno = line("NewReno over FIFO", several(simulate, protocol="newreno"))
    if shutil.which("ns"):
        theirs = line("ns-2.35 TCP/Linux cubic, counters only", several(ns2, algorithm="cubic"))
        traced = line("ns-2.35 TCP/Linux cubic, trace-all", several(ns2, algorithm="cubic", trace="/dev/null"))
        reno_theirs = line("ns-2.35 Sack1, counters only", several(ns2, algorithm="reno"))
        print(f"ours / ns-2: CUBIC {cubic / theirs:.2f}, with its traces {cubic / traced:.1f}; Reno {reno / reno_theirs:.2f}")
    else:
        print("ns-2 is not installed (Debian: apt-get install ns2): nothing to compare with")
    for queue in ("drr", "sfq", "wfq", "red", "codel", "fq-codel"):
        other = line(f"CUBIC over {queue}", several(simulate, queue=queue))
        print(f"    time relative to FIFO: {cubic / other:.2f}")
    for protocol in ("compound", "vegas", "bbr"):
        other = line(f"{protocol} over FIFO", several(simulate, protocol=protocol))
        print(f"    time relative to CUBIC: {cubic / other:.2f}")
    print("CUBIC over FIFO, 100 kbit/s and more for each flow")
    for flows in (10, 100, 1000, 10_000):
        rate = max(1000, flows // 10 * 10)
        line(f"{flows} flows, {rate} Mbit/s", several(simulate, flows=flows, rate=f"{rate} Mbit/s", seconds=10))
    greedy = several(simulate, protocol="dfcp", queue="drr", access="1 Gbit/s", seconds=5)
    offered = [sample["rate"] / (1 - sample["dropped"]) for sample in greedy]
    print(f"greedy DFCP over DRR, ten times the rate: {statistics.median(offered) / 1e6:.3f} M offered packets/s")
    jobs()


def jobs():
    """How much faster two processors run a sweep."""
    text = SCENARIO.format(rate="100 Mbit/s", access="1 Gbit/s", queue="fifo", flows=10, protocol="cubic", seconds=60, warmup=12)
    text += "[sweep]\nscenario.seed = [" + ", ".join(map(str, range(1, 41))) + "]\n"
    walls = {}
    for count in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "bench.toml")
            path.write_text(text)
            command = [FONTIS, "sim", str(path), "-o", folder, "--jobs", str(count), "--json"]
            walls[count] = measured(command)[2]
    print(f"--jobs 2 on 40 runs: {walls[1] / walls[2]:.2f} times as fast as --jobs 1")


main()
