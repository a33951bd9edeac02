"""Test that pages state the promises of the contract in the sentences of its page."""

import re
from pathlib import Path

from tornpage.reports.promises import PROMISES, promise_of

PAGE = Path(__file__).parents[2] / "docs" / "contract.md"
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def test_the_promises_are_those_of_the_contract() -> None:
    rows = {int(number): (name, LINK.sub(r"\1", said)) for number, name, said in ROW.findall(PAGE.read_text("utf-8"))}
    assert len(rows) == 24
    assert {number: (each.name, each.sentence) for number, each in PROMISES.items()} == rows
    assert promise_of(None) is promise_of(99) is None
