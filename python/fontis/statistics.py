"""Confidence intervals of means (Student's t)."""

import math
from collections.abc import Sequence
from functools import lru_cache


def mean_and_half_width(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Give the mean and half its confidence interval's width; NaN for fewer than two values."""
    mean = math.fsum(values) / len(values) if values else math.nan
    if len(values) < 2:
        return mean, math.nan
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, student_t(confidence, len(values) - 1) * math.sqrt(variance / len(values))


@lru_cache(maxsize=256)
def student_t(confidence: float, freedom: int) -> float:
    """Give the t for which a share ``confidence`` of Student's distribution lies within ±t."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"a confidence must lie between 0 and 1, as in 0.95: {confidence}")
    low, high = 0.0, 1.0
    while within(high, freedom) < confidence:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if within(middle, freedom) < confidence else (low, middle)
    return (low + high) / 2.0


def within(t: float, freedom: int) -> float:
    """Give the share of Student's distribution within ±t (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    theta = math.atan(t / math.sqrt(freedom))
    cosine2 = math.cos(theta) ** 2
    odd = freedom % 2
    term = math.cos(theta) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for step in range(2 + odd, freedom - 1, 2):
        term *= cosine2 * (step - 1) / step
        total += term
    if odd:
        return 2.0 / math.pi * (theta + math.sin(theta) * total)
    return math.sin(theta) * total
