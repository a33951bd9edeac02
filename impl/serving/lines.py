"""The bytes of the protocol of clients: one JSON object in a line, in both directions.

    request   {"op": "put", "id": 7, "topic": "T", "queue": 0, "body": "text"}
    answer    {"id": 7, "ok": true, ...}   or   {"id": 7, "ok": false, "error": "a sentence"}

`id` is optional and is repeated in the answer. Answers to puts come in the order in which the store answers them.
"""

import json
from collections.abc import Iterator
from typing import Any

__all__ = ["LINE_BYTES_MAX", "BadLine", "LineReader", "line_of"]

LINE_BYTES_MAX = 8 << 20
"""The longest line. A body of `max_message_size` (4 MiB) in base64 fits."""


class BadLine(Exception):
    """Bytes that are no request or answer."""


def line_of(document: dict[str, Any]) -> bytes:
    """Return an object as a line."""
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


class LineReader:
    """Splits the bytes of one connection into objects.

    It holds at most one incomplete line, of at most `LINE_BYTES_MAX`.
    """

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield each object that is complete with these bytes. Raises BadLine."""
        searched = len(self._held)
        self._held += data
        while (end := self._held.find(b"\n", searched)) >= 0:
            _check_size(end)
            line, searched = bytes(self._held[:end]), 0
            del self._held[: end + 1]
            yield _object(line)
        _check_size(len(self._held))


def _check_size(size_bytes: int) -> None:
    if size_bytes > LINE_BYTES_MAX:
        raise BadLine(f"a line has more than {LINE_BYTES_MAX} bytes")


def _object(line: bytes) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"a line is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadLine("a line is no JSON object")
    return document
