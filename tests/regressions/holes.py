"""What all regressions of holes of RocketMQ 4.9.3 do: one case, in the store as it is and in one that has the hole."""

from collections.abc import Sequence

from tests.regressions.conftest import Attempt
from tornpage.model.operations import Operation
from tornpage.properties.planted import parts_of
from tornpage.properties.program.case import Settings
from tornpage.properties.score.holes import HOLES

__all__ = ["breaks_only_with"]


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
