#!/usr/bin/env python3
"""Measures the simulator, with ns-2.35 beside it if it is installed (Debian's package ns2).

    scripts/sim_bench.py

A figure is packets through the bottleneck per second of processor time, start and recording
included: the median of BENCH_RUNS (3) runs, and the range. FONTIS is the command
(target/release/fontis).
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
sample = "{sample}"
[topology]
rate = "{rate}"
rtt = "{rtt}"
access = "{access}"
buffer = "1 BDP"
queue = "{queue}"
[[flow]]
count = {flows}
protocol = "{protocol}"
[tcp]
{tcp}
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


def scenario(rate="1 Gbit/s", access="10 Gbit/s", queue="fifo", flows=10, protocol="cubic", seconds=SECONDS,
             rtt="50 ms", sample="100 ms", tcp=""):
    return SCENARIO.format(rate=rate, access=access, queue=queue, flows=flows, protocol=protocol, seconds=seconds,
                           warmup=seconds / 5, rtt=rtt, sample=sample, tcp=tcp)


def simulate(**options):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "bench.toml")
        path.write_text(scenario(**options))
        cpu, memory, _, _ = measured([FONTIS, "sim", str(path), "-o", folder, "--jobs", "1", "--json"])
        run = json.loads(pathlib.Path(folder, "bench/00000/run.json").read_text())
        summary = {(m, s): v for m, s, v, _ in run["summary"]}
    return {
        "packets": run["packets"],
        "rate": run["packets"] / cpu,
        "events": run["events"] / run["packets"],
        "memory": memory,
        "goodput": summary["goodput", "all"],
        "dropped": summary["drop_rate", "bottleneck"],
        "seconds": cpu,
        "connected": summary["connected", "all"],
    }


def ns2(algorithm="cubic", delayed=0, headers="all", trace=None, seconds=20, warmup=4):
    """ns-2.35, with all headers or the needed ones, acknowledging every packet or every second."""
    environment = dict(os.environ, NS2_ACCESS="10000")
    environment.update({"NS2_TRACE": trace} if trace else {})
    environment.update({"NS2_HEADERS": headers} if headers == "all" else {})
    arguments = ["10", "1000", "50", "4167", "0", str(seconds), str(warmup), algorithm, "1", str(delayed)]
    cpu, memory, _, out = measured(["ns", str(HERE / "ns2/dumbbell.tcl"), *arguments], env=environment)
    values = next(line for line in out.splitlines() if line and line[0].isdigit()).split()
    return {"rate": int(values[4]) / cpu, "memory": memory, "goodput": float(values[0])}


def several(run, **options):
    return [run(**options) for _ in range(RUNS)]


def beside(name, **options):
    """The time of a variant's run, and of a packet in it, divided by those of CUBIC over FIFO."""
    pairs = [(simulate(), simulate(**options)) for _ in range(RUNS)]
    plain, variant = zip(*pairs)
    line(name, variant)
    times = [other["seconds"] / one["seconds"] for one, other in pairs]
    packets = [one["rate"] / other["rate"] for one, other in pairs]
    print(f"    time relative to CUBIC over FIFO: {statistics.median(times):.2f} [{min(times):.2f}–{max(times):.2f}]"
          f", of a packet {statistics.median(packets):.2f} [{min(packets):.2f}–{max(packets):.2f}]"
          f", whose median was {statistics.median(one['rate'] for one in plain) / 1e6:.3f} M packets/s", flush=True)


def line(name, samples):
    rates = [sample["rate"] for sample in samples]
    middle = statistics.median(rates)
    last = samples[-1]
    events = f"  {last['events']:.2f} events/packet" if "events" in last else ""
    print(
        f"{name:<44} {middle / 1e6:6.3f} M packets/s [{min(rates) / 1e6:.3f}–{max(rates) / 1e6:.3f}]"
        f"  {last['memory']:5.0f} MB  {last['goodput']:8.1f} Mbit/s{events}", flush=True)
    return middle


def beside_ns2(cubic):
    """Our default recording; ns-2 with its Sack1 sink, which acknowledges every packet."""
    if not shutil.which("ns"):
        print("ns-2 is not installed (Debian: apt-get install ns2): nothing to compare with")
        return
    every = line("CUBIC over FIFO, every packet acknowledged", several(simulate, tcp='delayed_ack = "0 ms"'))
    print("ns-2.35 with TCP/Linux cubic, 20 s, and how many times as many packets we have:")
    for name, ours, options in (
        ("Sack1 sink, as installed", cubic, {}),
        ("Sack1 sink, as installed, trace-all", cubic, {"trace": "/dev/null"}),
        ("Sack1 sink, its headers pruned", cubic, {"headers": "few"}),
        ("the same beside ours that acknowledges all", every, {"headers": "few"}),
        ("Sack1/DelAck sink, its headers pruned", cubic, {"headers": "few", "delayed": 1}),
    ):
        theirs = line(f"    {name}", several(ns2, **options))
        print(f"        ours / ns-2: {ours / theirs:.1f}")
    # Slow start overflows the buffer: most of what ns-2 does in this time is to repair losses.
    ours = line("CUBIC over FIFO, the first 3 s", several(simulate, seconds=3))
    theirs = line("    the same, as installed, trace-all", several(ns2, trace="/dev/null", seconds=3, warmup=0))
    print(f"        ours / ns-2: {ours / theirs:.1f}")


def scaling():
    """The cost of a packet by the number of flows.

    First in the cell above, which has 100 Mbit/s for each of ten; then with 1 Mbit/s a flow, so
    that the work of a flow stays the same, without the start.
    """
    print("CUBIC over FIFO, 1 Gbit/s or 1 Mbit/s for each flow if that is more, 10 s; then without samples")
    first = {}
    for flows in (10, 100, 1000, 10_000):
        rate = f"{max(1000, flows)} Mbit/s"
        for sample in ("100 ms", "10 s"):
            packets = line(f"{flows} flows, {rate}, every {sample}", several(simulate, flows=flows, rate=rate, seconds=10, sample=sample))
            print(f"    cost of a packet relative to 10 flows: {first.setdefault(sample, packets) / packets:.2f}")
    print("CUBIC over FIFO, 1 Mbit/s for each flow, by the difference between runs of 8 and of 10 million packets")
    ten = None
    for flows in (10, 100, 1000, 10_000):
        costs = []
        for _ in range(RUNS):
            short, long = (simulate(flows=flows, rate=f"{flows} Mbit/s", seconds=seconds // flows) for seconds in (100_000, 120_000))
            costs.append((long["seconds"] - short["seconds"]) / (long["packets"] - short["packets"]))
        cost = statistics.median(costs)
        ten = ten or cost
        print(f"{flows} flows: {cost * 1e9:.0f} ns a packet [{min(costs) * 1e9:.0f}–{max(costs) * 1e9:.0f}], {cost / ten:.2f} times that of 10", flush=True)


def memory():
    """What a flow takes, and a packet: from runs that differ in how many there are."""
    small = simulate(seconds=1, sample="1 s")["memory"]
    flows = 20_000
    many = simulate(flows=flows, rate="2 Gbit/s", seconds=1, sample="1 s")["memory"]
    print(f"memory of a flow: {(many - small) * 2**20 / flows:.0f} B, of {flows} at 100 kbit/s each")
    # All leave when the handshake is over, at 0.8 s, and come to the bottleneck at 1.2 s.
    sparse, dense = (
        simulate(flows=10_000, rate="10 Gbit/s", access="100 Gbit/s", rtt="800 ms", seconds=1.21, sample="2 s", tcp=f"initial_window = {window}")["memory"]
        for window in (1, 41))
    print(f"memory of a packet on its way: {(dense - sparse) * 2**20 / (10_000 * 40):.0f} B, what its sender keeps of it included")


def main():
    print(f"10 flows, 1 Gbit/s, 50 ms, 1 BDP, {SECONDS} s, medians of {RUNS}")
    cubic = line("CUBIC over FIFO", several(simulate))
    line("NewReno over FIFO", several(simulate, protocol="newreno"))
    beside_ns2(cubic)
    for queue in ("drr", "sfq", "wfq", "red", "codel", "fq-codel"):
        beside(f"CUBIC over {queue}", queue=queue)
    for protocol in ("compound", "vegas", "bbr"):
        beside(f"{protocol} over FIFO", protocol=protocol)
    # Before summaries of thousands of flows are read here: the peak of a child is never less than
    # that of who made it.
    memory()
    scaling()
    huge = simulate(flows=100_000, rate="10 Gbit/s", seconds=10)
    print(f"100,000 flows over 10 Gbit/s, 10 s: {huge['seconds']:.0f} s, {huge['memory']:.0f} MB, {huge['connected']:.3f} of them connected")
    greedy = several(simulate, protocol="dfcp", queue="drr", access="1 Gbit/s", seconds=5)
    offered = [sample["rate"] / (1 - sample["dropped"]) for sample in greedy]
    print(f"greedy DFCP over DRR, ten times the rate: {statistics.median(offered) / 1e6:.3f} M offered packets/s")
    jobs()


def jobs():
    """How much faster two processors run a sweep."""
    text = scenario(rate="100 Mbit/s", access="1 Gbit/s")
    text += "[sweep]\nscenario.seed = [" + ", ".join(map(str, range(1, 41))) + "]\n"
    walls, work = {}, {}
    for count in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "bench.toml")
            path.write_text(text)
            command = [FONTIS, "sim", str(path), "-o", folder, "--jobs", str(count), "--json"]
            work[count], _, walls[count], _ = measured(command)
    print(f"--jobs 2 on 40 runs: {walls[1] / walls[2]:.2f} times as fast as --jobs 1, with {work[2] / work[1]:.3f} times its processor time")


if __name__ == "__main__":
    main()
