#!/usr/bin/env python3
"""Plants mistakes in the library, one at a time, and counts those that the simulation finds.

    scripts/mutants.py                     all of them; fails if too few are found
    scripts/mutants.py --only journal due  those with one of these texts in their names
    scripts/mutants.py --seeds 200         with so many seeds instead of 1000

A mistake is an exact text and its replacement. It is planted in a copy of the tree, in
target/mutants, which has a build folder of its own.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
COPY = TARGET / "mutants"
# A folder of its own: cargo would take the crates of the copy for those of the tree.
BUILT = COPY / "target"
SOURCE = Path("crates/fontis/src")

# The part of the mistakes that must be found.
WANTED = 0.9
# A seed of transfers costs as much as so many of storing.
COST = 40
# Seconds that a run may take; more means that it hangs, which is noticed, too.
PATIENCE = 300


class Mistake(NamedTuple):
    """A plausible mistake."""

    name: str
    file: str
    old: str
    new: str


MISTAKES = [
    Mistake(
        "the name is not synced",
        "partial.rs",
        "        self.parent.sync_names()?;\n        let _ = self.parent.unlink",
        "        let _ = self.parent.unlink",
    ),
    Mistake(
        "a failed sync of the name is no error",
        "partial.rs",
        "        self.parent.sync_names()?;\n        let _ = self.parent.unlink",
        "        let _ = self.parent.sync_names();\n        let _ = self.parent.unlink",
    ),
    Mistake(
        "the journal goes before the name is safe",
        "partial.rs",
        "        self.parent.sync_names()?;\n"
        "        let _ = self.parent.unlink(Path::new(&self.journal()));",
        "        let _ = self.parent.unlink(Path::new(&self.journal()));\n"
        "        self.parent.sync_names()?;",
    ),
    Mistake(
        "a file is renamed before it is synced",
        "sink.rs",
        "            return self.partial.handle.sync();",
        "            return Ok(());",
    ),
    Mistake(
        "small files of a folder are not synced",
        "sink.rs",
        "                self.set_owner(i, Some(&file));\n"
        "                if flush { file.sync() } else { Ok(()) }\n"
        "            }\n"
        "            EntryKind::Symlink",
        "                self.set_owner(i, Some(&file));\n"
        "                Ok(())\n"
        "            }\n"
        "            EntryKind::Symlink",
    ),
    Mistake(
        "a failed write is no error",
        "sink.rs",
        "        file.write_at(bytes, piece.offset)?;",
        "        let _ = file.write_at(bytes, piece.offset);",
    ),
    Mistake(
        "the times of files are forgotten", "sink.rs", "        file.set_time(modified)?;\n", ""
    ),
    Mistake(
        "a partial with content is removed",
        "sink.rs",
        "        // From here on there is something to go on from.\n        self.partial.keep();\n",
        "",
    ),
    Mistake(
        "blocks of the partial are believed",
        "sink/resume.rs",
        ".is_some_and(|bytes| tree.verify_block(u64::from(*block), &bytes));",
        ".is_some_and(|bytes| bytes.len() == len);",
    ),
    Mistake(
        "what was resumed is counted one block short",
        "sink/resume.rs",
        "            self.state().written.insert(start, end);",
        "            self.state().written.insert(start, end - tree.block_len(u64::from(last)) as u64);",
    ),
    Mistake(
        "a partial without a journal is useless",
        "sink/resume.rs",
        "            return (is_there && !manifest.is_folder()).then_some(Self(None));",
        "            return (is_there && false).then_some(Self(None));",
    ),
    Mistake(
        "a journal is replaced in two steps",
        "journal.rs",
        "        dir.rename_over(new, name)?;",
        "        let _ = dir.unlink(Path::new(name));\n        dir.rename_over(new, name)?;",
    ),
    Mistake(
        "a folder's journal is not synced",
        "journal.rs",
        "        if sync {\n            file.sync()?;\n        }\n",
        "",
    ),
    Mistake(
        "a block is written at the start of its file",
        "layout.rs",
        "                offset: offset + (at - self.starts[i]),",
        "                offset,",
    ),
    Mistake(
        "an object that cannot be stored is not abandoned",
        "transfer/incoming.rs",
        "            object.abandon(CODE_UNWANTED);\n        }\n        stored",
        "        }\n        stored",
    ),
    Mistake(
        "who waits for an answer says nothing",
        "connection.rs",
        "                slot.machine.await_peer();\n",
        "",
    ),
    Mistake(
        "a peer that moves is not followed",
        "endpoint/slot.rs",
        "        if self.is_initiator() {\n            return;\n        }\n        let Some(mut way)",
        "        if self.ways.len() == 1 {\n            return;\n        }\n        let Some(mut way)",
    ),
    Mistake(
        "a call does not wake its connection",
        "endpoint/driver.rs",
        "            act(slot, now);\n            self.touched.push(id);",
        "            act(slot, now);",
    ),
    Mistake(
        "connections whose time is exactly now are not due",
        "endpoint/deadlines.rs",
        "        self.0.range(..=(now, u64::MAX))",
        "        self.0.range(..(now, 0))",
    ),
    Mistake(
        "datagrams of several lengths are joined",
        "endpoint/outbox.rs",
        "        } else if length < self.batch.segment {\n            self.batch.closed = true;\n",
        "        } else if length == 0 {\n            self.batch.closed = true;\n",
    ),
    Mistake(
        "a client does not look for what it has",
        "transfer/get.rs",
        "    let is_begun = !options.restart && Sink::is_begun(dest, url.name());",
        "    let is_begun = options.overwrite && Sink::is_begun(dest, url.name());",
    ),
    Mistake(
        "a sender reads the block before",
        "transfer/outgoing.rs",
        "(u64::from(block) * u64::from(shape.block_size), Vec::new());",
        "(u64::from(block.saturating_sub(1)) * u64::from(shape.block_size), Vec::new());",
    ),
    Mistake(
        "a wrong block of one of several servers is stored",
        "transfer/sources.rs",
        "            if !checked.map_err(|_| TransferError::Worker)? {",
        "            if !checked.is_ok() {",
    ),
    Mistake(
        "one of several servers may send wrong blocks for ever",
        "transfer/sources.rs",
        "                if rejected.insert(block) {\n                    coming.reject(block);",
        "                if rejected.insert(block) || !rejected.is_empty() {\n                    coming.reject(block);",
    ),
    Mistake(
        "several servers may have objects of one size",
        "transfer/sources.rs",
        "            if Hash::from(offer.root) == object.root\n                && offer.size",
        "            if offer.size",
    ),
    Mistake(
        "a transfer ends before its last block is stored",
        "transfer/sources.rs",
        "        lock(&self.told).0 == self.bytes",
        "        self.is_complete()",
    ),
    Mistake(
        "a mute server is waited for although another may be back",
        "transfer/sources.rs",
        "            let is_lost = self.is_lost.load(Ordering::Relaxed);",
        "            let is_lost = false;",
    ),
    Mistake(
        "a wrong block of a swarm is stored",
        "transfer/swarm/download.rs",
        "            check.holds(&data).then(|| storing.content.write(block, &data)).transpose()",
        "            Some(storing.content.write(block, &data)).transpose()",
    ),
    Mistake(
        "who lies in a swarm is let in again",
        "transfer/swarm/state.rs",
        "            self.banned.insert(edge.key);",
        "            let _ = edge.key;",
    ),
    Mistake(
        "what a neighbour that is gone would have sent comes from nobody else",
        "transfer/swarm/state.rs",
        "        for download in edge.downloads.values() {\n"
        "            self.lose(download.block);\n"
        "        }\n"
        "        self.tell_room();\n"
        "        is_served",
        "        self.tell_room();\n        is_served",
    ),
    Mistake(
        "an upload that ends too late is the last to its neighbour",
        "transfer/swarm/state.rs",
        "        if self.edges.get(&id).is_some_and(|edge| edge.uploads.is_empty()) {",
        "        if false {",
    ),
    Mistake(
        "a swarm waits for who says to have everything",
        "transfer/swarm/share.rs",
        "            let is_waiting = now - fed < patience + state.downloads_took.patience();",
        "            let is_waiting = true;",
    ),
    Mistake(
        "an origin that begins anew is asked for the object by its hash alone",
        "transfer/swarm/strangers.rs",
        "        Some(Response::Error { .. }) if key == home.contact.key => {",
        "        Some(Response::Error { .. }) if key == home.contact.key && false => {",
    ),
    Mistake(
        "who was slow is refused for ever",
        "transfer/swarm/state.rs",
        "moment::now() - at < STALLED);",
        "moment::now() - at < 1_000_000 * STALLED);",
    ),
]


def copy() -> None:
    """Copies what cargo needs; files that have not changed keep their times."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in tracked.stdout.splitlines():
        if not name.startswith(("crates/", "Cargo", "rust-toolchain", "contrib/", "viewer/")):
            continue
        source, copied = ROOT / name, COPY / name
        if source.is_file() and not (copied.is_file() and copied.read_bytes() == source.read_bytes()):
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copied)


def test(what: str, runs: int) -> str:
    """Runs a part of the simulation; returns "" if it passes, or the first words of its failure."""
    command = [os.environ.get("CARGO", "cargo"), "test", "--locked", "-q", "-p", "fontis", "--lib", what]
    env = {**os.environ, "CARGO_TARGET_DIR": str(BUILT), "FONTIS_RUNS": str(runs)}
    env = {key: value for key, value in env.items() if key != "FONTIS_SEED"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=COPY, env=env, stdout=pipe, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as run:
        try:
            said, _ = run.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            # The test, too, not cargo alone.
            os.killpg(run.pid, signal.SIGKILL)
            return f"no end within {PATIENCE} s"
        if run.returncode == 0:
            return ""
    if "could not compile" in said:
        sys.exit(f"mutants: a mistake does not compile:\n{said}")
    lines = said.splitlines()
    found = [after for line, after in zip(lines, lines[1:], strict=False) if "panicked at" in line]
    return found[0][:100] if found else "it failed"


def main() -> None:
    """Plants each mistake and says what became of it."""
    parser = argparse.ArgumentParser(description="Plants mistakes and counts those that are found.")
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--seeds", type=int, default=1000)
    options = parser.parse_args()
    mistakes = [one for one in MISTAKES if any(text in one.name for text in options.only)]
    copy()
    if failed := test("whole::", options.seeds):
        sys.exit(f"mutants: the simulation fails without a mistake: {failed}")
    found = 0
    for mistake in mistakes:
        path = COPY / SOURCE / mistake.file
        before = path.read_text()
        if before.count(mistake.old) != 1:
            sys.exit(f"mutants: {mistake.file} does not have the text of '{mistake.name}' once")
        began = time.monotonic()
        path.write_text(before.replace(mistake.old, mistake.new))
        try:
            seen = test("whole::storing", options.seeds)
            seen = seen or test("whole::transfers::whatever", options.seeds * COST)
            seen = seen or test("whole::sources::whatever", options.seeds * COST)
            seen = seen or test("whole::swarms::whatever", options.seeds * COST)
        finally:
            path.write_text(before)
        found += bool(seen)
        print(f"{time.monotonic() - began:4.0f} s  {mistake.name}: {seen or 'NOT FOUND'}", flush=True)
    print(f"{found} of {len(mistakes)} mistakes were found within {options.seeds} seeds")
    if found < WANTED * len(mistakes):
        sys.exit(1)


if __name__ == "__main__":
    main()
