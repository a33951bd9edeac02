"""The bit maps of a store with filters in a trial: what the extension of its queues is to hold of each message.

A store is given them by who has registered filters; here they are a function of what the filters could look at, short
and of several lengths, so that units of the extension have several sizes and a wrong one shows.
"""

import zlib
from collections.abc import Callable, Mapping

from tornpage.properties.program.case import Settings

__all__ = ["BIT_MAP_BYTES_MAX", "LOOKED_AT", "bit_map_of", "filters_of"]

BIT_MAP_BYTES_MAX = 4
LOOKED_AT = ("TAGS", "KEYS")
"""The properties that count."""


def bit_map_of(topic: bytes, properties: Mapping[str, str]) -> bytes:
    """Return the bit map of a message with these properties, up to `BIT_MAP_BYTES_MAX` bytes; it may be empty."""
    seen = repr((topic, [properties.get(name, "") for name in LOOKED_AT]))
    checksum = zlib.crc32(seen.encode("utf-8", "surrogatepass"))
    return checksum.to_bytes(4, "big")[: checksum % (BIT_MAP_BYTES_MAX + 1)]


def filters_of(settings: Settings) -> Callable[[bytes, Mapping[str, str]], bytes] | None:
    """Return what whoever opens a store with these settings gives it for its bit maps; None where it has no filters."""
    return bit_map_of if settings.queue_ext and settings.bit_maps else None
