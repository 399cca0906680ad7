"""Scenarios: experiments as files, texts, dictionaries or :class:`Scenario`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from fontis import _native
from fontis._native import UsageError

Value = str | int | float | bool | Sequence[str]
Table = Mapping[str, Value]


@dataclass
class Scenario:
    """An experiment, table by table; ``docs/scenario.md`` has every key. Errors suggest repairs.

    >>> topology = {"rate": "10 Mbit/s", "rtt": "20 ms"}
    >>> Scenario(topology=topology, flow=[{"protocol": "cubic", "count": 2}])
    """

    scenario: Table = field(default_factory=dict)
    topology: Table = field(default_factory=dict)
    queue: Table = field(default_factory=dict)
    tcp: Table = field(default_factory=dict)
    dfcp: Table = field(default_factory=dict)
    published: Table = field(default_factory=dict)
    sdn: Table = field(default_factory=dict)
    #: One for each link of a network of one's own.
    link: Sequence[Table] = ()
    #: One for each machine that flows share.
    host: Sequence[Table] = ()
    #: One for each group of machines.
    group: Sequence[Table] = ()
    #: One for each kind of flow.
    flow: Sequence[Table] = ()
    #: Cases by name: what each sets, by key.
    variants: Mapping[str, Table] = field(default_factory=dict)
    #: Keys and the values that they take in turn.
    sweep: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    #: What the quick variant sets.
    quick: Table = field(default_factory=dict)

    def to_toml(self) -> str:
        """Give the text of a scenario file that says the same."""
        tables = {one.name: getattr(self, one.name) for one in fields(self)}
        return to_toml({name: table for name, table in tables.items() if table})


Source = Scenario | Mapping[str, Any] | Path | str


class Recipe(NamedTuple):
    """How a scenario is made, for whoever is to make it again: its text, and what is done to it."""

    text: str
    steps: tuple[tuple[str, str, Any], ...] = ()
    #: Where the text is from, for errors.
    origin: str = ""

    def build(self) -> _native.Scenario:
        """Make it."""
        try:
            # Files that it names lie beside it.
            folder = Path(self.origin).resolve().parent if self.origin else Path()
            made = _native.Scenario.parse(self.text, str(folder))
        except UsageError as error:
            raise UsageError(f"{self.origin}: {error}" if self.origin else str(error)) from None
        for step, key, value in self.steps:
            if step == "quick":
                made = made.quick()
            elif step == "set":
                made.set(key, list(value) if isinstance(value, tuple) else value)
            else:
                made.vary(key, [list(one) if isinstance(one, tuple) else one for one in value])
        return made


@lru_cache(maxsize=8)
def runs(recipe: Recipe) -> list[_native.Run]:
    """Give the runs of a scenario; those that were made lately are kept."""
    return recipe.build().runs()


def recipe(
    source: Source,
    *,
    set: Mapping[str, Value] | None = None,
    vary: Mapping[str, Sequence[Value]] | None = None,
    quick: bool = False,
    seed: int | None = None,
) -> Recipe:
    """Find out what is meant, and note what is to be done to it."""
    text, origin = _text(source)
    steps: list[tuple[str, str, Any]] = [("quick", "", None)] if quick else []
    settings = dict(set or {})
    if seed is not None:
        settings["scenario.seed"] = seed
    made = Recipe(text, (*steps, *(("set", key, setting(value)) for key, value in settings.items())), origin)
    return varied(made, vary or {})


def varied(recipe: Recipe, grid: Mapping[str, Sequence[Value]]) -> Recipe:
    """Sweep over a grid too."""
    steps = []
    for key, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise UsageError(f"{key}: a grid needs a list of values, as in ['10 ms', '20 ms']")
        steps.append(("vary", key, tuple(setting(value) for value in values)))
    return recipe._replace(steps=(*recipe.steps, *steps))


def overrides(keys: Mapping[str, Value]) -> dict[str, Value]:
    """Read keyword arguments as keys: ``topology__rtt`` is ``topology.rtt``."""
    return {name.replace("__", "."): value for name, value in keys.items()}


def setting(value: Any) -> str | tuple[str, ...]:
    """Write a value as scenario files do."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return tuple(str(setting(one)) for one in value)
    return str(value)


def scenarios() -> list[dict[str, Any]]:
    """List the scenarios in the folder ``scenarios`` here or above, or in FONTIS_SCENARIOS."""
    names = ("id", "title", "figure", "path")
    return [dict(zip(names, about, strict=True)) for about in _native.scenarios()]


def _text(source: Source) -> tuple[str, str]:
    if isinstance(source, Scenario):
        return source.to_toml(), ""
    if isinstance(source, Mapping):
        return to_toml(source), ""
    if isinstance(source, str) and ("\n" in source or "=" in source):
        return source, ""
    _, path = _native.Scenario.find(str(source))
    return path.read_text(encoding="utf-8"), str(path)


def to_toml(tables: Mapping[str, Any]) -> str:
    """Write a dictionary as the text of a scenario file; keys with dots reach into tables."""
    lines: list[str] = []
    plain = {key: value for key, value in tables.items() if not _is_table(value)}
    lines += [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for name, value in tables.items():
        if isinstance(value, Mapping):
            inner = {key: one for key, one in value.items() if isinstance(one, Mapping)}
            leaves = {key: one for key, one in value.items() if key not in inner}
            lines += [f"[{name}]", *(f"{_key(key)} = {_value(one)}" for key, one in leaves.items())]
            for key, one in inner.items():
                lines.append(f"[{name}.{json.dumps(key)}]")
                lines += [f"{path} = {_value(leaf)}" for path, leaf in _leaves(one)]
        elif _is_table(value):
            for item in value:
                lines += [f"[[{name}]]", *(f"{path} = {_value(leaf)}" for path, leaf in _leaves(item))]
    return "\n".join(lines) + "\n"


def _is_table(value: Any) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    return isinstance(value, Mapping) or (is_list and all(isinstance(item, Mapping) for item in value))


def _leaves(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            leaves += _leaves(value, f"{prefix}{_key(key)}.")
        else:
            leaves.append((f"{prefix}{_key(key)}", value))
    return leaves


def _key(key: str) -> str:
    parts = key.split(".")
    usable = all(part.replace("-", "").replace("_", "").isalnum() and part.isascii() for part in parts)
    return key if usable else ".".join(json.dumps(part) for part in parts)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_value(one) for one in value)}]"
    return json.dumps(str(value), ensure_ascii=False)
