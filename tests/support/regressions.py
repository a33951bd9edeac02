"""The type of the fixture `attempt`, and the check of a known RocketMQ 4.9.3 defect."""

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
    """Assert that a case holds in the store and breaks `contract` with the hole planted.

    `bug` is the planted bug to use in place of the one that the hole names.
    """
    settings = settings or Settings()
    broken = attempt(operations, settings, parts_of(bug or HOLES[hole_id].bug))
    assert broken is not None, f"{hole_id} is not seen"
    assert broken.contract == contract, str(broken)
    assert attempt(operations, settings) is None
