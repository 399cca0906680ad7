"""Prints the result of a transfer of the demo.

    scripts/demo_report.py FOLDER SIZE RATE_MBPS DELAY_MS HASH

FOLDER holds get.out and serve.out, the events of both ends; HASH is what an independent tool makes
of what arrived.
"""

import json
import sys
from pathlib import Path

# A packet of 1500 bytes without its IPv4 and UDP headers.
PAYLOAD_SHARE = 1472 / 1500


def bound(size: int, rate_bps: float, rtt: float) -> float:
    """The fewest seconds a transfer can take: two round trips, and the object at line rate."""
    return 2 * rtt + size * 8 / (rate_bps * PAYLOAD_SHARE)


def last_event(path: Path, kind: str) -> dict:
    """The last event of a kind in a file of one JSON object a line."""
    found = None
    for text in path.read_text().splitlines():
        try:
            event = json.loads(text)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == kind:
            found = event
    if found is None:
        sys.exit(f"demo: {path.name} has no event {kind!r}")
    return found


def main() -> None:
    """Prints the figures; exits with 1 if the hashes differ."""
    folder, size, rate_mbps, delay_ms, expected = Path(sys.argv[1]), *sys.argv[2:]
    done = last_event(folder / "get.out", "done")
    sent = last_event(folder / "serve.out", "sent")
    seconds = done["seconds"]
    least = bound(int(size), float(rate_mbps) * 1e6, 2 * float(delay_ms) / 1e3)
    print(f"goodput            {int(size) * 8 / seconds / 1e6:.2f} Mbit/s: {seconds:.3f} s for {size} bytes")
    print(f"share of the bound {100 * least / seconds:.1f} %: {least:.3f} s at least")
    ratio = sent["symbols"] / sent["symbols_needed"]
    print(f"symbols            {sent['symbols']} sent, {sent['symbols_needed']} needed without loss: {ratio:.4f}")
    print(f"BLAKE3             {done['hash']}")
    if done["hash"] != expected:
        sys.exit(f"demo: the hash of what arrived is {expected}")
    print("verified           the file that arrived is the file that was sent, to the last byte")


if __name__ == "__main__":
    main()
