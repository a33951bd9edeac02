"""A case of a consumer group, as readable JSON or one printable token (`tg1-…`)."""

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

from tornpage.model.consumers.operations import GROUP_OPERATIONS, GroupOperation
from tornpage.properties.program.case import Disk
from tornpage.properties.program.packing import BadToken, packed, unpacked
from tornpage.properties.program.steps import changed, read_step

__all__ = ["TOKEN_PREFIX", "GroupCase", "GroupProgram", "GroupSettings"]

FORMAT = 1
TOKEN_PREFIX = "tg1-"
_MEMBERS_MAX = 5
_QUEUES_MAX = 8


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The members and queues of a case. `bug` names a planted bug, or is empty.

    `syncs` is synchronous flush. `retries` is the number of retries before the dead-letter queue. `threshold` is the
    most messages of a queue in the memory of a member, `pull_batch` those of one pull, `batch` those of one listener.
    """

    members: int = 2
    queues: int = 2
    is_orderly: bool = False
    syncs: bool = False
    strategy: Literal["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"] = "AVG"
    begins: Literal["first", "last"] = "first"
    retries: int = 16
    threshold: int = 1000
    pull_batch: int = 32
    batch: int = 1
    disk: Disk = "posix-strict"
    bug: str = ""


@dataclass(frozen=True, slots=True)
class GroupCase:
    """Settings and operations.

    The broker is open before the first operation, and no member runs.
    """

    settings: GroupSettings
    operations: tuple[GroupOperation, ...]

    def document(self) -> dict[str, Any]:
        """Return the readable form."""
        return {
            "tornpage_group": FORMAT,
            "settings": changed(self.settings),
            "operations": [{"op": each.op, **changed(each)} for each in self.operations],
        }

    def with_bug(self, bug: str) -> "GroupCase":
        """Return the case with another planted bug, or without one."""
        return replace(self, settings=replace(self.settings, bug=bug))

    def token(self) -> str:
        """Return the case as one printable word."""
        return packed(TOKEN_PREFIX, self.document())

    @classmethod
    def from_token(cls, token: str) -> "GroupCase":
        """Read a token. Raises BadToken."""
        return cls.from_text(unpacked(TOKEN_PREFIX, token))

    @classmethod
    def from_text(cls, text: str) -> "GroupCase":
        """Read the readable form. Raises BadToken."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadToken(f"the case file is not JSON: {error}") from error
        if not isinstance(document, dict) or document.get("tornpage_group") != FORMAT:
            raise BadToken(f"this is not a case of a consumer group of format {FORMAT} (key tornpage_group)")
        try:
            settings = GroupSettings(**document["settings"])
            operations = tuple(read_step(GROUP_OPERATIONS, dict(item)) for item in document["operations"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadToken(f"the case of a consumer group cannot be read: {error}") from error
        if not 1 <= settings.members <= _MEMBERS_MAX or not 1 <= settings.queues <= _QUEUES_MAX:
            raise BadToken(f"use 1 to {_MEMBERS_MAX} members and 1 to {_QUEUES_MAX} queues")
        return cls(settings, operations)


GroupProgram = tuple[GroupSettings, tuple[GroupOperation, ...]]
