"""Represent a detection: a broken promise that can be replayed with and without its bug.

A strategy runs cases, interleavings, clusters or consumer groups. A search treats all alike.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

from tornpage.properties.campaign.replay import Failure, replay
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.interleavings.run import run_interleaving
from tornpage.properties.explore.interleavings.scenario import Interleaving
from tornpage.properties.explore.interleavings.shrink import BrokenInterleaving
from tornpage.properties.explore.interleavings.token import token_of
from tornpage.properties.lockstep.step_program import StepFailure, StepProgram

__all__ = ["CaseDetection", "Detection", "InterleavingDetection", "StepsDetection"]


class Detection(Protocol):
    """Hold a broken promise and the means to show it again."""

    @property
    def broken(self) -> GuaranteeBroken:
        """Return the broken promise."""

    @property
    def operations(self) -> int:
        """Return the number of operations, including crashes."""

    def token(self) -> str:
        """Return the detection as one printable token."""

    def replays(self, tracker: DirtyTracker) -> bool:
        """Return whether a replay breaks the promise again."""

    def needs_its_bug(self, tracker: DirtyTracker) -> bool:
        """Return whether a replay without the bug keeps every promise."""


@dataclass(frozen=True, slots=True)
class CaseDetection:
    """Hold a failing case of one thread."""

    failure: Failure

    @property
    def broken(self) -> GuaranteeBroken:
        return self.failure.broken

    @property
    def operations(self) -> int:
        return len(self.failure.case.operations)

    def token(self) -> str:
        return self.failure.case.token()

    def replays(self, tracker: DirtyTracker) -> bool:
        return replay(self.failure.case, tracker=tracker) is not None

    def needs_its_bug(self, tracker: DirtyTracker) -> bool:
        case = self.failure.case
        return replay(replace(case, settings=replace(case.settings, bug="")), tracker=tracker) is None


@dataclass(frozen=True, slots=True)
class InterleavingDetection:
    """Hold a failing interleaving of several threads."""

    failure: BrokenInterleaving

    @property
    def broken(self) -> GuaranteeBroken:
        return self.failure.broken

    @property
    def operations(self) -> int:
        scenario = self.failure.interleaving.scenario
        return len(scenario.before) + sum(map(len, scenario.tasks))

    def token(self) -> str:
        return token_of(self.failure.interleaving)

    def replays(self, tracker: DirtyTracker) -> bool:
        return run_interleaving(self.failure.interleaving, tracker=tracker).broken is not None

    def needs_its_bug(self, tracker: DirtyTracker) -> bool:
        return run_interleaving(_without_bug(self.failure.interleaving), tracker=tracker).broken is None


@dataclass(frozen=True, slots=True)
class StepsDetection:
    """Hold a failing case of a cluster, of a consumer group or of a Raft group."""

    failure: StepFailure[Any]
    program: StepProgram[Any, Any]

    @property
    def broken(self) -> GuaranteeBroken:
        return self.failure.broken

    @property
    def operations(self) -> int:
        return len(self.failure.case.operations)

    def token(self) -> str:
        token: str = self.failure.case.token()
        return token

    def replays(self, tracker: DirtyTracker) -> bool:
        return self.program.replay(self.failure.case, tracker=tracker) is not None

    def needs_its_bug(self, tracker: DirtyTracker) -> bool:
        return self.program.replay(self.failure.case.with_bug(""), tracker=tracker) is None


def _without_bug(interleaving: Interleaving) -> Interleaving:
    scenario = interleaving.scenario
    return replace(interleaving, scenario=replace(scenario, settings=replace(scenario.settings, bug="")))
