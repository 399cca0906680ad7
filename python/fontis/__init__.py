"""Digital fountain transport, and a laboratory around it.

Start here: :func:`simulate` runs a scenario and gives a :class:`Recording`, whose tables pandas,
polars, DuckDB and pyarrow take without a copy; :func:`sweep` runs many, on every core or on a
cluster. :func:`get`, :func:`send`, :func:`serve` and :func:`receive` move files.
:mod:`fontis.codes` has the erasure codes, :mod:`fontis.testbed` runs scenarios with real kernels,
:mod:`fontis.claims` compares papers with what comes of them here, :mod:`fontis.plots` and
:mod:`fontis.figures` draw, :mod:`fontis.quality` rates calls and video, :mod:`fontis.fairness`
shares capacity, :mod:`fontis.aio` has the transfers for asyncio, :mod:`fontis.congestion` is for
congestion control of your own.

What fails raises :class:`FontisError` (it did not work this time) or :class:`UsageError` (it can
never work as it was written), with the words that the command ``fontis`` has for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fontis._native import (
    FontisError,
    Recording,
    Run,
    Server,
    Stop,
    Table,
    Unreachable,
    UsageError,
    __version__,
)

if TYPE_CHECKING:
    from fontis.scenario import Scenario, scenarios
    from fontis.simulation import simulate
    from fontis.sweeps import Sweep, sweep
    from fontis.transfer import Report, get, receive, send, serve

# Imported when they are first used: the command starts faster, and what plots needs what draws.
_LATER = {
    "Scenario": "scenario",
    "scenarios": "scenario",
    "simulate": "simulation",
    "Sweep": "sweeps",
    "sweep": "sweeps",
    "Report": "transfer",
    "get": "transfer",
    "receive": "transfer",
    "send": "transfer",
    "serve": "transfer",
}
_MODULES = ("aio", "claims", "codes", "congestion", "fairness", "figures", "metrics", "plots", "quality", "report", "testbed")

__all__ = [
    "FontisError",
    "Recording",
    "Report",
    "Run",
    "Scenario",
    "Server",
    "Stop",
    "Sweep",
    "Table",
    "Unreachable",
    "UsageError",
    "__version__",
    "get",
    "receive",
    "scenarios",
    "send",
    "serve",
    "simulate",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        value = getattr(import_module(f"fontis.{_LATER[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"fontis.{name}")
    else:
        raise AttributeError(f"module 'fontis' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
