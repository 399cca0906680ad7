import subprocess
from xml.etree import ElementTree

import pytest

import fontis
from fontis import figures, plots

PNG, PDF = b"\x89PNG", b"%PDF"


def test_every_plot_is_saved_in_every_format(small, tmp_path):
    recording = fontis.simulate(small)
    done = fontis.sweep(small, {"topology.rtt": ["10 ms", "20 ms"], "topology.loss": ["0", "1%"]}, 2, folder=tmp_path / "sweep")
    drawn = {
        "goodput": plots.time_series(recording, smooth=0.3),
        "queue": plots.time_series(recording, "mean_packets"),
        "sequence": plots.time_sequence(recording),
        "cdf": plots.cdf({"a": [1.0, 2.0, 3.0], "b": [2.0, 2.0]}, label="seconds"),
        "map": plots.heat_map(done, "topology.rtt", "topology.loss"),
        "lines": plots.lines(done, "topology.rtt"),
    }
    for name, axes in drawn.items():
        for kind in plots.FORMATS:
            path = plots.save(axes, tmp_path / f"{name}.{kind}")
            begin = path.read_bytes()[:4]
            assert {"png": begin == PNG, "pdf": begin == PDF, "svg": begin == b"<?xm"}[kind]
        assert ElementTree.parse(tmp_path / f"{name}.svg").getroot().tag.endswith("svg")
    with pytest.raises(fontis.UsageError, match="name it .svg, .pdf or .png"):
        plots.save(drawn["cdf"], tmp_path / "cdf.jpg")
    with pytest.raises(fontis.UsageError, match="there are goodput"):
        plots.time_series(recording, "speed")
    with pytest.raises(fontis.UsageError, match="is not swept"):
        plots.lines(done, "topology.rate")


def test_the_same_recording_gives_the_same_bytes(small, tmp_path):
    recording = fontis.simulate(small)
    for kind in plots.FORMATS:
        first, second = (
            plots.save(plots.time_series(recording), tmp_path / f"{name}.{kind}").read_bytes() for name in ("one", "two")
        )
        assert first == second, kind


def test_goodput_over_time_is_what_was_received(small):
    recording = fontis.simulate(small)
    (line, _) = plots.time_series(recording).lines
    times, rates = line.get_xdata(), line.get_ydata()
    steps = [b - a for a, b in zip([0.0, *times[:-1]], times, strict=True)]
    received = sum(rate * step for rate, step in zip(rates, steps, strict=True)) / 8e-6
    most = max(
        row for row, name in zip(*map(recording_column(recording), ("received", "name")), strict=True) if name == "flow1.1"
    )
    assert received == pytest.approx(most, rel=1e-9)


TWENTY = """
[scenario]
duration = "4 s"
sample = "100 ms"
[topology]
rate = "20 Mbit/s"
rtt = "20 ms"
[[flow]]
count = 10
protocol = "cubic"
[[flow]]
count = 10
protocol = "dfcp"
"""


def test_many_flows_are_drawn_as_their_mean_and_range(tmp_path):
    recording = fontis.simulate(TWENTY)
    for axes in (plots.time_series(recording), plots.time_sequence(recording)):
        assert [line.get_label() for line in axes.lines] == ["flow1: mean\nand range of 10", "flow2: mean\nand range of 10"]
        assert len(axes.collections) == 2
    axes = plots.time_series(recording, flows=[f"flow1.{number}" for number in range(1, plots.SINGLE + 1)])
    assert len(axes.lines) == plots.SINGLE and not axes.collections


def test_a_band_reaches_from_the_least_to_the_most():
    axes = plots.new()[1][0]
    plots.curves(axes, {f"a.{number}": [(0.0, float(number)), (1.0, 10.0)] for number in range(1, 10)})
    (line,) = axes.lines
    assert list(line.get_ydata()) == [5.0, 10.0]
    (band,) = axes.collections
    low, high = band.get_datalim(axes.transData).intervaly
    assert (low, high) == (1.0, 10.0)
    many = {f"{number}": [float(number), float(number + 1)] for number in range(plots.SINGLE + 1)}
    assert len(plots.cdf(many).lines) == 1


def test_a_legend_stands_beside_the_axes(tmp_path):
    axes = plots.time_series(fontis.simulate(TWENTY))
    plots.save(axes, tmp_path / "drawn.png")
    assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1
    assert axes.get_window_extent().width > axes.figure.get_window_extent().width / 2


def recording_column(recording):
    import pyarrow as pa

    table = pa.table(recording.flow)
    return lambda name: table[name].to_pylist()


def test_lines_differ_in_print_as_in_colour():
    looks = [tuple(map(str, plots.look(place).values())) for place in range(21)]
    assert len(set(looks)) == 21
    without_colour = [look[1:] for look in looks[:7]]
    assert len(set(without_colour)) == 7


def test_the_shell_draws_figures(command, tmp_path):
    folder = tmp_path / "figures"
    call = [command, "lab", "figure", "dfcp-000-f4.13", "--folder", folder, "--format", "svg", "--format", "pdf"]
    subprocess.run(call, check=True, capture_output=True)
    assert {path.name for path in folder.iterdir()} == {
        f"dfcp-000-f4.13{part}.{kind}" for part in "ab" for kind in ("svg", "pdf")
    }
    listed = subprocess.run([command, "lab", "figure", "--list"], check=True, capture_output=True, text=True).stdout
    assert len(listed.splitlines()) == len(figures.figures())
    wrong = subprocess.run([command, "lab", "figure", "dfcp-000-f2.2"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "is not redrawn: a sketch" in wrong.stderr
