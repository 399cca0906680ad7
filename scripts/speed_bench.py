#!/usr/bin/env python3
"""Copies a file with `fontis get`, QUIC (quinn) and TCP in turn, over a veth pair.

The pair has an MTU of 1500, no loss and no rate limit. Prints goodput, and CPU seconds a GB of both
ends together.

    scripts/speed_bench.py

    FONTIS          the command [target/release/fontis]
    PEER            the example copy_peer of fontis-lab [beside it]
    PLAIN           the command built with `--cfg fontis_plaintext`, which does not encrypt [none:
                    not measured]
    BENCH_RUNS      rounds; each copies once with each tool [5]
    BENCH_MB        megabytes to copy [1000]
    BENCH_COLD      if set, copies begin with the memory that the system has; else the memory that a
                    copy needs is touched before each, because a host that takes free memory back
                    gives it anew at a fraction of the speed
    BENCH_PROFILE   the file for a profile of the CPU (needs perf): only Fontis runs then [none]

All read the file, hash it (BLAKE3) at both ends, compare and write it; Fontis and QUIC encrypt with
AES-128-GCM, `plain` and TCP, which has its segmentation offload, do not. The file and its copies
lie in memory (/dev/shm). Fontis is in its default: `auto` finds the rate. It needs root, for
network namespaces. Every process is new in each round, so handshakes and the hash of the whole file
are part of the time.
"""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FONTIS = os.environ.get("FONTIS") or str(HERE.parent / "target/release/fontis")
PEER = os.environ.get("PEER") or str(Path(FONTIS).parent / "examples/copy_peer")
PLAIN = os.environ.get("PLAIN")
RUNS = int(os.environ.get("BENCH_RUNS") or 5)
SIZE = int(os.environ.get("BENCH_MB") or 1000) * 1_000_000
PROFILE = os.environ.get("BENCH_PROFILE")
COLD = "BENCH_COLD" in os.environ
MADV_POPULATE_WRITE = 23
A, B = "10.99.0.1", "10.99.0.2"


def run(*command):
    subprocess.run(command, check=True)


class Veth:
    """Two namespaces with a cable between them."""

    def __enter__(self):
        self.names = [f"fontis-speed-{os.getpid()}-{side}" for side in "ab"]
        left, right = self.names
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "-n", left, "link", "add", "v0", "mtu", "1500", "type", "veth", "peer", "name", "v0", "netns", right)
        for name, address in zip(self.names, (A, B)):
            run("ip", "-n", name, "address", "add", f"{address}/24", "dev", "v0")
            run("ip", "-n", name, "link", "set", "v0", "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False)

    def start(self, side, *command, **more):
        return subprocess.Popen(["ip", "netns", "exec", self.names[side], *map(str, command)], **more)


def used(process):
    """Waits for a process; its exit status and CPU seconds."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def touch():
    """Takes memory for a copy and gives it back."""
    script = f"import mmap; mmap.mmap(-1, {SIZE * 5 // 4}).madvise({MADV_POPULATE_WRITE})"
    # A process of its own, because this one's peak is where its children's begin.
    run(sys.executable, "-c", script)


def copy(veth, folder, serve, get, stop=False):
    """Copies once: seconds of the receiver, and CPU seconds and peak memory (MB) of both."""
    arrival = folder / "copy"
    arrival.unlink(missing_ok=True)
    if not COLD:
        touch()
    server = veth.start(0, *serve, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    url = None
    if stop:
        for line in server.stdout:
            if found := re.search(r"fontis://\S+", line):
                url = found[0]
                break
        if not url:
            sys.exit(f"{serve}: {server.stderr.read()}")
        url = url.replace("/?", "/source?")
    else:
        time.sleep(0.3)
    command = [part if part != "URL" else url for part in get]
    begin = time.monotonic()
    client = veth.start(1, *command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    status, cpu, memory = used(client)
    took = time.monotonic() - begin
    if status:
        sys.exit(f"{command}: {client.stderr.read()}")
    if stop:
        server.send_signal(signal.SIGINT)
    _, more, memory_there = used(server)
    if arrival.stat().st_size != SIZE:
        sys.exit(f"{command}: {arrival} has {arrival.stat().st_size} bytes")
    return took, cpu, more, memory, memory_there


def main():
    if os.geteuid():
        sys.exit("speed_bench needs root, for network namespaces")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, Veth() as veth:
        folder = Path(folder)
        source, arrival, certificate = folder / "source", folder / "copy", folder / "certificate"
        with source.open("wb") as out:
            for _ in range(SIZE // 1_000_000):
                out.write(os.urandom(1_000_000))
        os.environ["XDG_CONFIG_HOME"] = str(folder)
        address = f"{A}:4433"

        def way(command):
            return [command, "serve", folder, "--listen", address], [command, "get", "URL", arrival, "--force"], True

        ways = {
            "fontis": way(FONTIS),
            **({"plain": way(PLAIN)} if PLAIN else {}),
            "quic": (
                [PEER, "quic", "serve", address, source, certificate],
                [PEER, "quic", "get", address, arrival, certificate],
                False,
            ),
            "tcp": ([PEER, "tcp", "serve", address, source], [PEER, "tcp", "get", address, arrival], False),
        }
        floor = json.loads(subprocess.run([PEER, "floor", str(SIZE)], check=True, capture_output=True).stdout)
        if PROFILE:
            profile(lambda: copy(veth, folder, *ways["fontis"]))
            return
        found = {name: [] for name in ways}
        for _ in range(RUNS):
            for name, (serve, get, stop) in ways.items():
                found[name].append(copy(veth, folder, serve, get, stop))
        middle = {}
        print(f"{'':8} {'Gbit/s':>20} {'CPU-s/GB':>20} {'receiver + sender':>20} {'MB peak':>12}")
        for name, runs in found.items():
            rates = [SIZE * 8 / took / 1e9 for took, *_ in runs]
            costs = [(cpu + more) * 1e9 / SIZE for _, cpu, more, *_ in runs]
            ends = [statistics.median(run[i] * 1e9 / SIZE for run in runs) for i in (1, 2)]
            memory = [max(run[i] for run in runs) for i in (3, 4)]
            middle[name] = statistics.median(rates), statistics.median(costs)
            print(
                f"{name:8} {spread(rates):>20} {spread(costs):>20} {ends[0]:>11.2f} + {ends[1]:.2f}"
                f" {memory[0]:>6.0f} {memory[1]:.0f}"
            )
        (rate, cost), (quic_rate, quic_cost) = middle["fontis"], middle["quic"]
        print(f"goodput / QUIC's       {rate / quic_rate:6.2f}   target >= 2.0")
        print(f"CPU-s/GB / QUIC's      {cost / quic_cost:6.2f}   target <= 0.8")
        print(f"CPU-s/GB / TCP's       {cost / middle['tcp'][1]:6.2f}")
        if PLAIN:
            print(f"plain, CPU-s/GB / TCP's{middle['plain'][1] / middle['tcp'][1]:6.2f}")
        print(f"floor, CPU-s/GB        {floor['hash'] + floor['seal']:6.2f}   hash {floor['hash']:.2f}, seal and open {floor['seal']:.2f}")
        print(f"load {os.getloadavg()[0]:.1f}")


# What functions are for, by a part of their names; the first that fits.
PARTS = {
    "sealing and opening (AES-128-GCM)": r"aes_|gcm|ring::aead|CRYPTO_",
    "hashing (BLAKE3)": r"blake3",
    "codes": r"fontis_codes",
    "the protocol": r"fontis_proto|fontis::endpoint|fontis::protection|bytes::|hash_one|shared_drop|promotable",
    "moving and clearing memory": r"mem(move|set|cpy|cmp)|^mi_|_mi_|malloc|free$",
    "the system: files": r"shmem|folio|filemap|xas_|generic_perform_write|page|vm_enough|dquot|memcg|uncharge|lru|iov_iter",
    "the system: network": r"udp|skb|ip_|__ip|sock|sendmsg|recvmsg|veth|dev_|net_rx|gro|gso|fib_|route|backlog|napi|_copy_(from|to)_iter|csum",
    "the system: the rest": r"",
}


def profile(run):
    """Runs each copy under perf, and leaves milliseconds of CPU for each GB, by part."""
    recorded = Path(PROFILE).with_suffix(".perf")
    recorder = subprocess.Popen(["perf", "record", "-q", "-a", "-F", "1999", "-e", "cpu-clock", "-o", recorded])
    for _ in range(RUNS):
        run()
    recorder.send_signal(signal.SIGINT)
    recorder.wait()
    report = ["perf", "report", "-i", recorded, "--stdio", "-n", "--sort", "comm,dso,symbol", "--field-separator", "\t"]
    lines = subprocess.run(report, check=True, capture_output=True, text=True).stdout.splitlines()
    found = dict.fromkeys(PARTS, 0)
    for fields in (line.split("\t") for line in lines if line and not line.startswith("#")):
        comm = fields[2].strip()
        if not comm.startswith("fontis") and comm != "tokio-rt-worker":
            continue
        name = fields[4].strip().split(" ", 1)[1].strip()
        part = next(part for part, pattern in PARTS.items() if re.search(pattern, name))
        if part.startswith("the system") and "kernel" not in fields[3]:
            part = "the protocol"
        found[part] += int(fields[1]) / 1999 * 1e3 / RUNS * 1e9 / SIZE
    text = "".join(f"{part:36} {cost:6.0f} ms/GB\n" for part, cost in found.items())
    Path(PROFILE).write_text(text + f"{'in all':36} {sum(found.values()):6.0f} ms/GB\n")
    print(Path(PROFILE).read_text(), end="")


def spread(values):
    return f"{statistics.median(values):.2f} [{min(values):.2f}-{max(values):.2f}]"


if __name__ == "__main__":
    main()
