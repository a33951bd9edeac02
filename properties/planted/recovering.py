"""Bugs in what recovery does."""

from impl.components import Components
from impl.mapped_file import MappedFile
from impl.recovery import Recovery, RecoveryPlan

__all__ = ["BUGS"]


class _NoErase(Recovery):
    """What lies behind the cut stays on the disk (hole H1 of 4.9.3)."""

    def _erase(self, last: MappedFile, position: int) -> None:
        last.written_position = position


class _EraseNotSynced(Recovery):
    """The cut is erased in the page cache and left to chance on the disk."""

    def carry_out(self, plan: RecoveryPlan) -> None:
        for file in self._log.mapped:
            file.sync = _no_sync  # type: ignore[method-assign]
        super().carry_out(plan)


def _no_sync() -> None:
    """Say that a barrier was passed."""


BUGS = (
    ("no-erase-after-cut", "recovery cuts the log but leaves the cut bytes", 3, Components(recovery=_NoErase)),
    ("erase-not-synced", "recovery erases the cut bytes but does not sync", 3, Components(recovery=_EraseNotSynced)),
)  # fmt: skip
