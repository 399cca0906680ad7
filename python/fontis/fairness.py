"""Fair assignment of capacity: what each notion of fairness gives to each user.

Start here: :func:`allocate` shares a node, :func:`cascade` nodes in a row, each of which does not
know the ones behind it, :func:`network` all nodes at once. A notion is ``"throughput"``,
``"proportional"``, ``"delay"``, ``"max-min"``, or a number α of at least 0; see
``docs/fairness.md``. Shares, caps and capacities have one unit, which may be any.

>>> from fontis import fairness
>>> from fontis.fairness import User
>>> fairness.allocate(100.0, [User(weight=1.0), User(weight=3.0)], "proportional")
[25.0, 75.0]
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fontis import _native

__all__ = [
    "Notion",
    "SharedNode",
    "User",
    "allocate",
    "allocate_cell",
    "cascade",
    "equal_shares",
    "greatest_ratio",
    "indifferent",
    "is_kaldor_hicks_better",
    "is_pareto_better",
    "is_pareto_optimal",
    "jain_of_classes",
    "least_jain",
    "network",
    "weight",
]

Notion = str | float
"""A notion of fairness by its name or its α."""


class User(NamedTuple):
    """A user: its utility is weight · share^(1−α) / (1−α)."""

    weight: float = 1.0
    """The weight of its utility, above zero."""
    cap: float = math.inf
    """The most that it can use."""
    radio: float | None = None
    """The rate of its radio in a cell; the cell's if it has none of its own."""


class SharedNode(NamedTuple):
    """A node of a cascade."""

    capacity: float
    """Its capacity, above zero."""
    notion: Notion
    """How it shares it."""
    is_cell: bool = False
    """Whether it is a radio cell; its capacity is the rate of users without a radio of their own."""


def allocate(capacity: float, users: Sequence[User], notion: Notion) -> list[float]:
    """Give the share of each user of a node: min(cap, λ·weight^(1/α)), with one λ for all."""
    return _native.allocate(capacity, users, notion)


def allocate_cell(rate: float, users: Sequence[User], notion: Notion) -> list[float]:
    """Give the shares of a radio cell, in which each takes share/radio of the time."""
    return _native.allocate_cell(rate, users, notion)


def equal_shares(capacity: float, users: Sequence[User]) -> list[float]:
    """Give equal parts of a node, without passing on what somebody cannot use of his."""
    return _native.equal_shares(capacity, users)


def cascade(nodes: Sequence[SharedNode], users: Sequence[User]) -> list[list[float]]:
    """Give the shares behind each node of a row; none gives a user more than the one before it."""
    return _native.cascade(nodes, users)


def network(capacities: Sequence[float], users: Sequence[User], routes: Sequence[Sequence[int]], notion: Notion) -> list[float]:
    """Give the shares that are fair in all nodes at once; a route lists places in ``capacities``.

    Raises :class:`fontis.UsageError` for what makes no sense and :class:`fontis.FontisError` if the
    prices of nodes do not settle.
    """
    return _native.network(capacities, users, routes, notion)


def is_pareto_better(before: Sequence[float], after: Sequence[float]) -> bool:
    """Say whether somebody gains and nobody loses."""
    return _native.is_pareto_better(before, after)


def is_kaldor_hicks_better(before: Sequence[float], after: Sequence[float]) -> bool:
    """Say whether those who gain could compensate those who lose: the sum is larger."""
    return _native.is_kaldor_hicks_better(before, after)


def is_pareto_optimal(capacity: float, caps: Sequence[float], shares: Sequence[float]) -> bool:
    """Say whether nobody can have more of a node without another's loss."""
    return _native.is_pareto_optimal(capacity, caps, shares)


def indifferent(notion: Notion, weights: tuple[float, float], through: tuple[float, float], first: float) -> float | None:
    """Give what the second user must have for both to be worth what they are at ``through``.

    The point (first, result) lies on the social indifference curve through ``through``; None if
    that curve has no such point.
    """
    return _native.indifferent(notion, weights, through, first)


def jain_of_classes(mix: float, ratio: float) -> float:
    """Give Jain's index where the share ``mix`` of users has ``ratio`` times what others have."""
    return _native.jain_of_classes(mix, ratio)


def least_jain(ratio: float) -> tuple[float, float]:
    """Give the least index that a ratio can have, and the mix that has it."""
    return _native.least_jain(ratio)


def greatest_ratio(jain: float) -> float:
    """Give the largest ratio that keeps an index whatever the mix."""
    return _native.greatest_ratio(jain)


def weight(ratio: float, alpha: float) -> float:
    """Give the weight that gives a ratio of shares under weighted α-fairness: ratio^α."""
    return _native.weight(ratio, alpha)
