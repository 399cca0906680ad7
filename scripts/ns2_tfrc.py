#!/usr/bin/env python3
"""Runs TFRC in ns-2.35 and CCID 3 in Fontis over the same paths, and prints them side by side.

    scripts/ns2_tfrc.py         prints Markdown tables

The second table is of ns-2 alone: `fontis sim W01` records Fontis's first drops.

FONTIS is the command (target/release/fontis). ns-2 is Debian's package ns2. Everything is seeded;
a sending rate is the mean of three seeds over 300 s after 60 s. Random loss comes after the queue
in both.
"""

import json
import os
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FONTIS = os.environ.get("FONTIS", str(HERE.parent / "target/release/fontis"))
LOSSES = (0.001, 0.005, 0.01, 0.02, 0.05)
RTTS = (20, 100, 300, 1000)  # ms
REPORTS = (1, 2, 5, 10, 20)
SEEDS = (1, 2, 3)
SECONDS, WARMUP = 360, 60

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
buffer = "{buffer} packets"
loss = "{loss}"
[dccp]
ccid = "3"
rules = "{rules}"
initial = "packet"
packet = "956 B"
feedback = "{reports}"
[[flow]]
protocol = "dccp"
"""


def ns2(rate, rtt, buffer, loss, seconds, warmup, reports, seed):
    """The rate in Mbit/s and the time of the first drop."""
    arguments = (rate, rtt, buffer, loss, seconds, warmup, reports, seed)
    command = ["ns", str(HERE / "ns2/tfrc.tcl"), *map(str, arguments)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return tuple(map(float, output.split()))


def fontis(rules, rate, rtt, buffer, loss, seconds, warmup, reports, seed):
    """The rate at the IP layer in Mbit/s."""
    text = SCENARIO.format(**locals())
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cell.toml"
        path.write_text(text)
        command = [FONTIS, "sim", str(path), "--output", folder, "--json"]
        subprocess.run(command, check=True, capture_output=True)
        run = json.loads((pathlib.Path(folder) / "cell/00000/run.json").read_text())
    summary = {(metric, subject): value for metric, subject, value, *_ in run["summary"]}
    # 956 bytes of data travel in packets of 1000.
    return (summary["goodput", "all"] * 1000 / 956,)


def mean(function, *cell):
    return sum(function(*cell, seed)[0] for seed in SEEDS) / len(SEEDS)


def main():
    print("Sending rate in Mbit/s: Fontis under RFC 3448, under RFC 5348, ns-2.35; ratios to ns-2.\n")
    print("| RTT | loss | rfc3448 | rfc5348 | ns-2 | rfc3448 ÷ ns-2 | rfc5348 ÷ ns-2 |")
    print("|---|---|---|---|---|---|---|")
    for rtt in RTTS:
        for loss in LOSSES:
            cell = (1000, rtt, 100_000, loss, SECONDS, WARMUP, 1)
            old, new = (mean(fontis, rules, *cell) for rules in ("rfc3448", "rfc5348"))
            other = mean(ns2, *cell)
            print(
                f"| {rtt} ms | {loss:.1%} | {old:.3f} | {new:.3f} | {other:.3f} | {old / other:.2f} | {new / other:.2f} |",
                flush=True,
            )
    print("\nns-2.35: the first drop on 1 Mbit/s, 1 s and 50 packets, in s.\n")
    print("| reports in a round trip | first drop |")
    print("|---|---|")
    for reports in REPORTS:
        print(f"| {reports} | {ns2(1, 1000, 50, 0, 40, 10, reports, 1)[1]:.1f} |")


if __name__ == "__main__":
    main()
