"""Search for a planted bug with growing bounds. The first failure is nearly minimal."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, zip_longest

from tornpage.properties.campaign.replay import Failure
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.exhaustive.operation_set import (
    MODES,
    Mode,
    Workload,
    operation_set_of,
    settings_of,
    workloads,
)
from tornpage.properties.explore.exhaustive.workload import Bound, WorkloadStates
from tornpage.properties.program.case import Disk

__all__ = ["search_exhaustively"]

_SHORT = 2
"""When all workloads of this length were crashed with one in-flight write, they and shorter ones get a second."""


def search_exhaustively(
    bug: str,
    *,
    tracker: DirtyTracker,
    disk: Disk = "posix-strict",
    modes: Sequence[Mode] = MODES,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[Failure | None]:
    """Yield None after each crash state that holds, then the failure that ends the search.

    Nothing more is yielded once `is_over` is true. Workloads grow by one operation at a time, and the modes take turns.
    There is no seed: each search visits the same states in the same order, and does not end without a failure.
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
    """Yield the next bounds: each length with one in-flight write, short ones also with two."""
    for length in count():
        yield length, Bound(1)
        if length == _SHORT:
            yield from ((shorter, Bound(2, beyond=1)) for shorter in range(length + 1))


def _in_turns(modes: Sequence[Mode], length: int) -> Iterator[tuple[Mode, Workload]]:
    """Yield the workloads of a length, with the modes taking turns."""
    for beside in zip_longest(*(workloads(operation_set_of(mode), length) for mode in modes)):
        yield from ((mode, each) for mode, each in zip(modes, beside, strict=True) if each is not None)
