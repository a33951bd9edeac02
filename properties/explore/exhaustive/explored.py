"""Hold the plan of an enumeration and the result of a workload as plain values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from tornpage.properties.campaign.replay import Failure
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.exhaustive.operation_set import (
    FILE_BYTES,
    Mode,
    NamedOperation,
    Workload,
    operation_set_of,
    settings_of,
    workloads,
)
from tornpage.properties.explore.exhaustive.outcomes import CachingJudge
from tornpage.properties.explore.exhaustive.workload import Bound, CrashState, WorkloadStates
from tornpage.properties.judge.rulings import counted
from tornpage.properties.program.case import Disk, Settings

__all__ = ["Explored", "Plan", "explore_workload"]

_COUNTED_BYTES = 8
"""The bytes of each hash that are kept to count different ones. Ten million hashes stay distinct at odds of 300,000 to
1."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan an enumeration of workloads: up to `ops` operations, `facts` writes per event.

    `facts` bounds the in-flight writes. If `recovery_facts` is not negative, recoveries are crashed too, within that
    bound. `check_ops` and `check_facts` are the bound at which brute force must agree.
    """

    ops: int
    facts: int
    mode: Mode = "async"
    disk: Disk = "posix-strict"
    bug: str = ""
    operation_names: tuple[str, ...] = ()
    file_bytes: int = FILE_BYTES
    recovery_facts: int = -1
    check_ops: int = 1
    check_facts: int = 1

    def __post_init__(self) -> None:
        """Raise ValueError for operations that the mode lacks or that make no such workload."""
        if not any(True for _ in workloads(self.operation_set, self.ops)):
            names = ", ".join(entry.name for entry in self.operation_set)
            raise ValueError(f"the operations {names} make no workload of {counted(self.ops, 'operation')}")

    @property
    def operation_set(self) -> tuple[NamedOperation, ...]:
        """Return the operation set: all entries of the mode, or the named ones."""
        return operation_set_of(self.mode, self.operation_names)

    @property
    def settings(self) -> Settings:
        """Return the settings of the store."""
        return settings_of(self.mode, disk=self.disk, bug=self.bug, file_bytes=self.file_bytes)

    @property
    def bound(self) -> Bound:
        """Return the bound of the enumeration at each event."""
        return Bound(self.facts, recovery_facts=self.recovery_facts)

    @property
    def check_bound(self) -> Bound:
        """Return the bound of brute force. A crashed recovery then loses nothing or everything."""
        return Bound(min(self.check_facts, self.facts), recovery_facts=min(0, self.recovery_facts))


@dataclass(frozen=True, slots=True)
class Explored:
    """Hold the result of one workload.

    `states` are all crash states of the bound, counted by `kinds`. `judged` of them were recovered and judged, and
    `recovered_again` of those were recovered twice. The others share the outcome of one of those. `images` and
    `recovered` are hashes of the different crash images and of their recovered stores. `digest` covers every state,
    image and outcome in order.
    """

    workload: Workload
    kinds: Mapping[str, int]
    judged: int
    recovered_again: int
    certified: int
    images: frozenset[str]
    recovered: frozenset[str]
    digest: str
    failure: Failure | None = None

    @property
    def states(self) -> int:
        """Return the number of crash states."""
        return sum(self.kinds.values())

    def document(self) -> dict[str, Any]:
        """Return the result as JSON values. A failure is not kept, since it is found again."""
        return {
            "workload": list(self.workload),
            "kinds": dict(self.kinds),
            "judged": self.judged,
            "recovered_again": self.recovered_again,
            "certified": self.certified,
            "images": sorted(self.images),
            "recovered": sorted(self.recovered),
            "digest": self.digest,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Explored":
        """Read a document. Raises KeyError, TypeError or ValueError for an invalid one."""
        return cls(
            tuple(document["workload"]),
            dict(document["kinds"]),
            document["judged"],
            document["recovered_again"],
            document["certified"],
            frozenset(document["images"]),
            frozenset(document["recovered"]),
            document["digest"],
        )


def explore_workload(
    workload: Workload, plan: Plan, *, tracker: DirtyTracker, is_over: Callable[[], bool] = lambda: False
) -> Explored | None:
    """Crash a workload everywhere, up to the first failure.

    Return None once `is_over` is true.
    """
    made: list[CachingJudge] = []

    def sparing() -> CachingJudge:
        made.append(CachingJudge())
        return made[-1]

    states = WorkloadStates(workload, plan.settings, plan.bound, tracker, judging=sparing)
    kinds: dict[str, int] = {"power": 0, "kill": 0, "recovery": 0}
    images, recovered, failure = set(), set(), None
    digest = blake2b(digest_size=16)
    for state in states.everywhere():
        if is_over():
            return None
        digest.update(_told(state))
        if state.broken is not None:
            failure = state.failure(plan.settings)
            break
        kinds[state.kind] += 1
        recovered.add(state.recovered[:_COUNTED_BYTES].hex())
        if state.image:
            images.add(state.image[:_COUNTED_BYTES].hex())
    return Explored(
        workload,
        kinds,
        sum(each.judged for each in made),
        sum(each.recovered_again for each in made),
        states.certified,
        frozenset(images),
        frozenset(recovered),
        digest.hexdigest(),
        failure,
    )


def _told(state: CrashState) -> bytes:
    crashes = [operation for operation in state.done if operation.op == "crash"]
    return repr((state.kind, crashes, state.image, state.recovered, str(state.broken))).encode()
