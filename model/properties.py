"""Specify the properties of a message: a string of pairs, or a mapping that stands for it.

1. Byte 01 separates a name from its value, and byte 02 separates pairs. There is no escaping. So a mapping whose names
   contain 01 or 02, or whose values contain 02, stands for no string.
2. A reader splits at every 02, and each segment at its first 01. A segment without a name or without a value is
   ignored. Of equal names the last value counts, at the place of the first.
3. Rewriting a string keeps what was read, with one 02 between pairs and none after the last. A new name goes to the
   end.
4. A property `__CRC32#` of the producer is never stored. A segment belongs to the name before its first 01.
5. With the checksum trailer the properties end with 20 more bytes, and with a separator before these if they lack one.
6. A reader up to RocketMQ 4.9.0 ignores the 01 at the end of a segment, and then each segment with further 01. A batch
   of 4.8.0 or 4.9.0 joins the last pair of a member and the first one of the batch to such a segment.

Source: docs/format.md, "Properties" and "Trailer"; docs/statuses.md, "What a put changes about a message".
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

__all__ = ["changed", "joined", "property_of", "separators_inside", "stored_bytes", "text_of", "without"]

PAIR_SEPARATOR = "\x02"
NAME_SEPARATOR = "\x01"
TRAILER_NAME = "__CRC32#"
TRAILER_BYTES = 20
_PAIR = 2


def separators_inside(properties: Mapping[str, str] | str) -> bool:
    """Return whether a mapping has a separator where a reader would split.

    The result for a string is False.
    """
    if isinstance(properties, str):
        return False
    pairs = [(name, value) for name, value in properties.items() if name != TRAILER_NAME]
    return any(NAME_SEPARATOR in name or PAIR_SEPARATOR in name or PAIR_SEPARATOR in value for name, value in pairs)


def text_of(properties: Mapping[str, str] | str) -> str:
    """Return the stored string up to the trailer: the given one without `__CRC32#`."""
    if isinstance(properties, str):
        return without(properties, TRAILER_NAME)
    return _written({name: value for name, value in properties.items() if name != TRAILER_NAME})


def without(text: str, name: str) -> str:
    """Return the string without the segments of a name; everything else stays unchanged."""
    if name not in text:
        return text
    segments = text.split(PAIR_SEPARATOR)
    return PAIR_SEPARATOR.join(segment for segment in segments if segment.split(NAME_SEPARATOR)[0] != name)


def property_of(properties: Mapping[str, str] | str, name: str, *, drops_joined: bool = False) -> str | None:
    """Return the value that a reader finds under a name, None without a value.

    `drops_joined` is rule 6.
    """
    text = text_of(properties)
    return (_pairs_without_joined(text) if drops_joined else _pairs(text)).get(name)


def changed(properties: Mapping[str, str] | str, values: Mapping[str, str], *, less: str | None = None) -> str:
    """Return the string rebuilt from its pairs, with new values and without the name `less`."""
    pairs = {**_pairs(text_of(properties)), **values}
    return _written({name: value for name, value in pairs.items() if name != less})


def joined(first: str, second: str) -> str:
    """Return two strings as one, with a separator between them if one is needed."""
    needs_separator = first and second and not first.endswith(PAIR_SEPARATOR)
    return first + (PAIR_SEPARATOR if needs_separator else "") + second


def stored_bytes(properties: Mapping[str, str] | str, *, trailer: bool, errors: str = "strict") -> bytes:
    """Return the stored bytes up to the trailer, including its separator.

    Raises UnicodeEncodeError if the properties are not text, unless `errors` says how to encode them.
    """
    text = text_of(properties)
    if trailer and text and not text.endswith(PAIR_SEPARATOR):
        text += PAIR_SEPARATOR
    return text.encode("utf-8", errors)


@lru_cache(maxsize=1024)
def _pairs(text: str) -> Mapping[str, str]:
    """Read a string; a later value replaces an earlier one in its place, as in any dict."""
    split = [segment.partition(NAME_SEPARATOR) for segment in text.split(PAIR_SEPARATOR)]
    return MappingProxyType({name: value for name, _, value in split if name and value})


@lru_cache(maxsize=1024)
def _pairs_without_joined(text: str) -> Mapping[str, str]:
    """Read a string as RocketMQ up to 4.9.0 does."""
    split = [segment.rstrip(NAME_SEPARATOR).split(NAME_SEPARATOR) for segment in text.split(PAIR_SEPARATOR)]
    return MappingProxyType({pair[0]: pair[1] for pair in split if len(pair) == _PAIR and pair[0]})


def _written(pairs: Mapping[str, str]) -> str:
    return PAIR_SEPARATOR.join(f"{name}{NAME_SEPARATOR}{value}" for name, value in pairs.items())
