import json

import pytest

from fontis import UsageError, claims


def test_claims_are_judged_as_the_command_judges_them(command):
    import subprocess

    checked = claims.Book("dfcp").check("dfcp-000-t3.3")
    said = subprocess.run(
        [command, "lab", "check", "dfcp", "dfcp-000-t3.3", "--recorded", "--json"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    lines = [json.loads(line) for line in said.splitlines()]
    of_command = {line["id"]: (line["verdict"], line["ours"]) for line in lines if line["event"] == "claim"}
    assert {claim.id: (claim.verdict, claim.ours) for claim in checked} == of_command and checked


def test_a_claim_says_what_checks_it_and_why_it_differs():
    book = claims.Book("dfcp")
    assert len(book) == len(book.ids) > 400
    (claim,) = book.check("dfcp-000-t3.3-ns2-loss5")
    assert claim.scenarios == ["X01"] and claim.published_number is not None
    checked = book.check("dfcp-000-f")
    differing = [claim for claim in checked if claim.verdict == "differs"]
    assert differing and all(claim.why for claim in differing)
    assert sum(book.count("dfcp-000-f").values()) == len(checked)
    assert {"id", "verdict", "why"} <= book.table("dfcp-000-t3.3")[0].keys()


def test_what_is_not_there_is_an_error_that_says_where_it_was_looked_for():
    with pytest.raises(UsageError, match=r"none\.jsonl"):
        claims.Book("none")
    with pytest.raises(Exception, match="no claim's identifier begins with"):
        claims.Book("dfcp").check("no-such-claim")
