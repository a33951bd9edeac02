"""A case: everything needed to run one failure again, on another machine and after the generators change.

It is a configuration and a list of operations, among them crashes with the facts that survived; no seed, no state of
a generator. As a file it is readable JSON, as a token one printable word: `tp1-`, the checksum, the compressed JSON.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

from properties.images import Choice
from properties.recorder.disk import Disk

__all__ = [
    "WITHOUT_A_VERB",
    "BadToken",
    "BatchDefect",
    "Case",
    "Close",
    "Concurrent",
    "Crash",
    "Damage",
    "DamageKind",
    "DiskUsed",
    "FailAppend",
    "FailSync",
    "FailWrite",
    "Flush",
    "Get",
    "Member",
    "Open",
    "Operation",
    "Put",
    "PutBatch",
    "ReplicaIs",
    "ServiceName",
    "Settings",
    "Step",
    "SwitchFlag",
    "describe",
]

Inner = TypeVar("Inner")

FORMAT = 1
TOKEN_PREFIX = "tp1-"
_SHOWN_CHARACTERS = 300

DamageKind = Literal["truncate", "flip", "misdirect"]
ServiceName = Literal["group-commit", "time-outs", "flush", "commit", "allocate", "flush-queues"]


class BadToken(ValueError):
    """A token or case file that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the store and its disk are made of in a case. `bug` names a planted bug, or is empty.

    `pool_buffers` is the size of the transient store pool, 0 for none; `least_pages` is the page rule of the timed
    flush and of the timed commit; `files_ahead` is how many log files are made before they are needed; `log_paths` is
    over how many directories they are spread, 1 or 2.
    """

    file_bytes: int = 16384
    record_bytes_max: int = 1 << 20
    sync_flush: bool = False
    trailer: bool = True
    files_max: int = 1000
    disk: Disk = "posix-strict"
    role: Literal["ASYNC_MASTER", "SYNC_MASTER", "SLAVE"] = "ASYNC_MASTER"
    multi_dispatch: bool = False
    light_queues: bool = False
    light_queues_max: int = 20_000
    delay_levels: int = 18
    pool_buffers: int = 0
    fast_fail: bool = False
    files_ahead: int = 0
    least_pages: int = 4
    log_paths: int = 1
    bug: str = ""


@dataclass(frozen=True, slots=True)
class Put:
    """Put a message. The body has `body_bytes` bytes drawn from `fill`, hides a whole record, is zero, or is None.

    Properties are the string `properties`, or the mapping of `pairs` when there are any. `later` puts it with
    `put_async`, so that its answer comes with a Step; `born_now` leaves the born time to the store's clock.
    """

    topic: str = "T"
    queue_id: int = 0
    body_bytes: int = 0
    fill: int = 0
    body_kind: Literal["random", "record", "zeros", "none"] = "random"
    properties: str = ""
    pairs: tuple[tuple[str, str], ...] = ()
    sys_flag: int = 0
    flag: int = 0
    born_v6: bool = False
    store_v6: bool = False
    later: bool = False
    born_now: bool = False
    advance_ms: int = 1
    op: Literal["put"] = "put"


@dataclass(frozen=True, slots=True)
class Member:
    """One message of a batch; its body has `body_bytes` bytes drawn from `fill`."""

    body_bytes: int = 0
    fill: int = 0
    properties: str = ""
    flag: int = 0


BatchDefect = Literal["", "no body", "empty", "cut short", "wrong total", "negative length", "bytes left over"]


@dataclass(frozen=True, slots=True)
class PutBatch:
    """Put a batch; its client body is well-formed but for `defect`."""

    topic: str = "T"
    queue_id: int = 0
    members: tuple[Member, ...] = ()
    properties: str = ""
    sys_flag: int = 0
    born_v6: bool = False
    store_v6: bool = False
    defect: BatchDefect = ""
    later: bool = False
    born_now: bool = False
    advance_ms: int = 1
    op: Literal["put_batch"] = "put_batch"


@dataclass(frozen=True, slots=True)
class Step:
    """Time passes, then a service takes one step; one that the store does not have takes none.

    A step of group commit answers all puts that wait for the disk.
    """

    service: ServiceName = "group-commit"
    after_ms: int = 0
    op: Literal["step"] = "step"


@dataclass(frozen=True, slots=True)
class Concurrent:
    """Two producers put at the same time; `schedule` says who goes on at each yield point (properties/stepped).

    `jump_step` is the yield point at which the clock jumps by `jump_ms`; 0 is none. Born times are always given.
    """

    first: tuple[Put, ...] = ()
    second: tuple[Put, ...] = ()
    schedule: tuple[int, ...] = ()
    jump_step: int = 0
    jump_ms: int = 0
    op: Literal["concurrent"] = "concurrent"


@dataclass(frozen=True, slots=True)
class SwitchFlag:
    """An operator sets or clears a running flag (1, 2, 4 or 8)."""

    bit: int = 2
    on: bool = True
    op: Literal["switch_flag"] = "switch_flag"


@dataclass(frozen=True, slots=True)
class DiskUsed:
    """The disk is used to so many percent, and so much time passes that the store looks at it before the next put."""

    percent: int = 0
    op: Literal["disk_used"] = "disk_used"


@dataclass(frozen=True, slots=True)
class ReplicaIs:
    """From now on the best replica confirms, gives up at once, never answers, is too far behind, or is not there."""

    state: Literal["confirms", "silent", "hangs", "behind", "none"] = "none"
    op: Literal["replica_is"] = "replica_is"


@dataclass(frozen=True, slots=True)
class FailAppend:
    """The mapped file refuses the bytes of the next put that gets so far."""

    op: Literal["fail_append"] = "fail_append"


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
class FailWrite:
    """The next write to a log file that does not go through its mapping, a commit, ends half way with EIO."""

    op: Literal["fail_write"] = "fail_write"


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


Operation = (
    Put
    | PutBatch
    | Step
    | Concurrent
    | SwitchFlag
    | DiskUsed
    | ReplicaIs
    | FailAppend
    | Get
    | Flush
    | Close
    | Open
    | FailSync
    | FailWrite
    | Crash
    | Damage
)
WITHOUT_A_VERB = (Get, SwitchFlag, DiskUsed, ReplicaIs, FailAppend, FailSync, FailWrite)
"""Operations that ask nothing of the disk: no crash falls into them."""

_OPERATIONS: dict[str, Any] = {
    "put": Put,
    "put_batch": PutBatch,
    "step": Step,
    "concurrent": Concurrent,
    "switch_flag": SwitchFlag,
    "disk_used": DiskUsed,
    "replica_is": ReplicaIs,
    "fail_append": FailAppend,
    "get": Get,
    "flush": Flush,
    "close": Close,
    "open": Open,
    "fail_sync": FailSync,
    "fail_write": FailWrite,
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
        if settings.log_paths not in (1, 2):
            raise BadToken(f"log_paths is {settings.log_paths!r}: 1 or 2")
        return cls(settings, operations)


def _without_defaults(value: Any) -> dict[str, Any]:
    default = type(value)()
    named = ((item.name, getattr(value, item.name)) for item in fields(value) if item.name != "op")
    return {name: _plain(found) for name, found in named if found != getattr(default, name)}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; operations inside operations as they are outside."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return _without_defaults(value) if is_dataclass(value) else value


def _read_operation(item: dict[str, Any]) -> Operation:
    kind = _OPERATIONS[item.pop("op")]
    operation: Operation = kind(**item)
    match operation:
        case Crash():
            survived = {k: tuple(v) if isinstance(v, list) else v for k, v in operation.survived.items()}
            return replace(operation, survived=survived)
        case Put():
            return _read_put(operation)
        case PutBatch():
            return replace(operation, members=tuple(_read(Member, member) for member in operation.members))
        case Concurrent():
            first, second = (
                tuple(_read_put(_read(Put, put)) for put in puts) for puts in (operation.first, operation.second)
            )
            return replace(operation, first=first, second=second, schedule=tuple(operation.schedule))
    return operation


def _read_put(put: Put) -> Put:
    return replace(put, pairs=tuple((name, value) for name, value in put.pairs))


def _read(kind: type[Inner], value: Any) -> Inner:
    """Return a message inside an operation, which JSON has as an object."""
    return kind(**value)


def describe(operation: Operation) -> str:
    """Return the operation as a line of a program a person can read."""
    arguments = ", ".join(f"{name}={_short(value)}" for name, value in _without_defaults(operation).items())
    return f"{operation.op}({arguments})"


def _short(value: Any) -> str:
    """Return a value as a person reads it; of a long one the beginning, since the token has all of it."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… ({len(text):,} characters)"
