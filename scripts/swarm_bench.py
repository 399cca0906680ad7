#!/usr/bin/env python3
"""Fetches one file into many nodes at once, by `fontis get --share` and by libtorrent.

Each node is a network namespace on one bridge, with a token bucket of its rate in each direction
and a queue of 50 ms. It needs root. Prints, for each tool, the time of the last node and the bytes
that the origin sent, both beside the least that is possible, and the processor's time of a node.

    scripts/swarm_bench.py [TOOL...]    fontis, libtorrent [both]

    FONTIS         the command [target/release/fontis]
    BENCH_NODES    nodes beside the origin [16]
    BENCH_MBIT     the rate of each link in Mbit/s [50]
    BENCH_BLOCKS   the size of the file in MiB, which are the blocks and the pieces [256]
    BENCH_RUNS     rounds; each fetches once with each tool [1]
    BENCH_WORK     the folder to work in [/dev/shm]

libtorrent comes from the registry of Python packages. Its nodes know all others from the beginning,
those of Fontis know the origin alone.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
FONTIS = str(Path(os.environ.get("FONTIS") or TARGET / "release/fontis").resolve())
NODES = int(os.environ.get("BENCH_NODES") or 16)
MBIT = float(os.environ.get("BENCH_MBIT") or 50)
BLOCKS = int(os.environ.get("BENCH_BLOCKS") or 256)
RUNS = int(os.environ.get("BENCH_RUNS") or 1)
WORK = os.environ.get("BENCH_WORK") or "/dev/shm"
LIBTORRENT = "2.1.1"
PYTHON = TARGET / "libtorrent/bin/python"
ORIGIN = 250
# A node of libtorrent: seed or leech, the torrent's file, the folder, its address and the others'.
TORRENT = r"""
import sys, time
import libtorrent as lt
role, torrent, folder, own, *others = sys.argv[1:]
session = lt.session({
    "listen_interfaces": f"{own}:6881", "enable_dht": False, "enable_lsd": False,
    "enable_upnp": False, "enable_natpmp": False, "allow_multiple_connections_per_ip": True,
    "alert_mask": 0, "connection_speed": 100, "unchoke_slots_limit": 8,
})
what = lt.add_torrent_params()
what.ti = lt.torrent_info(torrent)
what.save_path = folder
what.flags &= ~(lt.torrent_flags.paused | lt.torrent_flags.auto_managed)
if role == "seed":
    what.flags |= lt.torrent_flags.seed_mode
handle = session.add_torrent(what)
print("ready", flush=True)
for other in others:
    handle.connect_peer((other, 6881))
while role == "seed" or not handle.status().is_seeding:
    time.sleep(0.02)
print("done", flush=True)
while True:
    time.sleep(1)
"""


def run(*command: str) -> str:
    """Runs a command, and gives what it prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Nodes:
    """Namespaces on a bridge: the origin's and the others'."""

    def __init__(self) -> None:
        run("ip", "link", "add", "swarm", "type", "bridge", "mcast_snooping", "0")
        run("ip", "link", "set", "swarm", "up")
        self.holders = {}
        for number in [ORIGIN, *range(1, NODES + 1)]:
            self.join(number)

    def join(self, number: int) -> None:
        """Makes a namespace with its link."""
        holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        self.holders[number] = holder
        inside, own = Path(f"/proc/{holder.pid}/ns/net"), Path("/proc/self/ns/net").readlink()
        while inside.readlink() == own:
            time.sleep(0.01)
        end = ["peer", "name", "eth0", "netns", str(holder.pid)]
        run("ip", "link", "add", f"node{number}", "type", "veth", *end)
        run("ip", "link", "set", f"node{number}", "master", "swarm", "up")
        run(*self.at(number), "ip", "address", "add", f"10.8.0.{number}/24", "dev", "eth0")
        for link in ["lo", "eth0"]:
            run(*self.at(number), "ip", "link", "set", link, "up")
        bucket = ["root", "tbf", "rate", f"{MBIT}mbit", "burst", "64kb", "latency", "50ms"]
        run(*self.at(number), "tc", "qdisc", "add", "dev", "eth0", *bucket)
        run("tc", "qdisc", "add", "dev", f"node{number}", *bucket)

    def at(self, number: int) -> list[str]:
        """What runs a command in a node."""
        return ["nsenter", "-t", str(self.holders[number].pid), "-n"]

    def sent(self) -> int:
        """Bytes that the origin has sent."""
        told = run(*self.at(ORIGIN), "ip", "-j", "-s", "link", "show", "eth0")
        return json.loads(told)[0]["stats64"]["tx"]["bytes"]

    def end(self) -> None:
        """Takes all away."""
        for holder in self.holders.values():
            holder.kill()
        run("ip", "link", "delete", "swarm")


def cpu(process: subprocess.Popen) -> float:
    """Seconds of a processor that a running process has taken."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def await_all(gets: dict[int, subprocess.Popen], word: str) -> None:
    """Waits until all nodes have said that they have the file. Who is not read stands still."""

    def is_done(get: subprocess.Popen) -> bool:
        return any(word in line for line in get.stdout)

    with ThreadPoolExecutor(len(gets)) as pool:
        for number, done in zip(gets, pool.map(is_done, gets.values()), strict=True):
            if not done:
                sys.exit(f"swarm_bench: node {number} ended with {gets[number].wait()}, without the file")


def fontis(nodes: Nodes, work: Path) -> tuple[float, int, float]:
    """Seconds until the last node has the file, bytes that the origin sent, seconds of a processor
    for each node."""
    names = ["--json", "--public", "--listen", f"10.8.0.{ORIGIN}:4435"]
    command = [*nodes.at(ORIGIN), FONTIS, "cast", str(work / "file"), "--swarm", *names]
    origin = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    url = next(told for told in map(json.loads, origin.stdout) if "urls" in told)["urls"][0]
    before, begun = nodes.sent(), time.monotonic()
    gets = {}
    for number in range(1, NODES + 1):
        command = [FONTIS, "get", "--share", url, str(work / f"got{number}"), "--json", "--share-for", "1h"]
        gets[number] = subprocess.Popen(
            [*nodes.at(number), *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    await_all(gets, '"event":"done"')
    took, sent = time.monotonic() - begun, nodes.sent() - before
    spent = sum(map(cpu, gets.values())) / NODES
    for process in [*gets.values(), origin]:
        process.send_signal(signal.SIGINT)
        process.wait()
    return took, sent, spent


def libtorrent(nodes: Nodes, work: Path) -> tuple[float, int, float]:
    """The same."""
    python = str(PYTHON)
    torrent = work / "file.torrent"
    make = (
        "import sys, libtorrent as lt\n"
        "made = lt.create_torrent(lt.list_files(sys.argv[1]), 1 << 20)\n"
        "lt.set_piece_hashes(made, sys.argv[2])\n"
        "open(sys.argv[3], 'wb').write(lt.bencode(made.generate()))\n"
    )
    run(python, "-c", make, str(work / "file"), str(work), str(torrent))

    def node(role: str, folder: Path, number: int, others: list[str]) -> subprocess.Popen:
        command = [python, "-c", TORRENT, role, str(torrent), str(folder), f"10.8.0.{number}", *others]
        process = subprocess.Popen([*nodes.at(number), *command], stdout=subprocess.PIPE, text=True)
        return process

    origin = node("seed", work, ORIGIN, [])
    origin.stdout.readline()
    before, begun = nodes.sent(), time.monotonic()
    gets = {}
    for number in range(1, NODES + 1):
        folder = work / f"folder{number}"
        folder.mkdir()
        known = [f"10.8.0.{other}" for other in [ORIGIN, *range(1, number)]]
        gets[number] = node("leech", folder, number, known)
    await_all(gets, "done\n")
    took, sent = time.monotonic() - begun, nodes.sent() - before
    spent = sum(map(cpu, gets.values())) / NODES
    for process in [*gets.values(), origin]:
        process.kill()
        process.wait()
    return took, sent, spent


TOOLS = {"fontis": fontis, "libtorrent": libtorrent}


def main() -> None:
    """Runs the rounds in a namespace of its own."""
    tools = sys.argv[1:] or list(TOOLS)
    if unknown := [tool for tool in tools if tool not in TOOLS]:
        sys.exit(f"swarm_bench: no tool {unknown[0]}; there are {', '.join(TOOLS)}")
    if "SWARM_BENCH_INSIDE" not in os.environ:
        os.environ["SWARM_BENCH_INSIDE"] = "1"
        if "libtorrent" in tools:
            if not PYTHON.exists():
                run(sys.executable, "-m", "venv", str(PYTHON.parent.parent))
            run(str(PYTHON), "-m", "pip", "install", "--quiet", f"libtorrent=={LIBTORRENT}")
        os.execvp("unshare", ["unshare", "-n", sys.executable, __file__, *tools])
    size = BLOCKS << 20
    rate = MBIT * 1e6 / 8
    least = max(size / rate, NODES * size / ((NODES + 1) * rate))
    print(f"{NODES} nodes of {MBIT:g} Mbit/s, {BLOCKS} MiB: at least {least:.1f} s")
    print(f"{'tool':<12} {'last node ÷ least':>18} {'origin sent ÷ size':>19} {'CPU of a node':>14}")
    for _ in range(RUNS):
        for tool in tools:
            work = Path(tempfile.mkdtemp(dir=WORK))
            nodes = Nodes()
            try:
                with (work / "file").open("wb") as file:
                    for _ in range(BLOCKS):
                        file.write(os.urandom(1 << 20))
                took, sent, spent = TOOLS[tool](nodes, work)
            finally:
                nodes.end()
                shutil.rmtree(work)
            print(f"{tool:<12} {took / least:18.2f} {sent / size:19.2f} {spent / took:13.1%}", flush=True)


if __name__ == "__main__":
    main()
