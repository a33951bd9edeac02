"""A case of a cluster, as readable JSON or one printable token (`tc1-…`)."""

from dataclasses import dataclass
from typing import Literal

from tornpage.model.replication.operations import CLUSTER_OPERATIONS, ClusterOperation
from tornpage.properties.program.case import Disk
from tornpage.properties.program.step_case import CaseForm, StepCase

__all__ = ["ClusterCase", "ClusterProgram", "ClusterSettings"]

_NODES_MAX = 5


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The nodes of a case. `bug` names a planted bug, or is empty.

    `quorum` is the number of replicas that a synchronous put waits for, `acknowledge` what they confirm.
    `master_syncs` and `slave_syncs` are synchronous flush by role. `batch_bytes` is the size of a frame of data. With
    `discard_when_gone` a replica drops a log that its master cannot continue.
    """

    nodes: int = 2
    file_bytes: int = 4096
    batch_bytes: int = 64
    quorum: int = 1
    acknowledge: Literal["received", "durable"] = "received"
    master_syncs: bool = False
    slave_syncs: bool = False
    send_flushed_only: bool = False
    discard_when_gone: bool = False
    disk: Disk = "posix-strict"
    bug: str = ""


def _refusal(settings: ClusterSettings) -> str:
    if not 2 <= settings.nodes <= _NODES_MAX or not 1 <= settings.quorum < settings.nodes:
        return f"{settings.nodes} nodes with a quorum of {settings.quorum}: use 2 to {_NODES_MAX} nodes"
    return ""


@dataclass(frozen=True, slots=True)
class ClusterCase(StepCase[ClusterSettings, ClusterOperation]):
    """Settings and operations.

    All nodes are open before the first operation; node 0 is the master.
    """

    FORM = CaseForm("tc1-", "tornpage_cluster", "cluster case", ClusterSettings, CLUSTER_OPERATIONS, _refusal)


ClusterProgram = tuple[ClusterSettings, tuple[ClusterOperation, ...]]
