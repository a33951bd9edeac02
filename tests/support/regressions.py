"""What regressions share: the type of their fixture, and the check of a hole of RocketMQ 4.9.3."""

from collections.abc import Sequence
from typing import Protocol

from tornpage.impl.parts import Parts
from tornpage.model.operations import Operation
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.planted import parts_of
from tornpage.properties.program.case import Settings
from tornpage.properties.score.holes import HOLES

__all__ = ["Attempt", "breaks_only_with"]


class Attempt(Protocol):
    """Run operations in lockstep; return the broken promise, or None."""

    def __call__(
        self, operations: Sequence[Operation], settings: Settings, components: Parts | None = None, /
    ) -> GuaranteeBroken | None: ...


def breaks_only_with(
    hole_id: str,
    attempt: Attempt,
    operations: Sequence[Operation],
    settings: Settings | None = None,
    *,
    contract: int,
    bug: str = "",
) -> None:
    """Assert that a case breaks a promise in the store with the hole, and none in ours; `bug` if it is another one."""
    settings = settings or Settings()
    broken = attempt(operations, settings, parts_of(bug or HOLES[hole_id].bug))
    assert broken is not None, f"{hole_id} is not seen"
    assert broken.contract == contract, str(broken)
    assert attempt(operations, settings) is None
