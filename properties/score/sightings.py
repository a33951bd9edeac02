"""What a strategy met: a broken promise that can be run again, and run without the bug.

Strategies differ in what they carry out, a case or an interleaving; who hunts need not know which.
"""

from dataclasses import dataclass, replace
from typing import Protocol

from tornpage.properties.campaign.replay import Failure, replay
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.interleavings.run import run_interleaving
from tornpage.properties.explore.interleavings.scenario import Interleaving
from tornpage.properties.explore.interleavings.shrink import BrokenInterleaving
from tornpage.properties.explore.interleavings.token import token_of

__all__ = ["SeenCase", "SeenInterleaving", "Sighting"]


class Sighting(Protocol):
    """A broken promise and how to see it again."""

    @property
    def broken(self) -> GuaranteeBroken:
        """What is broken."""

    @property
    def operations(self) -> int:
        """How many operations it takes, crashes counted."""

    def token(self) -> str:
        """Return it as one printable word."""

    def replays(self, tracker: DirtyTracker) -> bool:
        """Whether it is broken again when it is run again."""

    def needs_its_bug(self, tracker: DirtyTracker) -> bool:
        """Whether every promise is kept when the same is done without the bug."""


@dataclass(frozen=True, slots=True)
class SeenCase:
    """A case of one thread that fails."""

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
class SeenInterleaving:
    """An interleaving of several threads that fails."""

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


def _without_bug(interleaving: Interleaving) -> Interleaving:
    scenario = interleaving.scenario
    return replace(interleaving, scenario=replace(scenario, settings=replace(scenario.settings, bug="")))
