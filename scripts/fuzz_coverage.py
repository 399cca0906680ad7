#!/usr/bin/env python3
"""Measure which lines the inputs of the fuzz targets run.

Usage: scripts/fuzz_coverage.py [--target TARGET]... [--lines] [PART...]

It builds the targets with counters, replays the corpora and what was found beside them, and prints
the share of lines that ran of each file whose path contains one of the parts (all of crates/ if
there are none); with --lines also those that did not run. It needs the commands of
llvm_profparser, which it installs below fuzz/target.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "fuzz"
TOOLS = FUZZ / "target" / "tools"
BUILT = FUZZ / "target" / "coverage"
# Inputs of one run of a target.
AT_ONCE = 2000
SECONDS = 600
LINE = re.compile(r"^\s*(\d+)\|\s*([\d.]+)\w?\|")


def build() -> None:
    """Build the targets, and the tool that reads their counters."""
    if not (TOOLS / "bin" / "cov").exists():
        tool = ["cargo", "install", "--locked", "llvm_profparser", "--root", str(TOOLS)]
        subprocess.run(tool, check=True)
    environment = os.environ | {
        "RUSTC_BOOTSTRAP": "1",
        "RUSTFLAGS": "-Cinstrument-coverage",
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
        # Programs that only help to build have counters, too.
        "LLVM_PROFILE_FILE": os.devnull,
    }
    command = ["cargo", "build", "--release", "--bins", "--target-dir", str(BUILT)]
    subprocess.run(command, check=True, cwd=FUZZ, env=environment)


def replay(target: str, counters: Path) -> None:
    """Run a target with all its inputs; each run leaves a file of counters."""
    folders = [FUZZ / "corpus" / target, FUZZ / "found" / target]
    inputs = [str(path) for folder in folders if folder.is_dir() for path in folder.iterdir()]
    environment = os.environ | {"LLVM_PROFILE_FILE": str(counters / "%p.profraw")}
    for first in range(0, len(inputs), AT_ONCE):
        run = [str(BUILT / "release" / target), *inputs[first : first + AT_ONCE]]
        subprocess.run(run, cwd=FUZZ, env=environment, capture_output=True, timeout=SECONDS, check=True)


def lines_of(target: str, counters: Path) -> dict[str, dict[int, bool]]:
    """Give the lines of each file that are in a target, and whether any target ran them."""
    command = [str(TOOLS / "bin" / "cov"), "show"]
    for path in counters.iterdir():
        command += ["--instr-profile", str(path)]
    command += ["--object", str(BUILT / "release" / target)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, dict[int, bool]] = collections.defaultdict(dict)
    file = ""
    for line in text.splitlines():
        if line.endswith(".rs"):
            file = line.removeprefix(f"{ROOT}/")
        elif counted := LINE.match(line):
            found[file][int(counted[1])] = float(counted[2]) > 0
    return found


def ranges(numbers: list[int]) -> str:
    """Write ascending numbers shortly: 3-5 7."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in found)


def main() -> None:
    """Print a line for each file, and the sum."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", action="append", help="one of several targets (all)")
    parser.add_argument("--lines", action="store_true", help="name the lines that did not run")
    parser.add_argument("part", nargs="*", default=[""], help="of the paths of files (all)")
    chosen = parser.parse_args()
    build()
    counters = Path(tempfile.mkdtemp(prefix="fontis-coverage-"))
    targets = chosen.target or sorted(path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs"))
    lines: dict[str, dict[int, bool]] = collections.defaultdict(dict)
    try:
        for target in targets:
            replay(target, counters)
        for target in targets:
            for file, ran in lines_of(target, counters).items():
                for line, is_run in ran.items():
                    lines[file][line] = lines[file].get(line, False) or is_run
    finally:
        shutil.rmtree(counters)
    files = [file for file in sorted(lines) if file.startswith("crates/") and any(part in file for part in chosen.part)]
    for file in files:
        ran = lines[file].values()
        print(f"{100 * sum(ran) / len(ran):5.1f} % of {len(ran):4}  {file}")
        if chosen.lines:
            print(f"    {ranges(sorted(line for line, is_run in lines[file].items() if not is_run))}")
    ran = [is_run for file in files for is_run in lines[file].values()]
    print(f"{100 * sum(ran) / max(len(ran), 1):5.1f} % of {len(ran):4}  in all")


if __name__ == "__main__":
    main()
