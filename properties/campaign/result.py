"""What a campaign established: one result and one verdict rule for every explorer."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from tornpage.properties.contract import Verdict

__all__ = ["CampaignResult", "Found"]

Counts = TypeVar("Counts")
Broken = TypeVar("Broken")


@dataclass(frozen=True, slots=True)
class Found(Generic[Broken]):
    """A failure, made small where its explorer can do that.

    `history` is the seed of the run that met it first, `mix` the swarm configuration of that run, `times` the number
    of runs that met the same failure.
    """

    failure: Broken
    history: str = ""
    mix: str = ""
    times: int = 1


@dataclass
class CampaignResult(Generic[Counts, Broken]):
    """What a campaign found, and how much its silence means.

    `tally` is what the explorer counted. `faults` are sentences about what our own tooling did wrong, `undecided` about
    what was not decided in time. `silent` names what is required and never fired. `canary` is the planted bug that was
    caught; `without_canary` numbers the `shards` that needed one and caught none. `is_cut` says that time, an interrupt
    or a stop request ended the campaign before its plan was done. `seconds` is how long it explored: of several
    workers, the one that took longest.
    """

    tally: Counts
    found: list[Found[Broken]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    canary: str = ""
    without_canary: list[int] = field(default_factory=list)
    shards: int = 0
    repeated: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    is_cut: bool = False
    result_hash: str = ""
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    @property
    def failure(self) -> Broken | None:
        """The first failure."""
        return self.found[0].failure if self.found else None

    @property
    def verdict(self) -> Verdict:
        """Harness goes before broken, broken before unknown, unknown before vacuous, vacuous before holds."""
        if self.faults:
            return Verdict.HARNESS
        if self.found:
            return Verdict.BROKEN
        if self.undecided:
            return Verdict.UNKNOWN
        return Verdict.VACUOUS if self.silent or self.without_canary or not self.shards else Verdict.HOLDS

    def meet(self, key: Hashable, failure: Broken, *, history: str = "", mix: str = "") -> None:
        """Note a failure that a run has met; one with the key of an earlier one counts there."""
        number = self._numbers.setdefault(key, len(self.found))
        if number == len(self.found):
            self.found.append(Found(failure, history, mix))
        else:
            self.found[number] = replace(self.found[number], times=self.found[number].times + 1)
