import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pyarrow.dataset as ds
import pytest

import fontis
from fontis.scenario import runs as all_runs

GRID = {"topology.rtt": ["10 ms", "30 ms"], "topology.loss": ["0.5%", "2%"]}


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    from conftest import SMALL

    return fontis.sweep(SMALL, GRID, reps=3, folder=tmp_path_factory.mktemp("reference")).table()


def files(folder):
    return sorted(folder.glob("version=*/*.parquet"))


def test_a_sweep_runs_every_point_with_a_seed_for_each_repetition(small, reference):
    goodput = reference.filter((ds.field("metric") == "goodput") & (ds.field("subject") == "all"))
    assert goodput.num_rows == 12 and set(goodput["seed"].to_pylist()) == {1, 2, 3}
    one = fontis.simulate(small, seed=2, topology__rtt="30 ms", topology__loss="2%")
    row = goodput.filter((ds.field("topology.rtt") == "30 ms") & (ds.field("topology.loss") == "2%"))
    assert row["value"].to_pylist()[1] == one.metric("goodput")


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_any_executor_gives_the_same(small, reference, tmp_path, pool):
    import multiprocessing

    options = {"mp_context": multiprocessing.get_context("spawn")} if pool is ProcessPoolExecutor else {}
    with pool(2, **options) as executor:
        assert fontis.sweep(small, GRID, 3, executor, folder=tmp_path).table().equals(reference)


def test_a_rerun_does_only_what_is_missing_or_changed(small, tmp_path):
    told = []
    first = fontis.sweep(small, {"topology.rtt": ["10 ms", "30 ms"]}, 2, folder=tmp_path, progress=told.append)
    assert first.kept == 0 and told[-1].done == told[-1].runs == 4
    grown = fontis.sweep(small, {"topology.rtt": ["10 ms", "20 ms", "30 ms"]}, 3, folder=tmp_path)
    assert grown.kept == 4
    changed = fontis.sweep(small, {"topology.rtt": ["10 ms"]}, 2, folder=tmp_path, set={"topology.buffer": "9 packets"})
    assert changed.kept == 0
    assert fontis.sweep(small, {"topology.rtt": ["10 ms"]}, 2, folder=tmp_path).kept == 2
    # A title changes nothing.
    renamed = {**small, "scenario": {**small["scenario"], "title": "another"}}
    assert fontis.sweep(renamed, {"topology.rtt": ["10 ms"]}, 2, folder=tmp_path).kept == 2
    assert ds.dataset(tmp_path, partitioning="hive").to_table(filter=ds.field("version") == fontis.__version__).num_rows


def test_confidence_intervals_are_over_the_repetitions(small, tmp_path):
    done = fontis.sweep(small, {"topology.loss": ["1%"]}, 4, folder=tmp_path)
    (row,) = done.statistics("goodput").to_pylist()
    values = [fontis.simulate(small, seed=seed, topology__loss="1%").metric("goodput") for seed in range(1, 5)]
    assert row["runs"] == 4 and row["mean"] == pytest.approx(sum(values) / 4)
    assert row["low"] < row["mean"] < row["high"] and row["high"] - row["mean"] == pytest.approx(row["mean"] - row["low"])


def test_time_left_is_told_once_something_is_done(small, tmp_path):
    told = []
    fontis.sweep(small, GRID, folder=tmp_path, chunk=1, progress=told.append)
    assert told[0].left is None and told[-1].left == 0 and [now.done for now in told] == sorted(now.done for now in told)


def test_an_interrupted_sweep_continued_equals_one_that_was_not(small, reference, tmp_path):
    """The process is killed at random points, in whatever it is doing."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    code = f"import fontis\nprint('begun', flush=True)\nfontis.sweep({small!r}, {GRID!r}, 3, folder={str(tmp_path)!r}, chunk=1)"
    for kill in [signal.SIGKILL, signal.SIGINT, signal.SIGKILL, signal.SIGINT]:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        time.sleep(chance.uniform(0, 0.15))
        process.send_signal(kill)
        process.wait(30)
        process.stdout.close()
    there = len(files(tmp_path))
    done = fontis.sweep(small, GRID, 3, folder=tmp_path)
    assert done.kept >= there > 0 or there == 0
    assert done.table().equals(reference)


def test_an_interrupt_keeps_what_was_finished(small, tmp_path):
    def interrupt(now):
        if now.done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fontis.sweep(small, GRID, 3, folder=tmp_path, chunk=1, progress=interrupt)
    done = fontis.sweep(small, GRID, 3, folder=tmp_path)
    assert 3 <= done.kept < 12


def test_a_file_that_is_broken_is_named(small, tmp_path):
    fontis.sweep(small, {"topology.rtt": ["10 ms"]}, folder=tmp_path)
    (path,) = files(tmp_path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(fontis.FontisError, match=f"{path.name}.*remove it"):
        fontis.sweep(small, {"topology.rtt": ["10 ms"]}, folder=tmp_path)


def test_what_makes_no_sense_is_refused_before_anything_runs(small, tmp_path):
    for wrong, words in [
        ({"grid": {"topology.rt": ["1 ms"]}}, "did you mean"),
        ({"grid": {"topology.rtt": "10 ms"}}, "list of values"),
        ({"grid": {"topology.rtt": []}}, "needs values"),
        ({"executor": 3}, "no executor"),
        ({"variants": ["none"]}, "there are -"),
    ]:
        with pytest.raises(fontis.UsageError, match=words):
            fontis.sweep(small, folder=tmp_path, **wrong)
    assert not files(tmp_path)


def test_a_cluster_loses_nothing_when_a_worker_dies(small, tmp_path):
    distributed = pytest.importorskip("distributed")
    slow = {**small, "scenario": {**small["scenario"], "duration": "60 s"}}
    expected = fontis.sweep(slow, GRID, 3, folder=tmp_path / "threads").table()
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        pids = client.run(os.getpid)
        assert len(set(pids.values())) == 2
        killed = threading.Event()

        def kill_one(now):
            if now.done >= 2 and not killed.is_set():
                killed.set()
                os.kill(next(iter(pids.values())), signal.SIGKILL)

        done = fontis.sweep(slow, GRID, 3, client, folder=tmp_path / "cluster", chunk=2, progress=kill_one)
        assert killed.is_set()
        # The nanny replaces it; its process is another one.
        client.wait_for_workers(2, timeout=60)
        assert set(client.run(os.getpid).values()) != set(pids.values())
    assert done.kept == 0 and done.table().equals(expected)


def test_the_shell_sweeps_too(small, command, tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(fontis.Scenario(**small).to_toml())
    flags = ["--grid", "topology.rtt=10 ms,30 ms", "--reps", "2", "--folder", tmp_path / "out"]
    call = [command, "lab", "sweep", path, *flags, "--output", tmp_path / "all.csv"]
    said = subprocess.run(call, check=True, capture_output=True, text=True).stdout
    title, names = said.splitlines()[:2]
    assert title.startswith("goodput of all: means") and names.split()[0] == "topology.rtt"
    assert "4 runs, 0 of them from before" in said
    assert "4 runs, 4 of them" in subprocess.run(call, check=True, capture_output=True, text=True).stdout
    assert (tmp_path / "all.csv").read_text().startswith('"variant","topology.rtt"')
    wrong = subprocess.run([command, "lab", "sweep", path, "--grid", "topology.rtt"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "write KEY=VALUE" in wrong.stderr


def test_plans_are_made_once_in_a_process(small):
    from fontis.scenario import recipe

    one = recipe(small, vary=GRID)
    assert all_runs(one) is all_runs(one)
