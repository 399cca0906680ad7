from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    # Output is what somebody's machine said once.
    assert not any(cell.get("outputs") for cell in notebook.cells)
    folder = tmp_path / "here"
    folder.mkdir()
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output]
    pictures = [output for output in shown if "image/png" in output.data]
    drawn = [cell for cell in notebook.cells if cell.source.rstrip().endswith(".figure")]
    assert len(pictures) == len(drawn)
    assert len(shown) >= 3 and not list(folder.iterdir())


def test_there_are_nine():
    names = """a-swarm first-scenario first-sweep first-transfer one-file-to-a-room two-links two-unequal-paths
    voice-over-a-satellite what-is-fair"""
    assert [path.stem for path in NOTEBOOKS] == names.split()
