"""Test that both forms of a power loss, by survivors and by losses, mean the same."""

import random

import pytest

from tornpage.model.operations import Choice
from tornpage.properties.disk.choosing import chosen, exceptions, fewest_exceptions, fitted, lost_writes
from tornpage.properties.disk.images import InFlightWrite
from tornpage.properties.disk.sampling import draw

FACTS = [
    InFlightWrite("create /store/a", "name", 2),
    InFlightWrite("size /store/a", "size", 3),
    *(InFlightWrite(f"page /store/a {number}", "page", 2 + number) for number in range(4)),
]


@pytest.mark.parametrize("seed", range(30))
def test_every_loss_can_be_said_in_both_forms(seed: int) -> None:
    choices = draw(FACTS, random.Random(seed))
    wanted = chosen(FACTS, choices, "lost")
    kept = exceptions(FACTS, wanted, "kept")
    assert chosen(FACTS, kept, "kept") == wanted
    assert {fact.name for fact in lost_writes(FACTS, wanted)} == set(kept)
    named, others = fewest_exceptions(FACTS, wanted)
    assert chosen(FACTS, named, others) == wanted
    assert len(named) == min(len(kept), len(exceptions(FACTS, wanted, "lost")))


def test_nothing_and_everything_need_no_exception() -> None:
    assert chosen(FACTS, {}, "lost") == {}
    everything: dict[str, Choice] = {fact.name: fact.alternatives - 1 for fact in FACTS}
    assert chosen(FACTS, {}, "kept") == everything
    assert fewest_exceptions(FACTS, {}) == ({}, "lost")
    assert fewest_exceptions(FACTS, everything) == ({}, "kept")


def test_what_is_as_usual_unknown_or_too_large_is_fitted() -> None:
    survived: dict[str, Choice] = {"page /store/a 0": 9, "page /store/a 1": (9, 0, 3), "page /store/b 0": 1}
    assert fitted(FACTS, survived, "lost") == {"page /store/a 0": 1, "page /store/a 1": (2, 0, 3)}
    assert fitted(FACTS, survived, "kept") == {"page /store/a 1": (2, 0, 3)}
