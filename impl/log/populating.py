"""The service that populates pages of the log before records need them.

It spares puts the wait for memory. The first write to a page of a new file causes a page fault: the kernel finds a page
and fills it with zeros. That is cheap if the page was in use recently, and takes tens of microseconds if a virtual
machine has to get it from its host. Source: docs/adr/0046-pages-by-another-thread.md; RocketMQ warms up whole files
(`MappedFile.warmMappedFile`).
"""

from collections.abc import Callable

from tornpage.impl.config.policy import PAGE_BYTES
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.mapped_file_queue import MappedFileQueue

__all__ = ["PopulateAhead"]

_AHEAD_MS = 50
"""The time for which populated pages last at the rate of the last puts. A thread waits 5 ms for the interpreter and
longer for a core. The log is flushed ten times as rarely, so at most a tenth of its pages is written twice."""
_AHEAD_BYTES_MAX = 8 << 20


class PopulateAhead:
    """Populates the newest log file ahead of its records.

    It populates `least_bytes`, or more at a higher rate of puts. A round is started by the record that passes half of
    the populated pages. Puts never wait for it: if it is late, their pages fault as without it. Populated pages are
    dirty zeros, so a slow log has few of them.
    """

    name = "populate"

    def __init__(self, log: MappedFileQueue, *, least_bytes: int) -> None:
        self.wake: Callable[[], None] | None = None
        self._log = log
        self._least_bytes = least_bytes
        self._file: MappedFile | None = None
        self._ready_position = 0
        self._seen: tuple[int, int] | None = None  # time in ms and log end of the last round

    def step(self, now_ms: int) -> None:
        """Populate the newest file, then set the position whose record starts the next round."""
        mapped = self._log.mapped
        if not mapped or not mapped[-1].hold():
            return
        file = mapped[-1]
        try:
            self._populate(file, now_ms)
        finally:
            file.release()

    def _populate(self, file: MappedFile, now_ms: int) -> None:
        written = file.written_position
        ahead_bytes = self._ahead_bytes(now_ms, file.base_offset + written)
        if file is not self._file:
            self._file, self._ready_position = file, 0
        start = max(self._ready_position, written // PAGE_BYTES * PAGE_BYTES)
        end = min(file.size_bytes, -(-(written + ahead_bytes) // PAGE_BYTES) * PAGE_BYTES)
        if start < end:
            file.populate(start, end)
            self._ready_position = end
        if self.wake is not None and self._ready_position < file.size_bytes:
            file.ask_for_pages(self.wake, beyond=self._ready_position - ahead_bytes // 2)

    def _ahead_bytes(self, now_ms: int, end_offset: int) -> int:
        before, self._seen = self._seen, (now_ms, end_offset)
        if before is None:
            return self._least_bytes
        wanted = (end_offset - before[1]) * _AHEAD_MS // max(1, now_ms - before[0])
        return max(self._least_bytes, min(wanted, _AHEAD_BYTES_MAX))
