"""The properties of a message: one string of pairs, or a mapping that stands for one.

1. A name and its value have byte 01 between them, pairs have byte 02 between them. There is no escaping, so a mapping
   whose names hold 01 or 02, or whose values hold 02, stands for no string.
2. Reading splits at every 02 and each segment at its first 01; a segment without a name or without a value is
   nothing. Of equal names the last value wins and keeps the place of the first.
3. Writing a string anew puts what was read, one 02 between pairs and none behind the last; a new name goes to the end.
4. A property `__CRC32#` of the producer is never stored. A segment belongs to the name before its first 01.
5. With the checksum trailer the properties end with 20 bytes more, and a separator before them if they lack one.

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


def separators_inside(properties: Mapping[str, str] | str) -> bool:
    """Whether a mapping holds a separator where it would be read as one. A string is what it is."""
    if isinstance(properties, str):
        return False
    pairs = [(name, value) for name, value in properties.items() if name != TRAILER_NAME]
    return any(NAME_SEPARATOR in name or PAIR_SEPARATOR in name or PAIR_SEPARATOR in value for name, value in pairs)


def text_of(properties: Mapping[str, str] | str) -> str:
    """Return the string that is stored, up to the trailer: the given one without `__CRC32#`."""
    if isinstance(properties, str):
        return without(properties, TRAILER_NAME)
    return _written({name: value for name, value in properties.items() if name != TRAILER_NAME})


def without(text: str, name: str) -> str:
    """Return the string less the segments of a name; everything else stays as it is."""
    if name not in text:
        return text
    segments = text.split(PAIR_SEPARATOR)
    return PAIR_SEPARATOR.join(segment for segment in segments if segment.split(NAME_SEPARATOR)[0] != name)


def property_of(properties: Mapping[str, str] | str, name: str) -> str | None:
    """Return the value a reader finds under a name, never an empty one."""
    return _pairs(text_of(properties)).get(name)


def changed(properties: Mapping[str, str] | str, values: Mapping[str, str], *, less: str | None = None) -> str:
    """Return the string made anew from its pairs, with new values and without the name `less`."""
    pairs = {**_pairs(text_of(properties)), **values}
    return _written({name: value for name, value in pairs.items() if name != less})


def joined(first: str, second: str) -> str:
    """Return two strings as one, with a separator between them if both are there and the first does not end in one."""
    needs_separator = first and second and not first.endswith(PAIR_SEPARATOR)
    return first + (PAIR_SEPARATOR if needs_separator else "") + second


def stored_bytes(properties: Mapping[str, str] | str, *, trailer: bool, errors: str = "strict") -> bytes:
    """Return the bytes stored up to the trailer, its separator included.

    Raises UnicodeEncodeError for what is no text, unless `errors` says how to encode it.
    """
    text = text_of(properties)
    if trailer and text and not text.endswith(PAIR_SEPARATOR):
        text += PAIR_SEPARATOR
    return text.encode("utf-8", errors)


@lru_cache(maxsize=1024)
def _pairs(text: str) -> Mapping[str, str]:
    """Read a string. A later value replaces an earlier one in its place, as in any dict."""
    split = [segment.partition(NAME_SEPARATOR) for segment in text.split(PAIR_SEPARATOR)]
    return MappingProxyType({name: value for name, _, value in split if name and value})


def _written(pairs: Mapping[str, str]) -> str:
    return PAIR_SEPARATOR.join(f"{name}{NAME_SEPARATOR}{value}" for name, value in pairs.items())
