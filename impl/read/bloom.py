"""The Bloom filter of the bit maps in a consume queue extension.

A bit map says which consumers' filters a record passes. Each consumer has a few bits of the map, computed from a hash
of its group and topic. If one of them is clear, the record did not pass the consumer's filter. Bit n is bit n mod 8,
the least significant first, of byte n // 8. Source: `BloomFilter`, `BloomFilterData`, `BitsArray`,
`ConsumerFilterManager.register`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import mmh3

__all__ = ["BloomBits", "BloomFilter", "is_hit"]


@dataclass(frozen=True, slots=True)
class BloomBits:
    """The bits of one consumer in maps of `bit_count` bits. Source: `BloomFilterData`."""

    positions: tuple[int, ...]
    bit_count: int


class BloomFilter:
    """A filter for `capacity` consumers with a rate of false hits in percent.

    The defaults are those of `expectConsumerNumUseFilter` and `maxErrorRateOfBloomFilter`: maps of 112 bits, three for
    each consumer. Positions come from the two halves of the first word of MurmurHash3 (128 bits, seed 0), added as
    32-bit integers; the bits of a negative sum are inverted. Raises ValueError for an impossible capacity or rate.
    """

    def __init__(self, *, capacity: int = 32, error_percent: int = 20) -> None:
        if capacity < 1 or not 1 <= error_percent < 100:
            raise ValueError(f"a Bloom filter for {capacity} consumers with {error_percent} % errors is impossible")
        rate = error_percent / 100
        self.hash_count = math.ceil(math.log(rate) / math.log(0.5))
        bits = math.ceil(capacity * (math.log(1 / rate) / math.log(2)) * (1 / math.log(2)))
        self.bit_count = -(-bits // 8) * 8

    def bits_of(self, group: str, topic: str) -> BloomBits:
        """Return the bits of a consumer group in the maps of a topic."""
        return BloomBits(self.positions(f"{group}#{topic}"), self.bit_count)

    def positions(self, text: str) -> tuple[int, ...]:
        """Return the bits of a text; two of them may be the same."""
        word, _ = mmh3.hash64(text.encode(), 0, signed=False)
        low, high = word & 0xFFFFFFFF, word >> 32
        return tuple(self._bounded(low + number * high) for number in range(1, self.hash_count + 1))

    def _bounded(self, total: int) -> int:
        total &= 0xFFFFFFFF
        return (total ^ 0xFFFFFFFF if total >> 31 else total) % self.bit_count

    def bit_map(self, passed: Iterable[BloomBits]) -> bytes:
        """Return the map of a record that passes the filters of these consumers."""
        bit_map = bytearray(self.bit_count // 8)
        for bits in passed:
            for position in bits.positions:
                bit_map[position >> 3] |= 1 << (position & 7)
        return bytes(bit_map)


def is_hit(bits: BloomBits, bit_map: bytes) -> bool:
    """Return whether all bits are set in a map of their size."""
    return all(bit_map[position >> 3] >> (position & 7) & 1 for position in bits.positions)
