"""Messages as rows of arrays, in order of arrival."""

from typing import ClassVar

import numpy as np
from simpy import Environment

from tornpage.sim.distributions import Int64s
from tornpage.sim.events.bell import Bell

__all__ = ["Columns"]


class Columns:
    """The arrays, one per column, and the number of rows that have arrived."""

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "arrival_ns",
        "start_ns",
        "written_ns",
        "durable_ns",
        "offset",
        "size",
        "producer",
    )

    arrival_ns: Int64s
    start_ns: Int64s
    written_ns: Int64s
    durable_ns: Int64s
    offset: Int64s
    size: Int64s
    producer: Int64s

    def __init__(self, env: Environment, rows: int) -> None:
        self._capacity = max(rows, 1)
        for name in self.COLUMNS:
            setattr(self, name, np.zeros(self._capacity, dtype=np.int64))
        self.arrived_rows = 0
        self.arrived = Bell(env)

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

    def columns(self) -> dict[str, Int64s]:
        """Return the columns, cut to the rows that arrived."""
        return {name: getattr(self, name)[: self.arrived_rows].copy() for name in self.COLUMNS}

    def _grow(self, rows: int) -> None:
        self._capacity = max(rows, 2 * self._capacity)
        for name in self.COLUMNS:
            column = np.zeros(self._capacity, dtype=np.int64)
            column[: self.arrived_rows] = getattr(self, name)[: self.arrived_rows]
            setattr(self, name, column)
