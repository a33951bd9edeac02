"""The number of the next message to deliver for each delay level.

It is stored in `config/delayOffset.json`. RocketMQ records the message at which a round began, and saves that number at
any time. Here each delivered message counts, and **a saved number never covers a copy that is not durable**: a save
flushes the log first. Otherwise a power loss could lose the copy and keep the number, and an acknowledged message would
never be delivered (hole A5).

The numbers are limited to the range of their queues once, after the queues were recovered (RMQ-B57, RMQ-B58). Source:
`ScheduleMessageService`, spec: services, sections 1.3, 1.6 and 1.8.
"""

import errno
import threading
from collections.abc import Callable, Mapping

from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.progress_owner import QueueRange
from tornpage.impl.guards import MakeGuard
from tornpage.impl.log.loading import NO_OFFSET, Finding
from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC, queue_of_level

__all__ = ["DelayOffsets"]

_NUMBER_MAX = (1 << 63) - 1


class DelayOffsets:
    """Owns table and file. One thread delivers, another one may save.

    `make_copies_durable` flushes everything put so far, and returns whether that succeeded.
    """

    def __init__(
        self,
        file: ConfigFile,
        *,
        interval_ms: int,
        make_copies_durable: Callable[[], bool],
        guard: MakeGuard = threading.Lock,
    ) -> None:
        self._file = file
        self._interval_ms = interval_ms
        self._make_copies_durable = make_copies_durable
        self._table: dict[int, int] = {}
        self._saved: dict[int, int] = {}
        self._settled: dict[int, int] = {}
        self._save_guard = guard()
        self._corrected: tuple[Finding, ...] = ()

    # ---- the table -----------------------------------------------------------------------------------------------

    def next_number(self, level: int) -> int | None:
        """Return the number of the next message to deliver of a level.

        Returns None if it never delivered one.
        """
        return self._table.get(level)

    def advance(self, level: int, number: int) -> None:
        """Set the next number of a level.

        Every message before it has its copy or will never have one.
        """
        self._table[level] = number

    def by_level(self) -> Mapping[int, int]:
        """Return a copy of the table, levels in order."""
        return dict(sorted(self._table.items()))

    # ---- the file ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name used in log lines."""
        return "delay-offsets"

    @property
    def interval_ms(self) -> int:
        """The longest time in milliseconds from a delivery to its save."""
        return self._interval_ms

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The defects of the file, and the corrected numbers."""
        return (*self._file.findings, *self._corrected)

    def load(self) -> None:
        """Read the file. Raises OSError."""
        self._table = self._file.load(_read) or {}
        self._saved = dict(self._table)

    def make_durable(self) -> None:
        """Make the loaded file durable. Raises OSError."""
        self._file.make_durable()

    def correct(self, range_of: QueueRange) -> None:
        """Limit each number to the range of its queue. Otherwise later messages could be skipped."""
        corrected: list[str] = []
        for level, number in self._table.items():
            first, end = range_of(SCHEDULE_TOPIC, queue_of_level(level))
            within = min(max(number, first), end)
            if within != number:
                self._table[level] = within
                corrected.append(f"level {level}: {number} is now {within}")
        self._settled = dict(self._table)  # all copies before these numbers were recovered and are durable
        if corrected:
            message = f"{len(corrected)} delay offsets were outside their queues; {corrected[0]}"
            self._corrected = (Finding("note", "progress_corrected", self._file.path, NO_OFFSET, message),)

    def save(self) -> None:
        """Save changes after making the copies durable.

        Raises OSError; the changes are then still unsaved.
        """
        with self._save_guard:
            table = self.by_level()  # read before the flush, which covers the copies put until then
            if table == self._saved:
                return
            if table != self._settled and not self._make_copies_durable():
                raise OSError(errno.EIO, "the copies of delayed messages are not durable", self._file.path)
            self._file.save({"offsetTable": table})
            self._saved = self._settled = dict(table)


def _read(document: object) -> dict[int, int]:
    """Return the table of a document. Raises ValueError if the document has another shape."""
    match document:
        case {"offsetTable": dict(levels)}:
            pass
        case _:
            raise ValueError("the document has no offsetTable")
    table: dict[int, int] = {}
    for level, number in levels.items():
        if type(number) is not int or not 0 <= number <= _NUMBER_MAX:
            raise ValueError("an offset that is no number from 0 to 2^63 - 1")
        table[int(str(level))] = number
    return dict(sorted(table.items()))
