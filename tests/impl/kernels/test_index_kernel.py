"""Test compiled loops of the index: their bytes and answers are those of the plain twins."""

import struct
from array import array
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tornpage.impl.index import index_entries as plain
from tornpage.impl.index.index_entries import ENTRY_BYTES, SLOT_BYTES

I64 = st.integers(-(1 << 63), (1 << 63) - 1)
TIMES = st.integers(0, 20_000) | st.sampled_from((-1, 0, 1, 999, 1000, (1 << 63) - 1, -(1 << 63), (1 << 31) * 1000))
HASHES = st.integers(0, 12) | st.integers(0, (1 << 31) - 1)
PUTS = st.lists(st.tuples(HASHES, st.integers(0, 50) | I64, TIMES), max_size=12)
Put = tuple[int, int, int]


@cache
def compiled() -> Any:
    """Return the twin, compiled in this process by the first test that needs it."""
    return import_module("tornpage.impl.kernels.index")


def columns(puts: list[Put], kind: str) -> list[Any]:
    """Return the puts as parallel sequences of the given kind."""
    lists = [[put[field] for put in puts] for field in range(3)]
    match kind:
        case "arrays":
            return [np.array(column, np.int64) for column in lists]
        case "strided":
            return list(np.array(puts, np.int64).reshape(-1, 3).T)
    return lists


def both(
    name: str, heads: bytes, entries: bytes, *arguments: Any, puts: Any = None, kind: str = "lists", behind: Any = ()
) -> bytes:
    """Return the entries of the plain twin.

    The compiled one has to make and answer the same. `puts`, if there are any, come between `arguments` and `behind`.
    """
    outcomes = []
    for twin in (plain, compiled()):
        written = bytearray(heads), bytearray(entries)
        given = () if puts is None else columns(puts, kind if twin is compiled() else "lists")
        with memoryview(written[0]) as head_view, memoryview(written[1]) as entry_view:
            answer = getattr(twin, name)(head_view, entry_view, *arguments, *given, *behind)
        written[0].append(0)  # no reader holds it any more
        assert all(type(number) is int for number in answer)
        outcomes.append((answer, bytes(written[0]), bytes(written[1])))
    assert outcomes[0] == outcomes[1]
    return outcomes[0][2]


@given(
    puts=PUTS,
    slots=st.integers(1, 7),
    number=st.integers(1, 5),
    begin=TIMES,
    kind=st.sampled_from(("lists", "arrays", "strided")),
    data=st.data(),
)
def test_twins_put_match_and_trace_alike(
    puts: list[Put], slots: int, number: int, begin: int, kind: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(puts)), label="start")
    end = data.draw(st.integers(start, len(puts)), label="end")
    room = bytes((number + end - start + 1) * ENTRY_BYTES)
    chains = data.draw(st.lists(st.sampled_from((0, 0, number - 1)), min_size=slots, max_size=slots), label="chains")
    for heads in (bytes(slots * SLOT_BYTES), struct.pack(f">{slots}i", *chains)):
        entries = both(
            "put_entries", heads, room, number, begin, puts=puts, kind=kind, behind=(start, end, lambda what: None)
        )
        damaged = bytearray(entries)
        if data.draw(st.booleans(), label="damaged"):
            damaged[data.draw(st.integers(0, len(damaged) - 1), label="at")] ^= 1 << data.draw(st.integers(0, 7))
        found = bytes(damaged)
        both("match_entries", heads, found, number, begin, puts=puts, kind=kind, behind=(start, end))
        limits = data.draw(st.tuples(I64, I64) | st.just((-(1 << 63), (1 << 63) - 1)), label="limits")
        both("trace_entries", heads, found, number, number + end - start, *limits)


@given(heads=st.binary(min_size=4, max_size=40), entries=st.binary(max_size=200), limit=st.integers(-1, 60))
def test_twins_trace_any_bytes_alike(heads: bytes, entries: bytes, limit: int) -> None:
    both("trace_entries", heads, entries, 0, len(entries) // ENTRY_BYTES, 0, limit)


@pytest.mark.parametrize(
    ("number", "start", "end", "slots"),
    [(2, 0, 2, 1), (4, 0, 1, 1), (-1, 0, 1, 1), (1, 0, 3, 1), (1, -1, 1, 1), (1, 0, 1, 0)],
)
def test_what_does_not_fit_is_as_with_the_plain_twin(number: int, start: int, end: int, slots: int) -> None:
    """The file has room for three entries, entry 0 included, and there are two puts."""
    given: list[Any] = [array("q", [5, 6]), [7, 8], [9, 10]]
    for name, more in (("put_entries", (lambda what: None,)), ("match_entries", ())):
        outcomes = []
        for twin in (plain, compiled()):
            entries = memoryview(bytearray(3 * ENTRY_BYTES))
            heads = memoryview(bytearray(slots * SLOT_BYTES))
            try:
                outcomes.append(getattr(twin, name)(heads, entries, number, 0, *given, start, end, *more))
            except (struct.error, IndexError, ZeroDivisionError) as error:
                outcomes.append(type(error))
        assert outcomes[0] == outcomes[1]
