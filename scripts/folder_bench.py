#!/usr/bin/env python3
"""Measures folders over loopback: many small files beside tar over TCP, and a sparse file.

    scripts/folder_bench.py [PART…]     files, sparse [all]

    FONTIS          the command [target/release/fontis]
    BENCH_RUNS      transfers of each kind [3]
    BENCH_FILES     files of 1 KB in the folder [100000]
    BENCH_WORK      the folder to work in [/dev/shm]

files: the folder by `fontis get`, and by `tar c` and `tar x` through a TCP connection of this
machine: seconds, and the peak of resident memory of both ends of Fontis.
sparse: a file of 100 GB with 1 MB of data by `fontis get`: seconds, and bytes of packets. It needs
a file system with holes.
"""

import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FONTIS = os.environ.get("FONTIS") or str(Path(__file__).resolve().parent.parent / "target/release/fontis")
RUNS = int(os.environ.get("BENCH_RUNS") or 3)
FILES = int(os.environ.get("BENCH_FILES") or 100_000)
WORK = os.environ.get("BENCH_WORK") or "/dev/shm"
FILE = 1000
# What a data packet of Fontis has at most on loopback, headers included.
PACKET = 1500


def peak(program):
    """The most memory that a running program had, in MB."""
    text = Path(f"/proc/{program.pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) / 1e3


def by_fontis(served, got):
    """Seconds, memory of server and client in MB, and the client's last words."""
    command = [FONTIS, "serve", str(served), "--json", "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    url = json.loads(server.stdout.readline())["urls"][0]
    begin = time.monotonic()
    client = subprocess.Popen([FONTIS, "get", url, str(got), "--json"], stdout=subprocess.PIPE, text=True)
    lines = client.stdout.read().splitlines()
    # Of a child that has ended wait4 tells the most memory, in KB.
    _, status, usage = os.wait4(client.pid, 0)
    seconds = time.monotonic() - begin
    client.returncode = os.waitstatus_to_exitcode(status)
    if client.returncode != 0:
        sys.exit(f"fontis get failed: {lines[-1:]}")
    memory = peak(server), usage.ru_maxrss / 1e3
    server.send_signal(signal.SIGINT)
    server.stdout.read()
    server.wait()
    return seconds, memory, json.loads(lines[-1])


def by_tar(served, got):
    """Seconds of tar through TCP."""
    got.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        begin = time.monotonic()
        out = socket.create_connection(listener.getsockname())
        into, _ = listener.accept()
        reader = subprocess.Popen(["tar", "x", "-C", str(got)], stdin=into)
        writer = subprocess.Popen(["tar", "c", "-C", str(served), "."], stdout=out)
        out.close()
        into.close()
        failed = writer.wait() or reader.wait()
    if failed:
        sys.exit("tar failed")
    return time.monotonic() - begin


def files(work):
    served = work / "served"
    for start in range(0, FILES, 1000):
        folder = served / f"{start // 1000:05}"
        folder.mkdir(parents=True)
        for number in range(start, min(start + 1000, FILES)):
            (folder / f"{number:07}").write_bytes(os.urandom(FILE))
    # What has just been written may change unseen, and would be read twice.
    time.sleep(4)
    ours, tar, memory = [], [], []
    for _ in range(RUNS):
        seconds, used, _ = by_fontis(served, work / "got")
        ours.append(seconds)
        memory.append(used)
        shutil.rmtree(work / "got")
        tar.append(by_tar(served, work / "got"))
        shutil.rmtree(work / "got")
    shutil.rmtree(served)
    ratio = statistics.median(ours) / statistics.median(tar)
    server, client = (max(ends) for ends in zip(*memory))
    print(f"{FILES} files of {FILE} bytes, {RUNS} times each, medians and ranges")
    for name, found in [("Fontis", ours), ("tar through TCP", tar)]:
        print(f"{name}: {statistics.median(found):.2f} s ({min(found):.2f}-{max(found):.2f})")
    print(f"time / tar {ratio:.2f}, target <= 1.3: {'ok' if ratio <= 1.3 else 'MISSED'}")
    verdict = "ok" if max(server, client) <= 200 else "MISSED"
    print(f"peak memory {server:.0f} MB (server), {client:.0f} MB (client), target <= 200: {verdict}", flush=True)


def sparse(work):
    size, data = 100_000_000_000, 1_000_000
    (work / "served").mkdir()
    with open(work / "served/file", "wb") as out:
        out.truncate(size)
        for place in (0, size // 2):
            out.seek(place)
            out.write(os.urandom(data // 2))
    time.sleep(4)
    found = []
    for _ in range(RUNS):
        seconds, _, done = by_fontis(work / "served", work / "got")
        got = (work / "got/file").stat()
        if got.st_size != size or got.st_blocks * 512 > 4 * data:
            sys.exit(f"the copy has {got.st_size} bytes and {got.st_blocks} blocks")
        found.append((seconds, done["packets_received"] * PACKET))
        shutil.rmtree(work / "got")
    seconds, sent = (max(values) for values in zip(*found))
    verdict = "ok" if seconds <= 2 and sent <= 2_000_000 else "MISSED"
    print(f"100 GB with 1 MB of data: {seconds:.2f} s, at most {sent / 1e6:.2f} MB in packets, the worst of {RUNS}; target <= 2 s and 2 MB: {verdict}")


def main():
    parts = {"files": files, "sparse": sparse}
    wanted = sys.argv[1:] or list(parts)
    if unknown := set(wanted) - set(parts):
        sys.exit(f"no part {', '.join(sorted(unknown))}: there are {', '.join(parts)}")
    for name in wanted:
        with tempfile.TemporaryDirectory(prefix="fontis-folder-", dir=WORK) as work:
            for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
                os.environ[variable] = work
            parts[name](Path(work))


if __name__ == "__main__":
    main()
