"""A case of a Raft group, as readable JSON or one printable token (`tr1-…`)."""

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

from tornpage.model.raft.operations import RAFT_OPERATIONS, RaftOperation
from tornpage.properties.program.case import Disk
from tornpage.properties.program.packing import BadToken, packed, unpacked
from tornpage.properties.program.steps import changed, read_step

__all__ = ["RAFT_PREFIX", "RaftCase", "RaftProgram", "RaftSettings"]

FORMAT = 1
RAFT_PREFIX = "tr1-"
_MEMBERS_MAX = 7


@dataclass(frozen=True, slots=True)
class RaftSettings:
    """The members of a case.

    `bug` names a planted bug, or is empty. `batch_bytes` bounds the bodies of a message.

    With `store` each member has a message store on its log.

    With `judged` "promises" the promises of the group, the recoveries and the stores are judged, but no step of a
    member.
    """

    members: int = 3
    batch_bytes: int = 1
    data_file_bytes: int = 4096
    disk: Disk = "posix-strict"
    judged: Literal["all", "promises"] = "all"
    store: bool = False
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
            "settings": changed(self.settings),
            "operations": [{"op": each.op, **changed(each)} for each in self.operations],
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
            operations = tuple(read_step(RAFT_OPERATIONS, dict(item)) for item in document["operations"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadToken(f"the Raft case cannot be read: {error}") from error
        if not isinstance(settings.members, int) or not 1 <= settings.members <= _MEMBERS_MAX:
            raise BadToken(f"{settings.members} members: use 1 to {_MEMBERS_MAX}")
        return cls(settings, operations)


RaftProgram = tuple[RaftSettings, tuple[RaftOperation, ...]]
