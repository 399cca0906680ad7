"""Shows the events of `fontis get --json` as one moving line: scripts/progress.py < EVENTS."""

import json
import sys
import time


def line(event: dict, started: float) -> str:
    """What an event of kind progress says, for people."""
    parts = []
    got, total = event.get("bytes", 0), event.get("total", 0)
    if total:
        filled = 30 * got // total
        parts.append(f"[{'#' * filled}{'-' * (30 - filled)}] {100 * got / total:5.1f} %")
    parts.append(f"{got / 1e6:.1f} MB")
    seconds = time.monotonic() - started
    if seconds > 0:
        parts.append(f"{got * 8 / 1e6 / seconds:.1f} Mbit/s")
    if "loss" in event:
        parts.append(f"loss {100 * event['loss']:.1f} %")
    return "  ".join(parts)


def main() -> None:
    """Rewrites the line on a terminal; elsewhere says nothing, for logs have no use for it."""
    moving = sys.stdout.isatty()
    started = time.monotonic()
    for text in sys.stdin:
        try:
            event = json.loads(text)
        except ValueError:
            continue
        if moving and event.get("event") == "progress":
            print(f"\r{line(event, started)}\033[K", end="", flush=True)
    if moving:
        print("\r\033[K", end="", flush=True)


if __name__ == "__main__":
    main()
