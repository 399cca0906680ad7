"""The metrics of experiments, as the simulator computes them; see ``docs/recording.md``."""

from collections.abc import Sequence
from typing import NamedTuple

from fontis import _native
from fontis._native import (
    delta_fair_convergence,
    equivalent_redundancy,
    goodput,
    jain,
    max_min_shares,
    quantile,
)

__all__ = [
    "RadioEnergy",
    "delta_fair_convergence",
    "equivalent_redundancy",
    "goodput",
    "jain",
    "max_min_shares",
    "quantile",
    "radio_energy",
]


class RadioEnergy(NamedTuple):
    """What a phone's radio took."""

    joules: float
    """In all."""
    active: float
    """Seconds in which it carried something."""
    tails: float
    """Seconds in which it stayed on and carried nothing."""
    promotions: int
    """How often it woke."""


def radio_energy(
    times: Sequence[float],
    received: Sequence[float],
    sent: Sequence[float] | None = None,
    radio: str = "lte",
) -> RadioEnergy:
    """Give the energy of a radio, ``"lte"``, ``"3g"`` or ``"wifi"``, from a recording's counters.

    ``received`` and ``sent`` are the bytes that the phone had received and sent up to each of the
    times, as the column ``received`` of the table ``flow``. The powers are those of Huang and
    others (MobiSys 2012).
    """
    none = [0.0] * len(times)
    return RadioEnergy(*_native.radio_energy(times, received, none if sent is None else sent, radio))
