#!/usr/bin/env python3
"""Run the scenarios under scenarios/safety and write docs/safety.md.

Usage: scripts/safety.py [FONTIS]

FONTIS is the command, target/release/fontis if it is not given. Everything runs in virtual time,
so that the page is the same on every machine.
"""

import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ["auto", "friendly", "bbr", "cubic", "fld", "fld-linux", "fld-thesis", "fld-ns2"]
KINDS += ["jumpstart", "halfback", "hybla"]
RATE_KINDS = ["ccid2", "ccid3", "ccid4", "ccid4-n", "ccid4-n100", "tfmcc", "cast-auto"]
SCTP_KINDS = ["sctp", "sctp-code", "sctp-adaptive", "sctp-published", "sctp-marks"]
HEAD = """# Safety of rate controllers

Flows of one kind share a bottleneck in the simulator. The kinds are `auto` and `friendly` of DFCP,
and BBR, CUBIC, the four variants of FLD_TCP ([fld.md](fld.md)), Jump Start, Halfback and Hybla of
TCP. All but the first four are measured when they have become long. This page is made by
`scripts/safety.py` from the scenarios under `scenarios/safety`. `docs/rate.md` says what the
figures mean for `auto` and what bounds them.

SCTP has a table of its own below each, and [sctp.md](sctp.md#safety) says what breaks a row:

- `sctp` has its defaults, over one path;
- `sctp-code` has `sctp.code = "tetrys:10,9,43"`, and a code's defaults;
- `sctp-adaptive` has `sctp.code = "tetrys:adaptive,128"`, and a code's defaults;
- `sctp-published` has the first code as published: repairs outside the window, repaired loss
  hidden;
- `sctp-marks` has `sctp.only_marks`, over queues that do not mark.

The buffers of its ends hold 16 MiB, which limit nothing but `sctp-marks`. Over one path concurrent
multipath transfer is `sctp`. The last section has it over two paths of one bottleneck: `one-path`
keeps the second in reserve, `cmt` uses both, and the others use both with a code, or with coupled
windows (`sctp.coupling`). Each of its cells is the mean of three runs, as are those after a burst.

DCCP and casts have the next table: `ccid2` to `ccid4-n100` are `dccp.ccid`
([conformance](dccp-conformance.md)), and `tfmcc` and `cast-auto` are casts to one receiver
([multicast.md](multicast.md#the-rate)). CCID 4 sends at most 100 packets a second, so that
even fifty of them fill no bottleneck here.

Each cell gives the share of packets that the bottleneck's queue dropped, Jain's index of the flows'
goodput, the share of the bottleneck's rate that arrived as goodput, and the mean queue in packets.
All are of the measurement window, which begins when the flows have come to rest. Goodput counts
when it is delivered in order, so that what waited before the window may lift its share above 1.
"""


def run(fontis: str, scenario: Path, folder: str) -> list[dict]:
    """Run a scenario, and give its runs."""
    command = [fontis, "sim", str(scenario), "-o", folder, "--json"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    events = [json.loads(line) for line in out.splitlines()]
    return [event for event in events if event["event"] == "run"]


def cell(repetitions: list[list[dict]], beside: bool) -> str:
    """Sum up the runs of a cell, whose metrics are given."""
    measured: dict[tuple[str, str], list[float]] = {}
    for m in itertools.chain(*repetitions):
        measured.setdefault((m["metric"], m["subject"]), []).append(m["value"])
    values = {key: statistics.fmean(each) for key, each in measured.items()}

    def get(metric: str, subject: str = "bottleneck") -> float:
        return values.get((metric, subject), float("nan"))

    goodput = values.get(("normalised_goodput", "all"), float("nan"))
    drop, queue = get("drop_rate"), get("mean_queue")
    if beside:
        own, others = (
            [v for (m, s), v in values.items() if m == "goodput" and s.startswith(name)]
            for name in ("own", "other")
        )
        fair = (sum(own) + sum(others)) / (len(own) + len(others))
        ours, theirs = (sum(part) / len(part) / fair for part in (own, others))
        return f"{drop:.3f}, own {ours:.2f}, theirs {theirs:.2f}"
    # Of each run: a mean of rates that changed places would look fair.
    fairness = statistics.fmean(jain(each) for each in repetitions)
    return f"{drop:.3f}, {fairness:.2f}, {goodput:.2f}, {queue:.0f}"


def jain(metrics: list[dict]) -> float:
    """Find Jain's index of the flows of the kind: what else crosses the bottleneck has no share."""
    rates = [
        m["value"] for m in metrics if m["metric"] == "goodput" and m["subject"].startswith("own")
    ]
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 1.0


def table(rows: dict[str, dict[str, str]], kinds: list[str]) -> str:
    """Make the table that has a column for each of the kinds."""
    text = "\n| cell | " + " | ".join(kinds) + " |\n" + "|---" * (len(kinds) + 1) + "|\n"
    for sweep, cells in rows.items():
        text += f"| {sweep or 'one'} | " + " | ".join(cells[kind] for kind in kinds) + " |\n"
    return text


def section(fontis: str, scenario: Path, folder: str) -> str:
    """Make the page's section of a scenario."""
    runs = run(fontis, scenario, folder)
    title = next(
        line.split('"')[1] for line in scenario.read_text().splitlines() if line.startswith("title")
    )
    beside = "beside" in scenario.stem
    measured: dict[str, dict[str, list[list[dict]]]] = {}
    for item in runs:
        sweep = ", ".join(f"{key.split('.')[-1]} {value}" for key, value in item["sweep"].items())
        kinds = measured.setdefault(sweep, {})
        kinds.setdefault(item["variant"], []).append(item["metrics"])
    rows = {
        sweep: {kind: cell(each, beside) for kind, each in kinds.items()}
        for sweep, kinds in measured.items()
    }
    text = f"\n## {title}\n\n`fontis sim scenarios/safety/{scenario.name}`"
    if beside:
        text += "\n\nDrops, and the mean goodput of the kind and of the others as shares of equal"
        text += " parts."
    have = next(iter(rows.values()))
    tables = [KINDS, SCTP_KINDS, RATE_KINDS] if "auto" in have else [list(have)]
    return text + "\n" + "".join(table(rows, kinds) for kinds in tables)


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
