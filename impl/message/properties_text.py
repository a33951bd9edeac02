"""The properties of a message as one string: name 0x01 value, pairs separated by 0x02.

Source: docs/format.md, "Properties"; `MessageDecoder.messageProperties2String`, `string2messageProperties`.
"""

import re
from collections.abc import Callable, Mapping

__all__ = [
    "CHECKSUM_NAME",
    "PropertiesParser",
    "format_pairs",
    "is_blank",
    "parse_pairs",
    "parse_split_pairs",
    "parser_of",
    "text_of",
    "wait_store_msg_ok",
    "without",
]

PropertiesParser = Callable[[str], dict[str, str]]
"""Returns the properties in a string."""

CHECKSUM_NAME = "__CRC32#"
"""The name of the checksum trailer; only the store writes a property of this name."""

_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){2}", re.ASCII)
_LAST_THAT_SPLITS = (4, 9, 0)
_PAIR = 2

_WHITE_SPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)
"""White space of `Character.isWhitespace`. Unlike `str.strip`, it excludes no-break spaces."""


def parse_pairs(text: str) -> dict[str, str]:
    """Return the properties as RocketMQ parses them.

    Short pairs, empty names and empty values are dropped; the last value of a name wins.
    """
    pairs: dict[str, str] = {}
    for segment in text.split("\x02"):
        name, _, value = segment.partition("\x01")
        if name and value:  # there is no value without a separator
            pairs[name] = value
    return pairs


def parse_split_pairs(text: str) -> dict[str, str]:
    """Return the properties as RocketMQ up to 4.9.0 parses them.

    A pair has exactly one 0x01, apart from those at its end. A batch of 4.8.0 or 4.9.0 joins the last pair of a member
    and the first one of the batch without a separator; such a pair has two and is dropped. Source: `String.split` in
    `MessageDecoder.string2messageProperties` of 4.9.0.
    """
    pairs = (segment.rstrip("\x01").split("\x01") for segment in text.split("\x02"))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == _PAIR}


def parser_of(version: str) -> PropertiesParser:
    """Return the parser of a release.

    Raises ValueError if the version is not of the form 4.9.3.
    """
    if not _VERSION.fullmatch(version):
        raise ValueError("use a release of RocketMQ, such as 4.9.3")
    return parse_split_pairs if tuple(map(int, version.split("."))) <= _LAST_THAT_SPLITS else parse_pairs


def format_pairs(pairs: Mapping[str, str]) -> str:
    """Return the string of a map, in its order, without a separator after the last pair."""
    return "\x02".join([f"{name}\x01{value}" for name, value in pairs.items()])


def text_of(properties: Mapping[str, str] | str) -> str | None:
    """Return the properties as a string without a checksum property.

    Returns None if a mapping contains separators.
    """
    if isinstance(properties, str):
        return without(properties, CHECKSUM_NAME) if CHECKSUM_NAME in properties else properties
    pairs = {name: value for name, value in properties.items() if name != CHECKSUM_NAME}
    if any("\x01" in name or "\x02" in name or "\x02" in value for name, value in pairs.items()):
        return None
    return format_pairs(pairs)


def without(text: str, *names: str) -> str:
    """Return the string without the pairs of these names; every other byte is unchanged."""
    return "\x02".join(segment for segment in text.split("\x02") if segment.partition("\x01")[0] not in names)


def is_blank(value: str | None) -> bool:
    """Return whether a property is absent or only white space. Source: `StringUtils.isBlank`."""
    return value is None or not value.strip(_WHITE_SPACE)


def wait_store_msg_ok(text: str) -> bool:
    """Return the property WAIT as a boolean.

    It is true if absent or empty, and otherwise only if it is "true" in any case.
    """
    return "WAIT\x01" not in text or parse_pairs(text).get("WAIT", "true").lower() == "true"
