"""Bit maps for the extension of queues in a store with filters.

In production they come from registered filters. Here they are a function of the properties that filters could read.
They are short and of several lengths, so that units of the extension have several sizes and a wrong one is noticed.
"""

import zlib
from collections.abc import Callable, Mapping

from tornpage.properties.program.case import Settings

__all__ = ["BIT_MAP_BYTES_MAX", "READ_PROPERTIES", "bit_map_of", "filters_of"]

BIT_MAP_BYTES_MAX = 4
READ_PROPERTIES = ("TAGS", "KEYS")
"""The properties that the bit maps depend on."""


def bit_map_of(topic: bytes, properties: Mapping[str, str]) -> bytes:
    """Return the bit map of a message, of at most `BIT_MAP_BYTES_MAX` bytes; it may be empty."""
    seen = repr((topic, [properties.get(name, "") for name in READ_PROPERTIES]))
    checksum = zlib.crc32(seen.encode("utf-8", "surrogatepass"))
    return checksum.to_bytes(4, "big")[: checksum % (BIT_MAP_BYTES_MAX + 1)]


def filters_of(settings: Settings) -> Callable[[bytes, Mapping[str, str]], bytes] | None:
    """Return the bit map function for a store with these settings, None without filters."""
    return bit_map_of if settings.queue_ext and settings.bit_maps else None
