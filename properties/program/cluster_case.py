"""A case of a cluster, as readable JSON or one printable token (`tc1-…`)."""

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

from tornpage.model.replication.operations import CLUSTER_OPERATIONS, ClusterOperation
from tornpage.properties.program.case import Disk
from tornpage.properties.program.packing import BadToken, packed, unpacked
from tornpage.properties.program.steps import changed, read_step

__all__ = ["TOKEN_PREFIX", "ClusterCase", "ClusterProgram", "ClusterSettings"]

FORMAT = 1
TOKEN_PREFIX = "tc1-"
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


@dataclass(frozen=True, slots=True)
class ClusterCase:
    """Settings and operations.

    All nodes are open before the first operation; node 0 is the master.
    """

    settings: ClusterSettings
    operations: tuple[ClusterOperation, ...]

    def document(self) -> dict[str, Any]:
        """Return the readable form."""
        return {
            "tornpage_cluster": FORMAT,
            "settings": changed(self.settings),
            "operations": [{"op": each.op, **changed(each)} for each in self.operations],
        }

    def with_bug(self, bug: str) -> "ClusterCase":
        """Return the case with another planted bug, or without one."""
        return replace(self, settings=replace(self.settings, bug=bug))

    def token(self) -> str:
        """Return the case as one printable word."""
        return packed(TOKEN_PREFIX, self.document())

    @classmethod
    def from_token(cls, token: str) -> "ClusterCase":
        """Read a token. Raises BadToken."""
        return cls.from_text(unpacked(TOKEN_PREFIX, token))

    @classmethod
    def from_text(cls, text: str) -> "ClusterCase":
        """Read the readable form. Raises BadToken."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadToken(f"the case file is not JSON: {error}") from error
        if not isinstance(document, dict) or document.get("tornpage_cluster") != FORMAT:
            raise BadToken(f"this is not a cluster case of format {FORMAT} (key tornpage_cluster)")
        try:
            settings = ClusterSettings(**document["settings"])
            operations = tuple(read_step(CLUSTER_OPERATIONS, dict(item)) for item in document["operations"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadToken(f"the cluster case cannot be read: {error}") from error
        if not 2 <= settings.nodes <= _NODES_MAX or not 1 <= settings.quorum < settings.nodes:
            raise BadToken(f"{settings.nodes} nodes with a quorum of {settings.quorum}: use 2 to {_NODES_MAX} nodes")
        return cls(settings, operations)


ClusterProgram = tuple[ClusterSettings, tuple[ClusterOperation, ...]]
