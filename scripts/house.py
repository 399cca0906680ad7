#!/usr/bin/env python3
"""Checks the rules of CONTRIBUTING.md that a program can check.

    scripts/house.py                        checks; prints each finding with its file and line
    scripts/house.py --report               also lists the findings that KNOWN still allows
    scripts/house.py --report circle --crate sim

The rules:

columns   A line of Markdown, of a comment or of a Python docstring has at most 100 characters.
          Tables, code blocks, lines that hold a link alone and comments that hold a URL are free.
lines     A source file has at most 600 lines.
function  A Rust function has at most 110 lines, from `fn` to its closing brace.
circle    The files of a crate depend on each other without circles.
root      A path names the module that defines an item, not a re-export in lib.rs.
twice     The name of a public type is defined once in the workspace.
arrow     The folders of a crate depend on each other only as FOLDERS says.

A file depends on another if its code, tests aside, names an item or a function that the other one
defines. A path is followed through imports and re-exports to the definition, so `use super::Name`
in a child depends on the file that defines `Name`, which is seldom the parent. Declaring a module
(`mod child;`) is no dependency. Nor is a re-export (`pub use child::Name`), unless the file also
uses the name itself: a `pub` before an import removes no dependency. Hence a parent may declare
and re-export its children, and the children may use the parent's types; it is a circle if the
parent also uses a type or a function of such a child. Calls of methods are not seen: a type's
`impl` blocks may lie in several files.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from house_rust import Crate, Source

COLUMNS = 100
LINES = 600
FUNCTION = 110

# The folders of a crate, and the folders that each of them may use. Files beside them count as
# folders, lib.rs aside. A crate that is not here is not checked; a folder that is not here may use
# nothing and be used by nothing.
TRANSPORT = {"congestion", "path_mtu", "rate", "scheduler", "qlog", "wire"}
FOLDERS: dict[str, dict[str, set[str]]] = {
    "proto": {
        "qlog": set(),
        "wire": set(),
        "path_mtu": set(),
        "congestion": set(),
        "scheduler": set(),
        "rate": {"congestion"},
        "cast": TRANSPORT,
        "swarm": set(),
        "flute": set(),
        "dfcp": TRANSPORT,
        "tcp": TRANSPORT,
        "published": TRANSPORT,
        "dccp": TRANSPORT,
        "sctp": TRANSPORT,
        "data_channel": {"sctp"},
    },
    "sim": {
        "analysis": set(),
        "settings": {"analysis"},
        "app": {"analysis"},
        "host": {"analysis", "app", "settings"},
        "world": {"app", "host"},
        "swarm": set(),
        "recording": {"analysis"},
        "experiment": {"analysis", "app", "host", "recording", "swarm", "world"},
        "scenario": {"analysis", "app", "experiment", "host", "settings", "swarm", "world"},
    },
}

# The rules that a crate, or a file outside of crates, does not keep yet. An entry is deleted when
# nothing is left of it.
KNOWN: dict[str, set[str]] = {}
RULES = ("columns", "lines", "function", "circle", "root", "twice", "arrow")
SOURCES = (".rs", ".py", ".ts", ".mjs", ".js", ".sh", ".css", ".html", ".lua")
COMMENTS = {
    ".rs": ("//", "/*"),
    ".ts": ("//", "/*", "* "),
    ".mjs": ("//", "/*", "* "),
    ".py": ("#",),
    ".toml": ("#",),
    ".sh": ("#",),
}


class Finding(NamedTuple):
    """A broken rule: the place, and the crates or the file that it concerns."""

    rule: str
    path: Path
    line: int
    text: str
    crates: frozenset[str]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


def crate_of(path: Path) -> str:
    """The folder of a crate, as "sim"; outside of crates the path itself."""
    parts = path.parts
    return parts[1] if parts[0] == "crates" and len(parts) > 2 else str(path)


# Lengths.


def long_lines(path: Path, text: str) -> list[int]:
    """The numbers of the lines of prose that are too long."""
    lines = text.split("\n")
    if path.suffix == ".md":
        return [number for number, line in markdown_prose(lines) if len(line) > COLUMNS]
    marks = COMMENTS.get(path.suffix)
    if marks is None or all(len(line) <= COLUMNS for line in lines):
        return []
    docs = docstring_lines(text) if path.suffix == ".py" else set()
    return [
        number
        for number, line in enumerate(lines, 1)
        if len(line) > COLUMNS and "://" not in line and (line.lstrip().startswith(marks) or number in docs)
    ]


LINK_ALONE = re.compile(r"\s*(?:[-*]\s+|\d+\.\s+)?!?\[[^\]]*\](?:\([^)]*\)|:\s*\S+)[.,;:]?\s*$")


def markdown_prose(lines: list[str]) -> list[tuple[int, str]]:
    """The lines that are not in tables or blocks of code, and hold more than a link."""
    fence = ""
    prose = []
    for number, line in enumerate(lines, 1):
        start = line.lstrip()
        if fence:
            if start.startswith(fence):
                fence = ""
        elif start.startswith(("```", "~~~")):
            fence = start[:3]
        elif not start.startswith("|") and not LINK_ALONE.match(line):
            prose.append((number, line))
    return prose


def docstring_lines(text: str) -> set[int]:
    """The lines of a Python file that are docstrings."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


# The tree.


def twice(crates: list[Crate]) -> list[Finding]:
    """Names of public types that are defined more than once."""
    places = defaultdict(list)
    for crate in crates:
        for place in crate.public_types():
            # Two definitions in one file are for different systems.
            if all(place.path != other.path for other in places[place.text]):
                places[place.text].append(place)
    return [
        Finding(
            "twice",
            where[0].path,
            where[0].line,
            f"{name} is also defined in " + ", ".join(f"{one.path}:{one.line}" for one in where[1:]),
            frozenset(crate_of(one.path) for one in where),
        )
        for name, where in sorted(places.items())
        if len(where) > 1
    ]


def finding(rule: str, path: Path, line: int, text: str) -> Finding:
    return Finding(rule, path, line, text, frozenset([crate_of(path)]))


def check() -> list[Finding]:
    """Every finding in the tree."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    findings = []
    rust: dict[str, list[Source]] = defaultdict(list)
    for path in sorted({Path(name) for name in listed.stdout.split("\0") if name}):
        if path.suffix not in (*SOURCES, ".md", ".toml") or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        for line in long_lines(path, text):
            findings.append(finding("columns", path, line, f"longer than {COLUMNS} columns"))
        count = text.count("\n")
        if path.suffix in SOURCES and count > LINES:
            findings.append(finding("lines", path, count, f"longer than {LINES} lines"))
        if path.suffix == ".rs":
            source = Source(path, text)
            for name, line, length in source.functions():
                if length > FUNCTION:
                    told = f"{name} has {length} lines, more than {FUNCTION}"
                    findings.append(finding("function", path, line, told))
            if len(path.parts) > 3 and path.parts[0] == "crates" and path.parts[2] == "src":
                rust[crate_of(path)].append(source)
    crates = [Crate(name, sources) for name, sources in rust.items()]
    for crate in crates:
        found = [("circle", crate.circles()), ("root", crate.root_imports())]
        if allowed := FOLDERS.get(crate.name):
            found.append(("arrow", crate.arrows(allowed)))
        findings += [finding(rule, *place) for rule, places in found for place in places]
    return findings + twice(crates)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", nargs="*", choices=RULES, help="list what is known, too")
    parser.add_argument("--crate", help="only findings of this folder of crates/, or of this file")
    arguments = parser.parse_args()
    findings = check()
    known = [one for one in findings if one.crates & KNOWN.get(one.rule, set())]
    shown = [one for one in findings if one not in known]
    if arguments.report is not None:
        rules = arguments.report or RULES
        shown = [one for one in findings if one.rule in rules]
    if arguments.crate:
        shown = [one for one in shown if arguments.crate in one.crates]
    for one in shown:
        print(one)
    if known:
        counts = {rule: sum(one.rule == rule for one in known) for rule in RULES}
        left = ", ".join(f"{rule} {count}" for rule, count in counts.items() if count)
        print(f"house: known and to be mended: {left} (scripts/house.py --report)")
    for rule, names in KNOWN.items():
        for name in sorted(names):
            if not any(one.rule == rule and name in one.crates for one in known):
                print(f"house: {name} keeps the rule {rule} now: delete it from KNOWN")
    return int(any(one not in known for one in findings))


if __name__ == "__main__":
    sys.exit(main())
