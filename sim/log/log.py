"""The simulated commit log: messages as rows of arrays, and the watermarks over them.

1. Rows are numbered in order of arrival. `durable_rows <= planned_rows <= arrived_rows`, and none goes down.
2. A row is planned once the begin and end of its put are known. Its times may lie ahead of the clock, since puts depend
   only on arrivals, on the lock and on the file. Actors that look at the log ask what is written *by now*.
3. A record is put only if 8 bytes stay free after it. Otherwise a blank fills the rest of the file, at the moment when
   the next file is ready. Source: `CommitLog.DefaultAppendMessageCallback` (END_FILE_MIN_BLANK_LENGTH).
4. Puts hold the lock one after another, in order of arrival: start = max(arrival, end of the put before).

Planning many rows at once and planning them one by one give the same numbers.
"""

import numpy as np
from simpy import Environment, Event

from tornpage.impl.config.policy import PAGE_BYTES
from tornpage.sim.device.device import Device
from tornpage.sim.device.put_table import Serving
from tornpage.sim.events.bell import Bell, now_ns
from tornpage.sim.events.turns import END, Turn
from tornpage.sim.log.columns import Columns
from tornpage.sim.log.pieces import Dirty, End

__all__ = ["BLANK_BYTES", "Log"]

BLANK_BYTES = 8
"""The bytes of a blank, and the bytes that must stay free after every record."""
FEW_ROWS = 12
"""Below about this many rows, planning one by one costs less than setting up arrays."""


class Log(Columns):
    """The log, with the columns `arrival_ns` to `producer` of a trace, and its watermarks."""

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
        serving: Serving | None = None,
    ) -> None:
        """Make an empty log whose first file exists, with room for `rows` rows at first.

        No record is smaller than `smallest_bytes`. `warmed` says that files come with every page touched, `forced` that
        every page is also on the disk. `serving` decides when puts begin and how long they take, in place of the
        device.
        """
        super().__init__(env, rows)
        self._env = env
        self._device = device
        self._serving = serving
        self.file_bytes = file_bytes
        self._smallest_bytes = smallest_bytes
        self._warmed = warmed
        self._forced = forced
        self.planned_rows = 0
        self.durable_rows = 0
        self.durable_offset = 0
        self.synced_ns = 0
        self.round_row = 0
        self._clean_offset = 0
        self.file_index = 0
        self.is_closed = False
        self.lock_free_ns = 0
        self._position = 0
        self._asked_ns = -1
        self._file_ends: list[tuple[int, int]] = []
        self._first_synced: set[int] = set()
        self.planned = Bell(env)
        self.made_durable = Bell(env)
        self.settled = env.event()
        self._is_settled = False

    @property
    def end_offset(self) -> int:
        """The end of the last planned put."""
        return self.file_index * self.file_bytes + self._position

    def close(self) -> None:
        """Note that no further message will arrive.

        `settled` happens when all messages are durable.
        """
        self.is_closed = True
        self._settle()

    def plan(self) -> bool:
        """Give each arrived row its put, as far as the file reaches.

        Returns False if the next row needs a new file.
        """
        first = self.planned_rows
        if self.arrived_rows - first <= FEW_ROWS or self._serving is not None:
            while self.planned_rows < self.arrived_rows and self._plan_one(self.planned_rows):
                pass
        else:
            while self.planned_rows < self.arrived_rows and self._plan_many(self.planned_rows):
                pass
        if self.planned_rows > first:
            self.planned.ring()
        return self.planned_rows == self.arrived_rows

    def roll(self, *, asked_ns: int) -> None:
        """End the file and begin the next one, which is ready now.

        The put that did not fit began at `asked_ns`.
        """
        self._file_ends.append((self.planned_rows, self._position))
        self.file_index += 1
        self._position = 0
        self._asked_ns = asked_ns
        self.lock_free_ns = now_ns(self._env)

    def due_ns(self, least_pages: int) -> int | None:
        """Return when the put ends that makes a flush due by the page rule; None if unknown yet."""
        row = self._due_row(self.durable_offset, self.durable_rows, self.planned_rows, least_pages)
        return None if row is None else self.written_ns.item(row)

    def dirty(self) -> Dirty | None:
        """Return the oldest piece of one file that can be flushed now and is not durable."""
        file_index, from_position = divmod(self.durable_offset, self.file_bytes)
        end = self._flushable(file_index)
        if end is None or end.to_offset <= self.durable_offset:
            return None
        reserved_only = not self._forced
        if self._warmed and not self._forced:
            reserved_only = file_index not in self._first_synced
        if reserved_only and self._warmed:
            device_bytes = self.file_bytes
        else:
            base_offset = file_index * self.file_bytes
            from_position = min(max(from_position, self._clean_offset - base_offset), end.data_position)
            device_bytes = (-(-end.data_position // PAGE_BYTES) - from_position // PAGE_BYTES) * PAGE_BYTES
        return Dirty(
            file_index, end.file_is_full, self.durable_offset, end.to_offset, end.rows_end, device_bytes, reserved_only
        )

    @property
    def clean_offset(self) -> int:
        """Up to where pages are written to the device, or are being written."""
        return max(self._clean_offset, self.durable_offset)

    def clean(self, offset: int) -> None:
        """Record that all pages up to `offset` are written, or are being written."""
        self._clean_offset = max(self._clean_offset, offset)

    def written_offset(self, at_ns: int) -> int:
        """Return up to where the log was written at a moment.

        The moment is not before the last sync, whose offset is the least.
        """
        rows = int(self.written_ns[self.durable_rows : self.planned_rows].searchsorted(at_ns, side="right"))
        if rows == 0:
            return self.durable_offset
        last = self.durable_rows + rows - 1
        return self.offset.item(last) + self.size.item(last)

    def reaches_ns(self, offset: int) -> int | None:
        """Return when the put ends that writes up to `offset`; None if unknown yet."""
        row = self._reaching(offset, self.durable_rows, self.planned_rows)
        return None if row is None else self.written_ns.item(row)

    def make_durable(self, piece: Dirty) -> None:
        """Record that a sync of `piece` has returned now."""
        self.synced_ns = now_ns(self._env)
        self.durable_ns[self.durable_rows : piece.rows_end] = self.synced_ns
        self.durable_rows = piece.rows_end
        self.durable_offset = piece.to_offset
        if self._warmed:
            self._first_synced.add(piece.file_index)
        self.made_durable.ring()
        self._settle()

    def answered_ns(self, row: int) -> int:
        """Return when a producer has its answer from the last round of group commit.

        That round has just made its row durable.
        """
        times = self._device.times
        return self.durable_ns.item(row) + times.answering_ns + (row - self.round_row) * times.answer_ns

    def refuse(self) -> None:
        """Refuse the next row now: its producer is answered, and nothing is stored."""
        raise AssertionError("only a pool that has run out refuses a put")

    def _flushable(self, file_index: int) -> End | None:
        """Return how far a flush of this file can go now; None if nothing of it is written."""
        return self._written(file_index, self.durable_rows)

    def _written(self, file_index: int, first: int) -> End | None:
        """Return how far a file is written now; its rows begin with `first`."""
        base_offset = file_index * self.file_bytes
        if file_index < self.file_index:
            rows_end, position = self._file_ends[file_index]
            return End(True, rows_end, base_offset + self.file_bytes, position + BLANK_BYTES)
        rows_end = self._written_rows(first)
        if rows_end == first:
            return None
        to_offset = self.offset.item(rows_end - 1) + self.size.item(rows_end - 1)
        return End(False, rows_end, to_offset, to_offset - base_offset)

    def _written_rows(self, first: int) -> int:
        """Return the first row from `first` on that is not written yet."""
        now, row = self._env.now, first
        near = min(row + FEW_ROWS, self.planned_rows)  # most batches are small: look before searching
        while row < near and self.written_ns.item(row) <= now:
            row += 1
        if row < near or row == self.planned_rows:
            return row
        return row + int(self.written_ns[row : self.planned_rows].searchsorted(now, side="right"))

    def _due_row(self, offset: int, first: int, end: int, least_pages: int) -> int | None:
        """Return the first row that meets the page rule from `offset`, or begins the next file."""
        file_index, position = divmod(offset, self.file_bytes)
        target = position + 1 if least_pages == 0 else (position // PAGE_BYTES + least_pages) * PAGE_BYTES
        return self._reaching(file_index * self.file_bytes + min(target, self.file_bytes + 1), first, end)

    def _reaching(self, target: int, first: int, end: int) -> int | None:
        """Return the first row whose end is not below `target`."""
        row = first + int(self.offset[first:end].searchsorted(target, side="left"))
        if row > first and self.offset.item(row - 1) + self.size.item(row - 1) >= target:
            row -= 1
        return row if row < end else None

    @property
    def _touches(self) -> bool:
        """Whether puts into the current file are the first to touch its pages."""
        return not self._warmed

    def _settle(self) -> None:
        if self.is_closed and self.durable_rows == self.arrived_rows and not self._is_settled:
            self._is_settled = True
            last = Turn(self._env, 0, END)
            assert last.callbacks is not None
            last.callbacks.append(self._end)

    def _end(self, _: Event) -> None:
        self.settled.succeed()

    def _plan_one(self, row: int) -> bool:
        size = self.size.item(row)
        end_position = self._position + size
        if end_position + BLANK_BYTES > self.file_bytes:
            return False
        arrived_ns = self.arrival_ns.item(row)
        if self._serving is None:
            gap_ns = arrived_ns - (self.arrival_ns.item(row - 1) if row else 0)
            service_ns = self._device.put_ns(self._position, end_position, gap_ns=gap_ns, touches=self._touches)
            begin_ns = max(arrived_ns, self.lock_free_ns)
        else:
            begin_ns, service_ns = self._serving.next(arrived_ns, self.lock_free_ns)
        self.start_ns[row] = begin_ns if self._asked_ns < 0 else self._asked_ns
        self._asked_ns = -1
        self.lock_free_ns = begin_ns + service_ns
        self.written_ns[row] = self.lock_free_ns
        self.offset[row] = self.file_index * self.file_bytes + self._position
        self._position = end_position
        self.planned_rows = row + 1
        return True

    def _plan_many(self, first: int) -> bool:
        """Plan the next rows that fit; return False if not even the first does.

        Begin of put i = max(end of put i-1, arrival i). With C the running sum of the services this is end i = C[i] +
        max over j <= i of (arrival j - C[j-1]). The lock's own end counts as an arrival before all others.
        """
        room = self.file_bytes - BLANK_BYTES - self._position
        sizes = self.size[first : min(self.arrived_rows, first + room // self._smallest_bytes + 1)]
        ends = np.cumsum(sizes)
        count = int(ends.searchsorted(room, side="right"))
        if count == 0:
            return False
        sizes, ends = sizes[:count], ends[:count] + self._position
        begins = ends - sizes
        arrivals = self.arrival_ns[first : first + count]
        gaps_ns = np.diff(arrivals, prepend=self.arrival_ns.item(first - 1) if first else 0)
        done_ns = np.cumsum(self._device.puts_ns(begins, ends, gaps_ns=gaps_ns, touches=self._touches))
        before_ns = np.concatenate(([0], done_ns[:-1]))
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
