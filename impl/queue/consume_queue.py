"""A consume queue: fixed-size units, appended by dispatch, compared with the log at open.

Unit n lies at position 20n, so a consumer finds it by number. Numbers that no message has, and those before the first
message, hold pre-fill, which readers skip. If the log has records that a queue cannot hold, they are left out and a
finding names them.

A queue is a function of the log. At a writable open the log is walked from its minimum on, and each run of units is
*reconciled* with the stored units: equal units stay, and from the first difference on everything is erased and
rewritten. Units of messages that the log no longer has come before those and stay unchanged. Source: `ConsumeQueue`,
whose recovery compares nothing with the log (holes C1 to C17).
"""

import itertools
import logging
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.loading import Finding
from tornpage.impl.message.dispatching import UNIT_BYTES, ExtDraft, QueueRun
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.queue.consume_queue_ext import ConsumeQueueExt, is_address
from tornpage.impl.queue.queue_files import POSITION_MAX, QueueFiles
from tornpage.impl.queue.units import PREFILL, UNIT, Unit, count_possible, units_in

__all__ = ["LOG_INCONSISTENCY_CODES", "NUMBER_MAX", "ConsumeQueue", "tail_of"]

_LOG = logging.getLogger("tornpage.store")

LOG_INCONSISTENCY_CODES = (
    "impossible_queue",
    "impossible_queue_offset",
    "queue_gap",
    "queue_offset_outvoted",
    "repeated_queue_offset",
)
"""The codes of findings about records that a queue cannot hold as the log has them."""

NUMBER_MAX = POSITION_MAX // UNIT_BYTES
"""The greatest number that a unit can have."""
_PREFILL_STEP = 1024


def tail_of(run: QueueRun, count: int) -> QueueRun:
    """Return a run without its first `count` units."""
    if not count:
        return run
    units = run.units[count * UNIT_BYTES :]
    return QueueRun(run.key, run.queue_offset + count, units, run.end_offset, run.ext[count:], run.named)


class ConsumeQueue:
    """Owns the files of one queue and its extension, if it has one.

    One thread writes, any thread reads. Call `load`, any number of times `reconcile`, `end_reconcile`, then any number
    of times `append`. `first_number <= min_offset <= max_offset` are numbers of units. `max_offset` is updated last, so
    a reader below it sees whole units. `max_physic_offset` is the physical offset after the last record of the queue,
    -1 if there is none.

    After an unclean exit a queue with an extension is rebuilt, since bit maps have no checksum. `bit_maps` says whether
    the runs contain the right bit maps. A read-only queue is loaded and its minimum corrected; nothing else changes.
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
        self._files = files
        self._ext_settled = True
        self._clean_exit = clean_exit
        self._bit_maps = bit_maps
        self._findings: dict[tuple[str, int], Finding] = {}
        self._first_proved: int | None = None
        self._proved = 0
        self._erased = False
        self._rewritten_from: int | None = None
        self._last_address = 0
        self.key = key
        self.topic = key[0].decode(errors="surrogateescape")
        self.queue_id = key[1]
        self.directory = files.directory
        self.ext = ext
        self.min_offset = 0
        self.max_offset = 0
        self.max_physic_offset = -1

    # ---- loading -------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Load the queue's files, and erase everything past the last unit.

        They are not compared with the log yet. The units end at the first impossible one. A binary search finds it, as
        if there were no holes. Raises OSError.
        """
        findings = self._files.load(durable=self._clean_exit)
        if self.ext is not None:
            findings += self.ext.load(durable=self._clean_exit)
        self._erased = self._erase(self._end_of_units())
        while self.is_empty and self._map_before_gap():
            self._erased = True
        self.min_offset = self._first_after_prefill()
        self.max_physic_offset = self._last_end_offset()
        self._findings = {(finding.code, finding.offset): finding for finding in findings}
        if self._erased:
            self._rewritten_from = self.max_offset

    def rewrite_from(self, number: int) -> None:
        """Rewrite the units from a number on with equal bytes, so that the next sync writes them.

        Raises OSError.
        """
        self._files.rewrite_from(number * UNIT_BYTES)

    def _map_before_gap(self) -> bool:
        """Replace the files after a gap by the run of files before it.

        Return whether there was one. Raises OSError.
        """
        if not self._files.map_before_gap():
            return False
        self._erase(self._end_of_units())
        return True

    def _end_of_units(self) -> int:
        """Return the number after the last unit of the last file that has any."""
        for file in reversed(self._files.mapped):
            count = count_possible(file.view)
            if count:
                return file.base_offset // UNIT_BYTES + count
        return self.first_number

    def _first_after_prefill(self) -> int:
        """Return the first number that is not pre-fill, or the end."""
        number = self.first_number
        while number < self.max_offset:
            count = min(_PREFILL_STEP, self.max_offset - number)
            if self._read(number, count) != PREFILL * count:
                return self._next_message(number, number + count)
            number += count
        return number

    def _next_message(self, number: int, end: int) -> int:
        """Return the first number from `number` on that is not pre-fill, or `end`."""
        while number < end and self._stored(number).is_prefill:
            number += 1
        return number

    # planted: RMQ-B33
    def _last_end_offset(self) -> int:
        """Return the physical offset after the last record; pre-fill is skipped."""
        return self._end_offset_before(self.max_offset)

    def _end_offset_before(self, end_number: int) -> int:
        """Return the physical offset after the last record before a number, -1 if there is none."""
        for number in range(end_number - 1, self.first_number - 1, -1):
            if not (unit := self._stored(number)).is_prefill:
                return unit.end_offset
        return -1

    def erase_deleted(self, deleted_below: int, log_min: int) -> None:
        """Erase units from before the deletion of the queue's topic. Raises OSError.

        `deleted_below` is the physical offset of the deletion. A queue's files were written entirely before the
        deletion or entirely after it. While the log still holds a record from before, dispatch rebuilds everything
        written after, so erasing an ambiguous file loses nothing.
        """
        begin = self._first_after_prefill()
        if deleted_below > log_min:
            self.drop_before_gap()
            is_left = begin == self.max_offset or self._stored(begin).offset < deleted_below
        else:
            is_left = self._last_end_offset() <= deleted_below
        if is_left:
            self._erased |= self._erase(0)

    # ---- reading -------------------------------------------------------------------------------------------------

    @property
    def first_number(self) -> int:
        """The number of the first unit of the first file."""
        mapped = self._files.mapped
        return mapped[0].base_offset // UNIT_BYTES if mapped else 0

    @property
    def is_empty(self) -> bool:
        """Whether the queue has no file, and so no minimum either."""
        return not self._files.mapped

    @property
    def mapped(self) -> tuple[MappedFile, ...]:
        """The files in the order of their positions; a snapshot."""
        return self._files.mapped

    @property
    def last_end_offset(self) -> int:
        """Physical offset after the last record, even if it has expired from the log.

        -1 if there is none.
        """
        return self._last_end_offset()

    def offset_at(self, number: int) -> int:
        """Return the physical offset at a number.

        Returns 0 for pre-fill and for numbers outside the files.
        """
        data = self._read(number, 1)
        return Unit(*UNIT.unpack(data)).offset if len(data) == UNIT_BYTES else 0

    def unit(self, number: int) -> Unit | None:
        """Return a unit; None for pre-fill and outside the queue."""
        if not self.min_offset <= number < self.max_offset:
            return None
        data = self._read(number, 1)
        if len(data) < UNIT_BYTES or data == PREFILL:
            return None
        return Unit(*UNIT.unpack(data))

    def units(self, number: int, limit: int) -> Iterator[Unit]:
        """Yield up to `limit` units from a number on.

        Pre-fill is included, so the caller can count numbers.
        """
        return units_in(self.unit_bytes(number, limit))

    def unit_bytes(self, number: int, limit: int) -> bytes:
        """Return the bytes of up to `limit` units from a number on; none below the minimum.

        Cost: one copy.
        """
        if number < self.min_offset:
            return b""
        return self._read(number, min(limit, self.max_offset - number))

    def stored_bytes(self, number: int, count: int) -> bytes:
        """Return the bytes of up to `count` units from a number on, also below the minimum.

        Cost: one copy.
        """
        return self._read(number, min(count, self.max_offset - number))

    @property
    def proved_end(self) -> int:
        """The number up to which units count as proved before the log is walked, or 0."""
        return 0 if self._first_proved is None else self._proved

    def _read(self, number: int, count: int) -> bytes:
        return self._files.read(number * UNIT_BYTES, count * UNIT_BYTES)

    def _stored(self, number: int) -> Unit:
        """Return the unit at a number that the files hold."""
        return Unit(*UNIT.unpack(self._read(number, 1)))

    # ---- appending ---------------------------------------------------------------------------------------------------

    def append(self, run: QueueRun) -> None:
        """Append a run. Units that are stored already are skipped, so a run may be appended twice.

        Numbers that the log skips become pre-fill, up to one file of them. Raises OSError if a file cannot be created;
        the units that fitted before it are then stored.
        """
        if run.queue_offset != self.max_offset or not self._files.mapped:
            self._append_fitted(run)
        else:
            self._write(run)

    def _append_fitted(self, run: QueueRun) -> None:
        if not self.is_empty and self.min_offset == self.max_offset < run.queue_offset:
            self._erase(0)  # only units of expired messages: the queue restarts at this one
        if self.is_empty:
            if not self._may_begin(run):
                return
            self._begin(run.queue_offset)
        for part in self._fitted(run, self.max_offset):
            self._write(part)

    def _may_begin(self, run: QueueRun) -> bool:
        """Return whether a queue can begin with a run; if not, note a finding."""
        if 0 <= run.queue_offset <= NUMBER_MAX:
            return True
        self._find("impossible_queue_offset", run, f"no unit can have the number {run.queue_offset}")
        return False

    def _fitted(self, run: QueueRun, number: int) -> Iterator[QueueRun]:
        """Yield what to append to a queue that ends at a number.

        That is pre-fill if needed, then the new units of the run.
        """
        gap = self._gap(run, number)
        if gap is None:
            return
        if gap > 0:
            yield self._prefill(number, gap)
        rest = self._unknown(run, -gap)
        if rest.units:
            yield rest

    def _gap(self, run: QueueRun, number: int) -> int | None:
        """Return how far after `number` a run begins; None if the gap is too large to fill."""
        gap = run.queue_offset - number
        if gap <= 0:
            return gap
        fits = gap <= self._files.file_bytes // UNIT_BYTES
        left_out = "" if fits else ", too many to fill: the messages from there on are in no queue"
        self._find("queue_gap", run, f"no message has the numbers {number} to {run.queue_offset - 1}{left_out}")
        return gap if fits else None

    def _prefill(self, number: int, count: int) -> QueueRun:
        return QueueRun(self.key, number, PREFILL * count, self.max_physic_offset)

    def _unknown(self, run: QueueRun, known: int) -> QueueRun:
        """Return a run without its first `known` units, whose numbers are taken.

        Those units are stored already. A unit of another record with a taken number, which only Java writes, is left
        out with a finding; the first record keeps the number.
        """
        if known <= 0:
            return run
        for unit in units_in(run.units[: known * UNIT_BYTES]):
            if unit.end_offset > self.max_physic_offset:
                what = f"the record at {unit.offset} repeats the number of another record: it is in no queue"
                self._find("repeated_queue_offset", run, what, offset=unit.offset)
        return tail_of(run, known)

    # ---- writing -------------------------------------------------------------------------------------------------

    def _begin(self, number: int) -> None:
        """Create the first file, with pre-fill before a number. Raises OSError."""
        self._files.begin(number * UNIT_BYTES)
        prefill = PREFILL * (number - self.first_number)
        if prefill:
            self._files.append(prefill)
        self.min_offset = number
        self.max_offset = number

    def _write(self, run: QueueRun) -> None:
        """Write units after the last one.

        Raises OSError; units that fitted before a new file are then stored.
        """
        units = self._with_addresses(run) if run.ext and self.ext is not None else run.units
        try:
            self._files.append(units)
        except BaseException:
            self.max_offset = self._files.end_position // UNIT_BYTES
            self.max_physic_offset = self._last_end_offset()
            raise
        self.max_physic_offset = run.end_offset
        self.max_offset += len(units) // UNIT_BYTES

    def _with_addresses(self, run: QueueRun) -> bytes:
        """Store the extension units of a run; return its units with addresses.

        A unit keeps its tags code if the extension has no room.
        """
        assert self.ext is not None
        self._settle_ext()
        units = []
        for (offset, size, tags_code), draft in zip(UNIT.iter_unpack(run.units), run.ext, strict=True):
            address = self.ext.put(draft)
            units.append(UNIT.pack(offset, size, address if is_address(address) else tags_code))
        return b"".join(units)

    def _settle_ext(self) -> bool:
        """Cut the extension after the last unit that the queue points to.

        Return whether anything was erased.
        """
        if self._ext_settled or self.ext is None:
            return False
        self._ext_settled = True
        numbers = range(self.max_offset - 1, self.first_number - 1, -1)
        codes = (self._stored(number).tags_code for number in numbers)
        return self.ext.truncate_by_max_address(next(filter(is_address, codes), 0))

    def _erase(self, number: int) -> bool:
        """Erase the units from a number on; return whether there were any. Raises OSError."""
        try:
            erased = self._files.cut(number * UNIT_BYTES)
        except OSError:  # the files after the one that could not be cut are removed
            self.max_offset = min(self.max_offset, self._files.end_position // UNIT_BYTES)
            self.min_offset = min(self.min_offset, self.max_offset)
            raise
        self._ext_settled = self.ext is None or self.ext.is_empty
        self.max_offset = 0 if self.is_empty else number
        self.min_offset = min(self.min_offset, self.max_offset)
        return erased

    # ---- reconciling ---------------------------------------------------------------------------------------------

    def trust(self, end_number: int, log_min: int) -> None:
        """Take the units before a number as proved; the log is compared only from there on.

        They need not be durable: an earlier open may have rewritten them and been killed before it synced them.
        """
        numbers = range(self._first_after_prefill(), end_number)
        self._first_proved = numbers.start + bisect_left(numbers, log_min, key=self.offset_at)
        self._proved = end_number
        self.max_physic_offset = self._end_offset_before(end_number)

    def reconcile(self, run: QueueRun) -> None:
        """Make sure that the units of a run are stored directly after those of earlier runs.

        Cost for units that are stored: one comparison of bytes, or one look into the extension for each unit. Raises
        OSError.
        """
        if self._first_proved is None:
            if not self._may_begin(run):
                return
            self._begin_proof(run.queue_offset)
        for part in self._fitted(run, self._proved):
            self._prove(part)

    def _begin_proof(self, number: int) -> None:
        """Make the files reach the first number that is proved, or begin a new file with it.

        The log has no message of a lower number, so dropping units before it loses nothing.
        """
        self.drop_before_gap()
        unproved_ext = self.ext is not None and not self.ext.is_empty and not self._clean_exit
        is_reached = self.first_number <= number <= self.max_offset
        if unproved_ext or not is_reached or not self._is_whole_before(number):
            self._discard_from(0)
        if self.is_empty:
            self._begin(number)
        self.min_offset = min(self.min_offset, number)
        self.max_physic_offset = -1
        self._first_proved = self._proved = number

    def _is_whole_before(self, number: int) -> bool:
        """Return whether each number before `number` has a unit or pre-fill.

        RocketMQ ends a queue at anything else.
        """
        first = self.first_number
        return first == number or all(unit.is_possible for unit in units_in(self._read(first, number - first)))

    def _prove(self, run: QueueRun) -> None:
        """Compare and complete a run that begins at the number up to which units are proved."""
        count = len(run.units) // UNIT_BYTES
        stored = min(count, self.max_offset - self._proved)
        equal = self._equal(run, stored)
        self._proved += equal
        if equal < stored:
            self._discard_from(self._proved)
        if equal < count:
            if self._clean_exit:
                self._note_rewritten(self._proved)
            self._write_proved(tail_of(run, equal))
        self.max_physic_offset = run.end_offset

    def _write_proved(self, run: QueueRun) -> None:
        """Write units after the proved ones.

        Units that fitted before a failed write are proved too. Raises OSError.
        """
        if self.is_empty:
            self._begin(self._proved)
        try:
            self._write(run)
        finally:
            self._proved = self.max_offset

    def _equal(self, run: QueueRun, count: int) -> int:
        """Return how many of a run's first `count` units are stored with the right bytes."""
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
        """Return whether the extension holds the right data at a unit's address.

        Addresses must ascend.
        """
        address = stored.tags_code
        found = self.ext.get(address) if self.ext is not None and is_address(address) else None
        if found is None or found[:2] != draft[:2] or (self._bit_maps and found.bit_map != draft.bit_map):
            return False
        in_order = not self._last_address or address > self._last_address
        self._last_address = address
        return in_order

    def end_reconcile(self, log_min: int) -> bool:
        """Erase units that the log does not contain, and set the minimum.

        Return whether anything was erased. If the log has no message of the queue, units of expired records stay, so
        that numbers continue after them. Raises OSError.
        """
        if self._first_proved is None:
            self._keep_last_expired(log_min)
        end = self._end_of_expired(log_min) if self._first_proved is None else self._proved
        if end < self.max_offset:
            self._discard_from(end)
        if self._settle_ext():
            self._erased = True
            self._note_rewritten(self.max_offset)
        if self._first_proved in (None, self._proved):  # the log has no message, or the first write failed
            self.min_offset = self.max_offset
            self.max_physic_offset = self._last_end_offset()
        elif self._first_proved is not None:
            self.min_offset = self._first_survivor(self._first_proved, log_min)
        if self._rewritten_from is not None:
            message = f"{self.directory}: from number {self._rewritten_from} on it was rebuilt from the log"
            self._keep(Finding("note", "queue_rebuilt", self.directory, self._rewritten_from * UNIT_BYTES, message))
        self._first_proved = None
        return self._erased

    def _discard_from(self, number: int) -> None:
        """Erase the units from a number on, which differ from the log. Raises OSError."""
        if self._erase(number):
            self._erased = True
            self._note_rewritten(number)

    def _note_rewritten(self, number: int) -> None:
        self._rewritten_from = number if self._rewritten_from is None else min(self._rewritten_from, number)

    def drop_before_gap(self) -> None:
        """Remove the files before a gap; the log has this queue's later units. Raises OSError."""
        self._files.drop_before_gap()

    def _keep_last_expired(self, log_min: int) -> None:
        """Keep the newest files with a unit of an expired record, which gives the last number.

        Files after a gap may be new ones that survived a power loss while their records did not. Raises OSError.
        """
        while self._end_of_expired(log_min) == self.first_number and self._map_before_gap():
            self._erased = True
        self.drop_before_gap()

    def _end_of_expired(self, log_min: int) -> int:
        """Return the number after the last unit that is pre-fill or whose record has expired."""
        for number in range(self.max_offset, self.first_number, -1):
            unit = self._stored(number - 1)
            if unit.is_prefill or (unit.is_possible and unit.end_offset <= log_min):
                return number
        return self.first_number

    def _first_survivor(self, number: int, log_min: int) -> int:
        """Return the first number of the messages before a proved one that lie in the log."""
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

    def hide_before(self, offset: int) -> None:
        """Raise the minimum to the first message whose record lies at or past an offset.

        No file changes. Raises OSError.
        """
        low, high = self.min_offset, self.max_offset
        while low < high:
            middle = (low + high) // 2
            probe = self._next_message(middle, high)
            if probe == high or self._stored(probe).offset >= offset:
                high = middle
            else:
                low = probe + 1
        self.min_offset = self._next_message(low, self.max_offset)

    def correct_min_offset(self, log_min: int) -> None:
        """Raise the minimum to the first message whose record lies at or past `log_min`.

        Cost: logarithmic in the number of units. Source: `correctMinOffset`, which can stop at pre-fill (hole C6).
        Raises OSError.
        """
        self.hide_before(log_min)
        unit = self.unit(self.min_offset)
        if unit is not None and self.ext is not None:
            self.ext.truncate_by_min_address(unit.tags_code)

    # ---- expiry --------------------------------------------------------------------------------------------------

    def drop_expired(self, log_min: int, log_durable_end: int) -> tuple[int, bool]:
        """Remove the files whose last record has expired.

        Return how many, and whether others must wait. The last file stays. A file also stays while the next file begins
        with a record that is not durable: if that record were lost, the last known number would be lost with this file.
        No append may run meanwhile, and `correct_min_offset` must have run before. Raises OSError.
        """
        files = self._files.mapped
        dropped, waits = 0, False
        for mapped, following in itertools.pairwise(files):
            if self._end_offset_before(mapped.end_offset // UNIT_BYTES) > log_min:
                break  # not the last unit alone, which may be pre-fill after messages
            first = self._stored(following.base_offset // UNIT_BYTES)
            waits = first.is_prefill or not first.is_possible or first.end_offset > log_durable_end
            if waits:
                break
            dropped += 1
        if dropped:
            self._files.drop_before(files[dropped].base_offset)
        return dropped, waits

    def destroy(self) -> None:
        """Remove all files durably; numbers restart at 0. No append may run meanwhile.

        Raises OSError.
        """
        self._erase(0)
        self.min_offset, self.max_physic_offset = 0, -1
        self._ext_settled = False
        self._settle_ext()
        self.flush()

    # ---- durability ----------------------------------------------------------------------------------------------

    def flush(self, least_pages: int = 0) -> int:
        """Flush the extension, then the units, by a page rule; return the position reached.

        Raises OSError.
        """
        if self.ext is not None:
            self.ext.flush(least_pages)
        return self._files.flush(least_pages)

    def close(self) -> None:
        """Close the mappings without a write or sync."""
        self._files.close()
        if self.ext is not None:
            self.ext.close()

    def check(self) -> None:
        """Assert the invariants of the class. No write may run meanwhile."""
        assert self.first_number <= self.min_offset <= self.max_offset
        assert self.is_empty or self.max_offset * UNIT_BYTES == self._files.end_position
        self._files.check()
        if self.ext is not None:
            self.ext.check()

    # ---- findings ------------------------------------------------------------------------------------------------

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings, one for each code and place."""
        return tuple(self._findings.values())

    def _find(self, code: str, run: QueueRun, what: str, *, offset: int | None = None) -> None:
        """Note a record that a queue cannot hold. The place of the finding is a physical offset."""
        place = next(units_in(run.units)).offset if offset is None else offset
        if self._keep(Finding("note", code, self.directory, place, f"{self.directory}: {what}")):
            _LOG.warning("%s queue=%r offset=%d what=%r", code, self.directory, place, what)

    def _keep(self, finding: Finding) -> bool:
        """Keep a finding; return whether it is new."""
        place = (finding.code, finding.offset)
        is_new = place not in self._findings
        self._findings.setdefault(place, finding)
        return is_new
