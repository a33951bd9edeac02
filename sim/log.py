"""The simulated commit log: messages as rows of arrays, and the watermarks over them.

1. Rows are numbered in order of arrival; `durable_rows <= planned_rows <= arrived_rows`, and none goes down.
2. A row is planned once it is known when its put begins and ends. Its times may lie ahead of the clock, since puts
   depend only on arrivals, on the lock and on the file; whoever looks at the log asks what is written *by now*.
3. A record is put only if 8 bytes stay free behind it; else a blank of the rest ends the file, at the moment when the
   next file is ready. Source: `CommitLog.DefaultAppendMessageCallback` (END_FILE_MIN_BLANK_LENGTH).
4. Puts hold the lock one after another, first come, first served: start = max(arrival, end of the put before).

Planning many rows at once and planning them one by one give the same numbers.
"""

from typing import NamedTuple

import numpy as np
from simpy import Environment, Event

from impl.policy import PAGE_BYTES
from sim.device import Device
from sim.distributions import Int64s

__all__ = ["BLANK_BYTES", "Bell", "Dirty", "Log", "now_ns"]

BLANK_BYTES = 8
"""What a blank writes, and what has to stay free behind every record."""
FEW_ROWS = 12
"""Below about this many rows, planning one by one costs less than setting arrays up."""


def now_ns(env: Environment) -> int:
    """Return the simulated time; all delays are whole ns, so it is whole."""
    return env.now  # type: ignore[return-value]


class Bell:
    """An event that happens again and again. Who waits looks again afterwards whether it was meant."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._event: Event | None = None

    def wait(self) -> Event:
        """Return the event of the next ring."""
        if self._event is None:
            self._event = self._env.event()
        return self._event

    def ring(self) -> None:
        """Wake all who wait."""
        if self._event is not None:
            event, self._event = self._event, None
            event.succeed()


class Dirty(NamedTuple):
    """What one sync would make durable: a piece of one file."""

    file_index: int
    file_is_full: bool
    from_offset: int
    to_offset: int
    rows_end: int
    """First row behind the piece."""
    device_bytes: int
    """The whole pages that hold it, or the whole file if its warm-up left it dirty."""
    reserved_only: bool
    """Whether the disk has never written these blocks."""


class Log:
    """Owns the columns `arrival_ns`, `start_ns`, `written_ns`, `durable_ns`, `offset`, `size` and `producer`."""

    COLUMNS = ("arrival_ns", "start_ns", "written_ns", "durable_ns", "offset", "size", "producer")

    arrival_ns: Int64s
    start_ns: Int64s
    written_ns: Int64s
    durable_ns: Int64s
    offset: Int64s
    size: Int64s
    producer: Int64s

    def __init__(
        self,
        env: Environment,
        device: Device,
        *,
        file_bytes: int,
        smallest_bytes: int,
        rows: int,
        warmed: bool,
        forced: bool,
    ) -> None:
        """Make an empty log whose first file is there, with room for `rows` rows at first.

        No record is smaller than `smallest_bytes`. `warmed`: files come with every page touched; `forced`: and with
        every page on the disk.
        """
        self._env = env
        self._device = device
        self.file_bytes = file_bytes
        self._smallest_bytes = smallest_bytes
        self._warmed = warmed
        self._forced = forced
        self._capacity = max(rows, 1)
        for name in self.COLUMNS:
            setattr(self, name, np.zeros(self._capacity, dtype=np.int64))
        self.arrived_rows = 0
        self.planned_rows = 0
        self.durable_rows = 0
        self.durable_offset = 0
        self.file_index = 0
        self.is_closed = False
        self.lock_free_ns = 0
        self._position = 0
        self._asked_ns = -1
        self._file_ends: list[tuple[int, int]] = []
        self._first_synced: set[int] = set()
        self.arrived = Bell(env)
        self.planned = Bell(env)
        self.made_durable = Bell(env)
        self.settled = env.event()

    def arrive(self, arrival_ns: int, size: int, producer: int) -> int:
        """Add one message that arrives now; return its row."""
        row = self.arrived_rows
        if row == self._capacity:
            self._grow(row + 1)
        self.arrival_ns[row] = arrival_ns
        self.size[row] = size
        self.producer[row] = producer
        self.arrived_rows = row + 1
        self.arrived.ring()
        return row

    def arrive_many(self, arrival_ns: Int64s, size: Int64s) -> None:
        """Add messages whose arrivals are known ahead, in order of arrival."""
        first, end = self.arrived_rows, self.arrived_rows + len(arrival_ns)
        if end > self._capacity:
            self._grow(end)
        self.arrival_ns[first:end] = arrival_ns
        self.size[first:end] = size
        self.arrived_rows = end
        self.arrived.ring()

    def close(self) -> None:
        """Say that no message will arrive any more; `settled` happens when all that came are durable."""
        self.is_closed = True
        self._settle()

    def plan(self) -> bool:
        """Give each arrived row its put, as far as the file reaches; return False if the next row needs a new file."""
        first = self.planned_rows
        if self.arrived_rows - first <= FEW_ROWS:
            while self.planned_rows < self.arrived_rows and self._plan_one(self.planned_rows):
                pass
        else:
            while self.planned_rows < self.arrived_rows and self._plan_many(self.planned_rows):
                pass
        if self.planned_rows > first:
            self.planned.ring()
        return self.planned_rows == self.arrived_rows

    def roll(self, *, asked_ns: int) -> None:
        """End the file and turn to the next one, which is ready now; the put that did not fit began at `asked_ns`."""
        self._file_ends.append((self.planned_rows, self._position))
        self.file_index += 1
        self._position = 0
        self._asked_ns = asked_ns
        self.lock_free_ns = now_ns(self._env)

    def written_rows(self) -> int:
        """Return how many rows are written by now."""
        now, row = self._env.now, self.durable_rows
        near = min(row + FEW_ROWS, self.planned_rows)  # most batches are small: look before searching
        while row < near and self.written_ns.item(row) <= now:
            row += 1
        if row < near or row == self.planned_rows:
            return row
        return row + int(self.written_ns[row : self.planned_rows].searchsorted(now, side="right"))

    def dirty(self) -> Dirty | None:
        """Return the oldest piece of one file that is written by now and not durable."""
        file_index, from_position = divmod(self.durable_offset, self.file_bytes)
        base_offset = file_index * self.file_bytes
        if file_index < self.file_index:
            rows_end, end_position = self._file_ends[file_index]
            data_end, to_offset = end_position + BLANK_BYTES, base_offset + self.file_bytes
        else:
            rows_end = self.written_rows()
            if rows_end == self.durable_rows:
                return None
            to_offset = self.offset.item(rows_end - 1) + self.size.item(rows_end - 1)
            data_end = to_offset - base_offset
        reserved_only = not self._forced
        if self._warmed and not self._forced:
            reserved_only = file_index not in self._first_synced
        if reserved_only and self._warmed:
            device_bytes = self.file_bytes
        else:
            device_bytes = (-(-data_end // PAGE_BYTES) - from_position // PAGE_BYTES) * PAGE_BYTES
        is_full = file_index < self.file_index
        return Dirty(file_index, is_full, self.durable_offset, to_offset, rows_end, device_bytes, reserved_only)

    def make_durable(self, piece: Dirty) -> None:
        """Record that a sync of `piece` has returned now."""
        self.durable_ns[self.durable_rows : piece.rows_end] = now_ns(self._env)
        self.durable_rows = piece.rows_end
        self.durable_offset = piece.to_offset
        if self._warmed:
            self._first_synced.add(piece.file_index)
        self.made_durable.ring()
        self._settle()

    def columns(self) -> dict[str, Int64s]:
        """Return the columns, cut to the rows that arrived."""
        return {name: getattr(self, name)[: self.arrived_rows].copy() for name in self.COLUMNS}

    def _settle(self) -> None:
        if self.is_closed and self.durable_rows == self.arrived_rows and not self.settled.triggered:
            self.settled.succeed()

    def _grow(self, rows: int) -> None:
        self._capacity = max(rows, 2 * self._capacity)
        for name in self.COLUMNS:
            column = np.zeros(self._capacity, dtype=np.int64)
            column[: self.arrived_rows] = getattr(self, name)[: self.arrived_rows]
            setattr(self, name, column)

    def _plan_one(self, row: int) -> bool:
        size = self.size.item(row)
        end_position = self._position + size
        if end_position + BLANK_BYTES > self.file_bytes:
            return False
        times = self._device.times
        service_ns = times.copy_ns(size)
        if not self._warmed:
            service_ns += _first_multiples(self._position, end_position, PAGE_BYTES) * times.touch_page_ns
            if times.read_ahead_bytes:
                for _ in range(_first_multiples(self._position, end_position, times.read_ahead_bytes)):
                    service_ns += self._device.read_ahead_stalls.next_ns()
        begin_ns = max(self.arrival_ns.item(row), self.lock_free_ns)
        self.start_ns[row] = begin_ns if self._asked_ns < 0 else self._asked_ns
        self._asked_ns = -1
        self.lock_free_ns = begin_ns + service_ns
        self.written_ns[row] = self.lock_free_ns
        self.offset[row] = self.file_index * self.file_bytes + self._position
        self._position = end_position
        self.planned_rows = row + 1
        return True

    def _plan_many(self, first: int) -> bool:
        """Plan what fits of the next rows; return False if not even the first does.

        Begin of put i = max(end of put i-1, arrival i). With C the running sum of the services this is
        end i = C[i] + max over j <= i of (arrival j - C[j-1]), the lock's own end counting as an arrival before all.
        """
        room = self.file_bytes - BLANK_BYTES - self._position
        sizes = self.size[first : min(self.arrived_rows, first + room // self._smallest_bytes + 1)]
        ends = np.cumsum(sizes)
        count = int(ends.searchsorted(room, side="right"))
        if count == 0:
            return False
        sizes, ends = sizes[:count], ends[:count] + self._position
        begins = ends - sizes
        done_ns = np.cumsum(self._services(sizes, begins, ends))
        before_ns = np.concatenate(([0], done_ns[:-1]))
        arrivals = self.arrival_ns[first : first + count]
        offset_ns = np.maximum(np.maximum.accumulate(arrivals - before_ns), self.lock_free_ns)
        rows = slice(first, first + count)
        self.written_ns[rows] = done_ns + offset_ns
        self.start_ns[rows] = before_ns + offset_ns
        if self._asked_ns >= 0:
            self.start_ns[first] = self._asked_ns
            self._asked_ns = -1
        self.offset[rows] = self.file_index * self.file_bytes + begins
        self.lock_free_ns = self.written_ns.item(first + count - 1)
        self._position = int(ends[-1])
        self.planned_rows = first + count
        return True

    def _services(self, sizes: Int64s, begins: Int64s, ends: Int64s) -> Int64s:
        times = self._device.times
        services = times.put_ns + sizes * times.copy_ns_per_kib // 1024
        if not self._warmed:
            services += (-(-ends // PAGE_BYTES) + (-begins // PAGE_BYTES)) * times.touch_page_ns
            if times.read_ahead_bytes:
                stalls = -(-ends // times.read_ahead_bytes) + (-begins // times.read_ahead_bytes)
                rows = np.repeat(np.arange(len(sizes)), stalls)
                np.add.at(services, rows, self._device.read_ahead_stalls.take(len(rows)))
        return services


def _first_multiples(begin: int, end: int, unit: int) -> int:
    """Return how many multiples of `unit` lie in [begin, end)."""
    return -(-end // unit) - -(-begin // unit)
