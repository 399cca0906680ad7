import json
import subprocess

import polars as pl
import pytest

import fontis


@pytest.fixture
def machine(command):
    if subprocess.run([command, "testbed", "shell", "--", "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine has no testbed")


def test_a_scenario_runs_with_real_kernels_into_the_same_tables(machine, small):
    real, simulated = fontis.testbed.run(small), fontis.simulate(small)
    for name in ("flow", "queue", "event", "summary"):
        tables = [pl.DataFrame(getattr(recording, name)) for recording in (real, simulated)]
        assert tables[0].schema == tables[1].schema
    assert 0 < real.metric("goodput") <= 10.0
    assert "kernel" in json.loads(real.environment) and simulated.environment is None


def test_a_run_can_be_stopped(machine, small):
    stop = fontis.Stop()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        fontis.testbed.run(small, stop=stop, scenario__duration="1000 s")


def test_what_the_testbed_cannot_do_is_said(machine, small):
    with pytest.raises(fontis.FontisError, match="compound"):
        fontis.testbed.run({**small, "flow": [{"protocol": "compound"}]})
