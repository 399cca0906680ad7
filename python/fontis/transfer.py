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
    #: Sockets, pipes, devices, links and names that were left out of a folder.
    left_out: int = 0
    #: Files, folders and links of a folder that ``exclude`` left out.
    excluded: int = 0


def get(
    url: str | Sequence[str],
    dest: AnyPath = ".",
    *,
    overwrite: bool = False,
    restart: bool = False,
    outward_links: bool = False,
    exclude: str | Sequence[str] = (),
    identity: AnyPath | None = None,
    psk_file: AnyPath | None = None,
    timeout: str = "15s",
    retries: int = 5,
    transport: str = "dfcp",
    interfaces: str = "auto",
    spare: Sequence[str] = (),
    share: bool = False,
    share_for: str | None = None,
    progress: Callback | None = None,
    stop: Stop | None = None,
) -> Report:
    """Fetch what a URL names; it has its name only when all of it is there and verified.

    Of several URLs, of servers that have the same content, each server sends a part.
    What an interrupted transfer left is gone on with, unless ``restart``. Links that point out of
    their folder are left out, unless ``outward_links``. What matches ``exclude``, a pattern or
    several as in ``.gitignore``, is left out of a folder. ``transport`` carries the content:
    "dfcp", or "sctp" from a server that was started with it. ``interfaces`` says over which
    interfaces it comes: "auto", "one" or names, as in "eth0,wwan0"; those that ``spare`` names
    carry data only while no other answers. With ``share`` it comes from all who fetch the same that
    way, and is sent on to them; after the end for ``share_for``, as in "10min". Ctrl-C and ``stop``
    end it with KeyboardInterrupt.
    """
    report = _native.get(
        [url] if isinstance(url, str) else list(url),
        dest,
        overwrite=overwrite,
        restart=restart,
        outward_links=outward_links,
        exclude=[exclude] if isinstance(exclude, str) else list(exclude),
        identity=identity,
        psk_file=psk_file,
        timeout=timeout,
        retries=retries,
        transport=transport,
        interfaces=interfaces,
        spare=list(spare),
        share=share,
        share_for=share_for,
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
    interfaces: str = "auto",
    spare: Sequence[str] = (),
    progress: Callback | None = None,
    stop: Stop | None = None,
) -> list[Report]:
    """Send files and folders to a receiver; returns when they are verified and stored there.

    ``interfaces`` says over which interfaces they go, as for ``get``.
    """
    some = [paths] if isinstance(paths, str | PathLike) else list(paths)
    reports = _native.send(
        some,
        url,
        rate=rate,
        identity=identity,
        psk_file=psk_file,
        timeout=timeout,
        retries=retries,
        interfaces=interfaces,
        spare=list(spare),
        progress=progress,
        stop=stop,
    )
    return [Report(**report) for report in reports]


def serve(
    folder: AnyPath = ".",
    *,
    public: bool = False,
    listen: str | None = None,
    rate: str = "auto",
    identity: AnyPath | None = None,
    psk_file: AnyPath | None = None,
    allow: AnyPath | None = None,
    events: Callback | None = None,
) -> Server:
    """Serve a folder in the background until it is closed or the ``with`` block ends.

    The URLs hold a secret, the same in each run; without it nobody can read, unless ``public``.

    ``events`` is called from another thread.

    >>> with fontis.serve("maps", listen="127.0.0.1:0") as server:
    ...     print(server.urls)
    """
    return Server(
        folder,
        receives=False,
        public=public,
        overwrite=False,
        hidden=False,
        max_size=None,
        outward_links=False,
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
    hidden: bool = False,
    max_size: int | None = None,
    outward_links: bool = False,
    listen: str | None = None,
    identity: AnyPath | None = None,
    psk_file: AnyPath | None = None,
    allow: AnyPath | None = None,
    events: Callback | None = None,
) -> Server:
    """Receive into a folder, in the background, until it is closed; the URLs hold a secret.

    Names that begin with a dot are refused unless ``hidden``, and more than ``max_size`` bytes of
    all objects together.
    """
    return Server(
        folder,
        receives=True,
        public=False,
        overwrite=overwrite,
        hidden=hidden,
        max_size=max_size,
        outward_links=outward_links,
        listen=listen,
        rate="auto",
        identity=identity,
        psk_file=psk_file,
        allow=allow,
        events=events,
    )
