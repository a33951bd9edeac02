"""A consume queue: what a log says of one queue, appended as it is dispatched and proved when a store opens.

A queue is a function of the log. At open the log is walked from its minimum on, and each run of units is *reconciled*
with what is stored: equal units stay, from the first difference on everything is erased and written anew. Units of
messages that the log no longer has lie in front and stay as they are. Source: `ConsumeQueue`, whose recovery compares
nothing with the log (holes C1 to C17).
"""

from bisect import bisect_left

from tornpage.impl.log.loading import Finding
from tornpage.impl.message.dispatching import UNIT_BYTES, ExtDraft, QueueRun
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.queue.appended_queue import AppendedQueue, tail_of
from tornpage.impl.queue.consume_queue_ext import ConsumeQueueExt, is_address
from tornpage.impl.queue.queue_files import QueueFiles
from tornpage.impl.queue.units import Unit, units_in

__all__ = ["ConsumeQueue"]


class ConsumeQueue(AppendedQueue):
    """One queue. The order is `load`, any number of `reconcile`, `end_reconcile`, then any number of `append`.

    After an unclean exit a queue with an extension is made anew, since bit maps have no checksum; `bit_maps` says
    whether the runs know the right ones. A queue that is read-only is loaded, and its minimum corrected, nothing else.
    """

    def __init__(
        self,
        key: QueueKey,
        files: QueueFiles,
        *,
        ext: ConsumeQueueExt | None = None,
        clean_exit: bool = False,
        bit_maps: bool = False,
    ) -> None:
        super().__init__(key, files, ext=ext)
        self._clean_exit = clean_exit
        self._bit_maps = bit_maps
        self._first_proved: int | None = None
        self._proved = 0
        self._erased = False
        self._rewritten_from: int | None = None
        self._last_address = 0

    def load(self) -> None:
        """Take what lies in the directory for the queue, unproved. Raises OSError."""
        findings, self._erased = self._load(durable=self._clean_exit)
        self._findings = {(finding.code, finding.offset): finding for finding in findings}
        if self._erased:
            self._rewritten_from = self.max_offset

    def erase_deleted(self, deleted_below: int, log_min: int) -> None:
        """Erase what is left of the queue before its topic was deleted, below a physical offset. Raises OSError.

        Its files are of before or of behind it, never of both. While the log has a record of before, it tells of all
        that came behind, so that nothing is lost with what cannot be told apart.
        """
        begin = self._behind_prefill()
        if deleted_below > log_min:
            self.drop_in_front()
            is_left = begin == self.max_offset or self._stored(begin).offset < deleted_below
        else:
            is_left = self._last_end_offset() <= deleted_below
        if is_left:
            self._erased |= self._erase(0)

    # ---- reconciling ---------------------------------------------------------------------------------------------

    def believe(self, end_number: int, log_min: int) -> None:
        """Take the units in front of a number for proved; the log is told from there on.

        They need not be durable: an open that made them anew may have been killed before it synced them.
        """
        numbers = range(self._behind_prefill(), end_number)
        self._first_proved = numbers.start + bisect_left(numbers, log_min, key=self.offset_at)
        self._proved = end_number
        self.max_physic_offset = self._end_offset_before(end_number)

    def reconcile(self, run: QueueRun) -> None:
        """Make sure that the units of a run are stored, and next to those of the runs before it. Raises OSError.

        Cost for units that are stored: one comparison of bytes, or one look into the extension for each unit.
        """
        if self._first_proved is None:
            if not self._may_begin(run):
                return
            self._begin_proof(run.queue_offset)
        for part in self._fitted(run, self._proved):
            self._prove(part)

    def _begin_proof(self, number: int) -> None:
        """Have the files reach the first number that is proved, or begin with it.

        The log has no message of a lower number, so nothing is lost with the units in front.
        """
        self.drop_in_front()
        unproved_ext = self.ext is not None and not self.ext.is_empty and not self._clean_exit
        is_reached = self.first_number <= number <= self.max_offset
        if unproved_ext or not is_reached or not self._is_whole_in_front_of(number):
            self._rewrite_from(0)
        if self.is_empty:
            self._begin(number)
        self.min_offset = min(self.min_offset, number)
        self.max_physic_offset = -1
        self._first_proved = self._proved = number

    def _is_whole_in_front_of(self, number: int) -> bool:
        """Return whether each number in front of one has a unit or pre-fill: RocketMQ ends a queue at anything else."""
        first = self.first_number
        return first == number or all(unit.is_possible for unit in units_in(self._read(first, number - first)))

    def _prove(self, run: QueueRun) -> None:
        """Go on with a run that begins at the number up to which units are proved."""
        count = len(run.units) // UNIT_BYTES
        stored = min(count, self.max_offset - self._proved)
        equal = self._equal(run, stored)
        self._proved += equal
        if equal < stored:
            self._rewrite_from(self._proved)
        if equal < count:
            if self._clean_exit:
                self._note_rewritten(self._proved)
            self._write_proved(tail_of(run, equal))
        self.max_physic_offset = run.end_offset

    def _write_proved(self, run: QueueRun) -> None:
        """Write units behind the proved ones; those that fitted before the disk refused are proved too."""
        if self.is_empty:
            self._begin(self._proved)
        try:
            self._write(run)
        finally:
            self._proved = self.max_offset

    def _equal(self, run: QueueRun, count: int) -> int:
        """Return how many of a run's first `count` units are stored as they should be."""
        if not count:
            return 0
        data = self._read(self._proved, count)
        if not run.ext and data == run.units[: len(data)]:
            return count
        for index, (stored, told) in enumerate(zip(units_in(data), units_in(run.units), strict=False)):
            if stored != told and not (run.ext and stored[:2] == told[:2] and self._is_kept(stored, run.ext[index])):
                return index
        return count

    def _is_kept(self, stored: Unit, draft: ExtDraft) -> bool:
        """Return whether the extension holds at a unit's address what it should, behind the address before."""
        address = stored.tags_code
        found = self.ext.get(address) if self.ext is not None and is_address(address) else None
        if found is None or found[:2] != draft[:2] or (self._bit_maps and found.bit_map != draft.bit_map):
            return False
        in_order = not self._last_address or address > self._last_address
        self._last_address = address
        return in_order

    def end_reconcile(self, log_min: int) -> bool:
        """Erase what the log says nothing of, set the minimum; return whether anything was erased. Raises OSError.

        Without a message in the log, units of records in front of it stay, so that the numbers go on behind them.
        """
        if self._first_proved is None:
            self._go_back_to_expired(log_min)
        end = self._end_of_expired(log_min) if self._first_proved is None else self._proved
        if end < self.max_offset:
            self._rewrite_from(end)
        if self._settle_ext():
            self._erased = True
            self._note_rewritten(self.max_offset)
        if self._first_proved in (None, self._proved):  # the log has no message, or the disk refused the first one
            self.min_offset = self.max_offset
            self.max_physic_offset = self._last_end_offset()
        elif self._first_proved is not None:
            self.min_offset = self._first_survivor(self._first_proved, log_min)
        if self._rewritten_from is not None:
            message = f"{self.directory}: from number {self._rewritten_from} on it was made anew from the log"
            self._keep(Finding("note", "queue_rebuilt", self.directory, self._rewritten_from * UNIT_BYTES, message))
        self._first_proved = None
        return self._erased

    def _rewrite_from(self, number: int) -> None:
        """Erase the units from a number on: the log says something else."""
        if self._erase(number):
            self._erased = True
            self._note_rewritten(number)

    def _note_rewritten(self, number: int) -> None:
        self._rewritten_from = number if self._rewritten_from is None else min(self._rewritten_from, number)

    def drop_in_front(self) -> None:
        """Remove what lies in front of a gap: the log tells of this queue, and so what comes next. Raises OSError."""
        self._files.drop_in_front()

    def _go_back_to_expired(self, log_min: int) -> None:
        """Have the newest files with a unit of a record in front of the log, which knows the last number.

        Behind a gap may lie what was new when the power failed, and whose records are gone with it.
        """
        while self._end_of_expired(log_min) == self.first_number and self._go_back():
            self._erased = True
        self.drop_in_front()

    def _end_of_expired(self, log_min: int) -> int:
        """Return the number behind the last unit whose record lies in front of the log, or pre-fill."""
        for number in range(self.max_offset, self.first_number, -1):
            unit = self._stored(number - 1)
            if unit.is_prefill or (unit.is_possible and unit.end_offset <= log_min):
                return number
        return self.first_number

    def _first_survivor(self, number: int, log_min: int) -> int:
        """Return where the messages begin that end in front of a proved one and lie in the log."""
        if number == self.first_number:
            return number
        following = self._stored(number)
        while number > self.first_number:
            unit = self._stored(number - 1)
            if unit.is_prefill or not unit.is_possible or not log_min <= unit.offset <= following.offset - unit.size:
                break
            number, following = number - 1, unit
        return number

    # ---- minimum -------------------------------------------------------------------------------------------------

    def correct_min_offset(self, log_min: int) -> None:
        """Raise the minimum to the first message whose record is not in front of the log. Raises OSError.

        Cost: logarithmic in the number of units. Source: `correctMinOffset`, which sees pre-fill (hole C6).
        """
        low, high = self.min_offset, self.max_offset
        while low < high:
            middle = (low + high) // 2
            probe = self._next_message(middle, high)
            if probe == high or self._stored(probe).offset >= log_min:
                high = middle
            else:
                low = probe + 1
        self.min_offset = self._next_message(low, self.max_offset)
        unit = self.unit(self.min_offset)
        if unit is not None and self.ext is not None:
            self.ext.truncate_by_min_address(unit.tags_code)
