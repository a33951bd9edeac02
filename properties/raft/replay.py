"""Run a case of a Raft group again, and shrink it while it fails in the same way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tornpage.model.raft.operations import CrashMember, Deliver, RaftOperation
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.findings import Finding
from tornpage.properties.program.raft_case import RaftCase, described_event
from tornpage.properties.raft.trial import RaftTrial

__all__ = ["RaftFailure", "identity_of", "replay_raft", "shrink_raft"]

TRIES_MAX = 600


@dataclass(frozen=True, slots=True)
class RaftFailure:
    """Hold one broken promise and the case that shows it.

    `lost_writes` counts what its power losses took.
    """

    case: RaftCase
    broken: GuaranteeBroken
    lost_writes: int = 0

    def finding(self) -> Finding:
        """Return the entry of a run document."""
        return Finding.of_broken(
            self.broken,
            expected=self.broken.expected,
            found=self.broken.found,
            program=[described_event(operation) for operation in self.case.operations],
            settings=self.case.document()["settings"],
            losses=self.lost_writes,
            token=self.case.token(),
        )


def identity_of(broken: GuaranteeBroken) -> tuple[int, str]:
    """Return what identifies a failure: contract number and first words."""
    words = "".join(each for each in broken.sentence if not each.isdigit()).split()
    return broken.contract, " ".join(words[:5])


def replay_raft(case: RaftCase, *, tracker: DirtyTracker) -> RaftFailure | None:
    """Run a case and its end.

    Return its failure with the events up to it, or None if all hold.
    """
    trial: RaftTrial | None = None
    try:
        trial = RaftTrial(case.settings, tracker=tracker)
        for operation in case.operations:
            trial.run(operation)
        trial.finish()
    except GuaranteeBroken as broken:
        performed = () if trial is None else tuple(trial.performed)
        return RaftFailure(RaftCase(case.settings, performed), broken, 0 if trial is None else trial.lost_writes)
    return None


def shrink_raft(
    failure: RaftFailure,
    *,
    tracker: DirtyTracker,
    tries_max: int = TRIES_MAX,
    is_over: Callable[[], bool] = lambda: False,
    watch: Callable[[int, int, int], None] = lambda tries, operations, losses: None,
) -> RaftFailure:
    """Return the simplest case found that fails in the same way.

    Events are left out, many at once first. Then power losses keep or lose everything, and messages are the newest.
    It ends when nothing of this fails any more, after `tries_max` replays, or when `is_over` says so.
    """
    best, wanted, tries = failure, identity_of(failure.broken), 0
    is_simpler = True
    while is_simpler:
        is_simpler = False
        for candidate in _simpler(best.case):
            if tries >= tries_max or is_over():
                return best
            tries += 1
            found = replay_raft(candidate, tracker=tracker)
            watch(tries, len(best.case.operations), best.lost_writes)
            if found is not None and identity_of(found.broken) == wanted and _weight(found) < _weight(best):
                best, is_simpler = found, True
                break
    return best


def _weight(failure: RaftFailure) -> tuple[int, int, int]:
    return len(failure.case.operations), failure.lost_writes, len(str(failure.case.document()))


def _simpler(case: RaftCase) -> Iterator[RaftCase]:
    operations, settings = case.operations, case.settings
    size = len(operations) // 2
    while size:
        for start in range(0, len(operations), size):
            yield RaftCase(settings, (*operations[:start], *operations[start + size :]))
        size //= 2
    for place, operation in enumerate(operations):
        for other in _plainer(operation):
            yield RaftCase(settings, (*operations[:place], other, *operations[place + 1 :]))
    if settings.members > 3:
        yield RaftCase(replace(settings, members=settings.members - 1), operations)


def _plainer(operation: RaftOperation) -> Iterator[RaftOperation]:
    if isinstance(operation, CrashMember):
        if operation.survived:
            yield replace(operation, survived={}, others="kept")
            yield replace(operation, survived={}, others="lost")
        if operation.back:
            yield replace(operation, back=0)
    if isinstance(operation, Deliver) and operation.back:
        yield replace(operation, back=0)
