"""Single runs in the simulator."""

from collections.abc import Callable, Mapping

from fontis import scenario as scenarios
from fontis._native import Recording, Run, Stop, UsageError
from fontis.congestion import Controller
from fontis.scenario import Source, Value


def simulate(
    scenario: Source,
    *,
    set: Mapping[str, Value] | None = None,
    variant: str | None = None,
    seed: int | None = None,
    quick: bool = False,
    wire: bool = False,
    stop: Stop | None = None,
    congestion: Mapping[str, Callable[[int, int], Controller]] | None = None,
    **overrides: Value,
) -> Recording:
    """Run a scenario in virtual time, and give what was recorded.

    ``scenario`` is a path, the id of a file in the folder ``scenarios``, TOML text, a dictionary,
    or a :class:`fontis.Scenario`. ``set`` sets keys, as in ``{"topology.rtt": "20 ms"}``; keyword
    arguments do too, with two underscores for the dot: ``topology__rtt="20 ms"``. ``wire`` lets
    every packet pass through its wire format. The same seed gives the same recording.
    ``congestion`` has a :class:`fontis.congestion.Controller` for TCP flows, by the flow's
    name: it governs them in place of what the scenario says.

    Ctrl-C ends it with KeyboardInterrupt; so does ``stop`` from another thread. Other threads run
    meanwhile.

    >>> fifo = "scenarios/basic/fifo.toml"
    >>> recording = fontis.simulate(fifo, flow__protocol="bbr", flow__count=2)
    >>> recording.metric("goodput")
    """
    run = the_run(scenario, {**(set or {}), **scenarios.overrides(overrides)}, variant, seed, quick)
    return run.simulate(stop, wire, congestion)


def the_run(scenario: Source, settings: Mapping[str, Value], variant: str | None, seed: int | None, quick: bool) -> Run:
    """Give the one run that is meant."""
    runs = scenarios.runs(scenarios.recipe(scenario, set=settings, seed=seed, quick=quick))
    if variant is not None:
        names = sorted({run.variant for run in runs})
        runs = [run for run in runs if run.variant == variant]
        if not runs:
            raise UsageError(f"there is no variant {variant!r}; there are {', '.join(name or '-' for name in names)}")
    if len(runs) != 1:
        some = "; ".join([run.label for run in runs[:3]] + ["…"] * (len(runs) > 3))
        raise UsageError(
            f"it stands for {len(runs)} runs ({some}): choose one by variant= and by setting what is swept, "
            "or run all of them with fontis.sweep"
        )
    return runs[0]
