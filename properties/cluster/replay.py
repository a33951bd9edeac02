"""Run a case of a cluster again, and shrink it while it fails in the same way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from tornpage.model.replication.operations import ClusterOperation, CrashNode
from tornpage.properties.cluster.trial import ClusterTrial
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.findings import Finding
from tornpage.properties.program.cluster_case import ClusterCase, ClusterSettings
from tornpage.properties.program.steps import described_step

__all__ = ["ClusterFailure", "identity_of", "replay_cluster", "shrink_cluster"]

TRIES_MAX = 600


@dataclass(frozen=True, slots=True)
class ClusterFailure:
    """Hold one broken promise and the case that shows it.

    `lost_writes` counts what its power losses took.
    """

    case: ClusterCase
    broken: GuaranteeBroken
    lost_writes: int = 0

    def finding(self) -> Finding:
        """Return the entry of a run document."""
        return Finding.of_broken(
            self.broken,
            expected=self.broken.expected,
            found=self.broken.found,
            program=[described_step(operation) for operation in self.case.operations],
            settings=self.case.document()["settings"],
            losses=self.lost_writes,
            token=self.case.token(),
        )


def identity_of(broken: GuaranteeBroken) -> tuple[int, str]:
    """Return what identifies a failure: contract number and sentence without numbers."""
    return broken.contract, "".join(each for each in broken.sentence if not each.isdigit())


def replay_cluster(case: ClusterCase, *, tracker: DirtyTracker) -> ClusterFailure | None:
    """Run a case and its end.

    Return its failure with the operations up to it, or None if all hold.
    """
    trial: ClusterTrial | None = None
    try:
        trial = ClusterTrial(case.settings, tracker=tracker)
        for operation in case.operations:
            trial.run(operation)
        trial.finish()
    except GuaranteeBroken as broken:
        performed = () if trial is None else tuple(trial.performed)
        return ClusterFailure(ClusterCase(case.settings, performed), broken, 0 if trial is None else trial.lost_writes)
    return None


def shrink_cluster(
    failure: ClusterFailure,
    *,
    tracker: DirtyTracker,
    tries_max: int = TRIES_MAX,
    is_over: Callable[[], bool] = lambda: False,
    watch: Callable[[int, int, int], None] = lambda tries, operations, losses: None,
) -> ClusterFailure:
    """Return the simplest case found that fails in the same way.

    Operations of any node and link are left out first, many at once. Then power losses keep or lose everything, numbers
    become their defaults or smaller, and settings become the plain ones. It ends when nothing of this fails any more,
    after `tries_max` replays, or when `is_over` says so.
    """
    best, wanted, tries = failure, identity_of(failure.broken), 0
    is_simpler = True
    while is_simpler and tries < tries_max:
        is_simpler = False
        for candidate in _simpler(best.case):
            if tries >= tries_max or is_over():
                return best
            tries += 1
            found = replay_cluster(candidate, tracker=tracker)
            watch(tries, len(best.case.operations), best.lost_writes)
            if found is not None and identity_of(found.broken) == wanted and _weight(found) < _weight(best):
                best, is_simpler = found, True
                break
    return best


def _weight(failure: ClusterFailure) -> tuple[int, int, int]:
    case = failure.case
    return len(case.operations), failure.lost_writes, len(str(case.document()))


def _simpler(case: ClusterCase) -> Iterator[ClusterCase]:
    operations, settings = case.operations, case.settings
    size = len(operations) // 2
    while size:
        for start in range(0, len(operations), size):
            yield ClusterCase(settings, (*operations[:start], *operations[start + size :]))
        size //= 2
    for place, operation in enumerate(operations):
        for other in _plainer(operation):
            yield ClusterCase(settings, (*operations[:place], other, *operations[place + 1 :]))
    for each in fields(ClusterSettings):
        plain = getattr(ClusterSettings(), each.name)
        if each.name not in ("bug", "disk", "nodes") and getattr(settings, each.name) != plain:
            yield ClusterCase(replace(settings, **{each.name: plain}), operations)
    if settings.nodes > 2 and settings.quorum == 1:
        yield ClusterCase(replace(settings, nodes=settings.nodes - 1), operations)


def _plainer(operation: ClusterOperation) -> Iterator[ClusterOperation]:
    default = type(operation)()
    if isinstance(operation, CrashNode) and operation.survived:
        yield replace(operation, survived={}, others="kept")
        yield replace(operation, survived={}, others="lost")
        for name in operation.survived:
            yield replace(operation, survived={k: v for k, v in operation.survived.items() if k != name})
    for each in fields(operation):
        value, plain = getattr(operation, each.name), getattr(default, each.name)
        if value == plain or each.name == "op":
            continue
        smaller = (
            [value // 2, value - 1] if isinstance(value, int) and not isinstance(value, bool) and value > 1 else []
        )
        for other in (plain, *smaller):
            changed: dict[str, Any] = {each.name: other}
            yield replace(operation, **changed)
