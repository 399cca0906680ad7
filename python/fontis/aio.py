"""Transfers and runs for asyncio. Each has its own thread and ends if its task is cancelled."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fontis import simulation, transfer
from fontis._native import Recording, Stop
from fontis.scenario import Source
from fontis.transfer import AnyPath, Callback, Report

__all__ = ["get", "send", "simulate"]

T = TypeVar("T")


async def get(url: str, dest: AnyPath = ".", *, progress: Callback | None = None, **options: Any) -> Report:
    """Fetch a URL as :func:`fontis.get` does; ``progress`` is called in the event loop."""
    tell = _in_loop(progress)
    return await _in_thread(lambda stop: transfer.get(url, dest, progress=tell, stop=stop, **options))


async def send(paths: AnyPath | Sequence[AnyPath], url: str, *, progress: Callback | None = None, **options: Any) -> list[Report]:
    """Send files as :func:`fontis.send` does; ``progress`` is called in the event loop."""
    tell = _in_loop(progress)
    return await _in_thread(lambda stop: transfer.send(paths, url, progress=tell, stop=stop, **options))


async def simulate(scenario: Source, **options: Any) -> Recording:
    """Run a scenario, as :func:`fontis.simulate` does."""
    return await _in_thread(lambda stop: simulation.simulate(scenario, stop=stop, **options))


async def _in_thread(call: Callable[[Stop], T]) -> T:
    stop = Stop()
    work = asyncio.ensure_future(asyncio.to_thread(_run, call, stop))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        # The thread must be done before its task is: it may be writing.
        await asyncio.wait([work])
        work.exception()
        raise


class _Stopped(Exception):
    """The thread's KeyboardInterrupt, which the event loop would take for its own."""


def _run(call: Callable[[Stop], T], stop: Stop) -> T:
    try:
        return call(stop)
    except KeyboardInterrupt as interrupt:
        raise _Stopped from interrupt


def _in_loop(progress: Callback | None) -> Callback | None:
    if progress is None:
        return None
    loop = asyncio.get_running_loop()
    return lambda event: loop.call_soon_threadsafe(progress, event)
