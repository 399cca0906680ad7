#!/usr/bin/env python3
"""Run the scenarios under scenarios/safety and write docs/safety.md.

Usage: scripts/safety.py [FONTIS]

FONTIS is the command, target/release/fontis if it is not given. Everything runs in virtual time,
so that the page is the same on every machine.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ["auto", "friendly", "bbr", "cubic", "fld", "fld-linux", "fld-thesis", "fld-ns2"]
KINDS += ["jumpstart", "halfback"]
HEAD = """# Safety of rate controllers

Flows of one kind share a bottleneck in the simulator. The kinds are `auto` and `friendly` of DFCP,
and BBR, CUBIC, the four variants of FLD_TCP ([fld.md](fld.md)), Jump Start and Halfback of TCP. All
but the first four are measured when they have become long. This page is made by `scripts/safety.py`
from the scenarios under `scenarios/safety`. `docs/rate.md` says what the figures mean for `auto`
and what bounds them.

Each cell gives the share of packets that the bottleneck's queue dropped, Jain's index of the flows'
goodput, the share of the bottleneck's rate that arrived as goodput, and the mean queue in packets.
All are of the measurement window, which begins when the flows have come to rest.
"""


def run(fontis: str, scenario: Path, folder: str) -> list[dict]:
    """Run a scenario, and give its runs."""
    command = [fontis, "sim", str(scenario), "-o", folder, "--json"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    events = [json.loads(line) for line in out.splitlines()]
    return [event for event in events if event["event"] == "run"]


def cell(metrics: list[dict], beside: bool) -> str:
    """Sum up a run."""
    values = {(m["metric"], m["subject"]): m["value"] for m in metrics}

    def get(metric: str, subject: str = "bottleneck") -> float:
        return values.get((metric, subject), 1.0 if metric == "jain" else float("nan"))

    goodput = values.get(("normalised_goodput", "all"), float("nan"))
    drop, queue = get("drop_rate"), get("mean_queue")
    if beside:
        own = values[("goodput", "own")]
        others = [v for (m, s), v in values.items() if m == "goodput" and s.startswith("other")]
        fair = (own + sum(others)) / (1 + len(others))
        theirs = sum(others) / len(others) / fair
        return f"{drop:.3f}, own {own / fair:.2f}, theirs {theirs:.2f}"
    return f"{drop:.3f}, {get('jain', 'all'):.2f}, {goodput:.2f}, {queue:.0f}"


def section(fontis: str, scenario: Path, folder: str) -> str:
    """Make the page's section of a scenario."""
    runs = run(fontis, scenario, folder)
    title = next(
        line.split('"')[1] for line in scenario.read_text().splitlines() if line.startswith("title")
    )
    beside = "beside" in scenario.stem
    rows: dict[str, dict[str, str]] = {}
    for item in runs:
        sweep = ", ".join(f"{key.split('.')[-1]} {value}" for key, value in item["sweep"].items())
        rows.setdefault(sweep, {})[item["variant"]] = cell(item["metrics"], beside)
    text = f"\n## {title}\n\n`fontis sim scenarios/safety/{scenario.name}`"
    if beside:
        text += "\n\nDrops, and the goodput of the one and of the two as shares of equal parts."
    text += "\n\n| cell | " + " | ".join(KINDS) + " |\n" + "|---" * (len(KINDS) + 1) + "|\n"
    for sweep, kinds in rows.items():
        text += f"| {sweep or 'one'} | " + " | ".join(kinds[kind] for kind in KINDS) + " |\n"
    return text


def main() -> None:
    """Write the page."""
    fontis = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target/release/fontis")
    page = HEAD
    with tempfile.TemporaryDirectory() as folder:
        for scenario in sorted((ROOT / "scenarios/safety").glob("*.toml")):
            page += section(fontis, scenario, folder)
    (ROOT / "docs/safety.md").write_text(page)


if __name__ == "__main__":
    main()
