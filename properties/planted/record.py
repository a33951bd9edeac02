"""Describe one planted bug: what is wrong, the broken parts, its origin, its reproducer."""

from dataclasses import dataclass, replace

from tornpage.impl.parts import Parts
from tornpage.properties.planted.programs import Program
from tornpage.properties.program.case import Case
from tornpage.properties.program.cluster_case import ClusterCase, ClusterProgram
from tornpage.properties.program.group_case import GroupCase, GroupProgram
from tornpage.properties.program.raft_case import RaftCase, RaftProgram

__all__ = ["DURABILITY", "Origin", "PlantedBug"]

DURABILITY = "durability"
"""The group of bugs between a write and the disk. A tester that misses one of them proves nothing about that bug."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Describe a defect of RocketMQ.

    Source: its history up to September 2025 and the code of 4.9.3. `fixed_in` is a release, or says that no release has
    the fix. `in_493` says whether 4.9.3 has the defect.
    """

    id: str
    title: str
    fixed_in: str
    in_493: str


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """Describe a bug that the tester must detect.

    `contract` is the number of the guarantee that the bug breaks. `parts` are the broken parts of the store. `kind` is
    the kind of a bug in the durability group. `holes` are the defects of 4.9.3 that the bug reproduces
    (properties/score/holes). `machine` is the state machine made for it, or empty if no machine finds it soon.

    `program` is the minimal reproducer. Its last operation breaks a guarantee, and the store without the bug keeps all
    guarantees. The broken guarantee is `contract` unless `breaks_first` names another one that is judged earlier. A bug
    for which two threads have to meet has no program. A bug that no single thread can show has `needs_threads` set.
    A bug of replication has the program of a `cluster` instead, a bug of Raft that of a group (`raft`). Such a run
    ends with a healed network. A bug of consumers has the program of a consumer group (`consumers`), whose run ends
    without faults.
    """

    id: str
    sentence: str
    contract: int
    parts: Parts
    kind: str = ""
    origin: Origin | None = None
    holes: tuple[str, ...] = ()
    machine: str = ""
    needs_threads: bool = False
    program: Program | None = None
    cluster: ClusterProgram | None = None
    consumers: GroupProgram | None = None
    raft: RaftProgram | None = None
    breaks_first: int = 0

    @property
    def group(self) -> str:
        """Return the named set of bugs that this bug belongs to, or an empty string."""
        return DURABILITY if self.kind else ""

    @property
    def reproducer(self) -> Case | None:
        """Return the minimal reproducer as a case with the bug in its settings."""
        if self.program is None:
            return None
        settings, operations = self.program
        return Case(replace(settings, bug=self.id), operations)

    @property
    def needs_group(self) -> str:
        """Return the strategy that runs such nodes if only they can show the bug, else ""."""
        kinds = {"cluster": self.cluster, "consumers": self.consumers, "raft": self.raft}
        return next((name for name, program in kinds.items() if program is not None), "")

    @property
    def cluster_reproducer(self) -> ClusterCase | None:
        """Return the minimal reproducer of a cluster, with the bug in its settings."""
        if self.cluster is None:
            return None
        settings, operations = self.cluster
        return ClusterCase(replace(settings, bug=self.id), operations)

    @property
    def group_reproducer(self) -> GroupCase | None:
        """Return the minimal reproducer of a consumer group, with the bug in its settings."""
        if self.consumers is None:
            return None
        settings, operations = self.consumers
        return GroupCase(replace(settings, bug=self.id), operations)

    @property
    def raft_reproducer(self) -> RaftCase | None:
        """Return the minimal reproducer of a Raft group, with the bug in its settings."""
        if self.raft is None:
            return None
        settings, operations = self.raft
        return RaftCase(replace(settings, bug=self.id), operations)

    @property
    def shown_contract(self) -> int:
        """Return the number of the guarantee that the minimal reproducer breaks."""
        return self.breaks_first or self.contract
