"""A case: everything needed to run one failure again on any machine and in later versions.

It has settings and a list of operations, including crashes with the in-flight writes that survived. It has no seed and
no generator state. As a file it is readable JSON. As a token it is one printable word: `tp1-`, the checksum, the
compressed JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, get_args

from tornpage.model.operations import (
    OPERATIONS,
    AimFault,
    Call,
    Concurrent,
    Crash,
    DeleteTopics,
    HarmNumbers,
    Member,
    Operation,
    PullWhileDispatching,
    Put,
    PutBatch,
    VerifyReads,
    WrongClaim,
)
from tornpage.properties.program.fault_language import parse_fault
from tornpage.properties.program.packing import BadToken, packed, unpacked

__all__ = ["DISKS", "BadToken", "Case", "Disk", "Settings", "describe"]

Inner = TypeVar("Inner")

Disk = Literal["posix-strict", "journal", "ext4", "xfs", "btrfs", "kill"]
"""What a crash may leave (properties/disk/rules.py).

`posix-strict`: what POSIX permits. `ext4`, `xfs`, `btrfs`: what was measured there. `journal`: the weakest rules of the
three. `kill`: everything, because only the process dies.
"""
DISKS: tuple[Disk, ...] = get_args(Disk)

FORMAT = 1
TOKEN_PREFIX = "tp1-"
_SHOWN_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the store and its disk in a case.

    `bug` names a planted bug, or is empty.

    `pool_buffers` is the size of the transient store pool, 0 for none. `least_pages` is the page rule of the timed
    flush and of the timed commit. `files_ahead` is the number of log files created before they are needed. `log_paths`
    is the number of log directories, 1 or 2. With `first_disk_full` or `second_disk_full` one of them is on a disk of
    its own that is nearly full.
    A consume queue file has room for `queue_units` units. With `queue_ext`
    queues have an extension, whose bit maps are empty without `bit_maps`. An index file has `index_slots` slots and
    room for `index_entries` - 1 entries. `java_delays` is a store that accepts delayed messages as RocketMQ 4.9.3 does,
    for logs that RocketMQ wrote. `pending_copies` is the number of copies of a delay level that may wait for their
    answers in asynchronous delivery; 0 is synchronous delivery. `verify_reads` says which reads verify checksums. With
    `drops_joined` the store reads properties as RocketMQ 4.9.0 does.

    One pull returns at most `pull_count` messages of `pull_bytes` bytes, and at most `far_count` and `far_bytes` of
    messages that the memory of the machine no longer holds. That memory has `memory_bytes`; 0 is that of this machine.
    With `confirms` pulls confirm leading units at once, as with the compiled twins (properties/program/confirming.py).
    With `compiled` the store uses its compiled twins, which a store in use loads after 20,000 records.

    `target` names a foreign store (foreign/spec.py), which may take `answer_seconds` for an answer. Of the other
    settings only `disk` and `bug` apply to it.
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
    second_disk_full: bool = False
    first_disk_full: bool = False
    queue_units: int = 16
    queue_ext: bool = False
    bit_maps: bool = False
    index: bool = True
    index_slots: int = 3
    index_entries: int = 24
    java_delays: bool = False
    pending_copies: int = 0
    verify_reads: VerifyReads = "always"
    drops_joined: bool = False
    pull_count: int = 32
    pull_bytes: int = 262_144
    far_count: int = 8
    far_bytes: int = 65_536
    memory_bytes: int = 0
    confirms: bool = False
    compiled: bool = False
    bug: str = ""
    target: str = ""
    answer_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Case:
    """Settings and operations. The store is opened before the first operation."""

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
        return packed(TOKEN_PREFIX, self.document())

    @classmethod
    def from_token(cls, token: str) -> "Case":
        """Read a token. Raises BadToken."""
        return cls.from_text(unpacked(TOKEN_PREFIX, token))

    @classmethod
    def from_text(cls, text: str) -> "Case":
        """Read the readable form. Raises BadToken."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadToken(f"the file is not JSON ({error}); name a case file that a run wrote with --out") from error
        if not isinstance(document, dict) or "tornpage_case" not in document:
            raise BadToken("this is not a case (no key tornpage_case); name a case file that a run wrote with --out")
        if (version := document["tornpage_case"]) != FORMAT:
            raise BadToken(
                f"the case has format {version!r}, and this tornpage reads format {FORMAT}: use the other one"
            )
        try:
            settings = Settings(**document["settings"])
            operations = tuple(_read_operation(dict(item)) for item in document["operations"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadToken(f"the case cannot be read: {error}") from error
        if settings.disk not in DISKS:
            raise BadToken(f"unknown disk {settings.disk!r}: {', '.join(DISKS)}")
        if settings.log_paths not in (1, 2):
            raise BadToken(f"log_paths is {settings.log_paths!r}: 1 or 2")
        if settings.verify_reads not in get_args(VerifyReads):
            raise BadToken(f"verify_reads is {settings.verify_reads!r}: {', '.join(get_args(VerifyReads))}")
        for name, default in asdict(Settings()).items():
            value = getattr(settings, name)
            if type(value) is not type(default) and not (type(default) is float and type(value) is int):
                raise BadToken(f"the setting {name} is {value!r}: of another kind than {default!r}")
        return cls(settings, operations)


def _without_defaults(value: Any) -> dict[str, Any]:
    default = type(value)()
    named = ((item.name, getattr(value, item.name)) for item in fields(value) if item.name != "op")
    return {name: _plain(found) for name, found in named if found != getattr(default, name)}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it.

    Operations inside operations have the form that they have outside.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return _without_defaults(value) if is_dataclass(value) else value


def _read_operation(item: dict[str, Any]) -> Operation:
    name = item.pop("op")
    if name not in OPERATIONS:
        raise ValueError(f"there is no operation {name!r} in this version")
    operation: Operation = OPERATIONS[name](**item)
    match operation:
        case AimFault():
            parse_fault(operation.text)  # raises BadFaultRule, a ValueError
        case Call():
            return _read_call(operation)
        case Crash():
            if operation.others not in ("lost", "kept"):
                raise ValueError(f"others is {operation.others!r}: lost or kept")
            survived = {k: tuple(v) if isinstance(v, list) else v for k, v in operation.survived.items()}
            return replace(operation, survived=survived)
        case DeleteTopics():
            return replace(operation, in_use=tuple(operation.in_use))
        case PullWhileDispatching():
            return replace(operation, schedule=tuple(operation.schedule))
        case Put():
            return _read_put(operation)
        case PutBatch():
            return replace(operation, members=tuple(_read(Member, member) for member in operation.members))
        case HarmNumbers():
            return replace(operation, changes=tuple(_read(WrongClaim, change) for change in operation.changes))
        case Concurrent():
            first, second = (
                tuple(_read_put(_read(Put, put)) for put in puts) for puts in (operation.first, operation.second)
            )
            return replace(operation, first=first, second=second, schedule=tuple(operation.schedule))
    return operation


def _read_call(call: Call) -> Call:
    given: Any = call.parts
    parts = (_read(Call, {key: value for key, value in part.items() if key != "op"}) for part in given)
    read = replace(call, parts=tuple(_read_call(part) for part in parts))
    numbers = (read.size_bytes, read.number)
    if not all(isinstance(word, str) for word in (read.verb, read.name)) or not all(type(n) is int for n in numbers):
        raise ValueError(f"a call has a value of another kind: {read}")
    return read


def _read_put(put: Put) -> Put:
    return replace(put, pairs=tuple((name, value) for name, value in put.pairs))


def _read(kind: type[Inner], value: Any) -> Inner:
    """Return a message inside an operation from its JSON object."""
    return kind(**value)


def describe(operation: Operation) -> str:
    """Return the operation as a readable line of a program."""
    if isinstance(operation, Call):
        return _describe_call(operation)
    arguments = ", ".join(f"{name}={_short(value)}" for name, value in _without_defaults(operation).items())
    return f"{operation.op}({arguments})"


def _describe_call(call: Call) -> str:
    words = [call.name] if call.name else []
    words += [f"{call.size_bytes} bytes"] if call.size_bytes else []
    words += [f"number {call.number}"] if call.number else []
    return f"{call.verb}({', '.join([*words, *map(_describe_call, call.parts)])})"


def _short(value: Any) -> str:
    """Return a readable value.

    A long value is truncated; the token has all of it.
    """
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… ({len(text):,} characters)"
