"""Test choices within a bound: all of them, each once, the nearest first.

Page contents are those of every mask, each once.
"""

from itertools import pairwise, permutations, product

import pytest

from tornpage.model.operations import Choice
from tornpage.properties.disk.images import mixed
from tornpage.properties.disk.journal import PAGE_BYTES
from tornpage.properties.explore.exhaustive.choices import Bounded, chosen_within, page_values

FACTS = [
    Bounded("name", (0, 1), 1),
    Bounded("size", (0, 1, 2), 2),
    Bounded("page", (0, 1, (0, 1, 1)), 1),
    Bounded("written back", (0, 1), 0),
]


def distance(chosen: dict[str, Choice]) -> int:
    nothing = len(chosen)
    everything = sum(chosen.get(fact.name, 0) != fact.latest for fact in FACTS)
    return min(nothing, everything)


def every_choice() -> list[dict[str, Choice]]:
    values = product(*(fact.values for fact in FACTS))
    named = (zip((fact.name for fact in FACTS), each, strict=True) for each in values)
    return [{name: value for name, value in each if value} for each in named]


@pytest.mark.parametrize("bound", range(5))
def test_all_choices_of_a_bound_come_once_and_the_nearest_first(bound: int) -> None:
    found = list(chosen_within(FACTS, bound))
    expected = [chosen for chosen in every_choice() if distance(chosen) <= bound]
    assert sorted(map(repr, map(sorted, map(dict.items, found)))) == sorted(
        repr(sorted(each.items())) for each in expected
    )
    assert all(distance(nearer) <= distance(further) for nearer, further in pairwise(found))


def test_what_is_beyond_a_bound_is_what_the_larger_one_adds() -> None:
    larger, smaller = list(chosen_within(FACTS, 2)), list(chosen_within(FACTS, 1))
    beyond = list(chosen_within(FACTS, 2, beyond=1))
    assert beyond
    assert smaller + beyond == larger


def page(*sectors: int) -> bytes:
    return b"".join(bytes([sector]) * 512 for sector in sectors)


@pytest.mark.parametrize(
    "versions",
    [
        (page(0, 0, 0, 0), page(1, 0, 0, 0)),
        (page(0, 0, 0, 0), page(1, 2, 0, 0), page(1, 2, 3, 0)),
        (page(0, 0, 0, 0), page(1, 1, 1, 1), page(0, 0, 0, 0)),
        (b"", page(1, 2)),
        tuple(page(*[number] * 8) for number in range(3)),
    ],
)
def test_a_page_takes_each_content_that_any_mask_of_any_two_versions_makes_and_each_once(
    versions: tuple[bytes, ...],
) -> None:
    def content(choice: Choice) -> bytes:
        if isinstance(choice, int):
            return versions[choice].ljust(PAGE_BYTES, b"\0")
        return mixed(versions[choice[0]], versions[choice[1]], choice[2]).ljust(PAGE_BYTES, b"\0")

    pairs = permutations(range(len(versions)), 2)
    raw = [*range(len(versions)), *((a, b, mask) for a, b in pairs for mask in range(1, 255))]
    values = page_values(versions)
    assert values[0] == 0, "the simplest is that nothing survived"
    assert len(set(map(content, values))) == len(values)
    assert set(map(content, values)) == set(map(content, raw))
