"""Hunt one bug with one strategy until it is killed, the time is up, or nothing is left to try.

Killed means: a promise is broken, it is broken again when the case is run again, and it is kept when the same is done
without the bug. What the store breaks without the bug as well is counted and passed by.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.program.case import Settings
from tornpage.properties.score.sightings import Sighting
from tornpage.properties.score.strategies import Strategy

__all__ = ["HuntEnd", "Quarry", "hunt"]

HuntEnd = Literal["killed", "survived", "exhausted"]


@dataclass(frozen=True, slots=True)
class Quarry:
    """What a hunt came to: what the strategy counted, and wall seconds until the end.

    To replay a sighting takes time that does not count. `others` counts failures on the way that the store has
    without the bug as well.
    """

    end: HuntEnd
    count: int
    seconds: float
    sighting: Sighting | None = None
    others: int = 0


def hunt(
    strategy: Strategy,
    settings: Settings,
    *,
    seed: int,
    seconds: float,
    tracker: DirtyTracker,
    clock: Callable[[], float] = perf_counter,
) -> Quarry:
    """Hunt the bug that `settings` plant for so many seconds. Raises HarnessError when a failure does not replay."""
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
                return Quarry("killed", counted, seen, sighting, others)
            others += 1
            verifying += clock() - before
        if seen >= seconds:
            return Quarry("survived", counted, seen, None, others)
    return Quarry("survived" if spent() >= seconds else "exhausted", counted, spent(), None, others)
