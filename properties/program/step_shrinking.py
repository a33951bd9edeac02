"""Shrink cases of clusters and of consumer groups while they fail in the same way."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, Protocol, TypeVar

from tornpage.properties.contract import GuaranteeBroken

__all__ = ["TRIES_MAX", "FailedSteps", "identity_of", "shrink_steps"]

TRIES_MAX = 600


class StepCase(Protocol):
    """A case: settings and operations, both frozen dataclasses with defaults."""

    @property
    def settings(self) -> Any:
        """The settings."""

    @property
    def operations(self) -> tuple[Any, ...]:
        """The operations."""

    def document(self) -> dict[str, Any]:
        """Return the readable form."""


class FailedSteps(Protocol):
    """A broken promise, and the case that shows it."""

    @property
    def case(self) -> Any:
        """The case, a `StepCase`."""

    @property
    def broken(self) -> GuaranteeBroken:
        """The broken promise."""

    @property
    def lost_writes(self) -> int:
        """How many in-flight writes its power losses took."""


Failure = TypeVar("Failure", bound=FailedSteps)


def identity_of(broken: GuaranteeBroken) -> tuple[int, str]:
    """Return what identifies a failure: contract number and sentence without numbers."""
    return broken.contract, "".join(each for each in broken.sentence if not each.isdigit())


def shrink_steps(
    failure: Failure,
    *,
    replay: Callable[[Any], Failure | None],
    settings_like: Callable[[Any], Iterator[Any]],
    tries_max: int = TRIES_MAX,
    is_over: Callable[[], bool] = lambda: False,
    watch: Callable[[int, int, int], None] = lambda tries, operations, losses: None,
) -> Failure:
    """Return the simplest case found that fails in the same way.

    Operations are left out first, many at once. Power losses then keep or lose everything, numbers become defaults
    or smaller, and settings become those of `settings_like`. It ends when nothing of this fails any more, after
    `tries_max` replays, or when `is_over` returns true.
    """
    best, wanted, tries = failure, identity_of(failure.broken), 0
    is_simpler = True
    while is_simpler and tries < tries_max:
        is_simpler = False
        for candidate in _simpler(best.case, settings_like):
            if tries >= tries_max or is_over():
                return best
            tries += 1
            found = replay(candidate)
            watch(tries, len(best.case.operations), best.lost_writes)
            if found is not None and identity_of(found.broken) == wanted and _weight(found) < _weight(best):
                best, is_simpler = found, True
                break
    return best


def _weight(failure: FailedSteps) -> tuple[int, int, int]:
    case = failure.case
    return len(case.operations), failure.lost_writes, len(str(case.document()))


def _simpler(case: Any, settings_like: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
    operations = case.operations
    size = len(operations) // 2
    while size:
        for start in range(0, len(operations), size):
            yield replace(case, operations=(*operations[:start], *operations[start + size :]))
        size //= 2
    for place, operation in enumerate(operations):
        for other in _plainer(operation):
            yield replace(case, operations=(*operations[:place], other, *operations[place + 1 :]))
    for settings in settings_like(case.settings):
        yield replace(case, settings=settings)


def _plainer(operation: Any) -> Iterator[Any]:
    default = type(operation)()
    if getattr(operation, "survived", None):
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
            yield replace(operation, **{each.name: other})
