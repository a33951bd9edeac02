"""A case of a Raft group, as readable JSON or one printable token (`tr1-…`)."""

from dataclasses import dataclass
from typing import Literal

from tornpage.model.raft.operations import RAFT_OPERATIONS, RaftOperation
from tornpage.properties.program.case import Disk
from tornpage.properties.program.step_case import CaseForm, StepCase

__all__ = ["RaftCase", "RaftProgram", "RaftSettings"]

_MEMBERS_MAX = 7


@dataclass(frozen=True, slots=True)
class RaftSettings:
    """The members of a case.

    `bug` names a planted bug, or is empty. `batch_bytes` bounds the bodies of a message.

    With `store` each member has a message store on its log.

    With `nodes` each member is run by its node, with timers and links. With small `limits` the node has little room for
    requests, recent entries and unsent messages.

    With `judged` "promises" the promises of the group, the recoveries and the stores are judged, but no step of a
    member.
    """

    members: int = 3
    batch_bytes: int = 1
    data_file_bytes: int = 4096
    disk: Disk = "posix-strict"
    judged: Literal["all", "promises"] = "all"
    store: bool = False
    nodes: bool = False
    limits: Literal["usual", "small"] = "usual"
    bug: str = ""


def _refusal(settings: RaftSettings) -> str:
    if not isinstance(settings.members, int) or not 1 <= settings.members <= _MEMBERS_MAX:
        return f"{settings.members} members: use 1 to {_MEMBERS_MAX}"
    return ""


@dataclass(frozen=True, slots=True)
class RaftCase(StepCase[RaftSettings, RaftOperation]):
    """Settings and events. All members are up before the first event, with empty logs."""

    FORM = CaseForm("tr1-", "tornpage_raft", "Raft case", RaftSettings, RAFT_OPERATIONS, _refusal)


RaftProgram = tuple[RaftSettings, tuple[RaftOperation, ...]]
