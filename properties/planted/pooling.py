"""Bugs of the transient store pool and of its commits (after RMQ-B.. and 4.9.3)."""

from contextlib import nullcontext
from typing import Any

from impl.mapped_file import MappedFile
from impl.mapped_file_queue import MappedFileQueue
from impl.parts import Parts
from impl.transient_store_pool import TransientStorePool

__all__ = ["BUGS"]


class _PoolUnderSync(MappedFileQueue):
    """A synchronous store uses the pool, and its flush does not wait for a commit (RMQ-B28)."""

    def __init__(self, maker: Any, allocation: Any, **options: Any) -> None:
        super().__init__(maker, allocation, **options)
        self.use_pool(TransientStorePool(2, maker.file_bytes))


class _ShortCommitIgnored(MappedFile):
    """A commit that the disk takes half of counts as whole (4.9.3 ignores how much a channel wrote)."""

    def commit(self) -> None:
        written = self.written_position
        try:
            super().commit()
        except OSError:
            self._committed_position = written


class _WholeBufferWritten(MappedFile):
    """The commit behind a blank writes the rest of the buffer, with what an earlier file left in it."""

    def commit(self) -> None:
        blank_position, self.blank_position = self.blank_position, None
        try:
            super().commit()
        finally:
            self.blank_position = blank_position


class _BufferKept(MappedFileQueue):
    """A full file keeps its buffer (4.9.3, when a file with a buffer is destroyed)."""

    def _return(self, buffer: memoryview | None) -> None:
        """Nothing comes home."""


class _ReadersSeeBuffers(MappedFileQueue):
    """Readers are let to the end of what is written, committed or not."""

    @property
    def committed_where(self) -> int:
        return self.max_offset


class _FlushOfBuffers(MappedFile):
    """A flush counts what is still in the buffer."""

    def flush(self) -> None:
        super().flush()
        self.flushed_position = self.written_position


class _CommitsAtOnce(MappedFileQueue):
    """The commit service and whoever flushes commit at the same time, each to where it saw the end (RMQ-B29)."""

    def __init__(self, maker: Any, allocation: Any, **options: Any) -> None:
        super().__init__(maker, allocation, **options)
        self._commit_lock = nullcontext()


BUGS = (
    ("RMQ-B28", "a synchronous store with a pool flushes what was not committed", 8,
     Parts({MappedFileQueue: _PoolUnderSync})),
    ("short-commit-ignored", "a commit that the disk takes half of counts as whole", 1,
     Parts({MappedFile: _ShortCommitIgnored})),
    ("whole-buffer-written", "a commit writes what an earlier file left in the buffer", 1,
     Parts({MappedFile: _WholeBufferWritten})),
    ("buffer-kept", "the buffer of a full file does not come home", 8, Parts({MappedFileQueue: _BufferKept})),
    ("readers-see-buffers", "readers see what is not committed", 17,
     Parts({MappedFileQueue: _ReadersSeeBuffers})),
    ("RMQ-B29", "two commits at once take the end of what is committed back", 9,
     Parts({MappedFileQueue: _CommitsAtOnce})),
    ("flush-of-buffers", "a flush counts what was not committed", 9, Parts({MappedFile: _FlushOfBuffers})),
)  # fmt: skip
