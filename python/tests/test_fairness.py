import math
import random

import pytest

import fontis
from fontis import fairness, metrics
from fontis.fairness import SharedNode, User


def test_a_node_is_shared_by_each_notion():
    users = [User(1.0), User(4.0), User(1.0, cap=5.0)]
    assert fairness.allocate(100.0, users, "proportional") == [19.0, 76.0, 5.0]
    assert fairness.allocate(100.0, users, 2) == pytest.approx([95 / 3, 190 / 3, 5.0], abs=1e-9)
    assert fairness.allocate(100.0, users, "max-min") == [47.5, 47.5, 5.0]
    assert fairness.allocate(100.0, users, math.inf) == [47.5, 47.5, 5.0]
    assert fairness.allocate(100.0, users, 0) == fairness.allocate(100.0, users, "throughput") == [0.0, 100.0, 0.0]
    assert fairness.equal_shares(30.0, users) == [10.0, 10.0, 5.0]


def test_a_cascade_is_that_of_the_thesis():
    users = [User(1.0)] * 10 + [User(2.0)] * 10
    first, last = fairness.cascade([SharedNode(200.0, 2), SharedNode(100.0, 1)], users)
    assert sum(first) == pytest.approx(200.0) and last[0] == pytest.approx(10 / 3, abs=1e-9)
    assert metrics.jain(last) == pytest.approx(0.9, abs=1e-9)


def test_a_cell_shares_its_time_and_stands_in_a_cascade_on_either_side():
    users = [User(radio=12.0), User(), User(radio=2.0)]
    assert fairness.allocate_cell(6.0, users, "proportional") == pytest.approx([4.0, 2.0, 2 / 3])
    nodes = [SharedNode(6.0, "proportional", is_cell=True), SharedNode(3.0, "max-min")]
    up, down = (fairness.cascade(row, users)[-1] for row in (nodes, nodes[::-1]))
    assert up == pytest.approx([7 / 6, 7 / 6, 2 / 3])
    # In the other direction each has 1 before the cell, and the far one what time is left.
    assert down == pytest.approx([1.0, 1.0, 1.0])
    assert fairness.cascade([SharedNode(4.5, 1), nodes[0]], users)[-1] == pytest.approx([1.5, 1.5, 1.25])
    with pytest.raises(fontis.UsageError, match="radio of user 1"):
        fairness.allocate_cell(6.0, [User(radio=0.0)], 1)


def test_a_network_is_shared_as_its_one_node_is():
    seed = 1
    print(f"seed {seed}")
    numbers = random.Random(seed)
    users = [User(numbers.uniform(0.1, 10.0), numbers.choice([math.inf, 2.0])) for _ in range(30)]
    for notion in (0.5, "proportional", "delay", 3.3, "max-min"):
        of_network = fairness.network([50.0], users, [[0]] * 30, notion)
        assert of_network == pytest.approx(fairness.allocate(50.0, users, notion), abs=1e-9)
    long, *others = fairness.network([10.0, 10.0], [User()] * 3, [[0, 1], [0], [1]], "delay")
    assert [long, *others] == pytest.approx([10 / (1 + math.sqrt(2)), *[10 - 10 / (1 + math.sqrt(2))] * 2], abs=1e-9)


def test_allocations_are_compared():
    assert fairness.is_pareto_better([1.0, 2.0], [1.0, 3.0]) and not fairness.is_pareto_better([1.0, 2.0], [0.5, 3.0])
    assert fairness.is_kaldor_hicks_better([1.0, 2.0], [0.5, 3.0])
    assert not fairness.is_pareto_optimal(10.0, [math.inf, math.inf], [4.0, 5.0])
    assert fairness.indifferent("proportional", (1.0, 1.0), (2.0, 3.0), 1.0) == 6.0
    assert fairness.indifferent("max-min", (1.0, 1.0), (2.0, 3.0), 1.0) is None
    ratio = fairness.greatest_ratio(0.9)
    index, mix = fairness.least_jain(ratio)
    assert index == pytest.approx(0.9) and fairness.jain_of_classes(mix, ratio) == pytest.approx(index)
    assert fairness.weight(ratio, 2.0) == pytest.approx(ratio**2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fairness.allocate(-1.0, [User()], 1), "capacity of node 1"),
        (lambda: fairness.allocate(1.0, [User(0.0)], 1), "weight of user 1"),
        (lambda: fairness.allocate(1.0, [User(1.0, math.nan)], 1), "cap of user 1"),
        (lambda: fairness.allocate(1.0, [User()], "fair"), '"fair" is not a notion'),
        (lambda: fairness.allocate(1.0, [User()], -1), '"-1" is not a notion'),
        (lambda: fairness.network([1.0], [User()], [[1]], 1), "route of user 1"),
        (lambda: fairness.network([1.0], [User()], [], 1), "a route for each user"),
        (lambda: fairness.network([1.0], [User()], [[0]], "throughput"), "many allocations"),
        (lambda: fairness.is_pareto_better([1.0], []), "of one length"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(call, words):
    with pytest.raises(fontis.UsageError, match=words):
        call()
