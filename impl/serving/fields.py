"""The fields of requests and answers, and their checks."""

import base64
import binascii
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tornpage.impl.replication.tcp import host_and_port

__all__ = [
    "Answer",
    "BadRequest",
    "Fields",
    "address_of",
    "body_of",
    "bytes_document",
    "failed",
    "number_of",
    "refusal",
    "text_of",
]

Answer = dict[str, Any]
Fields = Mapping[str, Any]

_OFFSET_MAX = (1 << 63) - 1


class BadRequest(Exception):
    """A request with a missing or impossible field."""


def refusal(sentence: str) -> Answer:
    """Return the answer to a request that was refused."""
    return {"ok": False, "error": sentence}


def failed(error: OSError) -> Answer:
    """Return the answer to a request that the operating system has not carried out."""
    return refusal(f"{error.strerror or error}" + (f" ({error.filename})" if error.filename else ""))


def body_of(fields: Fields) -> bytes:
    """Return the bytes of `body` or `body64`. Raises BadRequest."""
    if "body" in fields:
        text = text_of(fields, "body")
        try:
            return text.encode(errors="surrogateescape")
        except UnicodeEncodeError as error:
            raise BadRequest(f"`body` is no text of UTF-8: {text!r:.100}") from error
    if "body64" not in fields:
        raise BadRequest("`body` or `body64` is missing")
    try:
        return base64.b64decode(text_of(fields, "body64"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest(f"`body64` is no base64: {error}") from error


def bytes_document(body: bytes) -> Answer:
    """Return the fields of a body: `body64`, and `body` if the bytes are UTF-8."""
    answer: Answer = {"body64": base64.b64encode(body).decode()}
    with suppress(UnicodeDecodeError):
        answer["body"] = body.decode()
    return answer


def text_of(fields: Fields, name: str) -> str:
    """Return a field that is a text. Raises BadRequest."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise BadRequest(f"`{name}` is missing or no text")
    return value


def address_of(fields: Fields, name: str) -> str:
    """Return a field that is an address. Raises BadRequest, and OSError for a wrong port."""
    address = text_of(fields, name)
    host_and_port(address)
    return address


def number_of(fields: Fields, name: str, default: int | None = None, low: int = 0, high: int = _OFFSET_MAX) -> int:
    """Return a field that is a number within bounds. Raises BadRequest."""
    value = fields.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise BadRequest(f"`{name}` is missing or no number from {low} to {high}")
    return value
