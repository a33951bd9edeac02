"""Pack a JSON document as one printable word, and unpack it.

The word has a prefix for its kind, the checksum, and the compressed text.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from typing import Any

__all__ = ["BadToken", "packed", "unpacked"]


class BadToken(ValueError):
    """A token or case file that cannot be used; the message is the reason."""


def packed(prefix: str, document: Mapping[str, Any]) -> str:
    """Return a document as a token."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    word = base64.urlsafe_b64encode(zlib.compress(text, 9)).decode().rstrip("=")
    return f"{prefix}{zlib.crc32(text):08x}-{word}"


def unpacked(prefix: str, token: str) -> str:
    """Return the text of the document of a token. Raises BadToken."""
    token = token.strip()
    if not token.startswith(prefix):
        raise BadToken(f"this is not a token: it does not begin with {prefix!r}")
    checksum, _, word = token[len(prefix) :].partition("-")
    try:
        text = zlib.decompress(base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)))
    except (binascii.Error, zlib.error, ValueError) as error:
        raise BadToken("the token is incomplete or changed: copy all of it again") from error
    if f"{zlib.crc32(text):08x}" != checksum:
        raise BadToken("the token is changed: its checksum does not match")
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise BadToken("the token does not contain text") from error
