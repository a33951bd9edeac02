"""Search for one bug with one strategy until a kill, the time limit, or exhaustion.

A kill means that a promise is broken, that it is broken again on replay, and that it is kept on a replay without the
bug. Failures that the store has without the bug as well are counted and skipped.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.program.case import Settings
from tornpage.properties.score.detections import Detection
from tornpage.properties.score.strategies import Strategy

__all__ = ["SearchEnd", "SearchResult", "search"]

SearchEnd = Literal["killed", "survived", "exhausted"]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hold the result of a search: the strategy's count, and the wall seconds until the end.

    Time spent on replaying a detection does not count. `others` counts failures that the store has without the bug as
    well.
    """

    end: SearchEnd
    count: int
    seconds: float
    sighting: Detection | None = None
    others: int = 0


def search(
    strategy: Strategy,
    settings: Settings,
    *,
    seed: int,
    seconds: float,
    tracker: DirtyTracker,
    clock: Callable[[], float] = perf_counter,
) -> SearchResult:
    """Search for the bug in `settings` for up to `seconds`.

    Raises HarnessError if a failure does not replay.
    """
    started = clock()
    verifying = 0.0

    def spent() -> float:
        return clock() - started - verifying

    counted = others = 0
    for counted, sighting in strategy.seek(settings, seed=seed, tracker=tracker, is_over=lambda: spent() >= seconds):
        seen = spent()
        if sighting is not None and seen < seconds:
            before = clock()
            if not sighting.replays(tracker):
                raise HarnessError(f"a failure does not replay: {sighting.broken}; {sighting.token()}")
            if sighting.needs_its_bug(tracker):
                return SearchResult("killed", counted, seen, sighting, others)
            others += 1
            verifying += clock() - before
        if seen >= seconds:
            return SearchResult("survived", counted, seen, None, others)
    return SearchResult("survived" if spent() >= seconds else "exhausted", counted, spent(), None, others)
