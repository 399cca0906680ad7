#!/usr/bin/env python3
"""SCTP with the Linux kernel at the other end, over UDP: scripts/sctp_kernel.py [COUNT]

Boots Debian's kernel as user-mode Linux in a network namespace. The kernel's sockets
(scripts/sctp_kernel.c) and `fontis::sctp` (crates/fontis/examples/sctp_many.rs) have COUNT
associations, 400 if it is not given, a quarter with each as server over each of two paths, of
which one loses, doubles and reorders packets. Each carries 1 to 1,000,000 bytes there and back,
log-uniform, which are compared. Prints a line for each quarter, with its seed, and ends with 1 if
an association failed.

Needs root, on Debian. What is missing is fetched by apt into target/sctp-kernel. Needs the program
that `cargo build --release -p fontis --example sctp_many` makes.
"""

import os
import subprocess
import sys
import time

from guest_kernel import GUEST, HOST, SCRIPTS, TARGET, Guest, Setup, begin, run, within

PEER = TARGET / os.environ.get("FONTIS_PROFILE", "release") / "examples" / "sctp_many"
MODULES = ["crypto/hmac", "net/ipv4/udp_tunnel", "lib/crc-ccitt", "net/ipv6/ipv6", "net/ipv6/ip6_udp_tunnel",
           "drivers/net/veth", "net/sched/sch_netem", "net/sctp/sctp"]  # fmt: skip
# The ports in UDP of the kernel and of Fontis, and the port of SCTP.
THEIR_UDP, OUR_UDP, PORT = 9899, 9898, 7
LINES = f"""
# SCTP of the kernel leaves segments to the device, which cannot cut those in UDP.
for device in outer $device; do /sbin/ip link set $device gso_max_segs 1 gso_max_size 1500; done
inner /sbin/ip link set inner gso_max_segs 1 gso_max_size 1500
# There is no hash in this kernel for cookies.
inner sysctl -w net.sctp.cookie_hmac_alg=none
inner sysctl -w net.sctp.udp_port={THEIR_UDP}
inner sysctl -w net.sctp.encap_port={OUR_UDP}
"""
HOME = TARGET / "sctp-kernel"
SETUP = Setup(HOME, MODULES, LINES, SCRIPTS / "sctp_kernel.c")
PATHS = {
    "clean": "delay 5ms limit 20000",
    "rough": "delay 10ms loss 2% duplicate 0.5% reorder 98% gap 40 limit 20000",
}
AT_ONCE = 16


def ours(*words):
    """Our end, with what it prints."""
    command = within([str(PEER), *(str(word) for word in words)])
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kernel_serves(count, seed):
    """Whether all went well, and what the client said."""
    client = ours("client", f"{HOST}:{OUR_UDP}", f"{GUEST}:{THEIR_UDP}", PORT, count, AT_ONCE, seed)
    told = client.communicate(timeout=900)[0]
    return client.returncode == 0, told.strip()


def kernel_asks(guest, count, seed):
    """The same with the kernel as client."""
    server = ours("server", f"{HOST}:{OUR_UDP}", PORT)
    server.stdout.readline()
    told = guest.run(f"inner sctp_kernel client {HOST} {PORT} {count} {AT_ONCE} {seed}")
    server.kill()
    server.wait()
    return f"{count} associations, 0 failed" in told, " ".join(told)


def main():
    match sys.argv[1:]:
        case []:
            count = 400
        case [text] if text.isdigit():
            count = int(text)
        case _:
            sys.exit(__doc__)
    run(SCRIPTS / "require.sh", "ip=iproute2", "cc=build-essential")
    begin(HOME)
    guest = Guest(SETUP, "uml")
    if "listening" not in guest.run(f"inner sctp_kernel server {GUEST} {PORT} & sleep 1"):
        sys.exit("the kernel's server does not listen")
    each, seed, failures = -(-count // (2 * len(PATHS))), int(time.time()), 0
    for name, path in PATHS.items():
        guest.run(f"netem {path}")
        for who, exchange in (("kernel serves", kernel_serves), ("kernel asks", lambda *a: kernel_asks(guest, *a))):
            is_good, told = exchange(each, seed)
            print(f"{who}, {name} path, seed {seed}: {told}", flush=True)
            failures += not is_good
            seed += each
    guest.end()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
