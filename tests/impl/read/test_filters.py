"""Test filters: tags by hash, properties by expression, and bit maps that spare log reads."""

from collections.abc import Mapping

import pytest

from tests.support.impl.golden import first_dump, golden, read
from tornpage.impl.errors import BadFilter
from tornpage.impl.message.key_hash import java_hash
from tornpage.impl.queue.consume_queue_ext import ExtUnit
from tornpage.impl.read.bloom import BloomBits, BloomFilter
from tornpage.impl.read.filters import FilterBitMaps, PropertyFilter
from tornpage.impl.read.message_filter import TagFilter


def never() -> Mapping[str, str]:
    raise AssertionError("the record must not be read")


@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        ("*", ()),
        ("", ()),
        ("TagA", ("TagA",)),
        ("TagA || TagB", ("TagA", "TagB")),
        ("TagA||TagB", ("TagA", "TagB")),
        (" TagA  ||  || TagB || ", ("TagA", "TagB")),
        ("a|b", ("a|b",)),
    ],
)
def test_subscription_is_split(expression: str, tags: tuple[str, ...]) -> None:
    assert TagFilter(expression).tags == tags


@pytest.mark.parametrize(
    ("expression", "tag", "matched"),
    [
        ("*", "any", True),
        ("", "any", True),
        ("TagA", "TagA", True),
        ("TagA", "TagB", False),
        ("TagA || TAG-NEG", "TAG-NEG", True),
        ("TagA", "", False),
        ("Aa", "BB", True),
        ("||", "TagA", False),
    ],
)
def test_tags_are_compared_by_hash(expression: str, tag: str, matched: bool) -> None:
    tag_filter = TagFilter(expression)
    assert tag_filter.matches_unit(java_hash(tag), None) is matched
    assert tag_filter.matches_record(never) is True


def test_only_the_low_half_of_a_tags_code_counts_and_an_unknown_one_passes() -> None:
    code = java_hash("TAG-NEG")
    assert TagFilter("TAG-NEG").matches_unit((1 << 40) | (code & 0xFFFFFFFF), None)
    assert TagFilter("TAG-NEG").matches_unit(None, None)


def test_property_filter_without_bits_looks_at_each_record() -> None:
    wanted = PropertyFilter("a > 5")
    assert wanted.matches_unit(1, ExtUnit(1, 10, bytes(14)))
    assert wanted.matches_record(lambda: {"a": "6"})
    assert not wanted.matches_record(lambda: {"a": "5"})
    assert not wanted.matches_record(lambda: {})
    assert not wanted.matches_record(lambda: {"a": "x"})
    with pytest.raises(BadFilter):
        PropertyFilter("a >")


@pytest.mark.parametrize(
    ("ext", "may_match"),
    [
        (None, True),
        (ExtUnit(0, 101, bytes.fromhex("0880000000000000000000000020")), True),
        (ExtUnit(0, 101, bytes.fromhex("0880000000000000000000000000")), False),
        (ExtUnit(0, 101, bytes(14)), False),
        (ExtUnit(0, 100, bytes(14)), True),
        (ExtUnit(0, 101, b""), True),
        (ExtUnit(0, 101, bytes(8)), True),
        (ExtUnit(0, 101, bytes(16)), True),
    ],
)
def test_bit_map_says_no_only_when_it_was_made_for_the_filter(ext: ExtUnit | None, may_match: bool) -> None:
    wanted = PropertyFilter("a > 5", bloom=BloomBits((109, 15, 3), 112), born_ms=100)
    assert wanted.matches_unit(5, ext) is may_match


def test_bit_maps_have_the_bits_of_whose_filter_a_record_passes() -> None:
    maps = FilterBitMaps()
    assert maps.bit_map_of(b"T", {"a": "6"}) == b""
    small = maps.register("small", "T", "a < 5", born_ms=100)
    large = maps.register("large", "T", "a > 5", born_ms=100)
    maps.register("elsewhere", "U", "a > 5", born_ms=100)
    unit = ExtUnit(0, 101, maps.bit_map_of(b"T", {"a": "6"}))
    assert unit.bit_map == maps.bloom.bit_map([maps.bloom.bits_of("large", "T")])
    assert (small.matches_unit(0, unit), large.matches_unit(0, unit)) == (False, True)
    assert maps.bit_map_of(b"T", {}) == bytes(14)
    assert large.bloom == BloomFilter().bits_of("large", "T")
    maps.register("large", "T", "a = 1", born_ms=200)
    maps.unregister("small", "T")
    maps.unregister("small", "V")
    assert maps.bit_map_of(b"T", {"a": "1"}) == unit.bit_map
    assert maps.bit_map_of(b"T", {"a": "4"}) == bytes(14)


def test_bit_maps_of_rocketmq_are_read_bit_by_bit() -> None:
    """Its bits come from a formula and not from filters.

    Each bit of a map is tested on its own.
    """
    state = first_dump(read(golden("07-queue-ext-bitmaps") / "expected.json")["steps"])
    seen = 0
    for queue in state["queues"]:
        for number, *_, unit in (entry for entry in queue["entries"] if isinstance(entry[-1], dict)):
            size_bytes = {0: 0, 4: 16}.get(number % 5, 8)
            bit_map = bytes((31 * number + 7 * place) % 256 for place in range(size_bytes))
            assert (unit["bitMap"] or "") == bit_map.hex()
            ext = ExtUnit(unit["tagsCode"], unit["msgStoreTime"], bit_map)
            for position in range(64):
                wanted = PropertyFilter("a = 1", bloom=BloomBits((position,), 64))
                is_set = bool(int.from_bytes(bit_map, "little") >> position & 1)
                assert wanted.matches_unit(0, ext) is (size_bytes != 8 or is_set)
            seen += 1
    assert seen == 266
