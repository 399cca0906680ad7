"""The package from its source, as somebody who has never seen it gets it."""

import os
import subprocess
import sys
import venv

import pytest
from conftest import ROOT

ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A clean virtual environment after pip install . in the source folder."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    # As scripts/python.sh builds it, so that nothing is built twice.
    environment = {"MATURIN_PEP517_ARGS": "--profile dev --features as-in-tests", **ENVIRONMENT}
    call = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "."]
    subprocess.run(call, cwd=ROOT, env=environment, check=True)
    return folder


def test_it_needs_nothing_and_works(clean, tmp_path):
    code = (
        "import fontis, importlib.metadata as m\n"
        "assert not [r for r in m.requires('fontis') if 'extra' not in r]\n"
        "recording = fontis.simulate({'scenario': {'duration': '2 s'}, 'flow': [{}]})\n"
        "print(fontis.__version__, recording.metric('goodput') > 0, fontis.__file__)"
    )
    said = subprocess.run(
        [clean / "bin/python", "-c", code], cwd=tmp_path, env=ENVIRONMENT, check=True, capture_output=True, text=True
    )
    version, works, where = said.stdout.split()
    assert works == "True" and where.startswith(str(clean))
    command = subprocess.run([clean / "bin/fontis", "--version"], env=ENVIRONMENT, check=True, capture_output=True, text=True)
    assert command.stdout.split() == ["fontis", version]


def test_what_needs_more_says_how_to_install_it(clean, tmp_path):
    (tmp_path / "small.toml").write_text("[scenario]\nduration = '1 s'\n[[flow]]\n")
    for args, words in {
        ("sweep", "small.toml"): "pip install 'fontis[lab]'",
        ("figure", "dfcp-000-f4.1"): "pip install 'fontis[lab]'",
        ("report",): "pip install 'fontis[lab]'",
    }.items():
        said = subprocess.run([clean / "bin/fontis", "lab", *args], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
        assert said.returncode == 1 and words in said.stderr, said
        assert len(said.stderr.splitlines()) == 1


def test_the_wheel_has_the_types_the_figures_and_no_tests(clean):
    (installed,) = clean.glob("lib/python*/site-packages/fontis")
    there = {str(path.relative_to(installed)) for path in installed.rglob("*")}
    assert {"py.typed", "_native.pyi", "figures.toml", "_native.abi3.so" if sys.platform != "win32" else "_native.pyd"} <= there
    assert not [name for name in there if "test_" in name]
