"""Define the result of a campaign and its verdict, for every explorer."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from tornpage.properties.contract import Verdict

__all__ = ["CampaignResult", "Found"]

Counts = TypeVar("Counts")
Broken = TypeVar("Broken")


@dataclass(frozen=True, slots=True)
class Found(Generic[Broken]):
    """Hold a failure, shrunk if its explorer can shrink.

    `history` is the seed of the run that first met it, `mix` its row of the covering array, `times` the number of runs
    that met the same failure.
    """

    failure: Broken
    history: str = ""
    mix: str = ""
    times: int = 1


@dataclass
class CampaignResult(Generic[Counts, Broken]):
    """Hold what a campaign found, and what limits a result without findings.

    `tally` is what the explorer counted. `faults` are sentences about faults of the harness, `undecided` about what was
    not decided in time. `silent` names required classes that were never hit. `canary` is the planted bug that was
    caught; `without_canary` numbers the `shards` that needed a canary and caught none. `is_cut` means that the time
    limit, an interrupt or a stop request ended the campaign before its plan was done. `seconds` is the duration of the
    exploration; with several workers, that of the slowest. `first_failure_seconds` is the time of the first failure
    since the start of the exploration, known to the end of its part.
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
    first_failure_seconds: float | None = None
    interrupted: bool = False
    is_cut: bool = False
    result_hash: str = ""
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    @property
    def failure(self) -> Broken | None:
        """Return the first failure."""
        return self.found[0].failure if self.found else None

    @property
    def verdict(self) -> Verdict:
        """Return the verdict. The order is harness, broken, unknown, vacuous, holds."""
        if self.faults:
            return Verdict.HARNESS
        if self.found:
            return Verdict.BROKEN
        if self.undecided:
            return Verdict.UNKNOWN
        return Verdict.VACUOUS if self.silent or self.without_canary or not self.shards else Verdict.HOLDS

    def meet(self, key: Hashable, failure: Broken, *, history: str = "", mix: str = "") -> None:
        """Note a failure that a run met.

        A failure with a known key adds to the count of the first one.
        """
        number = self._numbers.setdefault(key, len(self.found))
        if number == len(self.found):
            self.found.append(Found(failure, history, mix))
        else:
            self.found[number] = replace(self.found[number], times=self.found[number].times + 1)
