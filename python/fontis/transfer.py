"""Files and folders over the network: ``fontis get``, ``send``, ``serve`` and ``receive``.

Progress comes as dictionaries: ``{"event": "connected", "remote"}``, before it
``{"event": "doubted", "remote"}`` if something answers that seems to hold another key,
``{"event": "started", "name", "bytes", "entries", "resumed"}``,
``{"event": "moved", "done", "stats"}`` several times a second, ``{"event": "stored", "report"}``. A
callback that raises ends the transfer with its exception.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from fontis import _native
from fontis._native import Server, Stop

AnyPath = str | PathLike[str]
Callback = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Report:
    """A transfer that is complete and verified."""

    name: str
    #: Where it is now; None for what was sent.
    path: Path | None
    bytes: int
    #: Bytes that were there from an earlier transfer.
    resumed: int
    #: The BLAKE3 hash of the content.
    hash: str
    seconds: float
    #: What the connection counted.
    stats: dict[str, Any]


def get(
    url: str,
    dest: AnyPath = ".",
    *,
    overwrite: bool = False,
    restart: bool = False,
    identity: AnyPath | None = None,
    psk_file: AnyPath | None = None,
    timeout: str = "15s",
    retries: int = 5,
    progress: Callback | None = None,
    stop: Stop | None = None,
) -> Report:
    """Fetch what a URL names; it has its name only when all of it is there and verified.

    What an interrupted transfer left is gone on with, unless ``restart``. Ctrl-C and ``stop`` end
    it with KeyboardInterrupt.
    """
    report = _native.get(
        url,
        dest,
        overwrite=overwrite,
        restart=restart,
        identity=identity,
        psk_file=psk_file,
        timeout=timeout,
        retries=retries,
        progress=progress,
        stop=stop,
    )
    return Report(**report)


def send(
    paths: AnyPath | Sequence[AnyPath],
    url: str,
    *,
    rate: str = "auto",
    identity: AnyPath | None = None,
    psk_file: AnyPath | None = None,
    timeout: str = "15s",
    retries: int = 5,
    progress: Callback | None = None,
    stop: Stop | None = None,
) -> list[Report]:
    """Send files and folders to a receiver; returns when they are verified and stored there."""
    some = [paths] if isinstance(paths, str | PathLike) else list(paths)
    reports = _native.send(
        some,
        url,
        rate=rate,
        identity=identity,
        psk_file=psk_file,
        timeout=timeout,
        retries=retries,
        progress=progress,
        stop=stop,
    )
    return [Report(**report) for report in reports]


def serve(
    folder: AnyPath = ".",
    *,
    listen: str | None = None,
    rate: str = "auto",
    identity: AnyPath | None = None,
    psk_file: AnyPath | None = None,
    allow: AnyPath | None = None,
    events: Callback | None = None,
) -> Server:
    """Serve a folder in the background until it is closed or the ``with`` block ends.

    ``events`` is called from another thread.

    >>> with fontis.serve("maps", listen="127.0.0.1:0") as server:
    ...     print(server.urls)
    """
    return Server(
        folder,
        receives=False,
        overwrite=False,
        listen=listen,
        rate=rate,
        identity=identity,
        psk_file=psk_file,
        allow=allow,
        events=events,
    )


def receive(
    folder: AnyPath = ".",
    *,
    overwrite: bool = False,
    listen: str | None = None,
    identity: AnyPath | None = None,
    psk_file: AnyPath | None = None,
    allow: AnyPath | None = None,
    events: Callback | None = None,
) -> Server:
    """Receive into a folder, in the background, until it is closed; the URLs hold a secret."""
    return Server(
        folder,
        receives=True,
        overwrite=overwrite,
        listen=listen,
        rate="auto",
        identity=identity,
        psk_file=psk_file,
        allow=allow,
        events=events,
    )
