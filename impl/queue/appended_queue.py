"""A consume queue that the log appends to: runs of units by their numbers, each number once.

What the log says and a queue cannot hold is noted as a finding and passed by. Source: `ConsumeQueue`.
"""

import logging
from collections.abc import Iterator, Sequence

from tornpage.impl.log.loading import Finding
from tornpage.impl.message.dispatching import UNIT_BYTES, QueueRun
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.queue.consume_queue_ext import ConsumeQueueExt
from tornpage.impl.queue.queue_directory import POSITION_MAX
from tornpage.impl.queue.queue_files import QueueFiles
from tornpage.impl.queue.queue_units import QueueUnits
from tornpage.impl.queue.units import PREFILL, units_in

__all__ = ["TOLD_BY_THE_LOG", "AppendedQueue", "tail_of"]

_LOG = logging.getLogger("tornpage.store")

TOLD_BY_THE_LOG = ("impossible_queue", "impossible_queue_offset", "queue_gap", "repeated_queue_offset")
"""The codes of findings about records that a queue cannot hold as the log has them."""

_NUMBER_MAX = POSITION_MAX // UNIT_BYTES


def tail_of(run: QueueRun, count: int) -> QueueRun:
    """Return a run without its first units."""
    if not count:
        return run
    units = run.units[count * UNIT_BYTES :]
    return QueueRun(run.key, run.queue_offset + count, units, run.end_offset, run.ext[count:], run.named)


class AppendedQueue(QueueUnits):
    """One queue, as dispatch goes on with it."""

    def __init__(self, key: QueueKey, files: QueueFiles, *, ext: ConsumeQueueExt | None) -> None:
        super().__init__(key, files, ext=ext)
        self._findings: dict[tuple[str, int], Finding] = {}

    @property
    def findings(self) -> Sequence[Finding]:
        """What was found, each once for its place."""
        return tuple(self._findings.values())

    def append(self, run: QueueRun) -> None:
        """Append a run. Units that are there already are left alone, so that a run may be told again.

        Numbers that the log leaves out become pre-fill, up to one file of them. Raises OSError when the disk refuses a
        file; the units that fitted in front of it are there then.
        """
        if run.queue_offset != self.max_offset or self.is_empty:
            self._append_fitted(run)
        else:
            self._write(run)

    def _append_fitted(self, run: QueueRun) -> None:
        if not self.is_empty and self.min_offset == self.max_offset < run.queue_offset:
            self._erase(0)  # units of expired messages alone: the queue begins with this one
        if self.is_empty:
            if not self._may_begin(run):
                return
            self._begin(run.queue_offset)
        for part in self._fitted(run, self.max_offset):
            self._write(part)

    def _may_begin(self, run: QueueRun) -> bool:
        """Return whether a queue can begin with a run."""
        if 0 <= run.queue_offset <= _NUMBER_MAX:
            return True
        self._find("impossible_queue_offset", run, f"no unit can have the number {run.queue_offset}")
        return False

    def _fitted(self, run: QueueRun, number: int) -> Iterator[QueueRun]:
        """Yield what a queue that ends at a number goes on with: pre-fill, if need be, and what of the run is new."""
        gap = self._gap(run, number)
        if gap is None:
            return
        if gap > 0:
            yield self._prefill(number, gap)
        rest = self._unknown(run, -gap)
        if rest.units:
            yield rest

    def _gap(self, run: QueueRun, number: int) -> int | None:
        """Return how far behind `number` a run begins, None if too far to fill what lies between."""
        gap = run.queue_offset - number
        if gap <= 0:
            return gap
        fits = gap <= self._files.file_bytes // UNIT_BYTES
        left_out = "" if fits else ", too many to go on behind them: the messages from there on are in no queue"
        self._find("queue_gap", run, f"no message has the numbers {number} to {run.queue_offset - 1}{left_out}")
        return gap if fits else None

    def _prefill(self, number: int, count: int) -> QueueRun:
        return QueueRun(self.key, number, PREFILL * count, self.max_physic_offset)

    def _unknown(self, run: QueueRun, known: int) -> QueueRun:
        """Return a run without the first `known` units, whose numbers are taken.

        They are there already, or of second records with a number, which only Java writes: the first one stays.
        """
        if known <= 0:
            return run
        for unit in units_in(run.units[: known * UNIT_BYTES]):
            if unit.end_offset > self.max_physic_offset:
                what = f"the record at {unit.offset} has a number that another one has: it is in no queue"
                self._find("repeated_queue_offset", run, what, offset=unit.offset)
        return tail_of(run, known)

    # ---- findings ------------------------------------------------------------------------------------------------

    def _find(self, code: str, run: QueueRun, what: str, *, offset: int | None = None) -> None:
        """Note what the log says and a queue cannot hold: the place is a physical offset."""
        place = next(units_in(run.units)).offset if offset is None else offset
        if self._keep(Finding("note", code, self.directory, place, f"{self.directory}: {what}")):
            _LOG.warning("%s queue=%r offset=%d what=%r", code, self.directory, place, what)

    def _keep(self, finding: Finding) -> bool:
        """Keep a finding; return whether it is a new one."""
        place = (finding.code, finding.offset)
        is_new = place not in self._findings
        self._findings.setdefault(place, finding)
        return is_new
