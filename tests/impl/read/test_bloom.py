"""Test the bloom bits of consumers: they equal RocketMQ's, made by Guava's MurmurHash3."""

import pytest

from tornpage.impl.read.bloom import BloomBits, BloomFilter, is_hit

POSITIONS = [
    ("CG#TopicTest", 32, 20, 112, (109, 15, 3)),
    ("CG#TopicTest", 64, 20, 216, (13, 39, 91)),
    ("CG#TopicTest", 128, 10, 616, (221, 183, 339, 65)),
    ("CG#TopicTest", 300, 1, 2880, (2605, 831, 1747, 1689, 2246, 332, 224)),
    ("CG#TopicTest", 1, 99, 8, (5,)),
    ("CG#TopicTest", 7, 50, 16, (13,)),
    ("CID_abc_efg", 32, 20, 112, (49, 97, 110)),
    ("CID_abc_efg", 300, 1, 2880, (1393, 977, 2574, 110, 2353, 1937, 1614)),
    ("", 32, 20, 112, (0, 0, 0)),
    ("gruppe-ä#主题", 32, 20, 112, (84, 63, 42)),
    ("gruppe-ä#主题", 128, 10, 616, (252, 231, 210, 189)),
    ("a#b", 32, 20, 112, (101, 103, 59)),
    ("a#b", 300, 1, 2880, (2581, 1191, 1051, 2721, 2401, 1371, 871)),
    ("consumer-7#ExtTopic", 32, 20, 112, (95, 79, 1)),
    ("consumer-7#ExtTopic", 7, 50, 16, (15,)),
]
"""Computed once with Guava's `Hashing.murmur3_128()` and the arithmetic of Java."""


@pytest.mark.parametrize(("text", "capacity", "error_percent", "bit_count", "positions"), POSITIONS)
def test_positions_are_those_of_java(
    text: str, capacity: int, error_percent: int, bit_count: int, positions: tuple[int, ...]
) -> None:
    bloom = BloomFilter(capacity=capacity, error_percent=error_percent)
    assert (bloom.bit_count, bloom.hash_count) == (bit_count, len(positions))
    assert bloom.positions(text) == positions


def test_defaults_are_those_of_the_broker() -> None:
    bloom = BloomFilter()
    assert bloom.bits_of("CG", "TopicTest") == BloomBits((109, 15, 3), 112)


def test_bits_are_counted_from_the_least_significant_of_the_first_byte() -> None:
    bit_map = BloomFilter().bit_map([BloomBits((109, 15, 3), 112)])
    assert bit_map.hex() == "08 80 00 00 00 00 00 00 00 00 00 00 00 20".replace(" ", "")


def test_all_bits_of_a_consumer_have_to_be_set() -> None:
    bloom = BloomFilter()
    ours, theirs = bloom.bits_of("ours", "T"), bloom.bits_of("theirs", "T")
    assert is_hit(ours, bloom.bit_map([ours]))
    assert not is_hit(theirs, bloom.bit_map([ours]))
    assert is_hit(theirs, bloom.bit_map([ours, theirs]))
    assert not is_hit(ours, bloom.bit_map([]))


def test_false_hits_are_as_rare_as_promised() -> None:
    bloom = BloomFilter()
    bit_map = bloom.bit_map(bloom.bits_of(f"group-{number}", "T") for number in range(32))
    hits = sum(is_hit(bloom.bits_of(f"other-{number}", "T"), bit_map) for number in range(1000))
    assert 50 < hits < 300


@pytest.mark.parametrize(("capacity", "error_percent"), [(0, 20), (32, 0), (32, 100)])
def test_impossible_sizes_are_refused(capacity: int, error_percent: int) -> None:
    with pytest.raises(ValueError, match="is impossible"):
        BloomFilter(capacity=capacity, error_percent=error_percent)
