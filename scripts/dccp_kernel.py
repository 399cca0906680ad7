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

import json
import os
import subprocess
import sys
import time

from guest_kernel import GUEST, HOST, SCRIPTS, TARGET, Guest, Setup, begin, output, run, within

HOME = TARGET / "dccp-kernel"
PEER = TARGET / os.environ.get("FONTIS_PROFILE", "release") / "examples" / "dccp_peer"
SERVICE = 0x46_4F_4E_54
# Modules in the order of dependence.
MODULES = ["net/core/failover", "drivers/net/net_failover", "drivers/net/ethernet/intel/e1000/e1000",
           "drivers/net/veth", "net/sched/sch_netem", "net/dccp/dccp", "net/dccp/dccp_ipv4"]  # fmt: skip
# Packets that are lost, come twice, and overtake others.
CLEAN = "delay 10ms limit 20000"
ROUGH = "delay 20ms loss 2% duplicate 0.5% reorder 98% gap 40 limit 20000"
LINES = """
# A receiver sends more acknowledgements in a round trip than the kernel's first Sequence Window.
echo 1000 > /proc/sys/net/dccp/default/seq_window
# What comes while a socket is in use waits in a buffer of this size, which also counts memory.
echo 8000000 > /proc/sys/net/core/rmem_default
"""
SETUP = Setup(HOME, MODULES, LINES, SCRIPTS / "dccp_kernel.c")


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


def main():
    arguments = [word for word in sys.argv[1:] if not word.startswith("-")]
    keeps = "--keep" in sys.argv
    count = int(os.environ.get("FONTIS_RUNS", "5000"))
    run(SCRIPTS / "require.sh", "tshark=tshark", "dumpcap=wireshark-common", "ip=iproute2", "cc=build-essential")
    begin(HOME)
    capture = Capture("lo", keeps)
    failures = over_udp()
    failures += bool(capture.read())
    for kind in arguments or ["uml", "qemu"]:
        capture = Capture("tap0", keeps)
        guest = Guest(SETUP, kind)
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
