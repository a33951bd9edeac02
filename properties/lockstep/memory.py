"""Hold what judges compare a recovered store with: log, queues, index, progress files."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from tornpage.model.state import BLANK_BYTES, CommitLog, Layout, Record
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.judge.evidence import Recovered
from tornpage.properties.judge.ledgers import (
    BROKER_TABLES,
    CONSUMER_OFFSETS,
    DELAY_OFFSETS,
    LIGHT_CONSUMER_OFFSETS,
    DerivedLedger,
    Ledger,
    LegalVersions,
    ProgressLedger,
)
from tornpage.properties.program.case import Settings

__all__ = ["Memory", "Peek"]

Peek = Callable[[str, int, int], bytes]
"""Returns bytes of a log file that the process sees, by its name, a position and a size."""


class Memory:
    """The ledgers of one lockstep run; records enter them when they reach the page cache.

    `was_corrupted`: queues and index were corrupted, or the clock was set back, so the checkpoint's times are no longer
    compared. `torn_files` are state files that a corruption tore.
    """

    def __init__(self, settings: Settings, layout: Layout) -> None:
        self.ledger = Ledger(file_bytes=settings.file_bytes)
        self.derived = DerivedLedger(layout)
        self.consumer_file = LIGHT_CONSUMER_OFFSETS if settings.light_queues else CONSUMER_OFFSETS
        self.versions = ProgressLedger({self.consumer_file: (), DELAY_OFFSETS: (), **dict.fromkeys(BROKER_TABLES, ())})
        self.was_corrupted = False
        self.torn_files: frozenset[tuple[str, bytes]] = frozenset()
        self._file_bytes = settings.file_bytes
        self._unnoted: list[Record | int] = []

    # ---- what operations write -----------------------------------------------------------------------------------

    def append(self, records: Sequence[Record], *, end_before: int, end_after: int) -> None:
        """Expect the writes of a put: its records, or only the blank before a refused append."""
        for record in records:
            if record.offset % self._file_bytes == 0 and end_before < record.offset:
                self._unnoted.append(end_before)
            self._unnoted.append(record)
            end_before = record.end_offset
        if end_after > end_before:
            self._unnoted.append(end_before)

    def note_committed(self, log: CommitLog, *, half_written_end: int, peek: Peek) -> None:
        """Note the records and blanks that no buffer of the pool holds back."""
        end = max(log.committed_offset, half_written_end)
        while self._unnoted:
            item = self._unnoted[0]
            if (item.end_offset if isinstance(item, Record) else item + BLANK_BYTES) > end:
                break
            self._note_next(peek)
        if half_written_end > log.committed_offset:
            self.note_whole(peek)

    def note_whole(self, peek: Peek) -> None:
        """Note what is complete in the page cache.

        The zeros at the end of a record may be there before the rest of it.
        """
        with suppress(GuaranteeBroken):
            while self._unnoted:
                self._note_next(peek)

    def _note_next(self, peek: Peek) -> None:
        item = self._unnoted[0]
        if isinstance(item, Record):
            self.ledger.note(item, end_before=item.offset, peek=peek)
            self.derived.note(item)
        else:
            self.ledger.note_blank(item, peek)
        self._unnoted.pop(0)

    # ---- what a recovery leaves ----------------------------------------------------------------------------------

    def recover(self, found: Recovered, *, legal: LegalVersions | None, until: int) -> None:
        """Keep what a store was recovered with.

        Before event `until` progress files may still have `legal` versions.
        """
        self.ledger = self.ledger.copy()
        self.ledger.truncate(found.store.max_offset)
        self.derived = self.derived.up_to(found.store.max_offset, found.legal[found.key].deleted)
        self.versions = ProgressLedger(found.versions_before, legal=legal, until=until)
        self._unnoted = []
