"""Scenarios with real kernels and sockets, between network namespaces (``docs/testbed.md``)."""

from collections.abc import Mapping

from fontis import scenario as scenarios
from fontis._native import Recording, Stop
from fontis.scenario import Source, Value
from fontis.simulation import the_run

__all__ = ["run"]


def run(
    scenario: Source,
    *,
    set: Mapping[str, Value] | None = None,
    variant: str | None = None,
    seed: int | None = None,
    quick: bool = False,
    stop: Stop | None = None,
    **overrides: Value,
) -> Recording:
    """Run a scenario in real time, and give its recording as :func:`fontis.simulate` does.

    ``recording.environment`` is JSON that says on which machine. It takes Linux, ``/dev/net/tun``,
    and root or user namespaces.
    """
    one = the_run(scenario, {**(set or {}), **scenarios.overrides(overrides)}, variant, seed, quick)
    return one.testbed(stop)
