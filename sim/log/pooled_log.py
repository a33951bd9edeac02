"""The log with a transient store pool: commits copy buffers to the page cache.

`durable_rows <= committed_rows <= planned_rows`, and the same for offsets. A file that was made without a free buffer
is written directly. A put that is refused for lack of a buffer is a row of no bytes.
"""

from typing import Any, ClassVar

import numpy as np

from tornpage.sim.distributions import Int64s
from tornpage.sim.events.bell import now_ns
from tornpage.sim.log.log import Log
from tornpage.sim.log.pieces import Dirty, End

__all__ = ["Buffers", "PooledLog"]


class Buffers:
    """The number of free buffers, and the files that have one.

    The first file exists and has one.
    """

    def __init__(self, count: int) -> None:
        self.free = count
        self.lowest = count
        self._files: set[int] = set()
        self.borrow(0)

    def borrow(self, file_index: int) -> None:
        """Give a buffer to a file that is being made, if one is free."""
        if self.free:
            self.free -= 1
            self.lowest = min(self.lowest, self.free)
            self._files.add(file_index)

    def has(self, file_index: int) -> bool:
        """Return whether this file is written through a buffer."""
        return file_index in self._files

    def give_back(self) -> None:
        """Take a buffer back; the log remembers that its file had one."""
        self.free += 1


class PooledLog(Log):
    """A log with the further column `committed_ns` and the committed watermark."""

    COLUMNS: ClassVar[tuple[str, ...]] = (*Log.COLUMNS, "committed_ns")

    committed_ns: Int64s

    def __init__(self, *arguments: Any, buffers: Buffers, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.buffers = buffers
        self.committed_rows = 0
        self.committed_offset = 0

    @property
    def _touches(self) -> bool:
        return super()._touches and not self.buffers.has(self.file_index)

    def refuse(self) -> None:
        """Refuse the next row now, for lack of a buffer."""
        row = self.planned_rows
        self.start_ns[row] = self.written_ns[row] = self.lock_free_ns = now_ns(self._env)
        self.offset[row] = self.end_offset
        self.size[row] = 0
        self.planned_rows = row + 1
        self._pass_refused()
        self.planned.ring()
        self._settle()

    def commit_due_ns(self, least_pages: int) -> int | None:
        """Return when the put ends that makes a commit due by the page rule; None if unknown yet.

        After a file without a buffer that is the first put into the next file.
        """
        if not self.buffers.has(self.committed_offset // self.file_bytes):
            least_pages = self.file_bytes  # no file has so many
        row = self._due_row(self.committed_offset, self.committed_rows, self.planned_rows, least_pages)
        return None if row is None else self.written_ns.item(row)

    def uncommitted(self) -> Dirty | None:
        """Return the oldest piece of one buffer that is written now and not committed."""
        while True:
            file_index = self.committed_offset // self.file_bytes
            end = self._written(file_index, self.committed_rows)
            if self.buffers.has(file_index):
                break
            if end is None or not end.file_is_full:
                return None
            self.committed_offset, self.committed_rows = end.to_offset, end.rows_end
        if end is None or end.to_offset == self.committed_offset:
            return None
        size_bytes = end.to_offset - self.committed_offset
        return Dirty(
            file_index, end.file_is_full, self.committed_offset, end.to_offset, end.rows_end, size_bytes, False
        )

    def make_committed(self, piece: Dirty) -> None:
        """Record that a write of `piece` to the page cache has returned now."""
        self.committed_ns[self.committed_rows : piece.rows_end] = now_ns(self._env)
        self.committed_rows, self.committed_offset = piece.rows_end, piece.to_offset
        if piece.file_is_full:
            self.buffers.give_back()
        self._pass_refused()
        self.planned.ring()

    def make_durable(self, piece: Dirty) -> None:
        super().make_durable(piece)
        self._pass_refused()
        self._settle()

    def due_ns(self, least_pages: int) -> int | None:
        if not self.buffers.has(self.durable_offset // self.file_bytes):
            return super().due_ns(least_pages)
        row = self._due_row(self.durable_offset, self.durable_rows, self.committed_rows, least_pages)
        return None if row is None else self.committed_ns.item(row)

    def columns(self) -> dict[str, Int64s]:
        """Return the columns.

        Bytes written directly count as committed once everything before them is.
        """
        columns = super().columns()
        direct = columns["committed_ns"] == 0
        columns["committed_ns"][direct] = columns["written_ns"][direct]
        np.maximum.accumulate(columns["committed_ns"], out=columns["committed_ns"])
        return columns

    def _flushable(self, file_index: int) -> End | None:
        base_offset = file_index * self.file_bytes
        if not self.buffers.has(file_index) or self.committed_offset >= base_offset + self.file_bytes:
            return super()._flushable(file_index)
        return End(False, self.committed_rows, self.committed_offset, self.committed_offset - base_offset)

    def _pass_refused(self) -> None:
        """Let rows of no bytes be committed and durable as soon as all rows before them are."""
        now = now_ns(self._env)
        while self.committed_rows < self.planned_rows and self.size.item(self.committed_rows) == 0:
            self.committed_ns[self.committed_rows] = now
            self.committed_rows += 1
        while self.durable_rows < self.planned_rows and self.size.item(self.durable_rows) == 0:
            self.durable_ns[self.durable_rows] = now
            self.durable_rows += 1
