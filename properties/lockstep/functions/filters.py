"""Compare filters: expressions at their limits, Bloom bits, and registrations."""

import random
from collections.abc import Iterable, Mapping

from tornpage.impl.queue.consume_queue_ext import ExtUnit
from tornpage.impl.read.bloom import BloomBits, BloomFilter, is_hit
from tornpage.impl.read.filters import FilterBitMaps, PropertyFilter
from tornpage.model.broker.filters import BLOOM, EXPRESSIONS, IMPOSSIBLE_BLOOM
from tornpage.model.properties import CLAUSES, PROPERTY_NAMES, passes
from tornpage.properties.lockstep.functions.comparing import REFUSED, is_answered, is_value
from tornpage.properties.program.drawing import draw_where

__all__ = ["check"]

_VALUES = ("5", "3", "-2", "3.5", "many", "red", "it's", "TRUE", "no", "3000000000")
_BORN_MS = 1_000
_EXPRESSIONS = 60
"""The expressions of one comparison, since parsing costs more than the rest."""
_DRAWN = 20
_LEVELS = 4
"""Drawn expressions of one comparison, and their levels."""
_GROUPS = tuple(f"g{number}" for number in range(6))


def check(rng: random.Random) -> None:
    """Compare all of them. Raises GuaranteeBroken."""
    for expression, properties, expected in rng.sample(EXPRESSIONS, _EXPRESSIONS):
        wanted: object = REFUSED if expected is None else expected
        shown = f"the filter {expression[:40]!r} of {dict(properties)}"
        is_answered(shown, wanted, _matches, expression, properties)
    for text, capacity, percent, bits, positions in BLOOM:
        bloom = BloomFilter(capacity=capacity, error_percent=percent)
        is_value(f"the bits for {capacity} consumers", bits, bloom.bit_count)
        is_answered(f"the bits of {text!r}", positions, bloom.positions, text)
    for capacity, percent in IMPOSSIBLE_BLOOM:
        what = f"a bit map for {capacity} consumers with {percent} % of false hits"
        is_answered(what, REFUSED, BloomFilter, capacity=capacity, error_percent=percent)
    for _ in range(_DRAWN):
        drawn, properties = draw_where(rng, _LEVELS), _draw_properties(rng)
        shown = f"the filter {drawn!r} of {properties}"
        is_answered(shown, passes(drawn, properties.get), _matches, drawn, properties)
    _bit_maps(rng)
    _registered(rng)


def _matches(expression: str, properties: Mapping[str, str]) -> bool:
    return PropertyFilter(expression).matches(properties)


def _draw_properties(rng: random.Random) -> dict[str, str]:
    return {name: rng.choice(_VALUES) for name in PROPERTY_NAMES if rng.random() < 0.8}


def _map_of(positions: Iterable[int], bits: int) -> bytes:
    number = sum(1 << position for position in set(positions))
    return number.to_bytes(bits // 8, "little")


def _bit_maps(rng: random.Random) -> None:
    bloom = BloomFilter()
    passed = [bloom.bits_of(group, "T") for group in _GROUPS if rng.random() < 0.5]
    bit_map = _map_of((position for each in passed for position in each.positions), bloom.bit_count)
    is_answered("the bit map of a message", bit_map, bloom.bit_map, passed)
    for group in _GROUPS:
        bits = bloom.bits_of(group, "T")
        expected = set(bits.positions) <= {n for n in range(bloom.bit_count) if bit_map[n // 8] >> n % 8 & 1}
        is_answered(f"whether {group} is in a bit map", expected, is_hit, bits, bit_map)
    _of_units(bloom.bits_of("g", "T"), bloom.bit_count)


def _of_units(bits: BloomBits, count: int) -> None:
    """Compare which units a filter looks at.

    A bit map counts only if it was made after the registration.
    """
    own, other = _map_of(bits.positions, count), bytes(count // 8)
    made = PropertyFilter("a = 1", bloom=bits, born_ms=_BORN_MS)
    for after_ms, bit_map, expected in (
        (-1, other, True),
        (0, other, True),
        (1, other, False),
        (1, own, True),
        (1, own[:-1], True),
        (1, other[:-1], True),
        (1, b"", True),
    ):
        unit = ExtUnit(0, _BORN_MS + after_ms, bit_map)
        what = f"whether a unit {after_ms} ms after the registration may match"
        is_answered(what, expected, made.matches_unit, 0, unit)
    is_answered("whether a unit without an extension may match", True, made.matches_unit, 0, None)
    plain = PropertyFilter("a = 1", born_ms=_BORN_MS)
    unit = ExtUnit(0, _BORN_MS + 1, other)
    is_answered("whether a unit may match a filter without bits", True, plain.matches_unit, 0, unit)


def _registered(rng: random.Random) -> None:
    """Register, replace and remove filters of two topics, and compare bit maps."""
    maps, known = FilterBitMaps(), dict[tuple[str, str], str]()
    for _ in range(12):
        group, topic, clause = rng.choice(_GROUPS), rng.choice(("T", "U")), rng.choice(tuple(CLAUSES))
        if rng.random() < 0.3:
            known.pop((topic, group), None)
            maps.unregister(group, topic)
        else:
            known[topic, group] = f"({clause})"
            maps.register(group, topic, f"({clause})", born_ms=_BORN_MS)
        properties = _draw_properties(rng)
        for name in ("T", "U"):
            expected = _expected(maps.bloom, known, name, properties)
            is_answered(f"the bit map of topic {name}", expected, maps.bit_map_of, name.encode(), properties)


def _expected(
    bloom: BloomFilter, known: Mapping[tuple[str, str], str], topic: str, properties: Mapping[str, str]
) -> bytes:
    groups = {group: clause for (of, group), clause in known.items() if of == topic}
    if not groups:
        return b""
    passed = [group for group, clause in groups.items() if passes(clause, properties.get)]
    positions = [position for group in passed for position in bloom.bits_of(group, topic).positions]
    return _map_of(positions, bloom.bit_count)
