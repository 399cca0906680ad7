import math

import pytest

from fontis import metrics
from fontis.statistics import mean_and_half_width, student_t


def test_metrics_are_those_of_the_simulator():
    assert metrics.jain([1.0, 1.0]) == 1.0 and metrics.jain([1.0, 0.0]) == 0.5
    assert metrics.goodput(1_250_000, 10.0) == 1e6
    assert metrics.max_min_shares(100.0, [10.0, 35.0, 100.0]) == [10.0, 35.0, 55.0]
    samples = [(float(t), 1.0 - t / 20, t / 20) for t in range(11)]
    assert metrics.delta_fair_convergence(samples, 2.0, 1.0, 0.1) == 7.0


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
