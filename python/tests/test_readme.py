"""Runs every command of the README, some on smaller input or with a stand-in for a machine."""

import json
import re
import shlex
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands():
    """The lines that begin with a dollar, without their comments."""
    lines = [line for language, block in BLOCKS if not language for line in block.splitlines()]
    return [re.split(r"\s+# ", line[2:])[0].strip() for line in lines if line.startswith("$ ")]


#: What is added so that a command takes less long.
RUN = {
    "fontis sim ten.toml": "--set scenario.warmup=1s --set scenario.duration=3s",
    "fontis sim ten.toml --packets": "--set scenario.warmup=100ms --set scenario.duration=500ms",
    "fontis sim --list": "",
    "fontis lab check": "",
    "fontis analyse": "",
    "fontis estimate": "",
    "fontis lab sweep": "--set scenario.warmup=1s --set scenario.duration=2s",
    "fontis lab figure": "",
    "fontis lab report": "dfcp-001",
}
SHORT = "--set scenario.warmup=1s --set scenario.duration=2s --set topology.rate=50mbit --set topology.rtt=10ms"
TESTBED = {
    "fontis testbed run ten.toml": SHORT,
    "fontis testbed shell": "-- true",
    "fontis race": "",
}
TRANSFERS = ("fontis serve", "fontis get", "fontis receive", "fontis send", "fontis cast", "fontis call", "fontis status")
#: test_package.py does the first in a clean environment; the viewer's own tests drive a browser.
ELSEWHERE = ("pip install", "cat ten.toml", "fontis view")


def the(prefix):
    found = [command for command in commands() if command.startswith(prefix)]
    (found,) = [prefix] if prefix in found else found
    return found


def test_every_command_is_known_here():
    known = (*RUN, *TESTBED, *TRANSFERS, *ELSEWHERE)
    assert [command for command in commands() if not command.startswith(known)] == []


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder like the source folder, with the files that the README speaks of."""
    folder = tmp_path_factory.mktemp("desk")
    for name in ("scenarios", "claims", "docs"):
        (folder / name).symlink_to(ROOT / name)
    (block,) = [block for _, block in BLOCKS if "$ cat ten.toml" in block]
    toml = block.split("$ cat ten.toml\n")[1].split("\n$ ")[0]
    (folder / "ten.toml").write_text(toml)
    (folder / "alps.tif").write_bytes(bytes(range(256)) * 1000)
    return folder


def run(command, line, more, desk):
    assert line.startswith("fontis ")
    call = [command, *shlex.split(line)[1:], *shlex.split(more)]
    done = subprocess.run(call, cwd=desk, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{line} {more}: {done.stderr}"
    return done.stdout


def capture():
    """A link of 3 Mbit/s, busy every other second, as a probe every 20 ms sees it at its end."""
    packets = [(second + n * 0.004, 1500) for second in range(0, 20, 2) for n in range(250)]
    for at in (n * 0.02 for n in range(1000)):
        packets.append((at + (0.02 if at % 2 < 1 else 0.0), 60))
    magic = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    port = {60: 7, 1500: 80}
    frames = (
        struct.pack("<IIII", int(at), int(at % 1 * 1e6), 28, size)
        + struct.pack(">BBHHHBBH4s4s", 0x45, 0, size, 0, 0, 64, 17, 0, bytes([10, 0, 0, 2]), bytes([10, 0, 0, 1]))
        + struct.pack(">HHHH", 9, port[size], size - 20, 0)
        for at, size in sorted(packets)
    )
    return magic + b"".join(frames)


def test_what_runs_anywhere_runs(desk, command):
    for prefix, more in RUN.items():
        if prefix == "fontis estimate":
            (desk / "capture.pcapng").write_bytes(capture())
        said = run(command, the(prefix), more, desk)
        assert said.strip(), prefix
        if prefix == "fontis lab check":
            assert the(prefix) == "fontis lab check dfcp --recorded"
            others = [run(command, f"fontis lab check {book} --recorded", "", desk) for book in ("fld", "wireless")]
            for checked in (said, *others):
                reproduced, differ = map(int, re.match(r"(\d+) reproduced, (\d+) differ", checked.splitlines()[-1]).groups())
                assert re.search(rf"\b{reproduced} are reproduced, {differ} differ", README.replace("\n", " "))
    assert {path.suffix for path in (desk / "figures").iterdir()} == {".svg", ".pdf", ".png"}
    assert (desk / "dfcp.html").is_file() and len(list((desk / "recordings/ten").glob("0*"))) == 3


def test_what_needs_a_testbed_runs_where_there_is_one(desk, command):
    if subprocess.run([command, "testbed", "shell", "--", "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine has no testbed")
    for prefix, more in TESTBED.items():
        run(command, the(prefix), more, desk)


def test_a_call_is_heard(command):
    line = shlex.split(the("fontis call"))
    assert line[1:] == ["call", "--listen"]
    with subprocess.Popen([command, *line[1:], "127.0.0.1:0"], stdout=subprocess.PIPE, text=True) as listener:
        url = listener.stdout.readline().strip()
        words = [command, "call", url, "--test", "2s", "--json"]
        call = subprocess.run(words, check=True, capture_output=True, text=True, timeout=60)
        assert listener.wait(20) == 0
    assert json.loads(call.stdout.splitlines()[-1])["there"]["played"] > 50


def test_files_move(desk, command, tmp_path):
    """What stands for another machine is a process of its own on the loopback interface."""

    def background(line, folder):
        call = [command, *shlex.split(line)[1:-1], folder, "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True)
        return process, next(line.strip() for line in process.stdout if line.startswith("fontis://"))

    (tmp_path / "maps").mkdir()
    (tmp_path / "inbox").mkdir()
    (tmp_path / "photos").mkdir()
    for path in ("maps/alps.tif", "report.pdf", "photos/one.jpg"):
        (tmp_path / path).write_bytes((desk / "alps.tif").read_bytes())
    server, url = background(the("fontis serve"), tmp_path / "maps")
    receiver, inbox = background(the("fontis receive"), tmp_path / "inbox")
    words = shlex.split(the("fontis cast"))
    (tmp_path / words[2]).write_bytes((desk / "alps.tif").read_bytes())
    caster, group = background(shlex.join([*words[:2], *words[3:], "--interface", "lo", "FILE"]), tmp_path / words[2])
    try:
        join = [command, "join", group, "joined", "--interface", "lo"]
        subprocess.run(join, cwd=tmp_path, check=True, capture_output=True, timeout=60)
        one, several, shared, links = (shlex.split(line) for line in commands() if line.startswith("fontis get"))
        assert one[2].startswith("fontis://HOST:4433/alps.tif?key=")
        assert several[2:] == ["URL1", "URL2", "URL3", "~/maps"]
        assert shared[2:] == ["URL", "--share"]
        assert links[2:] == ["URL", "--paths", "wlan0,wwan0"]
        file = url.replace("/?", "/alps.tif?")
        for words in ([file], [file, file, file, "several"], [file, "on", "--share"], [file, "again", "--paths", "lo"]):
            subprocess.run([command, "get", *words], cwd=tmp_path, check=True, capture_output=True, timeout=60)
        status = subprocess.run([command, *shlex.split(the("fontis status"))[1:]], capture_output=True, text=True, timeout=60)
        assert f"{server.pid}: serve {tmp_path / 'maps'}" in status.stdout, status.stderr
        words = shlex.split(the("fontis send"))
        subprocess.run([command, *words[1:-1], inbox], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    finally:
        for process in (server, receiver, caster):
            process.terminate()
            process.wait(10)
            process.stdout.close()
    assert (tmp_path / "alps.tif").is_file() and (tmp_path / "joined").is_file()
    assert (tmp_path / "inbox/report.pdf").is_file() and (tmp_path / "inbox/photos/one.jpg").is_file()


def test_every_target_of_make_is_there():
    targets = set(re.findall(r"`?\bmake ([a-z-]+)", README))
    assert len(targets) >= 8
    for target in targets:
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def test_python_in_it_works(desk):
    (code,) = [block for language, block in BLOCKS if language == "python"]
    subprocess.run([sys.executable, "-c", code], cwd=desk, check=True)
    assert Path(desk / "goodput.pdf").read_bytes().startswith(b"%PDF")
