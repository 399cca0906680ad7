#!/usr/bin/env python3
"""DCCP with the Linux kernel at the other end: scripts/dccp_kernel.py [uml | qemu]... [--keep]

Boots Debian's last kernel with DCCP, as user-mode Linux (CCID 2 only) or in QEMU (CCIDs 2 and 3),
in a network namespace. The kernel's sockets (scripts/dccp_kernel.c) and `fontis::dccp` over IP
(crates/fontis/examples/dccp_peer.rs) exchange numbered packets of random lengths in both
directions. The kernel is server and client; either end closes; netem in the guest delays, loses,
doubles and reorders what both ends send. tshark reads every packet of it, and of a connection over
UDP. Prints a line for each connection, and ends with 1 if one has failed.

Needs root, on Debian. What is missing is fetched by apt into target/dccp-kernel. Needs the program
that `cargo build --release -p fontis --example dccp_peer` makes.
"""

import atexit
import contextlib
import gzip
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", "target")).resolve()
HOME = TARGET / "dccp-kernel"
PEER = TARGET / os.environ.get("FONTIS_PROFILE", "release") / "examples" / "dccp_peer"
SCRIPTS = Path(__file__).resolve().parent
NAMESPACE = f"fontis-dccp-{os.getpid()}"
HOST, GATE, GUEST = "10.77.0.1", "10.77.0.2", "10.77.1.2"
SERVICE = 0x46_4F_4E_54
# Modules in the order of dependence.
MODULES = ["net/core/failover", "drivers/net/net_failover", "drivers/net/ethernet/intel/e1000/e1000",
           "drivers/net/veth", "net/sched/sch_netem", "net/dccp/dccp", "net/dccp/dccp_ipv4"]  # fmt: skip
# Packets that are lost, come twice, and overtake others.
CLEAN = "delay 10ms limit 20000"
ROUGH = "delay 20ms loss 2% duplicate 0.5% reorder 98% gap 40 limit 20000"
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /run /var/run /tmp /dev
/bin/busybox --install -s /bin
export PATH=/usr/sbin:/sbin:/usr/bin:/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t tmpfs tmpfs /var/run
mount -t devtmpfs dev /dev
stty raw -echo
for module in $(cat /modules/order); do insmod /modules/$module; done
device=$(ls /sys/class/net | grep -E '^(eth|vec)' | head -n 1)
/sbin/ip link set lo up
/sbin/ip address add GATE/24 dev $device; /sbin/ip link set $device up
/sbin/ip netns add inner
/sbin/ip link add outer type veth peer name inner netns inner
/sbin/ip address add 10.77.1.1/24 dev outer; /sbin/ip link set outer up
inner() { /sbin/ip netns exec inner "$@"; }
inner /sbin/ip link set lo up
inner /sbin/ip address add GUEST/24 dev inner; inner /sbin/ip link set inner up
inner /sbin/ip route add default via 10.77.1.1
echo 1 > /proc/sys/net/ipv4/ip_forward
# A receiver sends more acknowledgements in a round trip than the kernel's first Sequence Window.
echo 1000 > /proc/sys/net/dccp/default/seq_window
# What comes while a socket is in use waits in a buffer of this size, which also counts memory.
echo 8000000 > /proc/sys/net/core/rmem_default
netem() { /sbin/tc qdisc replace dev outer root netem $*; /sbin/tc qdisc replace dev $device root netem $*; }
echo; echo @@ready
while read -r line; do eval "$line"; echo "@@done $?"; done
poweroff -f
""".replace("GATE", GATE).replace("GUEST", GUEST)


def run(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, **more)


def output(*command):
    return run(*command, stdout=subprocess.PIPE, text=True).stdout


def fetch(package):
    """Unpacks a package of Debian's, and returns where it is."""
    place = HOME / package
    if not place.is_dir():
        part = HOME / f"{package}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        # apt reads it as another user, who may not see this folder: that is a warning.
        run("apt-get", "download", "-qq", package, cwd=part, stderr=subprocess.DEVNULL)
        archive, = part.glob("*.deb")
        run("dpkg-deb", "-x", archive, part)
        archive.unlink()
        part.rename(place)
    return place


def initrd(kind, kernel):
    """Makes the first file system of the guest."""
    root = HOME / f"{kind}-root"
    shutil.rmtree(root, ignore_errors=True)
    (root / "bin").mkdir(parents=True)
    (root / "modules").mkdir()
    busybox = fetch("busybox-static") / "bin" / "busybox"
    shutil.copy(busybox, root / "bin")
    for tool in ("/sbin/ip", "/sbin/tc"):
        libraries = [word for word in output("ldd", tool).split() if word.startswith("/")]
        for file in [tool, *libraries]:
            copy = root / file.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
    order = []
    for module in MODULES:
        for file in kernel.rglob(f"kernel/{module}.ko"):
            shutil.copy(file, root / "modules")
            order.append(file.name)
    (root / "modules" / "order").write_text("\n".join(order))
    guest = root / "bin" / "dccp_kernel"
    run("cc", "-O2", "-Wall", "-Werror", "-static", "-o", guest, SCRIPTS / "dccp_kernel.c")
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    names = output("sh", "-c", f"cd {shlex.quote(str(root))} && find .")
    cpio = [busybox, "cpio", "-o", "-H", "newc"]
    archive = run(*cpio, cwd=root, input=names.encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    image = HOME / f"{kind}.initrd"
    image.write_bytes(gzip.compress(archive.stdout, 1))
    return image


def command_of(kind):
    """The command that boots the guest with its network at `tap0`."""
    if kind == "uml":
        place = fetch("user-mode-linux")
        network = "vec0:transport=tap,ifname=tap0,depth=128"
        return [place / "usr/bin/linux.uml", "mem=256M", f"initrd={initrd(kind, place)}", network,
                "con=null", "con0=fd:0,fd:1", "quiet"]  # fmt: skip
    run(SCRIPTS / "require.sh", "qemu-system-x86_64=qemu-system-x86")
    depends = output("apt-cache", "depends", "linux-image-amd64").split()
    place = fetch(next(word for word in depends if word.startswith("linux-image-")  and word != "linux-image-amd64"))
    kernel, = (place / "boot").glob("vmlinuz-*")
    return ["qemu-system-x86_64", "-m", "512", "-nographic", "-no-reboot", "-nic",
            "tap,ifname=tap0,script=no,downscript=no,model=e1000", "-kernel", kernel,
            "-initrd", initrd(kind, place), "-append", "console=ttyS0 quiet"]  # fmt: skip


class Guest:
    """A booted kernel, which runs a line of its shell at a time."""

    def __init__(self, kind):
        command = [str(part) for part in within(command_of(kind))]
        pipe = subprocess.PIPE
        (HOME / "shm").mkdir(exist_ok=True)
        environment = os.environ | {"TMPDIR": "/dev/shm"}
        # User-mode Linux is several processes, which form a group of their own.
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT,
                                        env=environment, start_new_session=True)  # fmt: skip
        atexit.register(self.kill)
        begin = time.monotonic()
        self.until("@@ready")
        print(f"{kind}: {self.run('uname -sr')[0]} booted in {time.monotonic() - begin:.1f} s", flush=True)

    def until(self, mark):
        """The lines before one that begins with `mark`."""
        lines = []
        for line in self.process.stdout:
            text = line.decode(errors="replace").strip()
            if text.startswith(mark):
                return lines
            if os.environ.get("FONTIS_VERBOSE"):
                print(f"    guest: {text}", flush=True)
            lines.append(text)
        raise RuntimeError("the guest has ended: " + "\n".join(lines[-20:]))

    def begin(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def run(self, line):
        self.begin(line)
        return self.until("@@done")

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self):
        self.begin("poweroff -f")
        self.process.wait(timeout=30)


def within(command):
    return ["ip", "netns", "exec", NAMESPACE, *command]


def build_network():
    run("ip", "netns", "add", NAMESPACE)
    atexit.register(subprocess.run, ["ip", "netns", "delete", NAMESPACE])
    for command in (
        "link set lo up",
        "tuntap add dev tap0 mode tap",
        f"address add {HOST}/24 dev tap0",
        "link set tap0 up",
        f"route add 10.77.1.0/24 via {GATE}",
    ):
        run("ip", "-n", NAMESPACE, *command.split())


def ours(**keys):
    keys = {"service": SERVICE, "count": 0, "size": 1400, "closes": "no"} | keys
    command = within([PEER, *(f"{name}={value}" for name, value in keys.items())])
    return subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)


def last_line(text):
    lines = [line for line in text if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"end": "it said nothing"}


def connect(guest, serves, ccid, count, closer, size=1400, service=SERVICE):
    """A connection. Returns what the two ends say: the kernel's, ours."""
    closes = {True: "yes", False: "no"}
    theirs = f"{GUEST if serves else HOST} 5001 {service} {ccid} {count} {size}"
    theirs = f"inner dccp_kernel {'server' if serves else 'client'} {theirs} {closes[closer == 'kernel']}"
    keys = {"over": "plain", "local": HOST, "ccid": ccid, "count": count, "size": size,
            "closes": closes[closer == "fontis"]}  # fmt: skip
    if serves:
        guest.begin(theirs)
        guest.until("listening")
        own = ours(role="client", peer=GUEST, port=5002, peer_port=5001, **keys)
    else:
        own = ours(role="server", port=5001, **keys)
        assert own.stdout.readline() == "listening\n"
        guest.begin(theirs)
    here = last_line(own.communicate(timeout=400)[0].splitlines())
    there = last_line(guest.until("@@done"))
    return there, here


def judge(there, here, count, is_rough):
    """What is wrong with a connection."""
    faults = []
    for name, own, other in (("the kernel", there, here), ("fontis", here, there)):
        if "sent" not in own:
            faults.append(f"{name}: {own['end']}")
            continue
        if own["wrong"]:
            faults.append(f"{name} got {own['wrong']} packets that nobody sent")
        if own["sent"] != count:
            faults.append(f"{name} sent {own['sent']} packets")
        least = 0.9 * count if is_rough else count
        if own["packets"] < least or not is_rough and own["packets"] != count:
            faults.append(f"{name} got {own['packets']} packets of {count}")
    if here["end"] != "Closed":
        faults.append(f"fontis ended with {here['end']}")
    if there["end"] not in ("closed by the peer", "closed here"):
        faults.append(f"the kernel ended with {there['end']}")
    return faults


def exchange(kind, guest, ccid, count):
    """Every role, closer and path. Returns the number of faults."""
    failures = 0
    for path in (CLEAN, ROUGH):
        guest.run(f"netem {path}")
        for serves in (True, False):
            for closer in ("kernel", "fontis"):
                there, here = connect(guest, serves, ccid, count, closer)
                faults = judge(there, here, count, path == ROUGH)
                said = (f"{kind}, CCID {ccid}, kernel is {'server' if serves else 'client'}, {closer} closes, "
                        f"{'rough' if path == ROUGH else 'clean'} path")  # fmt: skip
                print(f"{said}: {'; '.join(faults) or 'good'}\n    kernel {there}\n    fontis {here}", flush=True)
                failures += bool(faults)
    return failures


def refuse(kind, guest, ccid):
    """The wrong service in both roles. Returns the number of faults."""
    failures = 0
    guest.run(f"netem {CLEAN}")
    for serves in (True, False):
        there = f"{GUEST if serves else HOST} 5003 7 {ccid} 0 1400 no"
        keys = {"over": "plain", "local": HOST, "ccid": ccid}
        if serves:
            guest.begin(f"inner timeout 5 dccp_kernel server {there}")
            guest.until("listening")
            own = ours(role="client", peer=GUEST, port=5004, peer_port=5003, **keys)
            said = last_line(own.communicate(timeout=60)[0].splitlines())["end"]
            guest.until("@@done")
            is_right = "BadServiceCode" in said
        else:
            own = ours(role="server", port=5003, **keys)
            own.stdout.readline()
            said = last_line(guest.run(f"inner dccp_kernel client {there}"))["end"]
            own.kill()
            own.wait()
            is_right = "refused" in said or "reset" in said or "invalid" in said.lower()
        role = "server" if serves else "client"
        print(f"{kind}, another service, kernel is {role}: {'good' if is_right else 'NOT REFUSED'}: {said}", flush=True)
        failures += not is_right
    return failures


def over_udp():
    """A connection of ours over UDP, for tshark. Returns the number of faults."""
    keys = {"over": "udp", "ccid": 3, "count": 300}
    server = ours(role="server", local="127.0.0.1:6511", port=5001, **keys)
    server.stdout.readline()
    client = ours(role="client", local="127.0.0.1:0", peer="127.0.0.1:6511", port=5002, peer_port=5001, closes="yes", **keys)
    ends = [last_line(end.communicate(timeout=60)[0].splitlines()) for end in (client, server)]
    is_good = all(end["end"] == "Closed" and end["packets"] == 300 for end in ends)
    print(f"over UDP: {'good' if is_good else ends}", flush=True)
    return int(not is_good)


class Capture:
    """Packets of an interface, in a file."""

    def __init__(self, interface, keeps):
        self.file, self.keeps = HOME / f"{interface}.pcapng", keeps
        self.file.unlink(missing_ok=True)
        command = within(["dumpcap", "-q", "-i", interface, "-f", "ip proto 33 or udp port 6511", "-B", "64", "-w", str(self.file)])
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while not self.file.exists():
            time.sleep(0.05)

    def read(self):
        """Lets tshark read all of it. Returns the number of faults."""
        time.sleep(1)
        self.process.terminate()
        self.process.wait()
        script = HOME / "udp.lua"
        script.write_text('local dccp = DissectorTable.get("ip.proto"):get_dissector(33)\n'
                          'DissectorTable.get("udp.port"):add(6511, dccp)\n')  # fmt: skip
        fields = ["frame.number", "frame.protocols", "dccp.type", "dccp.checksum.status", "udp.checksum.status",
                  "dccp.option.len.bad", "dccp.option_reserved", "dccp.option_unknown", "_ws.expert.message",
                  "_ws.malformed"]  # fmt: skip
        options = [word for field in fields for word in ("-e", field)]
        # The checksum of DCCP is not used over UDP.
        checks = "TRUE" if "tap" in self.file.name else "FALSE"
        lines = output("tshark", "-X", f"lua_script:{script}", "-o", f"dccp.check_checksum:{checks}",
                       "-o", "ip.check_checksum:TRUE", "-r", self.file, "-T", "fields", *options)  # fmt: skip
        faults, types = [], {}
        for line in lines.splitlines():
            number, protocols, kind, checksum, _, *rest = line.split("\t")
            types[kind] = types.get(kind, 0) + 1
            is_bad = checks == "TRUE" and checksum != "1" or "dccp" not in protocols or any(rest)
            if is_bad:
                faults.append(f"    frame {number}: {protocols}, type {kind}, checksum {checksum}, {rest}")
        print(f"tshark: {sum(types.values())} packets of types {dict(sorted(types.items()))}, {len(faults)} with a fault")
        print("\n".join(faults[:20]), flush=True)
        if not self.keeps:
            self.file.unlink()
        return len(faults) + (not types)


def stop(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def main():
    arguments = [word for word in sys.argv[1:] if not word.startswith("-")]
    keeps = "--keep" in sys.argv
    count = int(os.environ.get("FONTIS_RUNS", "5000"))
    if os.geteuid() != 0:
        sys.exit("network namespaces need root")
    run(SCRIPTS / "require.sh", "tshark=tshark", "dumpcap=wireshark-common", "ip=iproute2", "cc=build-essential")
    HOME.mkdir(parents=True, exist_ok=True)
    # What is left is removed at the end, also if that comes by a signal.
    signal.signal(signal.SIGTERM, stop)
    build_network()
    capture = Capture("lo", keeps)
    failures = over_udp()
    failures += bool(capture.read())
    for kind in arguments or ["uml", "qemu"]:
        capture = Capture("tap0", keeps)
        guest = Guest(kind)
        for ccid in (2, 3) if kind == "qemu" else (2,):
            failures += refuse(kind, guest, ccid)
            failures += exchange(kind, guest, ccid, count)
        print("\n".join(guest.run("dmesg | grep -iE 'dccp|ccid' | tail -n 5")))
        guest.end()
        failures += bool(capture.read())
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
