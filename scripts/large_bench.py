#!/usr/bin/env python3
"""Measures large transfers over bad paths: many files, a fast lossy path, memory on a long one.

    scripts/large_bench.py [PART…]      files, gigabit, memory [all]

    FONTIS          the command [target/release/fontis]
    BENCH_RUNS      transfers of each kind [5]; memory is measured once
    BENCH_FILES     files of 4 KB in the folder [100000]
    BENCH_SEED      of the losses [1]

files: the folder by `fontis get`, and by tar through the kernel's TCP (CUBIC), both behind
`fontis testbed shell`, 100 Mbit/s and 100 ms with a buffer of one bandwidth-delay product. Where it
loses, TCP is stopped after a minute, and its rate taken.
gigabit: 1 GB over `fontis relay`, 1 Gbit/s, 50 ms, 5 % loss, over 2 RTT + size / (rate x 1472/1500
x 0.95).
memory: 10 GB (ten names of one file, so that the copy takes most of the memory) over `fontis
relay`, 1 Gbit/s and 200 ms: anonymous memory of both ends, sampled twice a second. All files lie in
memory (/dev/shm).
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

FONTIS = os.environ.get("FONTIS") or str(Path(__file__).resolve().parent.parent / "target/release/fontis")
RUNS = int(os.environ.get("BENCH_RUNS") or 5)
FILES = int(os.environ.get("BENCH_FILES") or 100_000)
SEED = int(os.environ.get("BENCH_SEED") or 1)
FILE = 4096
# How long TCP may try on a path that loses.
PATIENCE = 60
PORT = 4477


def serve(folder, *arguments):
    command = [FONTIS, "serve", str(folder), "--json", *arguments]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return server, json.loads(server.stdout.readline())["urls"]


def stop(*programs):
    for program in programs:
        program.send_signal(signal.SIGINT)
        program.stdout.read()
        program.wait()


def shell(seed, loss, command):
    """Runs a command behind the link; its output."""
    path = ["--rate", "100mbit", "--delay", "50ms", "--buffer", "1.25MB", "--loss", f"{loss}%", "--seed", str(seed)]
    result = subprocess.run([FONTIS, "testbed", "shell", *path, "--", *command], stdout=subprocess.PIPE, text=True, check=True)
    return result.stdout


def tar_through_tcp(work, seed, loss):
    """Bytes of content that tar moved, and seconds."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    listener.bind(("0.0.0.0", PORT))
    listener.listen()

    def send():
        connection, _ = listener.accept()
        with connection:
            subprocess.run(["tar", "-C", work / "served", "-cf", "-", "d"], stdout=connection, stderr=subprocess.DEVNULL, check=False)

    threading.Thread(target=send, daemon=True).start()
    program = f"""
import os, socket, subprocess, time
start = time.monotonic()
connection = socket.create_connection((os.environ["FONTIS_GATEWAY"], {PORT}))
try:
    subprocess.run(["tar", "-C", {str(work / "got")!r}, "-xf", "-"], stdin=connection, timeout={PATIENCE if loss else 600}, check=True)
except subprocess.TimeoutExpired:
    pass
print(time.monotonic() - start)
"""
    seconds = float(shell(seed, loss, ["python3", "-c", program]))
    listener.close()
    got = sum(len(names) for _, _, names in os.walk(work / "got"))
    return got * FILE, seconds


def by_fontis(work, seed, loss):
    server, urls = serve(work / "served", "--listen", f"0.0.0.0:{PORT}")
    query = urls[0].split("?", 1)[1]
    get = f'exec {shlex.quote(FONTIS)} get "fontis://$FONTIS_GATEWAY:{PORT}/d?{query}" {shlex.quote(str(work / "got"))}/ --json'
    try:
        lines = shell(seed, loss, ["sh", "-c", get]).splitlines()
    finally:
        stop(server)
    done = json.loads(lines[-1])
    return done["bytes"], done["seconds"]


def files(work):
    for start in range(0, FILES, 1000):
        folder = work / "served/d" / f"{start // 1000:05}"
        folder.mkdir(parents=True)
        for number in range(start, min(start + 1000, FILES)):
            (folder / f"{number:06}").write_bytes(os.urandom(FILE))
    print(f"{FILES} files of {FILE} bytes, {RUNS} times each, medians and the worst in brackets; Mbit/s of content")
    print("loss    Fontis           tar through TCP (CUBIC)   Fontis / tar   target   verdict", flush=True)
    for loss, target in [(0, 0.9), (1, 20)]:
        rates = {by_fontis: [], tar_through_tcp: []}
        for run in range(RUNS):
            for tool, found in rates.items():
                (work / "got").mkdir()
                size, seconds = tool(work, SEED + run, loss)
                found.append(size * 8 / seconds / 1e6)
                shutil.rmtree(work / "got")
        ours, tar = rates.values()
        ratio = statistics.median(ours) / statistics.median(tar)
        print(
            f"{loss} %     {statistics.median(ours):6.2f} ({min(ours):6.2f})  {statistics.median(tar):6.2f} ({min(tar):6.2f})"
            f"           {ratio:7.2f}        >= {target:<4}  {'ok' if ratio >= target else 'MISSED'}",
            flush=True,
        )


def over_relay(work, name, seed, delay, loss, watch=None):
    """What `fontis get` says when it is done."""
    server, urls = serve(work / "served", "--listen", "127.0.0.1:0")
    address = re.match(r"fontis://([^/]+)/", urls[0])[1]
    path = ["--rate", "1gbit", "--delay", delay, "--loss", f"{loss}%", "--seed", str(seed), "--json"]
    command = [FONTIS, "relay", "--listen", "127.0.0.1:0", "--to", address, *path]
    relay = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    listening = json.loads(relay.stdout.readline())["listening"]
    url = urls[0].replace(address, listening).replace("/?", f"/{name}?")
    client = subprocess.Popen([FONTIS, "get", url, str(work / "got"), "--json"], stdout=subprocess.PIPE, text=True)
    if watch:
        watch(server, client)
    lines = client.stdout.read().splitlines()
    client.wait()
    stop(relay, server)
    if (work / "got").is_dir():
        shutil.rmtree(work / "got")
    else:
        (work / "got").unlink()
    return json.loads(lines[-1])


def gigabit(work):
    size, loss = 1_000_000_000, 5
    (work / "served").mkdir(exist_ok=True)
    with open(work / "served/gigabyte", "wb") as out:
        for _ in range(size // 1_000_000):
            out.write(os.urandom(1_000_000))
    bound = 2 * 0.05 + size * 8 / (1e9 * 1472 / 1500 * (1 - loss / 100))
    shares = [bound / over_relay(work, "gigabyte", SEED + run, "25ms", loss)["seconds"] for run in range(RUNS)]
    share = statistics.median(shares)
    verdict = "ok" if share >= 0.9 else "MISSED"
    print(f"1 GB, 1 Gbit/s, 50 ms, {loss} %: goodput / bound {share:.3f} ({min(shares):.3f}), target >= 0.9: {verdict}", flush=True)
    (work / "served/gigabyte").unlink()


def memory(work):
    large = work / "served/large"
    large.mkdir(parents=True)
    with open(large / "0", "wb") as out:
        for _ in range(1000):
            out.write(os.urandom(1_000_000))
    for name in range(1, 10):
        os.link(large / "0", large / str(name))
    samples = {"serve": [], "get": []}

    def watch(server, client):
        while client.poll() is None:
            for (_, found), program in zip(samples.items(), (server, client)):
                try:
                    text = Path(f"/proc/{program.pid}/smaps_rollup").read_text(encoding="ascii")
                    found.append(int(re.search(r"Pss_Anon:\s+(\d+)", text)[1]) / 1e3)
                except (OSError, TypeError):
                    pass
            time.sleep(0.5)

    done = over_relay(work, "large", SEED, "100ms", 0, watch)
    most = {name: max(found) for name, found in samples.items()}
    halves = {name: (max(found[len(found) // 10 : len(found) // 2]), max(found[len(found) // 2 :])) for name, found in samples.items()}
    flat = all(second <= 1.2 * first + 5 for first, second in halves.values())
    shown = ", ".join(f"{name} {most[name]:.0f} MB (first half {a:.0f}, second {b:.0f})" for name, (a, b) in halves.items())
    verdict = "ok" if flat and max(most.values()) <= 256 else "MISSED"
    print(f"10 GB, 1 Gbit/s, 200 ms: {done['seconds']:.1f} s; {shown}; target <= 256 MB and flat: {verdict}", flush=True)
    shutil.rmtree(large)


def main():
    parts = {"files": files, "gigabit": gigabit, "memory": memory}
    wanted = sys.argv[1:] or list(parts)
    if unknown := set(wanted) - set(parts):
        sys.exit(f"no part {', '.join(sorted(unknown))}: there are {', '.join(parts)}")
    for name in wanted:
        with tempfile.TemporaryDirectory(prefix="fontis-large-", dir="/dev/shm") as work:
            for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
                os.environ[variable] = work
            os.environ["XDG_RUNTIME_DIR"] = work
            parts[name](Path(work))


if __name__ == "__main__":
    main()
