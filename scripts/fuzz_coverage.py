#!/usr/bin/env python3
"""Measure which lines the inputs of the fuzz targets run.

Usage: scripts/fuzz_coverage.py [--target TARGET]... [--corpora] [--lines] [--all | PART...]

It builds the targets with counters, replays the corpora and what was found beside them (with
--corpora only the former), and prints for each file that reads what others wrote the share of the
lines of its reading code that ran; with --lines also those that did not. With parts it does so for
all lines of each file whose path contains one of them, with --all for all of crates/. It needs the
commands of llvm_profparser, which it installs below fuzz/target.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
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
FUNCTION = re.compile(r"^( *)(?:pub(?:\([a-z:]+\))? )?(?:const )?(?:async )?fn (\w+)")
# The least share of the lines of a parser that should run.
LEAST = 95

# The files that read what others wrote, each with its functions that read nothing, which do not
# count: they write (encode, to_…, append), make keys, open files (generate, create, open, store),
# tell a value (size, label), or show what was read (fmt).
READERS = {
    "crates/base/src/notation.rs": "",
    "crates/proto/src/wire.rs": "",
    "crates/proto/src/data_channel/message.rs": "encode",
    "crates/proto/src/dfcp/wire.rs": "zeros frame_len feedback_len hello_len",
    "crates/proto/src/dfcp/params.rs": "with_longest_idle_timeout with_reset_token code_ids",
    "crates/fontis/src/protection/packets.rs": "reset version_negotiation unknown_key cookie proved_syn reset_token",
    "crates/fontis/src/protection/cookie.rs": "default make",
    "crates/fontis/src/protection/token.rs": "",
    "crates/fontis/src/transfer/message.rs": "values manifest label",
    "crates/fontis/src/transfer/pieces.rs": "encode_around try_push try_extend finalize expecting",
    "crates/fontis/src/manifest.rs": "with_name",
    "crates/fontis/src/manifest/check.rs": "",
    "crates/fontis/src/manifest/entries.rs": "reserve push",
    "crates/fontis/src/manifest/outward.rs": "",
    "crates/fontis/src/hash_tree/builder.rs": "size block_size",
    "crates/fontis/src/journal.rs": "create open append",
    "crates/fontis/src/name.rs": "to_os to_path",
    "crates/fontis/src/url.rs": "generate of_folder fmt",
    "crates/fontis/src/identity.rs": "fmt generate of_secret default_path load_or_create load towards public secret"
    " store drop read contains from_iter",
    "crates/fontis/src/transfer/over_sctp/record.rs": "token all encode",
    "crates/fontis/src/transfer/over_sctp/gathering.rs": "",
    "crates/proto/src/cast/wire.rs": "",
    "crates/fontis/src/transfer/cast/seal.rs": "state receipt sign write seal seal_tail",
    "crates/fontis/src/transfer/cast/announcement.rs": "",
    "crates/fontis/src/transfer/cast/content.rs": "",
    "crates/proto/src/dccp/wire.rs": "header_len encode encode_header",
    "crates/proto/src/dccp/option.rs": "encode encoded_len encode_one shortest three",
    "crates/call/src/phone/message.rs": "respond seen_from request line end",
    "crates/call/src/phone/description.rs": "answer offer format_of line refused bare write payload_type",
    "crates/proto/src/tcp/wire.rs": "",
    "crates/proto/src/sctp/wire/read.rs": "",
    "crates/proto/src/published/header.rs": "",
    "crates/proto/src/published/packet.rs": "size encode",
    "crates/proto/src/flute/alc.rs": "to_bytes",
    "crates/proto/src/flute/lct.rs": "write",
    "crates/proto/src/flute/oti.rs": "name fmt from_str raptorq raptor",
    "crates/proto/src/flute/oti_wire.rs": "to_extension to_specific",
    "crates/proto/src/flute/fdt.rs": "to_xml write_oti",
    "crates/trace/src/read.rs": "",
    "crates/trace/src/stream.rs": "",
    "crates/trace/src/ns2.rs": "",
    "crates/trace/src/events.rs": "",
    "crates/trace/src/qlog/mod.rs": "",
    "crates/trace/src/qlog/reading.rs": "",
    "crates/trace/src/qlog/frames.rs": "",
    "crates/trace/src/qlog/dfcp.rs": "",
    "crates/trace/src/capture/mod.rs": "",
    "crates/trace/src/capture/frames.rs": "",
    "crates/trace/src/capture/wire/mod.rs": "",
    "crates/trace/src/capture/wire/tcp.rs": "",
    "crates/trace/src/capture/wire/mptcp.rs": "",
    "crates/trace/src/capture/wire/udp.rs": "",
    "crates/trace/src/capture/wire/sctp.rs": "",
    "crates/trace/src/capture/wire/dccp.rs": "",
}
# Targets that read nothing but symbols, or messages that are read already.
NO_READERS = {
    "block_decoder",
    "encoding_plan",
    "group",
    "large_decoder",
    "raptorq_object",
    "swarm",
    "window_decoder",
}


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


def replay(target: str, counters: Path, kinds: list[str]) -> None:
    """Run a target with all its inputs; each run leaves a file of counters."""
    folders = [FUZZ / kind / target for kind in kinds]
    inputs = [str(path) for folder in folders if folder.is_dir() for path in folder.iterdir()]
    environment = os.environ | {"LLVM_PROFILE_FILE": str(counters / "%p.profraw"), "FONTIS_REPLAY": "1"}
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


def lines_of_functions(file: str, names: set[str]) -> set[int]:
    """Give the lines of the functions of these names in a file, which rustfmt has indented."""
    found: set[int] = set()
    missing = set(names)
    indent = None
    for number, line in enumerate((ROOT / file).read_text().splitlines(), 1):
        if indent is None and (begin := FUNCTION.match(line)) and begin[2] in names:
            missing.discard(begin[2])
            found.add(number)
            if not line.rstrip().endswith(("}", ";")):
                indent = begin[1]
        elif indent is not None:
            found.add(number)
            if line in (f"{indent}}}", f"{indent});"):
                indent = None
    if missing:
        sys.exit(f"fuzz_coverage: {file} has no function {', '.join(sorted(missing))} (READERS)")
    return found


def measure(targets: list[str], kinds: list[str]) -> dict[str, dict[int, bool]]:
    """Give the lines of each file, and whether an input of a target ran them."""
    counters = Path(tempfile.mkdtemp(prefix="fontis-coverage-"))
    lines: dict[str, dict[int, bool]] = collections.defaultdict(dict)
    try:
        for target in targets:
            replay(target, counters, kinds)
        for target in targets:
            for file, ran in lines_of(target, counters).items():
                for line, is_run in ran.items():
                    lines[file][line] = lines[file].get(line, False) or is_run
    finally:
        shutil.rmtree(counters)
    return lines


def main() -> None:
    """Print a line for each file, and the sum."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", action="append", help="one of several targets (all)")
    parser.add_argument("--corpora", action="store_true", help="without what was found beside the corpora")
    parser.add_argument("--lines", action="store_true", help="name the lines that did not run")
    parser.add_argument("--all", action="store_true", help="all lines of all files")
    parser.add_argument("part", nargs="*", help="of the paths of files, with all their lines")
    chosen = parser.parse_args()
    build()
    every = {path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs")}
    is_of_readers = not (chosen.all or chosen.part)
    targets = chosen.target or sorted(every - NO_READERS if is_of_readers else every)
    lines = measure(targets, ["corpus"] if chosen.corpora else ["corpus", "found"])
    if not is_of_readers:
        parts = chosen.part or [""]
        files = [file for file in sorted(lines) if file.startswith("crates/") and any(part in file for part in parts)]
    else:
        files = list(READERS)
        for file, names in READERS.items():
            left_out = lines_of_functions(file, set(names.split()))
            lines[file] = {line: is_run for line, is_run in lines[file].items() if line not in left_out}
    for file in files:
        ran = lines[file].values()
        share = 100 * sum(ran) / max(len(ran), 1)
        print(f"{share:5.1f} % of {len(ran):4}  {file}{'' if share >= LEAST else '  *'}")
        if chosen.lines:
            print(f"    {ranges(sorted(line for line, is_run in lines[file].items() if not is_run))}")
    ran = [is_run for file in files for is_run in lines[file].values()]
    print(f"{100 * sum(ran) / max(len(ran), 1):5.1f} % of {len(ran):4}  in all (*: less than {LEAST} %)")


if __name__ == "__main__":
    main()
