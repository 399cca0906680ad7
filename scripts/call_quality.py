#!/usr/bin/env python3
"""How calls are heard over a lossy path: scripts/call_quality.py [ROUNDS [SECONDS [NAME...]]]

Each row is a form of calls: `fontis call` in both directions through `fontis relay`, with 300 ms
each way and 5 % random loss of packets in each direction. ROUNDS (4) calls of SECONDS (60) with
seeds of their own, so that each row has twice as many directions. Prints for each row: voice and
redundancy in kbit/s of RTP, redundancy as a share of the voice, the bytes of the connection as a
share of the voice, losses after repair, the delay from mouth to ear, MOS with its standard error,
and the difference to the first row of its codec, direction by direction. NAMEs choose rows. Needs
`cargo build --release -p fontis-cli`; FONTIS names another program. Runs all rows of a round at
once: the machine must have nothing else to do.
"""

import concurrent.futures
import json
import os
import re
import statistics
import subprocess
import sys

FONTIS = os.environ.get("FONTIS", "target/release/fontis")
DELAY, LOSS = "300ms", "5%"
# Name: codec, carrier, flags of redundancy for both ends.
ROWS = {
    "g711-udp": ("g711", "udp", ["--repair", "0"]),
    "g711-dfcp": ("g711", "dfcp", ["--repair", "0"]),
    "g711-repair-25": ("g711", "dfcp", ["--repair", "25%"]),
    "g711-repair-50": ("g711", "dfcp", ["--repair", "50%"]),
    "g711-copy-12": ("g711", "dfcp", ["--copies", "1:12000"]),
    "g711-copies-12": ("g711", "dfcp", ["--copies", "2:12000"]),
    "g711-copy-full": ("g711", "dfcp", ["--copies", "1"]),
    "g711-udp-repair-25": ("g711", "udp", ["--repair", "25%"]),
    "g711-udp-copy-12": ("g711", "udp", ["--copies", "1:12000"]),
    "opus-udp": ("opus:30000", "udp", ["--repair", "0"]),
    "opus-fec": ("opus-fec:30000", "udp", ["--repair", "0"]),
    "opus-repair-25": ("opus:24000", "udp", ["--repair", "25%"]),
    "opus-copy": ("opus:15000", "udp", ["--copies", "1"]),
}


class Program:
    """A command that prints JSON, and ends with this block."""

    def __init__(self, *words):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdout=pipe, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def event(self):
        return json.loads(self.process.stdout.readline())


def relay(to, port, seed):
    """A path at another loopback address with the same port."""
    words = ["--to", f"{to}:{port}", "--listen", f"127.0.0.2:{port}", "--delay", DELAY]
    words += ["--loss", LOSS, "--loss-up", LOSS, "--seed", str(seed), "--json"]
    return Program(FONTIS, "relay", *words)


def free_ports(count):
    import socket

    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for one in sockets:
        one.bind(("0.0.0.0", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def call(row, seed, seconds, ports):
    codec, over, redundancy = ROWS[row]
    say = ["--test", f"{seconds}s", "--json", *redundancy]
    port, voice = ports
    listen = ["--listen", f"127.0.0.1:{port}", "--voice-port", str(voice)]
    with (
        Program(FONTIS, "call", *listen, *say) as listener,
        relay("127.0.0.1", port, seed) as path,
        relay("127.0.0.1", voice, seed + 1000) as voice_path,
    ):
        url = listener.event()["urls"][0]
        path.event(), voice_path.event()
        url = re.sub(r"127\.0\.0\.1", "127.0.0.2", url)
        words = [FONTIS, "call", url, "--codec", codec, "--over", over, *say]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])


def main():
    words = sys.argv[1:]
    rounds, seconds = (int(words[at]) if len(words) > at else n for at, n in ((0, 4), (1, 60)))
    rows = words[2:] or list(ROWS)
    ends = {row: [] for row in rows}
    for seed in range(1, rounds + 1):
        ports = free_ports(2 * len(rows))
        pairs = zip(ports[::2], ports[1::2])
        with concurrent.futures.ThreadPoolExecutor(len(rows)) as pool:
            calls = {
                row: pool.submit(call, row, seed, seconds, pair) for row, pair in zip(rows, pairs)
            }
        for row, ended in calls.items():
            ends[row].append(ended.result())
    print("| calls | kbit/s | redundancy | connection | lost before | lost after | ms | MOS | more |")
    print("|---|---|---|---|---|---|---|---|---|")
    first = {}
    for row, ended in ends.items():
        heard = [one[side] for one in ended for side in ("here", "there")]
        mean = lambda key: statistics.fmean(one[key] for one in heard)
        voice = sum(one["bytes_sent"] for one in ended)
        more = sum(one["repair_bytes_sent"] for one in ended)
        wire = sum(one["connection_bytes_sent"] for one in ended)
        spoken = sum(one["seconds"] for one in ended)
        scores = [one["mos"] for one in heard]
        base = first.setdefault(ROWS[row][0].split(":")[0].split("-")[0], scores)
        gains = [one - other for one, other in zip(scores, base)]
        # Voice over UDP is not in the connection.
        carried = f"{wire / voice:.2f}" if ROWS[row][1] == "dfcp" else ""
        error = statistics.stdev(scores) / len(scores) ** 0.5 if len(scores) > 1 else 0
        print(
            f"| {row} | {(voice + more) * 8e-3 / spoken:.1f} | {more / voice:.3f} "
            f"| {carried} | {mean('network_loss'):.2%} | {mean('loss'):.2%} "
            f"| {mean('delay_ms'):.0f} | {statistics.fmean(scores):.2f} ± {error:.2f} "
            f"| {statistics.fmean(gains):+.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
