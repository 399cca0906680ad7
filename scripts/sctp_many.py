#!/usr/bin/env python3
"""Many associations of SCTP with usrsctp over paths that lose packets: sctp_many.py SOURCE [COUNT]

SOURCE is usrsctp's source, as for scripts/sctp_usrsctp.py. COUNT associations, 10,000 if it is not
given, in eight groups: Fontis as client and as server, at losses of 0, 1, 5 and 10 % in each
direction of `fontis relay`, with 5 ms of delay each way and a twentieth of the packets 10 ms late.
Each association carries 1 to 1,000,000 bytes there and back, log-uniform, which are compared.
Prints a line for each group, with its seed, and ends with 1 if an association failed.
"""

import subprocess
import sys
import time
from pathlib import Path

from sctp_usrsctp import BUILD, INSIDE, ROOT, TARGET, build

PEER = BUILD / "sctp_many"
OURS = TARGET / "debug" / "examples" / "sctp_many"
FONTIS = TARGET / "debug" / "fontis"
THEIR_UDP, OUR_UDP, RELAY, PORT = "9899", "9898", "9900", "7"
LOSSES = ["0", "1%", "5%", "10%"]
AT_ONCE = "32"
DEFAULT = 10_000


def group(is_client, loss, count, seed):
    """Runs one group; whether all went well."""
    to = THEIR_UDP if is_client else OUR_UDP
    path = ["--delay", "5ms", "--reorder", "5%:10ms", "--loss", loss, "--seed", seed]
    relay = [FONTIS, "relay", "--listen", f"127.0.0.1:{RELAY}", "--to", f"127.0.0.1:{to}", *path]
    if is_client:
        server = [PEER, THEIR_UDP, "server", PORT, RELAY]
        client = [OURS, "client", f"127.0.0.1:{OUR_UDP}", f"127.0.0.1:{RELAY}", PORT]
    else:
        server = [OURS, "server", f"127.0.0.1:{OUR_UDP}", PORT]
        client = [PEER, THEIR_UDP, "client", PORT, RELAY]
    quiet = {"stdout": subprocess.DEVNULL}
    with subprocess.Popen(server, **quiet) as serving, subprocess.Popen(relay, **quiet) as relaying:
        time.sleep(1)
        run = [*client, str(count), AT_ONCE, seed]
        told = subprocess.run(run, check=False, stdout=subprocess.PIPE, text=True)
        serving.kill()
        relaying.kill()
    who = "client" if is_client else "server"
    print(f"Fontis as {who}, loss {loss}, seed {seed}: {told.stdout.strip()}", flush=True)
    return told.returncode == 0


def inside(count):
    """Runs all groups; how many of them failed."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    groups = [(is_client, loss) for loss in LOSSES for is_client in (True, False)]
    seed = int(time.time())
    each = -(-count // len(groups))
    results = [group(*one, each, str(seed + at * each)) for at, one in enumerate(groups)]
    return results.count(False)


def main():
    match sys.argv[1:]:
        case [word, count] if word == INSIDE:
            sys.exit(1 if inside(int(count)) else 0)
        case [source, *rest] if len(rest) < 2:
            build(Path(source).resolve(), "sctp_many", "sctp_many")
            subprocess.run(["cargo", "build", "--locked", "--bin", "fontis"], check=True, cwd=ROOT)
            namespace = ["unshare", "--user", "--map-root-user", "--net"]
            count = rest[0] if rest else str(DEFAULT)
            again = [*namespace, sys.executable, __file__, INSIDE, count]
            sys.exit(subprocess.run(again, check=False).returncode)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
