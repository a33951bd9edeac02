"""JSON as RocketMQ writes and reads it.

Integer keys have no quotes, unlike in strict JSON, and a key may be an object. The layout is that of fastjson with
`PrettyFormat`: tabs, no space after a colon, no line break before a key that is no text. Equal documents give equal
bytes. Where Java orders a map by hashing, the order is that of the caller. The reader accepts strict JSON, and integer
keys with or without quotes.

Source: `RemotingSerializable.toJson`, fastjson's `MapSerializer`; spec: services, section 7.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["parse", "written"]

_DEPTH_MAX = 64
_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
    (?P<string>"[^"\\]*(?:\\.[^"\\]*)*") |
    (?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?) |
    (?P<word>true|false|null) |
    (?P<mark>[{}\[\],:]) |
    (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"true": True, "false": False, "null": None}
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


# ---- writing ---------------------------------------------------------------------------------------------------------


def written(document: object) -> str:
    """Return the text of a document of mappings, lists, texts, integers, booleans and None.

    The keys of a mapping are all texts, all integers, or all objects. An object as a key is a tuple of pairs of name
    and value. A surrogate, which stands for a byte that is not UTF-8, is written as an escape. Raises TypeError for
    other values.
    """
    return "".join(_pieces(document, 0))


def _pieces(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _mapping(value, depth)
    elif isinstance(value, list | tuple):
        yield "["
        for number, item in enumerate(value):
            yield "," * (number > 0)
            yield from _pieces(item, depth)
        yield "]"
    elif isinstance(value, str):
        yield f'"{_ESCAPED.sub(_escape, value)}"'
    elif value is None or isinstance(value, bool | int):
        yield json.dumps(value)
    else:
        raise TypeError(f"JSON cannot represent a {type(value).__name__}")


def _mapping(value: Mapping[Any, object], depth: int) -> Iterator[str]:
    yield "{"
    for number, (key, item) in enumerate(value.items()):
        yield "," * (number > 0)
        if isinstance(key, int):
            yield f"{key}:"
        elif isinstance(key, tuple):
            yield from _mapping(dict(key), depth + 1)
            yield ":"
        else:
            yield "\n" + "\t" * (depth + 1)
            yield from _pieces(key, depth)
            yield ":"
        yield from _pieces(item, depth + 1)
    if value:
        yield "\n" + "\t" * depth
    yield "}"


def _escape(found: re.Match[str]) -> str:
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}"


# ---- reading ---------------------------------------------------------------------------------------------------------


def parse(text: str) -> object:
    """Return the document in a text; an integer key without quotes becomes an int.

    A key that is an object becomes a tuple of pairs of name and value, and its values are texts or numbers. The last
    value of a repeated key counts. Raises ValueError.
    """
    tokens = _tokens(text)
    value = _value(next(tokens), tokens, 0)
    if next(tokens)[0] != "end":
        raise ValueError("there is text after the document")
    return value


_Tokens = Iterator[tuple[str, str]]


def _tokens(text: str) -> _Tokens:
    position = 0
    while True:
        found = _TOKEN.match(text, position)
        if found is None or found.lastgroup is None:
            raise ValueError(f"invalid JSON at character {position}")
        yield found.lastgroup, found[found.lastgroup]
        position = found.end()


def _value(token: tuple[str, str], tokens: _Tokens, depth: int) -> object:
    kind, text = token
    if depth > _DEPTH_MAX:
        raise ValueError("the document is nested too deeply")
    if kind in _SCALARS:
        return _SCALARS[kind](text)
    if text == "{":
        return _object(tokens, depth + 1)
    if text == "[":
        return _array(tokens, depth + 1)
    raise ValueError(f"expected a value, found {text!r}")


_SCALARS: dict[str, Callable[[str], object]] = {
    "string": lambda text: json.loads(text, strict=False),
    "number": json.loads,
    "word": _WORDS.__getitem__,
}


def _object(tokens: _Tokens, depth: int) -> dict[object, object]:
    found: dict[object, object] = {}
    token = next(tokens)
    if token[1] == "}" and token[0] == "mark":
        return found
    while True:
        key = _key(token, tokens, depth)
        _expect(next(tokens), ":")
        found[key] = _value(next(tokens), tokens, depth)
        if _expect(next(tokens), ",}") == "}":
            return found
        token = next(tokens)


def _key(token: tuple[str, str], tokens: _Tokens, depth: int) -> object:
    if token == ("mark", "{") and depth < _DEPTH_MAX:
        pairs = tuple(_object(tokens, depth + 1).items())
        if all(isinstance(value, str | int) for _, value in pairs):
            return pairs
        raise ValueError("a key has a value that is neither text nor number")
    if token[0] == "string":
        return _SCALARS["string"](token[1])
    if token[0] == "number":
        return int(token[1])
    raise ValueError(f"expected a key, found {token[1]!r}")


def _array(tokens: _Tokens, depth: int) -> list[object]:
    found: list[object] = []
    token = next(tokens)
    if token == ("mark", "]"):
        return found
    while True:
        found.append(_value(token, tokens, depth))
        if _expect(next(tokens), ",]") == "]":
            return found
        token = next(tokens)


def _expect(token: tuple[str, str], marks: str) -> str:
    kind, text = token
    if kind != "mark" or text not in marks:
        raise ValueError(f"expected one of {' '.join(marks)}, found {text!r}")
    return text
