"""Bugs in what recovery does: how it cuts the log, and what it does about the bytes behind the cut."""

from impl.mapped_file import MappedFile
from impl.mapped_file_queue import MappedFileQueue
from impl.parts import Parts
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


class _WalksFromTheWrongEnd(MappedFileQueue):
    """To cut the log the files are walked backwards from the first one, in front of which there is none (RMQ-B26)."""

    def drop_behind(self, index: int) -> None:
        at = 0
        while at > index + 1:
            at -= 1
            self._maker.remove(self.mapped.pop(at))


class _RemovesWhileItWalks(MappedFileQueue):
    """Files behind a cut are taken out of the list that is walked, and so every other one stays (RMQ-B27)."""

    def drop_behind(self, index: int) -> None:
        kept = self.mapped[: index + 1]
        for mapped in self.mapped:
            if mapped not in kept:
                self.mapped.remove(mapped)
                self._maker.remove(mapped)


BUGS = (
    ("no-erase-after-cut", "recovery cuts the log but leaves the cut bytes", 3, Parts({Recovery: _NoErase})),
    ("erase-not-synced", "recovery erases the cut bytes but does not sync", 3, Parts({Recovery: _EraseNotSynced})),
    ("RMQ-B26", "recovery cuts the log and leaves the files behind the cut", 1,
     Parts({MappedFileQueue: _WalksFromTheWrongEnd})),
    ("RMQ-B27", "recovery removes every other file behind the cut", 1,
     Parts({MappedFileQueue: _RemovesWhileItWalks})),
)  # fmt: skip
