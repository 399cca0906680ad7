#!/usr/bin/env python3
"""SCTP with authentication and changing addresses beside usrsctp: scripts/sctp_usrsctp.py SOURCE

SOURCE is usrsctp's source, as in the crate usrsctp-sys 0.2.0; cmake and a C compiler build it in
target/usrsctp. Each case runs scripts/sctp_usrsctp.c and crates/fontis/examples/sctp_addresses.rs
in a network namespace of their own (unshare of util-linux), in turn as server and client: messages
go there and back, chunks of either end's choice are authenticated, with a shared key or without,
and one of the ends adds an address, asks for it as the primary one and removes one. In the last two
cases Fontis has two addresses, of which the first dies in the midst of a hundred messages there and
back. Prints each case, and ends with 1 if one has failed.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BUILD = TARGET / "usrsctp"
PEER = BUILD / "sctp_usrsctp"
OURS = TARGET / "debug" / "examples" / "sctp_addresses"
INSIDE = "--inside"
# Ports in UDP of usrsctp and of Fontis, and the port of SCTP.
THEIR_UDP, OUR_UDP, PORT = "9899", "9898", "7"
# Seconds until a case counts as one that hangs.
PATIENCE = 60
# Seconds until a path dies.
DELAY = 2
# What is sent there, or from there, goes nowhere.
DEAD = ["blackhole", "127.0.0.2/32", "table", "local"]
ALL = "0,3,4,5,6,7,8,9,10,11,64,130,192"
# Types of chunks that usrsctp and Fontis want authenticated, and the shared key.
AGREEMENTS = [("0", "0", "-"), ("", "0", "-"), ("0", "", "-"), (ALL, ALL, "-"), ("0,10", "3,10", "a key")]


def build(source, name, example):
    """Builds usrsctp, scripts/NAME.c over it, and an example of ours."""
    options = ["-Dsctp_build_programs=0", "-Dsctp_werror=0", "-DCMAKE_POLICY_VERSION_MINIMUM=3.5"]
    run = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run(["cmake", "-S", source, "-B", BUILD, *options], **run)
    subprocess.run(["cmake", "--build", BUILD, "--target", "usrsctp"], **run)
    library = BUILD / "usrsctplib"
    paths = ["-I", source / "usrsctplib", "-L", library, f"-Wl,-rpath,{library}"]
    code, program = ROOT / "scripts" / f"{name}.c", BUILD / name
    subprocess.run(["cc", "-O1", code, "-o", program, *paths, "-lusrsctp", "-lpthread", "-lm"], **run)
    cargo = ["cargo", "build", "--locked", "-p", "fontis", "--example", example]
    subprocess.run(cargo, check=True, cwd=ROOT)


def pair(server, client, dies):
    """What a server and its client print, once both have ended well; Fontis's first address dies in
    their midst if `dies` says so. Nothing if both were done before."""
    text = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    if dies:
        text["env"] = {**os.environ, "PATH_FAILURES": "1"}
    with subprocess.Popen(server, **text) as serving:
        time.sleep(0.5)
        with subprocess.Popen(client, **text) as asking:
            try:
                said, told = outcome(serving, asking, dies)
            except subprocess.TimeoutExpired:
                serving.kill()
                asking.kill()
                return None
    if asking.returncode or serving.returncode or (dies and said is None):
        print(said, told)
        return None
    return said, told


def outcome(serving, asking, dies):
    said = None
    if dies:
        time.sleep(DELAY)
        if asking.poll() is not None:
            return said, asking.stdout.read()
        subprocess.run(["ip", "route", "add", *DEAD], check=True)
    try:
        said = asking.communicate(timeout=PATIENCE)[0]
        return said, serving.communicate(timeout=PATIENCE)[0]
    finally:
        if dies:
            subprocess.run(["ip", "route", "del", *DEAD], check=True)


def cases():
    """The cases: a name, both commands, what the server's end must be told, and whether Fontis's
    first address dies."""
    for theirs, ours, key in AGREEMENTS:
        name = f"usrsctp wants {theirs or 'nothing'}, Fontis {ours or 'nothing'}, key {key}"
        own = [] if key == "-" else [key]
        server = [PEER, THEIR_UDP, "server", PORT, OUR_UDP, theirs, key]
        client = [OURS, f"127.0.0.2:{OUR_UDP}", f"127.0.0.3:{OUR_UDP}", f"127.0.0.1:{THEIR_UDP}", PORT, "50", ours]
        moves = [f"127.0.0.3 {what}" for what in ("added", "confirmed", "primary")]
        yield f"{name}: Fontis moves", server, client + own, [*moves, "127.0.0.2 removed"], False
        server = [OURS, f"127.0.0.1:{OUR_UDP}", "serve", PORT, ours]
        client = [PEER, THEIR_UDP, "client", PORT, OUR_UDP, theirs, key, "200"]
        yield f"{name}: Fontis serves", server + own, client, [], False
    server = [PEER, THEIR_UDP, "server", PORT, OUR_UDP, "0", "-", "127.0.0.9"]
    client = [OURS, f"127.0.0.2:{OUR_UDP}", "-", f"127.0.0.1:{THEIR_UDP}", PORT, "200", "0"]
    yield "usrsctp adds, prefers and removes an address", server, client, [], False
    both = f"127.0.0.2:{OUR_UDP},127.0.0.3:{OUR_UDP}"
    server = [PEER, THEIR_UDP, "server", PORT, OUR_UDP, "0", "-"]
    client = [OURS, both, "-", f"127.0.0.1:{THEIR_UDP}", PORT, "100", "0"]
    yield "Fontis's first address dies, usrsctp serves", server, client, [], True
    server = [OURS, both, "serve", PORT, "0"]
    client = [PEER, THEIR_UDP, "client", PORT, OUR_UDP, "0", "-", "100", "127.0.0.2"]
    yield "Fontis's first address dies, Fontis serves", server, client, [], True


def is_moved(said):
    """Whether Fontis has left the first address, and the other one has carried data."""
    lines = [line for text in said for line in text.splitlines() if line.startswith("[127.")]
    left = [line for line in lines if "127.0.0.2, " in line and " Active " not in line]
    used = [line for line in lines if "127.0.0.3, " in line and int(line.split()[-2]) > 0]
    return bool(left and used)


def inside():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # An address that usrsctp can add: it takes only those that an interface has.
    subprocess.run(["ip", "address", "add", "127.0.0.9/8", "dev", "lo"], check=True)
    failures = 0
    for name, server, client, wanted, dies in cases():
        said = pair(server, client, dies)
        is_good = said is not None and all(line in said[1].splitlines() for line in wanted)
        if said is not None and "127.0.0.9" in server:
            is_good = "[127.0.0.2, 127.0.0.9] Removed" in said[0]
        if dies:
            is_good = is_good and is_moved(said)
        print(f"{'ok' if is_good else 'FAILED'}: {name}", flush=True)
        if not is_good:
            print(said)
        failures += not is_good
    return failures


def main():
    match sys.argv[1:]:
        case [word] if word == INSIDE:
            sys.exit(1 if inside() else 0)
        case [source]:
            build(Path(source).resolve(), "sctp_usrsctp", "sctp_addresses")
            again = ["unshare", "--user", "--map-root-user", "--net", sys.executable, __file__, INSIDE]
            sys.exit(subprocess.run(again, check=False).returncode)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
