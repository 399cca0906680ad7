import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: A run of some ten milliseconds.
SMALL = {
    "scenario": {"id": "small", "duration": "2 s", "sample": "100 ms"},
    "topology": {"rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "1 BDP"},
    "flow": [{"protocol": "cubic", "count": 2}],
}


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch, tmp_path):
    """Scenarios and claims are found, and nobody's own identity is used."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def small():
    return {name: (dict(table) if isinstance(table, dict) else list(table)) for name, table in SMALL.items()}


@pytest.fixture(scope="session")
def command():
    """The command that the wheel carries."""
    import sys

    path = Path(sys.executable).parent / "fontis"
    assert path.is_file() and os.access(path, os.X_OK), f"{path} is not there: the wheel is not installed"
    return path
