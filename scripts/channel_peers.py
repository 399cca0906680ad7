#!/usr/bin/env python3
"""Data channels with aiortc, which others wrote: scripts/channel_peers.py [COUNT [SEED]]

COUNT connections (100), in turn offered by each side, over `fontis relay` with up to 10 % of loss
and packets that overtake each other. Each exchanges messages of 1 B to 1 MB in all (log-uniform),
which the other side gives back. Prints each, and ends with 1 if one has failed. Needs the package
aiortc (pip install aiortc) and the programs that `cargo build --release -p fontis-cli` and
`cargo build --release -p fontis-rtc --example echo` make.
"""

import asyncio
import json
import os
import random
import socket
import sys
import time
from collections import Counter
from pathlib import Path

from aiortc import RTCPeerConnection, RTCSessionDescription

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release"
# Seconds until a connection counts as one that hangs.
PATIENCE = 120


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def without_candidates(sdp):
    """The description, so that the only way is the relay's."""
    kept = [line for line in sdp.splitlines() if not line.startswith("a=candidate:")]
    return "".join(f"{line}\r\n" for line in kept)


async def start(*command):
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)


async def answer(peer, offer):
    await peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
    await peer.setLocalDescription(await peer.createAnswer())


def say(program, text):
    program.stdin.write(f"{json.dumps(without_candidates(text))}\n".encode())


async def hear(program):
    return json.loads(await program.stdout.readline())


async def they_offer(peer, program, sizes, draw):
    """aiortc opens the channel and compares."""
    channel = peer.createDataChannel("compared", ordered=draw.random() < 0.7)
    opened, back = asyncio.Event(), asyncio.Queue()
    channel.on("open", opened.set)
    channel.on("message", back.put_nowait)
    await peer.setLocalDescription(await peer.createOffer())
    say(program, peer.localDescription.sdp)
    await peer.setRemoteDescription(RTCSessionDescription(await hear(program), "answer"))
    await opened.wait()
    sent = ["λ" * (size // 2) if draw.random() < 0.3 else draw.randbytes(size) for size in sizes]
    for message in sent:
        channel.send(message)
    came = [await back.get() for _ in sent]
    # Without an order they may overtake each other.
    is_same = came == sent if channel.ordered else Counter(came) == Counter(sent)
    if not is_same:
        raise ValueError("messages came back changed")


async def we_offer(peer, program):
    """The program opens the channel and compares."""

    @peer.on("datachannel")
    def echo(channel):
        channel.on("message", channel.send)

    await answer(peer, await hear(program))
    say(program, peer.localDescription.sdp)
    code = await program.wait()
    if code != 0:
        raise ValueError((await program.stderr.read()).decode().strip())


async def connect(number, seed):
    draw = random.Random(f"{seed}/{number}")
    total = int(10 ** draw.uniform(0, 6))
    # A message is at most as long as aiortc takes.
    size = min(total, int(10 ** draw.uniform(0, 4.8)))
    count = max(1, min(total // size, 200))
    loss = draw.uniform(0, 0.1)
    offers = number % 2 == 0
    port = free_port()
    relay = await start(
        TARGET / "fontis", "relay", "--to", f"127.0.0.1:{port}", "--seed", str(number),
        "--loss", f"{100 * loss:.2f}%", "--loss-up", f"{100 * loss:.2f}%",
        "--delay", f"{draw.uniform(0, 20):.1f}ms",
        "--reorder", f"{draw.uniform(0, 5):.2f}%:{draw.uniform(0, 5):.1f}ms", "--json",
    )
    public = json.loads(await relay.stdout.readline())["listening"]
    program = [TARGET / "examples" / "echo", "--address", f"127.0.0.1:{port}", "--public", public]
    if offers:
        program += ["--offer", str(count), str(size), str(number)]
    program = await start(*program)
    peer, begin = RTCPeerConnection(), time.monotonic()
    try:
        talk = we_offer(peer, program) if offers else they_offer(peer, program, [size] * count, draw)
        await asyncio.wait_for(talk, PATIENCE)
        failure = None
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    took = time.monotonic() - begin
    await peer.close()
    for child in (program, relay):
        if child.returncode is None:
            child.kill()
        await child.wait()
    said = f"{'we' if offers else 'they'} offer, {count} messages of up to {size} B, {loss:.1%} loss"
    print(f"{number}: {said}: {failure or f'{took:.1f} s'}", flush=True)
    return failure is None, count * size


async def main(count=100, seed=None):
    seed = seed or random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    done = [await connect(number, seed) for number in range(count)]
    good = sum(is_good for is_good, _ in done)
    print(f"{good} of {count} connections exchanged {sum(size for _, size in done)} bytes each way")
    return 0 if good == count else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*map(int, sys.argv[1:]))))
