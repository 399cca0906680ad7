#!/usr/bin/env python3
"""The crates of others that Fontis is made from.

    scripts/dependencies.py check          docs/dependencies.md lists exactly the direct ones, with
                                           the versions of Cargo.lock; the Python module of the
                                           tests has the libraries of all other tests
    scripts/dependencies.py sbom FILE      writes a CycloneDX 1.5 bill of materials of the command:
                                           the same bytes for the same Cargo.lock
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "docs" / "dependencies.md"
# The crate that is given away.
SHIPPED = "fontis-cli"
MODULE = "fontis-py"


def metadata() -> dict[str, Any]:
    """What cargo says of the workspace and all that it depends on."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return json.loads(said)


def direct(told: dict[str, Any]) -> dict[str, str]:
    """The names and versions of the crates that the workspace's crates name themselves."""
    own = set(told["workspace_members"])
    packages = {package["id"]: package for package in told["packages"]}
    found = {}
    for node in told["resolve"]["nodes"]:
        if node["id"] not in own:
            continue
        for dependency in node["deps"]:
            package = packages[dependency["pkg"]]
            if package["id"] not in own:
                found[package["name"]] = package["version"]
    return found


def libraries(*flags: str) -> set[str]:
    """The crates that cargo builds with these flags, with their features."""
    command = ["cargo", "tree", "--locked", "--prefix", "none", "--format", "{p} {f}", *flags]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    # A crate is named in full once, and then marked.
    marks = re.compile(r" \((\*|proc-macro)\)")
    return {marks.sub("", line).strip() for line in said.splitlines()}


def check() -> None:
    """Compares the record with what is there."""
    rows = re.findall(r"^\| `([^`]+)` \| (\S+) \|", RECORD.read_text(), re.MULTILINE)
    recorded, there = dict(rows), direct(metadata())
    faults = [f"`{name}` {there[name]} is not recorded" for name in there if name not in recorded]
    faults += [f"`{name}` is recorded and not used" for name in recorded if name not in there]
    faults += [
        f"`{name}` is recorded at {recorded[name]} and used at {there[name]}: look at the change"
        for name in there
        if name in recorded and recorded[name] != there[name]
    ]
    faults = [f"docs/dependencies.md: {fault}" for fault in faults]
    tested = libraries("--workspace", "--edges", "normal,build,dev")
    module = libraries("--package", MODULE, "--features", f"{MODULE}/as-in-tests", "--edges", "normal,build")
    faults += [
        f"crates/py/Cargo.toml: {one} has other features in tests, so that it would be built twice"
        for one in sorted(module - tested)
        if not one.startswith(MODULE)
    ]
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(1)


def sbom(path: Path) -> None:
    """Writes the bill of materials."""
    told = metadata()
    packages = {package["id"]: package for package in told["packages"]}
    nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    sums = {(p["name"], p["version"]): p.get("checksum") for p in lock["package"]}
    start = next(p["id"] for p in told["packages"] if p["name"] == SHIPPED)
    seen, waiting = set(), [start]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        # What only tests need is not shipped.
        kinds = {d["pkg"]: {k["kind"] for k in d["dep_kinds"]} for d in nodes[one]["deps"]}
        waiting.extend(name for name, kind in kinds.items() if kind != {"dev"})

    def component(package: dict[str, Any]) -> dict[str, Any]:
        name, version = package["name"], package["version"]
        made: dict[str, Any] = {
            "type": "library",
            "bom-ref": f"pkg:cargo/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:cargo/{name}@{version}",
        }
        if package["license"]:
            made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if checksum := sums.get((name, version)):
            made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        return made

    components = sorted((component(packages[one]) for one in seen - {start}), key=lambda c: c["purl"])
    main = {**component(packages[start]), "type": "application"}
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": main},
        "components": components,
    }
    path.write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n")
    print(f"{path}: {len(components)} components")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="The crates of others that Fontis is made from.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check")
    commands.add_parser("sbom").add_argument("file", type=Path)
    options = parser.parse_args()
    if options.command == "check":
        check()
    else:
        sbom(options.file)


if __name__ == "__main__":
    main()
