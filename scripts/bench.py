#!/usr/bin/env python3
"""Measures the fontis command over a bad path on this machine, beside what it must reach.

    fontis serve  <-  fontis relay --rate 100mbit --delay 50ms --loss P  <-  fontis get

Every transfer has a relay and a connection of its own; nothing is repeated and nothing is left out.
Every line that the programs print goes to FOLDER/raw.jsonl, the table to standard output.

Beside the figures stand two that say how far they can be trusted: by how much the relay was late,
and what else the machine did (its load average; the transfer itself makes about one).

The bound of a transfer is 2 RTT + size / (rate x 1472/1500). The time is what `fontis get` reports,
from its first packet to the last verified byte: the start of the process is not in it.

    scripts/bench.py [FOLDER]

    FONTIS          the command [target/release/fontis]
    BENCH_RUNS      transfers of 100 MB at each loss rate [5]
    BENCH_SMALL     transfers of each small object [30]
    BENCH_LOSS      loss rates in percent [0,1,5,10,20,30]
    BENCH_ADDRESS   where all listen: 127.0.0.1 or [::1] [127.0.0.1]
    BENCH_SEED      the first seed, of the relays and of the files [1]
"""

import json
import os
import queue
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from datetime import datetime, timezone
from pathlib import Path

RATE = 100e6
RTT = 0.1
PAYLOAD = 1472 / 1500
LARGE = ("100 MB", 100_000_000)
# Targets of the median, over the bound: cold, and with a token, over 1 RTT instead of 2.
SMALL = [("10 KB", 10_000, 1.15, 1.1), ("100 KB", 100_000, 1.2, 1.1), ("1 MB", 1_000_000, 1.5, 1.3)]
SMALL_LOSS = [0, 10]
TAIL = 1.6
GOODPUT = 0.95
PACKETS = 1.03
DROPS = 0.01
# A transfer of 100 MB takes about 10 s; one that takes this long hangs.
PATIENCE = 120


def setting(name, default):
    return os.environ.get(name) or default


def bound(size, round_trips=2):
    return round_trips * RTT + size * 8 / (RATE * PAYLOAD)


class Program:
    """A program that runs in the background and prints a JSON object a line."""

    def __init__(self, name, arguments):
        self.name = name
        self.lines = []
        self.fresh = queue.Queue()
        self.process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            self.fresh.put(json.loads(line))
        self.fresh.put(None)

    def wait_for(self, wanted, timeout):
        """The next object with the key or the event `wanted`; None if it does not come in time."""
        while True:
            try:
                value = self.fresh.get(timeout=timeout)
            except queue.Empty:
                return None
            if value is None:
                return None
            if wanted in value or value.get("event") == wanted:
                return value

    def take_lines(self):
        lines, self.lines = self.lines, []
        return lines

    def stop(self):
        """Ends it as Ctrl-C would."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join(timeout=5)


class Bench:
    def __init__(self, folder):
        self.fontis = setting("FONTIS", "target/release/fontis")
        self.address = setting("BENCH_ADDRESS", "127.0.0.1")
        self.seed = int(setting("BENCH_SEED", "1"))
        self.raw = open(folder / "raw.jsonl", "w", encoding="utf-8")
        self.failures = 0
        self.missed = 0

    def run(self):
        runs = int(setting("BENCH_RUNS", "5"))
        small_runs = int(setting("BENCH_SMALL", "30"))
        losses = [float(text) for text in setting("BENCH_LOSS", "0,1,5,10,20,30").split(",")]
        print(f"first seed {self.seed}; 100 Mbit/s, 100 ms, a buffer of one bandwidth-delay product, {self.address}")
        with tempfile.TemporaryDirectory(prefix="fontis-bench-") as work:
            self.work = Path(work)
            # Tokens are kept here: a transfer is cold without them.
            os.environ["XDG_CACHE_HOME"] = str(self.work / "cache")
            served = self.work / "served"
            served.mkdir()
            content = random.Random(self.seed)
            for _, size, *_ in [LARGE, *SMALL]:
                (served / f"{size}.bin").write_bytes(content.randbytes(size))
            arguments = ["serve", str(served), "--listen", f"{self.address}:0", "--json", *self.identity("server")]
            self.server = Program("serve", [self.fontis, *arguments])
            try:
                listening = self.server.wait_for("urls", 10)
                if listening is None:
                    raise SystemExit("bench: fontis serve did not come up")
                self.url = listening["urls"][0]
                self.large(runs, losses)
                self.small(small_runs)
                self.warm(small_runs)
            finally:
                self.server.stop()
                self.raw.close()
        print(f"\n{self.missed} figures missed, {self.failures} transfers failed")
        return 1 if self.failures else 0

    def identity(self, name):
        return ["--identity", str(self.work / name)]

    def transfer(self, case, repetition, size, loss, warm=False):
        """One transfer through its own relay: what the programs print, or None if it failed."""
        if not warm:
            shutil.rmtree(self.work / "cache", ignore_errors=True)
        seed, self.seed = self.seed, self.seed + 1
        key = self.url.split("?", 1)[1]
        server = self.url.split("//", 1)[1].split("/", 1)[0]
        path = ["--rate", "100mbit", "--delay", "50ms", "--loss", f"{loss}%"]
        ends = ["--listen", f"{self.address}:0", "--to", server]
        relay = Program("relay", [self.fontis, "relay", *ends, *path, "--seed", str(seed), "--json"])
        got = self.work / "got.bin"
        done = sent = summary = None
        try:
            listening = relay.wait_for("listening", 10)
            if listening is not None:
                url = f"fontis://{listening['listening']}/{size}.bin?{key}"
                arguments = ["get", url, str(got), "--force", "--json", *self.identity("client")]
                client = Program("get", [self.fontis, *arguments])
                done = client.wait_for("done", PATIENCE)
                sent = self.server.wait_for("sent", 5) if done else None
                client.stop()
                self.keep(case, repetition, seed, client)
        finally:
            relay.stop()
        summary = relay.wait_for("down", 1)
        self.keep(case, repetition, seed, relay)
        self.keep(case, repetition, seed, self.server)
        got.unlink(missing_ok=True)
        if not (done and sent and summary and done["bytes"] == size):
            self.failures += 1
            print(f"bench: {case}, repetition {repetition}, seed {seed}: failed", flush=True)
            return None
        return done, sent, summary

    def keep(self, case, repetition, seed, program):
        for line in program.take_lines():
            entry = {"case": case, "repetition": repetition, "seed": seed, "from": program.name}
            self.raw.write(json.dumps(entry)[:-1] + f', "line": {line}}}\n')
        self.raw.flush()

    def verdict(self, good):
        self.missed += not good
        return "ok" if good else "MISSED"

    def large(self, runs, losses):
        name, size = LARGE
        print(f"\n{name}, {runs} times each; medians, and the worst of each in brackets")
        print("loss    goodput / bound     packets / ideal     queue drops         late p99  load  verdict")
        print(f"target  >= {GOODPUT}             <= {PACKETS}             < {DROPS:.0%}", flush=True)
        for loss in losses:
            results = [self.transfer(f"{name} {loss:g}%", run, size, loss) for run in range(runs)]
            results = [result for result in results if result]
            if not results:
                continue
            goodput = [bound(size) / done["seconds"] for done, _, _ in results]
            ideal = 1 / (1 - loss / 100)
            packets = [sent["symbols"] / (sent["symbols_needed"] * ideal) for _, sent, _ in results]
            down = [summary["down"] for _, _, summary in results]
            drops = [link["dropped"]["queue"]["packets"] / link["entered"]["packets"] for link in down]
            late = statistics.median(summary["lateness_us"]["p99"] for _, _, summary in results)
            median = statistics.median
            good = median(goodput) >= GOODPUT and median(packets) <= PACKETS and median(drops) < DROPS
            print(
                f"{loss:3g} %   {median(goodput):.3f} ({min(goodput):.3f})       "
                f"{median(packets):.3f} ({max(packets):.3f})       "
                f"{median(drops):6.2%} ({max(drops):6.2%})   {late:5.0f} us  {os.getloadavg()[0]:4.1f}  {self.verdict(good)}",
                flush=True,
            )

    def small(self, runs):
        print(f"\nsmall objects, cold, {runs} times each")
        print("size    loss   median / bound   target   p99 / median   target   verdict", flush=True)
        for name, size, target, _ in SMALL:
            for loss in SMALL_LOSS:
                results = [self.transfer(f"{name} {loss}%", run, size, loss) for run in range(runs)]
                times = sorted(result[0]["seconds"] for result in results if result)
                if not times:
                    continue
                median = statistics.median(times)
                # Of a hundred or fewer, the p99 is the slowest.
                tail = times[max(0, -(-len(times) * 99 // 100) - 1)] / median
                ratio = median / bound(size)
                good = ratio <= target and (loss == 0 or tail <= TAIL)
                limit = f"<= {TAIL}" if loss else "      "
                print(
                    f"{name:7} {loss:3} %   {ratio:.3f}            <= {target:<4}  {tail:.3f}          {limit}   "
                    f"{self.verdict(good)}",
                    flush=True,
                )

    def warm(self, runs):
        print(f"\nsmall objects with a token, after one of {LARGE[0]}, {runs} times each; the bound is with 1 RTT")
        print("size    median / bound   worst   target   verdict", flush=True)
        if self.transfer("to be known", 0, LARGE[1], 0) is None:
            return
        for name, size, _, target in SMALL:
            results = [self.transfer(f"{name} with a token", run, size, 0, warm=True) for run in range(runs)]
            ratios = [result[0]["seconds"] / bound(size, 1) for result in results if result]
            if not ratios:
                continue
            ratio = statistics.median(ratios)
            good = ratio <= target
            print(f"{name:7} {ratio:.3f}            {max(ratios):.3f}   <= {target:<4}  {self.verdict(good)}", flush=True)


def main():
    today = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else f"results/{today}")
    folder.mkdir(parents=True, exist_ok=True)
    return Bench(folder).run()


if __name__ == "__main__":
    sys.exit(main())
