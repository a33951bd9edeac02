"""Hunt a planted bug by growing bounds: the first failure is nearly the smallest there is."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, zip_longest

from tornpage.properties.campaign.replay import Failure
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.exhaustive.alphabet import MODES, Mode, Workload, letters_of, settings_of, workloads
from tornpage.properties.explore.exhaustive.workload import Bound, WorkloadStates
from tornpage.properties.program.case import Disk

__all__ = ["hunt_exhaustively"]

_SHORT = 2
"""When all workloads of this length were crashed with one fact, they and shorter ones get a second."""


def hunt_exhaustively(
    bug: str,
    *,
    tracker: DirtyTracker,
    disk: Disk = "posix-strict",
    modes: Sequence[Mode] = MODES,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[Failure | None]:
    """Yield None after each crash state that holds, and the failure that ends the hunt; nothing once it `is_over`.

    Workloads grow by an operation at a time, the modes taking turns. There is no seed: each hunt meets the same states
    in the same order, and has no end without a failure.
    """
    for length, bound in _bounds():
        for mode, workload in _in_turns(modes, length):
            settings = settings_of(mode, disk=disk, bug=bug)
            for state in WorkloadStates(workload, settings, bound, tracker).everywhere():
                if is_over():
                    return
                yield state.failure(settings)
                if state.broken is not None:
                    return


def _bounds() -> Iterator[tuple[int, Bound]]:
    """Yield what to enumerate next: each length with one fact, behind short ones those with a second one."""
    for length in count():
        yield length, Bound(1)
        if length == _SHORT:
            yield from ((shorter, Bound(2, beyond=1)) for shorter in range(length + 1))


def _in_turns(modes: Sequence[Mode], length: int) -> Iterator[tuple[Mode, Workload]]:
    """Yield the workloads of a length, those of the modes beside each other."""
    for beside in zip_longest(*(workloads(letters_of(mode), length) for mode in modes)):
        yield from ((mode, each) for mode, each in zip(modes, beside, strict=True) if each is not None)
