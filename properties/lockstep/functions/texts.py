"""Compare hashes, properties, topics, delay levels, message ids and errors."""

import random
from typing import Any

from tornpage.impl import errors
from tornpage.impl.message.delay_levels import DelayLevels, delay_level_of
from tornpage.impl.message.encoder import topic_bytes
from tornpage.impl.message.hosts import host_bytes, host_text, message_id
from tornpage.impl.message.key_hash import java_hash, key_hash
from tornpage.impl.message.properties_text import parse_pairs, parser_of, text_of, wait_store_msg_ok, without
from tornpage.impl.read.message_filter import TagFilter
from tornpage.impl.read.message_query import parse_message_id
from tornpage.model import properties as model
from tornpage.model.admission import is_topic
from tornpage.model.delay import level_of
from tornpage.model.queues import java_hash as model_hash
from tornpage.properties.lockstep.functions.comparing import REFUSED, is_answered, is_value

__all__ = ["check"]

_LENGTHS = (0, 1, 2, 255, 256, 257, 600)
_LETTERS = "aZ0 é订\x7f\ud83d\ude00"
_TOPICS = ("", "T", ".", "..", "...", "a/b", "a\0b", "x" * 127, "x" * 128, "é" * 63, "é" * 64, "\ud800")
_LEVELS = (
    "", "0", "1", "-1", "+1", "-0", "007", "18", "2147483647", "2147483648", "-2147483648", "-2147483649", "1 ", " 1",
    "x", "1.0", "00000000000000000001", "99999999999",
)  # fmt: skip
_TABLES = (
    ("1s", (1_000,)),
    ("0s 1m 2h 3d", (0, 60_000, 7_200_000, 259_200_000)),
    ("001s", (1_000,)),
    ("9223372036854775s", (9_223_372_036_854_775_000,)),
    ("9223372036854776s", REFUSED),
    ("106751991167d", (106_751_991_167 * 86_400_000,)),
    ("106751991168d", REFUSED),
    *((text, REFUSED) for text in ("", "1", "s", "1s  2s", "1s ", "-1s", "1w", "1.5s", "1S")),
)
"""Tables of delay levels, and their delays in milliseconds."""
_VERSIONS = (("4.9.0", False), ("4.8.9", False), ("3.10.10", False), ("4.9.1", True), ("4.10.0", True), ("5.0.0", True))
"""Releases, and whether they keep a pair with a second 01."""
_HOSTS = (
    (("127.0.0.1", 10911), "7f00000100002a9f"),
    (("::1", 0), "00000000000000000000000000000001" + "00000000"),
    (("255.255.255.255", -1), "ffffffffffffffff"),
)
_HASH_LIMITS = (0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**31 + 2, 2**32 - 1)
"""Hashes of 32 bits, without a sign, at the limits of the signed ones."""
_ERRORS: tuple[tuple[Any, tuple[object, ...], dict[str, Any], dict[str, object]], ...] = (
    (errors.BadConfig, ("a_setting", 3, "a remedy"), {}, {"name": "a_setting"}),
    (errors.BadDirectory, ("/p", "a reason", "a remedy"), {}, {"path": "/p"}),
    (errors.StoreInUse, ("/p",), {}, {"path": "/p"}),
    (errors.WrongFileSize, ("/p/f",), {"found_bytes": 41, "configured_bytes": 43},
     {"found_bytes": 41, "configured_bytes": 43}),
    (errors.NoSpace, ("/p",), {"needed_bytes": 41, "free_bytes": 43}, {"needed_bytes": 41, "free_bytes": 43}),
    (errors.BadFilter, ("a =", "a reason"), {}, {"expression": "a ="}),
    (errors.BadProgress, ("group", "g", "a remedy"), {}, {"what": "group"}),
    (errors.NotReadable, ("/p",), {}, {"path": "/p"}),
    (errors.TooManyHeldPulls, (41,), {}, {"held_max": 41}),
    (errors.ReadOnlyStore, ("/p", "a reason"), {}, {"path": "/p"}),
    (errors.BufferReleased, (41,), {}, {"offset": 41}),
    (errors.StoreClosed, ("/p",), {}, {"path": "/p"}),
    (errors.ForkedStore, ("/p",), {}, {"path": "/p"}),
)  # fmt: skip
"""Each error of the store with its arguments, and what its attributes are."""
_NO_IDS = ("", "00", "0" * 31, "0" * 33, "0" * 55, "0" * 57, "g" * 32, "0" * 30 + "  ", " 0" * 16, "٠" * 32)


def check(rng: random.Random) -> None:
    """Compare all of them. Raises GuaranteeBroken."""
    _hashes(rng)
    _properties(rng)
    for topic in _TOPICS:
        is_value(f"the check of topic {topic[:9]!r}", is_topic(topic), bool(topic_bytes(topic)))
    for value in _LEVELS:
        is_answered(f"the level of DELAY {value!r}", _level(value), delay_level_of, value)
    is_answered("the level without DELAY", 0, delay_level_of, None)
    for text, delays in _TABLES:
        is_answered(f"the delay table {text!r}", delays, _delays_of, text)
    levels = DelayLevels.parse("1s 5s")
    for level, delay_ms in ((0, REFUSED), (1, 1_000), (2, 5_000), (3, REFUSED)):
        is_answered(f"the delay of level {level}", delay_ms, levels.delay_ms, level)
    _ids(rng)
    _errors()


def _errors() -> None:
    """Compare the attributes of errors. The text of each names all its arguments."""
    for kind, arguments, named, attributes in _ERRORS:
        error = kind(*arguments, **named)
        found = {name: getattr(error, name, None) for name in attributes}
        is_value(f"the attributes of {kind.__name__}", attributes, found)
        is_value(f"whether {kind.__name__} is an error of the store", True, isinstance(error, errors.StoreError))
        left_out = [each for each in (*arguments, *named.values()) if str(each) not in str(error)]
        is_value(f"the arguments that the text of {kind.__name__} leaves out", [], left_out)


def _delays_of(text: str) -> tuple[int, ...]:
    return DelayLevels.parse(text).delays_ms


def _hashes(rng: random.Random) -> None:
    for length in _LENGTHS:
        text = "".join(rng.choice(_LETTERS) for _ in range(length))
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        is_answered(f"the hash of {length} characters", model_hash(text), java_hash, text)
        plain = "".join(rng.choice("abcXYZ019#") for _ in range(length))
        is_answered(f"the hash of {length} characters", model_hash(plain), java_hash, plain)
        is_answered("the hash of a key", abs(model_hash(f"T#{plain}")) % 2**31, key_hash, "T", plain)
        is_answered("the hash of a key", abs(model_hash(f"é#{text}")) % 2**31, key_hash, "é".encode(), text)
    for code in _HASH_LIMITS:
        text = _text_with("", code)
        is_answered(f"the hash of a text with code {code}", model_hash(text), java_hash, text)
        key = _text_with("T#", code).removeprefix("T#")
        is_answered(f"the hash of a key with code {code}", abs(model_hash(f"T#{key}")) % 2**31, key_hash, "T", key)
    code = model_hash("TagA") % 2**32
    for expression, matches in (("TagA", True), ("TagB || TagA", True), ("TagB", False), ("*", True), ("", True)):
        is_answered(f"the filter {expression!r}", matches, TagFilter(expression).matches_unit, code, None)
        is_answered(f"the filter {expression!r}", matches, TagFilter(expression).matches_unit, code - 2**32, None)
        is_answered(f"the filter {expression!r}", True, TagFilter(expression).matches_unit, None, None)


def _text_with(head: str, code: int) -> str:
    """Return a text that begins with `head` and has a hash of 32 bits.

    Seven digits of base 31 reach every hash.
    """
    rest, tail = (code - model_hash(head + "0" * 7)) % 2**32, ""
    for _ in range(7):
        rest, digit = divmod(rest, 31)
        tail = chr(ord("0") + digit) + tail
    return head + tail


def _properties(rng: random.Random) -> None:
    pieces = ("a", "KEYS", "WAIT", "true", "TRUE", "false", "\x01", "\x02", "\x01", "\x02", "", model.TRAILER_NAME)
    for _ in range(12):
        text = "".join(rng.choices(pieces, k=rng.randrange(9)))
        names = ("a", "KEYS", "WAIT", "true", model.TRAILER_NAME)
        stored = model.text_of(text)
        is_answered("the text of properties", stored, text_of, text)
        is_answered("the text without a name", model.without(text, "KEYS"), without, text, "KEYS")
        for release, keeps in _VERSIONS:
            read = parser_of(release)
            for name in names:
                value = model.property_of(stored, name, drops_joined=not keeps)
                is_value(f"the property {name} in {release}", value, read(stored).get(name))
        waits = (model.property_of(stored, "WAIT") or "true").lower() == "true"
        is_answered("the wish to wait", waits, wait_store_msg_ok, stored)
        pairs = parse_pairs(stored)
        is_answered("the text of a mapping", model.text_of(pairs), text_of, pairs)
    for given in ({"a\x01": "b"}, {"a\x02": "b"}, {"a": "\x02"}):
        is_answered("the text of a mapping with separators", None, text_of, given)
    for release in ("", "4.9", "4.9.3.1", "4.9.x", " 4.9.3"):
        is_answered(f"the release {release!r}", REFUSED, parser_of, release)


def _level(value: str) -> int | None:
    return level_of({"DELAY": value}) if value else None


def _ids(rng: random.Random) -> None:
    for host, packed in _HOSTS:
        is_value(f"the bytes of {host}", packed, host_bytes(host).hex())
        is_answered(f"the host of {packed}", host, host_text, bytes.fromhex(packed))
        for offset in (0, rng.randrange(1 << 40), (1 << 63) - 1):
            text = packed.upper() + f"{offset:016X}"
            is_answered(f"the message id at {offset}", text, message_id, host, offset)
            is_answered(f"the message id {text}", (host, offset), parse_message_id, text)
            is_answered(f"the message id {text.lower()}", (host, offset), parse_message_id, text.lower())
    for address in ("localhost", "1.2.3", "", "1::2::3"):
        is_answered(f"the bytes of {address!r}", REFUSED, host_bytes, (address, 1))
    for text in _NO_IDS:
        is_answered(f"the message id {text!r}", None, parse_message_id, text)
