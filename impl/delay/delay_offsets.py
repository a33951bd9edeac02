"""Which delayed message of each level is delivered next: the table behind `config/delayOffset.json`.

RocketMQ notes the message at which a round began, and saves whatever it has noted. Here each delivered message counts,
and **a saved number never speaks of a copy that is not durable**: a save makes the log durable first. Otherwise a power
loss takes the copy and leaves the number, and an acknowledged message never comes (hole A5).

The numbers are brought within the bounds of their queues once, after the queues were recovered (RMQ-B57, RMQ-B58).
Source: `ScheduleMessageService`, spec: services, sections 1.3, 1.6 and 1.8.
"""

import errno
import threading
from collections.abc import Callable, Mapping

from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.progress_owner import QueueRange
from tornpage.impl.guards import MakeGuard
from tornpage.impl.log.loading import Finding
from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC, queue_of_level

__all__ = ["DelayOffsets"]

_NUMBER_MAX = (1 << 63) - 1


class DelayOffsets:
    """Owns table and file. One thread delivers, another one may save.

    `make_copies_durable` makes durable all that was put so far, and returns whether it is.
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
        """Return the number of the message that a level delivers next; None if it never delivered one."""
        return self._table.get(level)

    def advance(self, level: int, number: int) -> None:
        """Note that a level goes on at a number: everything in front of it has its copy, or will never have one."""
        self._table[level] = number

    def by_level(self) -> Mapping[int, int]:
        """Return the table as it is now, levels in order."""
        return dict(sorted(self._table.items()))

    # ---- the file ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What log lines call it."""
        return "delay-offsets"

    @property
    def interval_ms(self) -> int:
        """How long a delivery may wait for its save."""
        return self._interval_ms

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was wrong with the file, and what was corrected."""
        return (*self._file.findings, *self._corrected)

    def load(self) -> None:
        """Read the file. Raises OSError."""
        self._table = self._file.load(_read) or {}
        self._saved = dict(self._table)

    def make_durable(self) -> None:
        """Have what was loaded durable. Raises OSError."""
        self._file.make_durable()

    def correct(self, range_of: QueueRange) -> None:
        """Bring each number within the bounds of its queue: who comes next would be passed over, or waited for."""
        corrected: list[str] = []
        for level, number in self._table.items():
            first, end = range_of(SCHEDULE_TOPIC, queue_of_level(level))
            within = min(max(number, first), end)
            if within != number:
                self._table[level] = within
                corrected.append(f"level {level}: {number} is now {within}")
        self._settled = dict(self._table)  # whatever it speaks of was recovered, and is durable
        if corrected:
            message = f"{len(corrected)} delay offsets lay outside of their queues; {corrected[0]}"
            self._corrected = (Finding("note", "progress_corrected", self._file.path, -1, message),)

    def save(self) -> None:
        """Save what has changed, once the copies are durable that it speaks of. Raises OSError: it is still unsaved."""
        with self._save_guard:
            table = self.by_level()  # before the flush: what it says of copies was put by then
            if table == self._saved:
                return
            if table != self._settled and not self._make_copies_durable():
                raise OSError(errno.EIO, "the copies of delayed messages are not durable", self._file.path)
            self._file.save({"offsetTable": table})
            self._saved = self._settled = dict(table)


def _read(document: object) -> dict[int, int]:
    """Return the table of a document. Raises ValueError."""
    match document:
        case {"offsetTable": dict(levels)}:
            pass
        case _:
            raise ValueError("no table of offsets")
    table: dict[int, int] = {}
    for level, number in levels.items():
        if type(number) is not int or not 0 <= number <= _NUMBER_MAX:
            raise ValueError("an offset that is none")
        table[int(str(level))] = number
    return dict(sorted(table.items()))
