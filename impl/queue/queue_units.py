"""The units of one consume queue in its files: all of one size, so that a consumer finds number n.

Unit n lies at position 20n. In front of the first unit of a queue, and for numbers that no message has, lies pre-fill,
which nobody sees. Source: `ConsumeQueue`.
"""

import itertools
from collections.abc import Iterator

from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.loading import Finding
from tornpage.impl.message.dispatching import UNIT_BYTES, QueueRun
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.queue.consume_queue_ext import ConsumeQueueExt, is_address
from tornpage.impl.queue.queue_files import QueueFiles
from tornpage.impl.queue.units import PREFILL, UNIT, Unit, count_possible, units_in

__all__ = ["QueueUnits"]

_PREFILL_STEP = 1024


class QueueUnits:
    """Owns the files of one queue, and its extension if there is one. One thread writes, any reads.

    `first_number <= min_offset <= max_offset` are numbers of units. `max_offset` moves last, so that whoever reads
    below it sees whole units. `max_physic_offset` is the physical offset behind the last record of the queue, -1
    without one.
    """

    def __init__(self, key: QueueKey, files: QueueFiles, *, ext: ConsumeQueueExt | None) -> None:
        self._files = files
        self._ext_settled = True
        self.key = key
        self.topic = key[0].decode(errors="surrogateescape")
        self.queue_id = key[1]
        self.directory = files.directory
        self.ext = ext
        self.min_offset = 0
        self.max_offset = 0
        self.max_physic_offset = -1

    # ---- loading -------------------------------------------------------------------------------------------------

    def _load(self, *, durable: bool) -> tuple[list[Finding], bool]:
        """Take what lies in the directory, unproved, and erase what is behind it. Raises OSError.

        Units end in front of the first one that cannot be, looked for as if there were no holes. Returns findings, and
        whether anything had to be erased.
        """
        findings = self._files.load(durable=durable)
        if self.ext is not None:
            findings += self.ext.load(durable=durable)
        erased = self._erase(self._end_of_units())
        while self.is_empty and self._go_back():
            erased = True
        self.min_offset = self._behind_prefill()
        self.max_physic_offset = self._last_end_offset()
        return findings, erased

    def write_again(self, number: int) -> None:
        """Write the units from a number on once more as they are. Raises OSError."""
        self._files.write_again(number * UNIT_BYTES)

    def _go_back(self) -> bool:
        """Take the units in front of a gap in the place of those behind it; return whether there are files of them.

        Raises OSError.
        """
        if not self._files.go_back():
            return False
        self._erase(self._end_of_units())
        return True

    def _end_of_units(self) -> int:
        """Return the number behind the last unit of the last file that has any."""
        for file in reversed(self._files.mapped):
            count = count_possible(file.view)
            if count:
                return file.base_offset // UNIT_BYTES + count
        return self.first_number

    def _behind_prefill(self) -> int:
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
        """Return the physical offset behind the last record; pre-fill knows none."""
        return self._end_offset_before(self.max_offset)

    def _end_offset_before(self, end_number: int) -> int:
        """Return the physical offset behind the last record in front of a number, -1 without one."""
        for number in range(end_number - 1, self.first_number - 1, -1):
            if not (unit := self._stored(number)).is_prefill:
                return unit.end_offset
        return -1

    # ---- reading -------------------------------------------------------------------------------------------------

    @property
    def first_number(self) -> int:
        """The number at which the first file begins."""
        mapped = self._files.mapped
        return mapped[0].base_offset // UNIT_BYTES if mapped else 0

    @property
    def is_empty(self) -> bool:
        """Whether there is no file: then there is not even a minimum to remember."""
        return not self._files.mapped

    @property
    def mapped(self) -> tuple[MappedFile, ...]:
        """The files, first ones first; a snapshot."""
        return self._files.mapped

    @property
    def last_end_offset(self) -> int:
        """Physical offset behind the last record, be it in the log or not any more; -1 without one."""
        return self._last_end_offset()

    def offset_at(self, number: int) -> int:
        """Return the physical offset at a number; 0 for pre-fill, and for what is in no file any more."""
        data = self._read(number, 1)
        return Unit(*UNIT.unpack(data)).offset if len(data) == UNIT_BYTES else 0

    def unit(self, number: int) -> Unit | None:
        """Return a unit; None where there is none (any more), and for pre-fill."""
        if not self.min_offset <= number < self.max_offset:
            return None
        data = self._read(number, 1)
        if len(data) < UNIT_BYTES or data == PREFILL:
            return None
        return Unit(*UNIT.unpack(data))

    def units(self, number: int, limit: int) -> Iterator[Unit]:
        """Yield up to `limit` units from a number on, as they are now; pre-fill too, so that numbers can be counted."""
        return units_in(self.unit_bytes(number, limit))

    def unit_bytes(self, number: int, limit: int) -> bytes:
        """Return the bytes of up to `limit` units from a number on; none below the minimum. Cost: one copy."""
        if number < self.min_offset:
            return b""
        return self._read(number, min(limit, self.max_offset - number))

    def _read(self, number: int, count: int) -> bytes:
        return self._files.read(number * UNIT_BYTES, count * UNIT_BYTES)

    def _stored(self, number: int) -> Unit:
        """Return what lies at a number that the files hold."""
        return Unit(*UNIT.unpack(self._read(number, 1)))

    # ---- writing -------------------------------------------------------------------------------------------------

    def _begin(self, number: int) -> None:
        """Make the first file, with pre-fill in front of a number. Raises OSError."""
        self._files.begin(number * UNIT_BYTES)
        prefill = PREFILL * (number - self.first_number)
        if prefill:
            self._files.append(prefill)
        self.min_offset = number
        self.max_offset = number

    def _write(self, run: QueueRun) -> None:
        """Write units behind the last one. Raises OSError; those that fitted in front of a new file are there then."""
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
        """Put what the extension is to hold; return units with the addresses, or tags codes where it took nothing."""
        assert self.ext is not None
        self._settle_ext()
        units = []
        for (offset, size, tags_code), draft in zip(UNIT.iter_unpack(run.units), run.ext, strict=True):
            address = self.ext.put(draft)
            units.append(UNIT.pack(offset, size, address if is_address(address) else tags_code))
        return b"".join(units)

    def _settle_ext(self) -> bool:
        """Let the extension end behind the last unit that the queue points to; return whether anything was erased."""
        if self._ext_settled or self.ext is None:
            return False
        self._ext_settled = True
        numbers = range(self.max_offset - 1, self.first_number - 1, -1)
        codes = (self._stored(number).tags_code for number in numbers)
        return self.ext.truncate_by_max_address(next(filter(is_address, codes), 0))

    def _erase(self, number: int) -> bool:
        """Erase the units from a number on; return whether there was anything. Raises OSError."""
        try:
            erased = self._files.cut(number * UNIT_BYTES)
        except OSError:  # those behind the one that stays are gone
            self.max_offset = min(self.max_offset, self._files.end_position // UNIT_BYTES)
            self.min_offset = min(self.min_offset, self.max_offset)
            raise
        self._ext_settled = self.ext is None or self.ext.is_empty
        self.max_offset = 0 if self.is_empty else number
        self.min_offset = min(self.min_offset, self.max_offset)
        return erased

    # ---- expiry --------------------------------------------------------------------------------------------------

    def drop_expired(self, log_min: int, log_durable_end: int) -> tuple[int, bool]:
        """Remove the files whose last record lies in front of the log; return how many, and whether some wait.

        The last file stays, and a file waits whose next one begins with a record that may be lost: the number of this
        one would be the last that is known then. Nobody appends meanwhile, and the minimum was corrected before. Raises
        OSError.
        """
        files = self._files.mapped
        dropped, waits = 0, False
        for mapped, following in itertools.pairwise(files):
            if self._stored(mapped.end_offset // UNIT_BYTES - 1).offset >= log_min:
                break
            first = self._stored(following.base_offset // UNIT_BYTES)
            waits = first.is_prefill or not first.is_possible or first.end_offset > log_durable_end
            if waits:
                break
            dropped += 1
        if dropped:
            self._files.drop_before(files[dropped].base_offset)
        return dropped, waits

    def destroy(self) -> None:
        """Remove all files, durably: the queue begins anew. Nobody appends meanwhile. Raises OSError."""
        self._erase(0)
        self.min_offset, self.max_physic_offset = 0, -1
        self._ext_settled = False
        self._settle_ext()
        self.flush()

    # ---- durability ----------------------------------------------------------------------------------------------

    def flush(self, least_pages: int = 0) -> int:
        """Make what is worth it durable, the extension first; return the position it reaches. Raises OSError."""
        if self.ext is not None:
            self.ext.flush(least_pages)
        return self._files.flush(least_pages)

    def close(self) -> None:
        """Give up the mappings; nothing is written or synced here."""
        self._files.close()
        if self.ext is not None:
            self.ext.close()

    def check(self) -> None:
        """Assert what the class promises, while nothing is written."""
        assert self.first_number <= self.min_offset <= self.max_offset
        assert self.is_empty or self.max_offset * UNIT_BYTES == self._files.end_position
        self._files.check()
        if self.ext is not None:
            self.ext.check()
