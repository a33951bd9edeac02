"""Bugs in when the store says "it is on disk"."""

from impl.durable_floor import DurableFloor
from impl.group_commit import GroupCommit
from impl.mapped_file import MappedFile
from impl.mapped_file_queue import MappedFileQueue
from impl.message import PutStatus
from impl.parts import Parts
from impl.time_outs import Request

__all__ = ["BUGS"]

PAGE_BYTES = 4096


class _EarlyAcknowledgement(GroupCommit):
    """A synchronous put is answered before its flush."""

    def submit(self, request: Request) -> None:
        request.answer(PutStatus.PUT_OK)


class _LyingFlush(MappedFile):
    """The watermark moves, the bytes stay behind."""

    def flush(self) -> None:
        self.flushed_position = self.committed_position


class _DroppedFirstPage(MappedFile):
    """The page in which a flush begins is not part of it, as if the range had been rounded up."""

    def flush(self) -> None:
        start = self.flushed_position // PAGE_BYTES * PAGE_BYTES
        end = min(start + PAGE_BYTES, self.size_bytes)
        page = bytes(self.view[start:end])
        self.view[self.flushed_position : end] = bytes(end - self.flushed_position)
        super().flush()
        self.view[start:end] = page


class _WholePagesOnly(MappedFile):
    """A flush leaves out the page that is not full yet, as if the range had been rounded down."""

    def flush(self) -> None:
        start = max(self.committed_position // PAGE_BYTES * PAGE_BYTES, self.flushed_position)
        rest = bytes(self.view[start : self.committed_position])
        self.view[start : self.committed_position] = bytes(len(rest))
        super().flush()
        self.view[start : start + len(rest)] = rest


class _SyncErrorIgnored(MappedFile):
    """A failed sync counts as a flush (hole A1 of 4.9.3)."""

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            self.failure = None
            self.flushed_position = self.committed_position


class _LastFileOnly(MappedFileQueue):
    """A flush across a roll-over syncs the newest file alone."""

    def flush(self, least_pages: int = 0) -> int:
        if self.mapped:
            self.mapped[-1].flush()
            self.flushed_where = self.committed_where
        return self.flushed_where


class _FloorFirst(MappedFileQueue):
    """The durable floor is on disk before the flush that it speaks of."""

    def flush(self, least_pages: int = 0) -> int:
        files, root = self._maker._files, self.directories.paths[0].rpartition("/")[0]
        if files.stat(f"{root}/config/durableFloor") is not None:
            floor = DurableFloor(files, f"{root}/config/durableFloor", file_bytes=self.file_bytes)
            floor.start(self.committed_where)
            floor.close()
        return super().flush(least_pages)


class _FloorAhead(DurableFloor):
    """The durable floor claims one page more than was flushed."""

    def raise_to(self, offset: int) -> None:
        super().raise_to(offset + PAGE_BYTES)


BUGS = (
    ("early-acknowledgement", "a synchronous put is answered before its flush", 2,
     Parts({GroupCommit: _EarlyAcknowledgement})),
    ("lying-flush", "a flush moves the watermark without a sync", 2, Parts({MappedFile: _LyingFlush})),
    ("dropped-first-page", "a flush leaves out the page in which it begins", 2,
     Parts({MappedFile: _DroppedFirstPage})),
    ("whole-pages-only", "a flush leaves out the page that is not full yet", 2,
     Parts({MappedFile: _WholePagesOnly})),
    ("sync-error-ignored", "a failed sync counts as a flush (RMQ-B25)", 9, Parts({MappedFile: _SyncErrorIgnored})),
    ("last-file-only", "a flush across a roll-over syncs the newest file alone", 2,
     Parts({MappedFileQueue: _LastFileOnly})),
    ("floor-before-flush", "the durable floor is on disk before the flush that it speaks of", 7,
     Parts({MappedFileQueue: _FloorFirst})),
    ("floor-ahead", "the durable floor is written ahead of the flush", 7, Parts({DurableFloor: _FloorAhead})),
)  # fmt: skip
