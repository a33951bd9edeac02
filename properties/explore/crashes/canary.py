"""The canary: a planted bug that the engine of a campaign has to catch in the same run."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice

from properties.disk.dirty import DirtyTracker
from properties.disk.disk import Disk
from properties.explore.crashes.explore import explore_seed
from properties.explore.crashes.mix import Strategy
from properties.explore.crashes.tally import Tally
from properties.program.case import Settings

__all__ = ["canary_bug", "caught_canary"]

CANARY_SEEDS_MAX = 20


def canary_bug(disk: Disk) -> str:
    """Return the planted bug that a campaign on a disk has to catch.

    A kill loses nothing that was written, so there it is one that leaves a backlog of dispatch undone.
    """
    return "RMQ-B03" if disk == "kill" else "lying-flush"


def caught_canary(
    base: Settings,
    history_seeds: Iterable[str],
    *,
    strategy: Strategy,
    tracker: DirtyTracker,
    is_over: Callable[[], bool],
) -> str:
    """Return the planted bug that this engine caught in the first of these histories, or nothing.

    Then its silence about the store proves nothing. All puts wait for the disk: a flush that lies does so soon.
    """
    bug = canary_bug(base.disk)
    planted = replace(base, bug=bug)
    for history_seed in islice(history_seeds, CANARY_SEEDS_MAX):
        found = explore_seed(
            history_seed,
            planted,
            tracker=tracker,
            tally=Tally(),
            strategy=strategy,
            fixed={"sync_flush": base.disk != "kill", "pool_buffers": 0},
            is_over=is_over,
        )
        if any(failure is not None for failure in found):
            return bug
        if is_over():
            return ""
    return ""
