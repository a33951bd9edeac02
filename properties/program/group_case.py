"""A case of a consumer group, as readable JSON or one printable token (`tg1-…`)."""

from dataclasses import dataclass
from typing import Literal

from tornpage.model.consumers.operations import GROUP_OPERATIONS, GroupOperation
from tornpage.properties.program.case import Disk
from tornpage.properties.program.step_case import CaseForm, StepCase

__all__ = ["GroupCase", "GroupProgram", "GroupSettings"]

_MEMBERS_MAX = 5
_QUEUES_MAX = 8
_FILE_BYTES_MIN, _FILE_BYTES_MAX = 1536, 1 << 20


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The members and queues of a case. `bug` names a planted bug, or is empty.

    With `is_manual` the members are programs that pull and commit by themselves (`properties.consumers.puller`). They
    are not orderly, and their broker has synchronous flush. `syncs` is synchronous flush. `retries` is the number of
    retries before the dead-letter queue. `threshold` is the most messages of a queue in the memory of a member,
    `pull_batch` those of one pull, `batch` those of one listener. `log_file_bytes` is the size of a log file: retention
    deletes whole files. With `is_cold` no message counts as being in memory, so that a group without progress begins by
    its settings and not at 0. Without `holds_pulls` the broker answers a pull at once that finds nothing.
    """

    members: int = 2
    queues: int = 2
    is_orderly: bool = False
    is_manual: bool = False
    syncs: bool = False
    strategy: Literal["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"] = "AVG"
    begins: Literal["first", "last"] = "first"
    retries: int = 16
    threshold: int = 1000
    pull_batch: int = 32
    batch: int = 1
    log_file_bytes: int = 1 << 16
    is_cold: bool = False
    holds_pulls: bool = True
    disk: Disk = "posix-strict"
    bug: str = ""

    @property
    def has_sync_flush(self) -> bool:
        """Whether the broker answers a put after its flush."""
        return self.syncs or self.is_manual

    @property
    def keeps_order(self) -> bool:
        """Whether the members consume in the order of a queue under its lock."""
        return self.is_orderly and not self.is_manual


def _refusal(settings: GroupSettings) -> str:
    if not 1 <= settings.members <= _MEMBERS_MAX or not 1 <= settings.queues <= _QUEUES_MAX:
        return f"use 1 to {_MEMBERS_MAX} members and 1 to {_QUEUES_MAX} queues"
    if not _FILE_BYTES_MIN <= settings.log_file_bytes <= _FILE_BYTES_MAX:
        return f"use log files of {_FILE_BYTES_MIN} to {_FILE_BYTES_MAX} bytes"
    return ""


@dataclass(frozen=True, slots=True)
class GroupCase(StepCase[GroupSettings, GroupOperation]):
    """Settings and operations.

    The broker is open before the first operation, and no member runs.
    """

    FORM = CaseForm("tg1-", "tornpage_group", "case of a consumer group", GroupSettings, GROUP_OPERATIONS, _refusal)


GroupProgram = tuple[GroupSettings, tuple[GroupOperation, ...]]
