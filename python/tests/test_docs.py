"""What the documents say is run as it stands there."""

import re
import shlex
import subprocess
import sys

import pytest
from conftest import ROOT

COOKBOOK = (ROOT / "docs/cookbook.md").read_text(encoding="utf-8")


def sections(text):
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", sections(COOKBOOK))
def test_a_recipe_works(name, tmp_path):
    code = "\n".join(blocks(sections(COOKBOOK)[name], "python"))
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    for line in run.stdout.splitlines():
        print(line)
    assert all(float(number) > 0 for number in re.findall(r"(?<![\w.])([\d.]+) Mbit/s", run.stdout)) and run.stdout
    # A controller that keeps a queue short has one that is shorter than CUBIC's.
    queues = {name: float(ms) for name, ms in re.findall(r"(\w+): .*?([\d.]+) ms of queue", run.stdout)}
    if queues:
        assert queues["Ledbat"] < 40 < queues["CUBIC"]


def test_fairness_prints_what_its_page_shows(tmp_path, command):
    page = (ROOT / "docs/fairness.md").read_text(encoding="utf-8")
    every = re.findall(r"^```(\w*)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (network,) = [block for language, block in every if language == "toml"]
    (tmp_path / "cell.toml").write_text(network)
    shown = [block for language, block in every if not language]
    assert len(shown) == 5
    for block in shown:
        line, expected = block.split("\n", 1)
        call = [command, *shlex.split(line)[2:]]
        run = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
        assert (run.stdout, run.stderr) == (expected, ""), line
