"""What a workload came to, as a value that can be sent, kept and added up; and the plan that it belongs to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from tornpage.properties.campaign.replay import Failure
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.exhaustive.alphabet import (
    FILE_BYTES,
    Letter,
    Mode,
    Workload,
    letters_of,
    settings_of,
    workloads,
)
from tornpage.properties.explore.exhaustive.outcomes import Sparing
from tornpage.properties.explore.exhaustive.workload import Bound, CrashState, WorkloadStates
from tornpage.properties.program.case import Disk, Settings

__all__ = ["Explored", "Plan", "explore_workload"]

_COUNTED_BYTES = 8
"""So much of each hash is kept to count different ones: of ten million all are told apart, at odds of 300,000 to 1."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be enumerated: workloads of up to `ops` letters, `facts` facts at each event.

    With `recovery_facts` of 0 and more recoveries are crashed too, within that bound. `check_ops` and `check_facts` are
    the bound at which brute force has to say the same.
    """

    ops: int
    facts: int
    mode: Mode = "async"
    disk: Disk = "posix-strict"
    bug: str = ""
    letter_names: tuple[str, ...] = ()
    file_bytes: int = FILE_BYTES
    recovery_facts: int = -1
    check_ops: int = 1
    check_facts: int = 1

    def __post_init__(self) -> None:
        """Raise ValueError for letters that the mode does not have, or that make no workload of so many operations."""
        if not any(True for _ in workloads(self.letters, self.ops)):
            names = ", ".join(letter.name for letter in self.letters)
            raise ValueError(f"of the letters {names} no workload of {self.ops} operations can be made")

    @property
    def letters(self) -> tuple[Letter, ...]:
        """The alphabet: all letters of the mode, unless some are named."""
        return letters_of(self.mode, self.letter_names)

    @property
    def settings(self) -> Settings:
        """The store."""
        return settings_of(self.mode, disk=self.disk, bug=self.bug, file_bytes=self.file_bytes)

    @property
    def bound(self) -> Bound:
        """What is enumerated at each event."""
        return Bound(self.facts, recovery_facts=self.recovery_facts)

    @property
    def check_bound(self) -> Bound:
        """What brute force enumerates at each event; a recovery that is crashed loses nothing or everything then."""
        return Bound(min(self.check_facts, self.facts), recovery_facts=min(0, self.recovery_facts))


@dataclass(frozen=True, slots=True)
class Explored:
    """One workload. `states` are all crash states of the bound, by `kinds`; `judged` of them were recovered and judged,
    `recovered_again` recovered twice; the others have the outcome of one of those.

    `images` and `recovered` are hashes of the different crash images, and of what they became; `digest` is over every
    state, image and outcome in order.
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
        """How many crash states there are."""
        return sum(self.kinds.values())

    def document(self) -> dict[str, Any]:
        """Return it as JSON values; a failure is not kept, since it is found again."""
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
        """Read it. Raises KeyError, TypeError or ValueError for what is none."""
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
    """Crash a workload everywhere, up to the first failure. None once it `is_over`: then nothing is known of it."""
    made: list[Sparing] = []

    def sparing() -> Sparing:
        made.append(Sparing())
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
