import json
import signal
import subprocess
import sys
import threading
import time

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fontis

TABLES = ("flow", "queue", "event", "summary")


def test_a_scenario_may_be_a_file_an_id_a_text_a_dictionary_or_a_dataclass(small):
    as_class = fontis.Scenario(**small)
    recordings = [fontis.simulate(source) for source in (small, as_class, as_class.to_toml())]
    assert len({recording.metric("goodput") for recording in recordings}) == 1
    ids = {scenario["id"]: scenario["path"] for scenario in fontis.scenarios()}
    by_id = fontis.simulate("B01", scenario__duration="11 s")
    by_path = fontis.simulate(ids["B01"], set={"scenario.duration": "11 s"})
    assert by_id.metrics == by_path.metrics


def test_everything_that_a_scenario_file_may_say_can_be_said_in_a_dictionary():
    import tomllib

    from fontis.scenario import Recipe, recipe

    for scenario in fontis.scenarios():
        text = scenario["path"].read_text()
        there = recipe(tomllib.loads(text)).build().runs()
        assert [run.key for run in there] == [run.key for run in Recipe(text).build().runs()], scenario["id"]


def test_a_trace_lies_beside_its_scenario_and_links_may_be_ones_own(tmp_path):
    links = [{"from": "a", "to": "b", "rate_trace": "link.trace", "delay": "10 ms"}]
    flows = [{"from": "a", "to": "b"}]
    scenario = fontis.Scenario(scenario={"duration": "5 s", "warmup": "1 s"}, link=links, flow=flows)
    (tmp_path / "own.toml").write_text(scenario.to_toml())
    # An opportunity of 1500 bytes each two milliseconds.
    (tmp_path / "link.trace").write_text("2\n4\n")
    recording = fontis.simulate(tmp_path / "own.toml")
    assert recording.metric("utilisation", "a-b") > 0.9
    assert recording.metric("goodput") > 5
    with pytest.raises(fontis.UsageError, match=r"link\.trace: No such file"):
        fontis.simulate(scenario)


def test_keys_that_only_go_together_can_be_set_together():
    # The file's warm-up is longer than this.
    recording = fontis.simulate("B01", scenario__duration="2 s", scenario__warmup="1 s")
    assert recording.metric("goodput") > 10
    with pytest.raises(fontis.UsageError, match="leaves nothing"):
        fontis.simulate("B01", scenario__duration="2 s")


def test_the_same_seed_gives_the_same_recording_and_another_another(small):
    lossy = {**small, "topology": {**small["topology"], "loss": "1%"}}
    first, again, other = (fontis.simulate(lossy, seed=seed) for seed in (7, 7, 8))
    assert first.metrics == again.metrics != other.metrics
    for name in TABLES:
        assert pl.DataFrame(getattr(first, name)).equals(pl.DataFrame(getattr(again, name))), name
    assert fontis.simulate(lossy, seed=7, wire=True).metrics == first.metrics


def test_the_command_records_the_same(small, command, tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(fontis.Scenario(**small).to_toml())
    subprocess.run([command, "sim", path, "--output", tmp_path, "--json"], check=True, capture_output=True)
    recording = fontis.simulate(path)
    kept = json.loads((tmp_path / "small/00000/run.json").read_text())
    assert {(metric, subject): value for metric, subject, value, _ in kept["summary"]} == recording.metrics
    for name in TABLES:
        on_disk = pl.read_parquet(tmp_path / f"small/00000/{name}.parquet")
        ours = pl.DataFrame(getattr(recording, name)).with_columns(pl.col(pl.Categorical).cast(pl.String))
        assert on_disk.equals(ours, null_equal=True), name


def test_tables_are_read_by_pyarrow_pandas_polars_and_duckdb(small):
    flow = fontis.simulate(small).flow
    table = pa.table(flow)
    assert table.num_rows == len(flow) == len(pl.DataFrame(flow)) == len(pd.DataFrame.from_arrow(flow))
    assert table.schema.field("srtt").metadata[b"unit"] == b"s"
    most = max(table["received"].to_pylist())
    assert duckdb.sql("select max(received) from flow").fetchall() == [(most,)]
    assert pl.DataFrame(flow)["received"].max() == pd.DataFrame.from_arrow(flow)["received"].max() == most


def test_tables_are_handed_over_without_a_copy(small):
    flow = fontis.simulate(small).flow

    def addresses(table):
        return [buffer.address for name in ("time", "received") for buffer in table[name].chunk(0).buffers() if buffer]

    # Two readers see the same memory, and it outlives what it came from.
    first, second = pa.table(flow), pa.table(flow)
    assert addresses(first) == addresses(second)
    total = sum(first["received"].to_pylist())
    del flow, second
    assert sum(first["received"].to_pylist()) == total
    assert addresses(pl.DataFrame(first).to_arrow()) == addresses(first)


def test_data_frames_share_the_memory_of_a_table(small):
    flow = fontis.simulate(small).flow
    arrow, frame, polars = flow.to_arrow(), flow.to_pandas(), flow.to_polars()
    for name in ("time", "received", "srtt"):
        (there,) = [buffer.address for buffer in arrow[name].chunk(0).buffers() if buffer]
        assert frame[name].to_numpy(copy=False).__array_interface__["data"][0] == there
        assert polars[name].to_numpy(allow_copy=False).__array_interface__["data"][0] == there


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda small: fontis.simulate(small, topology__rt="1 ms"), 'did you mean "topology.rtt"'),
        (lambda small: fontis.simulate(small, topology__rtt="fast"), '"fast"'),
        (lambda small: fontis.simulate({**small, "topolgy": {"rate": "1"}}), "did you mean"),
        (lambda _: fontis.simulate("X06"), "fontis.sweep"),
        (lambda _: fontis.simulate("X06", variant="none"), "there are cubic, dfcp"),
        (lambda _: fontis.simulate("no/such.toml"), "no/such.toml"),
        (lambda small: fontis.simulate({**small, "flow": [{"protocol": "command", "command": "true"}]}), "testbed"),
    ],
)
def test_wrong_usage_says_what_would_be_right(small, make, words):
    with pytest.raises(fontis.UsageError, match=words) as caught:
        make(small)
    assert isinstance(caught.value, ValueError) and "\n" not in str(caught.value)


def test_an_error_in_a_file_names_the_file_and_the_line(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text("[topology]\nrat = '1 Mbit/s'\n")
    with pytest.raises(fontis.UsageError, match=r"wrong\.toml: line 2: .*did you mean"):
        fontis.simulate(path)


def test_a_metric_that_is_not_there_is_a_key_error_that_says_what_is(small):
    recording = fontis.simulate(small)
    with pytest.raises(KeyError, match=r"flow1\.1"):
        recording.metric("goodput", "nobody")


LONG = {
    "scenario": {"duration": "100000 s", "sample": "100 ms"},
    "topology": {"rate": "1 Gbit/s", "rtt": "10 ms"},
    "flow": [{}],
}


def test_other_threads_run_while_a_simulation_does_and_can_stop_it():
    stop, ended = fontis.Stop(), []

    def run():
        with pytest.raises(KeyboardInterrupt, match="stopped"):
            fontis.simulate(LONG, stop=stop)
        ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    for _ in range(20):
        time.sleep(0.01)
    assert not ended
    stop.set()
    thread.join(30)
    assert ended


def test_ctrl_c_ends_a_simulation():
    code = (
        "import fontis\nprint('begun', flush=True)\n"
        f"try:\n    fontis.simulate({LONG!r})\nexcept KeyboardInterrupt:\n    print('interrupted')"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[0] == "interrupted\n"


def test_asyncio_runs_beside_it_and_cancels_it(small):
    import asyncio

    from fontis import aio

    async def both():
        first, second = await asyncio.gather(aio.simulate(small), aio.simulate(small))
        assert first.metrics == second.metrics
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(aio.simulate(LONG), 0.2)

    asyncio.run(both())
