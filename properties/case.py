"""A case: everything needed to run one failure again, on another machine and after the generators change.

It is a configuration and a list of operations, among them crashes with the facts that survived; no seed, no state of
a generator. As a file it is readable JSON, as a token one printable word: `tp1-`, the checksum, the compressed JSON.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from properties.images import Choice
from properties.recorder.disk import Disk

__all__ = [
    "BadToken",
    "Case",
    "Close",
    "Crash",
    "Damage",
    "DamageKind",
    "FailSync",
    "Flush",
    "Get",
    "Open",
    "Operation",
    "Put",
    "Settings",
    "describe",
]

FORMAT = 1
TOKEN_PREFIX = "tp1-"

DamageKind = Literal["truncate", "flip", "misdirect"]


class BadToken(ValueError):
    """A token or case file that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the store and its disk are made of in a case. `bug` names a planted bug, or is empty."""

    file_bytes: int = 16384
    record_bytes_max: int = 1 << 20
    sync_flush: bool = False
    trailer: bool = True
    files_max: int = 1000
    disk: Disk = "posix-strict"
    bug: str = ""


@dataclass(frozen=True, slots=True)
class Put:
    """Put a message. The body has `body_bytes` bytes drawn from `fill`, or hides a whole record, or is zero."""

    topic: str = "T"
    queue_id: int = 0
    body_bytes: int = 0
    fill: int = 0
    body_kind: Literal["random", "record", "zeros"] = "random"
    properties: str = ""
    sys_flag: int = 0
    flag: int = 0
    born_v6: bool = False
    store_v6: bool = False
    advance_ms: int = 1
    op: Literal["put"] = "put"


@dataclass(frozen=True, slots=True)
class Get:
    """Get at the offset of record `record` (counted modulo) plus `shift` bytes."""

    record: int = 0
    shift: int = 0
    op: Literal["get"] = "get"


@dataclass(frozen=True, slots=True)
class Flush:
    """Flush the store."""

    op: Literal["flush"] = "flush"


@dataclass(frozen=True, slots=True)
class Close:
    """Close the store cleanly."""

    op: Literal["close"] = "close"


@dataclass(frozen=True, slots=True)
class Open:
    """Open the closed store."""

    op: Literal["open"] = "open"


@dataclass(frozen=True, slots=True)
class FailSync:
    """The next file sync answers EIO."""

    op: Literal["fail_sync"] = "fail_sync"


@dataclass(frozen=True, slots=True)
class Crash:
    """Power loss, or kill of the process, and recovery. `back` events before the answer of the last verb; 0 is at rest.

    `survived` holds the facts that reached the disk; what it does not name did not (all of it does in a kill).
    """

    kill: bool = False
    back: int = 0
    survived: Mapping[str, Choice] = field(default_factory=dict)
    op: Literal["crash"] = "crash"


@dataclass(frozen=True, slots=True)
class Damage:
    """Damage the closed store outside the crash model, then open it: it must say so and serve only what verifies.

    `truncate` cuts the newest log file at `amount` (modulo its size), `flip` flips bit `amount` of record `record`,
    `misdirect` writes another record of equal size over record `record`.
    """

    kind: DamageKind = "flip"
    record: int = 0
    amount: int = 0
    op: Literal["damage"] = "damage"


Operation = Put | Get | Flush | Close | Open | FailSync | Crash | Damage
_OPERATIONS: dict[str, Any] = {
    "put": Put,
    "get": Get,
    "flush": Flush,
    "close": Close,
    "open": Open,
    "fail_sync": FailSync,
    "crash": Crash,
    "damage": Damage,
}


@dataclass(frozen=True, slots=True)
class Case:
    """Settings and operations; the store is opened before the first one."""

    settings: Settings
    operations: tuple[Operation, ...]

    def document(self) -> dict[str, Any]:
        """Return the readable form."""
        return {
            "tornpage_case": FORMAT,
            "settings": _without_defaults(self.settings),
            "operations": [{"op": operation.op, **_without_defaults(operation)} for operation in self.operations],
        }

    def token(self) -> str:
        """Return the case as one printable word."""
        text = json.dumps(self.document(), sort_keys=True, separators=(",", ":")).encode()
        packed = base64.urlsafe_b64encode(zlib.compress(text, 9)).decode().rstrip("=")
        return f"{TOKEN_PREFIX}{zlib.crc32(text):08x}-{packed}"

    @classmethod
    def from_token(cls, token: str) -> "Case":
        """Read a token. Raises BadToken."""
        token = token.strip()
        if not token.startswith(TOKEN_PREFIX):
            raise BadToken(f"this is no token: it does not begin with {TOKEN_PREFIX!r}")
        checksum, _, packed = token[len(TOKEN_PREFIX) :].partition("-")
        try:
            text = zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))
        except (binascii.Error, zlib.error, ValueError) as error:
            raise BadToken("the token is incomplete or changed: copy it again, whole") from error
        if f"{zlib.crc32(text):08x}" != checksum:
            raise BadToken("the token is changed: its checksum does not match")
        return cls.from_text(text.decode())

    @classmethod
    def from_text(cls, text: str) -> "Case":
        """Read the readable form. Raises BadToken."""
        try:
            document = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise BadToken(f"the case file is no JSON: {error}") from error
        if not isinstance(document, dict) or document.get("tornpage_case") != FORMAT:
            raise BadToken(f"this is no case of format {FORMAT} (key tornpage_case)")
        try:
            settings = Settings(**document["settings"])
            operations = tuple(_read_operation(dict(item)) for item in document["operations"])
        except (KeyError, TypeError, ValueError) as error:
            raise BadToken(f"the case cannot be read: {error}") from error
        if settings.disk not in ("posix-strict", "journal", "kill"):
            raise BadToken(f"unknown disk {settings.disk!r}: posix-strict, journal or kill")
        return cls(settings, operations)


def _without_defaults(value: Any) -> dict[str, Any]:
    default = asdict(type(value)())
    return {
        k: dict(v) if isinstance(v, Mapping) else v for k, v in asdict(value).items() if v != default[k] and k != "op"
    }


def _read_operation(item: dict[str, Any]) -> Operation:
    kind = _OPERATIONS[item.pop("op")]
    operation: Operation = kind(**item)
    if isinstance(operation, Crash):
        survived = {k: tuple(v) if isinstance(v, list) else v for k, v in operation.survived.items()}
        operation = replace(operation, survived=survived)
    return operation


def describe(operation: Operation) -> str:
    """Return the operation as a line of a program a person can read."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in _without_defaults(operation).items())
    return f"{operation.op}({arguments})"
