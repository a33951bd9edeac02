"""Where a crash may fall while an operation is under way, and which choices of facts there are at each place."""

from collections.abc import Iterator
from dataclasses import dataclass

from properties.disk.disk import DiskState
from properties.judge.progress_ledger import LegalVersions
from properties.lockstep.lockstep import Lockstep

__all__ = ["Place", "places_of"]


@dataclass(frozen=True, slots=True)
class Place:
    """A moment of the last operation: `back` events before its answer, 0 is at rest. `state` is the disk then, and
    `versions` are what progress files may say.

    The state is the same object at each place, moved on: use it before going to the next one.
    """

    back: int
    position: int
    state: DiskState
    versions: LegalVersions


def places_of(trial: Lockstep) -> Iterator[Place]:
    """Yield each event of the last verb of a trial, in order, then the moment right after its answer."""
    window, files = trial.spans[-1], trial.files
    state = DiskState(files.base, disk=trial.settings.disk)
    applied = 0
    for event in range(window.first, window.last + 1):
        at_rest = event == window.last
        position = len(files.journal) if at_rest else files.events[event]
        state.apply_all(files.journal[applied:position])
        applied = position
        yield Place(window.last - event, position, state, trial.recovery.versions_at(event))
