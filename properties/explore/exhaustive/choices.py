"""Enumerate which in-flight writes survive, within a bound, with each page content once.

The bound limits how many in-flight writes differ from "nothing un-synced survived", or from "everything survived". With
no more in-flight writes than the bound, every choice is enumerated. A write that differs takes each of its values. A
page takes each version and every tear of two versions with all masks of sectors. Masks that give the same bytes are one
value: two versions that differ in two sectors have two tears, not 254.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product

from tornpage.model.operations import Choice
from tornpage.properties.disk.disk import DiskState
from tornpage.properties.disk.images import InFlightWrite, in_flight_writes, mixed
from tornpage.properties.disk.journal import PAGE_BYTES

__all__ = ["Bounded", "bounded_choices", "bounded_facts", "chosen_within", "page_values"]

SECTOR_BYTES = 512
SECTORS = PAGE_BYTES // SECTOR_BYTES


@dataclass(frozen=True, slots=True)
class Bounded:
    """Hold an in-flight write and its values.

    The value 0 means that nothing un-synced survived. `latest` is the last version.
    """

    name: str
    values: tuple[Choice, ...]
    latest: Choice


def bounded_facts(state: DiskState) -> list[Bounded]:
    """Return all values of each in-flight write, in the order of `in_flight_writes`."""
    pages = {
        f"page {inode.name} {number}": (inode, number) for inode in state.inodes.values() for number in inode.versions
    }
    found = []
    for fact in in_flight_writes(state):
        if fact.kind == "page":
            inode, number = pages[fact.name]
            found.append(_bounded_page(fact, (inode.page(number), *inode.versions[number])))
        else:
            found.append(Bounded(fact.name, tuple(range(fact.alternatives)), fact.alternatives - 1))
    return found


def _bounded_page(fact: InFlightWrite, versions: Sequence[bytes]) -> Bounded:
    values = page_values(tuple(versions))
    if not fact.tears:
        values = tuple(value for value in values if isinstance(value, int))
    latest = next(number for number, version in enumerate(versions) if _padded(version) == _padded(versions[-1]))
    return Bounded(fact.name, values, latest)


@lru_cache(maxsize=4096)
def page_values(versions: tuple[bytes, ...]) -> tuple[Choice, ...]:
    """Return a choice for each different content of a page: whole versions, then tears.

    A version may be shorter than a page. The missing bytes are zeros, since files of a store only grow.
    """
    values: dict[bytes, Choice] = {}
    for number, version in enumerate(versions):
        values.setdefault(_padded(version), number)
    for first, second in combinations(range(len(versions)), 2):
        for mask in _masks(_padded(versions[first]), _padded(versions[second])):
            values.setdefault(mixed(_padded(versions[first]), _padded(versions[second]), mask), (first, second, mask))
    return tuple(values.values())


def _masks(first: bytes, second: bytes) -> Iterator[int]:
    """Yield each mask of the sectors in which two pages differ, except none and all of them."""
    differing = [
        sector
        for sector in range(SECTORS)
        if first[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES]
        != second[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES]
    ]
    for chosen in range(1, (1 << len(differing)) - 1):
        yield sum(1 << sector for bit, sector in enumerate(differing) if chosen >> bit & 1)


def _padded(page: bytes) -> bytes:
    return page.ljust(PAGE_BYTES, b"\0")


def bounded_choices(state: DiskState, bound: int, beyond: int = -1) -> Iterator[dict[str, Choice]]:
    """Yield each choice for a disk within a bound, leaving out those within `beyond`."""
    return chosen_within(bounded_facts(state), bound, beyond=beyond)


def chosen_within(facts: Sequence[Bounded], bound: int, *, beyond: int = -1) -> Iterator[dict[str, Choice]]:
    """Yield each choice in which at most `bound` writes differ from nothing or everything.

    The nearest choices come first. Choices in which no more than `beyond` writes differ are left out, because an
    earlier enumeration had them. Each choice comes once. Writes that did not survive are not named.
    """
    for distance in range(beyond + 1, bound + 1):
        for changed in _changed(facts, {fact.name: 0 for fact in facts}, distance):
            if distance <= _from_everything(facts, changed):
                yield changed
        for changed in _changed(facts, {fact.name: fact.latest for fact in facts}, distance):
            if distance < len(changed):
                yield changed


def _from_everything(facts: Sequence[Bounded], chosen: Mapping[str, Choice]) -> int:
    return sum(chosen.get(fact.name, 0) != fact.latest for fact in facts)


def _changed(facts: Sequence[Bounded], centre: Mapping[str, Choice], distance: int) -> Iterator[dict[str, Choice]]:
    """Yield each choice in which exactly `distance` writes differ from a centre."""
    for which in combinations(facts, distance):
        others = [[value for value in fact.values if value != centre[fact.name]] for fact in which]
        for values in product(*others):
            chosen = {**centre, **{fact.name: value for fact, value in zip(which, values, strict=True)}}
            yield {name: value for name, value in chosen.items() if value}
