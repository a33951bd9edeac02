"""A case of a Raft group, as readable JSON or one printable token (`tr1-…`)."""

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from tornpage.model.raft.operations import RAFT_OPERATIONS, CrashMember, RaftOperation
from tornpage.properties.program.case import Disk
from tornpage.properties.program.packing import BadToken, packed, unpacked

__all__ = ["RAFT_PREFIX", "RaftCase", "RaftProgram", "RaftSettings", "described_event"]

FORMAT = 1
RAFT_PREFIX = "tr1-"
_MEMBERS_MAX = 7


@dataclass(frozen=True, slots=True)
class RaftSettings:
    """The members of a case.

    `bug` names a planted bug, or is empty. `batch_bytes` bounds the bodies of a message.

    With `judged` "promises" the promises of the group and the recoveries are judged, but no step of a member.
    """

    members: int = 3
    batch_bytes: int = 1
    data_file_bytes: int = 4096
    disk: Disk = "posix-strict"
    judged: Literal["all", "promises"] = "all"
    bug: str = ""


@dataclass(frozen=True, slots=True)
class RaftCase:
    """Settings and events. All members are up before the first event, with empty logs."""

    settings: RaftSettings
    operations: tuple[RaftOperation, ...]

    def document(self) -> dict[str, Any]:
        """Return the readable form."""
        return {
            "tornpage_raft": FORMAT,
            "settings": _changed(self.settings),
            "operations": [{"op": each.op, **_changed(each)} for each in self.operations],
        }

    def with_bug(self, bug: str) -> "RaftCase":
        """Return the case with another planted bug, or without one."""
        return replace(self, settings=replace(self.settings, bug=bug))

    def token(self) -> str:
        """Return the case as one printable word."""
        return packed(RAFT_PREFIX, self.document())

    @classmethod
    def from_token(cls, token: str) -> "RaftCase":
        """Read a token. Raises BadToken."""
        return cls.from_text(unpacked(RAFT_PREFIX, token))

    @classmethod
    def from_text(cls, text: str) -> "RaftCase":
        """Read the readable form. Raises BadToken."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadToken(f"the case file is not JSON: {error}") from error
        if not isinstance(document, dict) or document.get("tornpage_raft") != FORMAT:
            raise BadToken(f"this is not a Raft case of format {FORMAT} (key tornpage_raft)")
        try:
            settings = RaftSettings(**document["settings"])
            operations = tuple(_read(dict(item)) for item in document["operations"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadToken(f"the Raft case cannot be read: {error}") from error
        if not isinstance(settings.members, int) or not 1 <= settings.members <= _MEMBERS_MAX:
            raise BadToken(f"{settings.members} members: use 1 to {_MEMBERS_MAX}")
        return cls(settings, operations)


RaftProgram = tuple[RaftSettings, tuple[RaftOperation, ...]]


def _changed(value: Any) -> dict[str, Any]:
    default = type(value)()
    named = ((each.name, getattr(value, each.name)) for each in fields(value) if each.name != "op")
    return {name: found for name, found in named if found != getattr(default, name)}


def _read(item: dict[str, Any]) -> RaftOperation:
    operation: RaftOperation = RAFT_OPERATIONS[item.pop("op")](**item)
    for name, default in asdict(RAFT_OPERATIONS[operation.op]()).items():
        if type(getattr(operation, name)) is not type(default):
            raise ValueError(f"{name} of {operation.op} is {getattr(operation, name)!r}")
    if isinstance(operation, CrashMember):
        survived = {name: tuple(v) if isinstance(v, list) else v for name, v in operation.survived.items()}
        return replace(operation, survived=survived)
    return operation


def described_event(operation: RaftOperation) -> str:
    """Return an event as a readable line of a program."""
    return f"{operation.op}({', '.join(f'{name}={value!r}' for name, value in _changed(operation).items())})"
