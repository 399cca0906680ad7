import math

import pytest

import fontis
from fontis import metrics
from fontis.statistics import mean_and_half_width, student_t


def test_metrics_are_those_of_the_simulator():
    assert metrics.jain([1.0, 1.0]) == 1.0 and metrics.jain([1.0, 0.0]) == 0.5
    assert metrics.goodput(1_250_000, 10.0) == 1e6
    assert metrics.max_min_shares(100.0, [10.0, 35.0, 100.0]) == [10.0, 35.0, 55.0]
    samples = [(float(t), 1.0 - t / 20, t / 20) for t in range(11)]
    assert metrics.delta_fair_convergence(samples, 2.0, 1.0, 0.1) == 7.0


def test_the_energy_of_a_radio_follows_its_states():
    # One second with 8 Mbit, then nothing: a promotion, the base and the bits, and a tail.
    found = metrics.radio_energy([1.0, 2.0, 20.0], [0.0, 1e6, 1e6], radio="wifi")
    want = (124.4 * 0.0791 + 132.86 + 137.01 * 8 + 119.3 * 0.2381) * 1e-3
    assert found == (pytest.approx(want), 1.0, pytest.approx(0.2381), 1)
    assert metrics.radio_energy([1.0], [0.0], [1e6]).joules > metrics.radio_energy([1.0], [1e6]).joules
    with pytest.raises(fontis.UsageError, match="lte, 3g, wifi"):
        metrics.radio_energy([1.0], [1.0], radio="5g")


@pytest.mark.parametrize(
    ("confidence", "freedom", "t"),
    # Percentiles as tables print them.
    [(0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 4, 2.776), (0.95, 9, 2.262), (0.99, 30, 2.750), (0.9, 120, 1.658)],
)
def test_student_s_distribution_is_that_of_the_tables(confidence, freedom, t):
    assert student_t(confidence, freedom) == pytest.approx(t, abs=6e-4)


def test_an_interval_needs_two_values():
    assert mean_and_half_width([3.0]) == (3.0, pytest.approx(math.nan, nan_ok=True))
    mean, half = mean_and_half_width([1.0, 2.0, 3.0])
    assert (mean, half) == (2.0, pytest.approx(4.303 / math.sqrt(3), abs=1e-3))
