"""The compiled engine: `run_fast` gives the trace of `sim.run.run`, bit for bit, faster.

There are no events. What each actor does follows from times, so each is one recursion over arrays (`sim.kernels`). Puts
depend on arrivals and files alone, so they are computed first, and flushing after them. Only closed producers that wait
for the disk are computed together with it. Random values are drawn here, from the same streams in the same order.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tornpage.impl.config.policy import FlushDiskType
from tornpage.sim.actors.answers import answers_ns
from tornpage.sim.actors.preallocation import making_ns
from tornpage.sim.actors.producers import Progress, watched, without_progress
from tornpage.sim.device.device import STREAMS, Device
from tornpage.sim.device.empirical import Uniform32
from tornpage.sim.distributions import Int64s
from tornpage.sim.fast_arrays import fixed_of, state_of, table_arrays
from tornpage.sim.kernels import layout as at
from tornpage.sim.kernels.closed import flush_groups, laps
from tornpage.sim.kernels.flushes import flush_behind
from tornpage.sim.kernels.layout import Arrays
from tornpage.sim.kernels.puts import ask_first, plan
from tornpage.sim.results.trace import ALLOCATION_DTYPE, COMMIT_DTYPE, FLUSH_DTYPE, ROLL_DTYPE, WRITEBACK_DTYPE, Trace
from tornpage.sim.run import open_arrivals
from tornpage.sim.scenario import Scenario
from tornpage.sim.streams import Law, stream
from tornpage.sim.workload import ClosedLoop

__all__ = ["can_run_fast", "run_fast"]

FLUSH_COLUMNS = len(FLUSH_DTYPE.names or ())
ROWS_AT_FIRST = 1 << 12
FILES_AT_FIRST = 64
DRAWS_AT_ONCE = 1 << 14
PRODUCER_DRAWS = 1 << 20
"""Draws kept for all closed producers together; each has at least 32."""


def can_run_fast(scenario: Scenario) -> bool:
    """Return whether this engine supports a scenario.

    It has no pool, no write-back, no measured puts and no stalls.
    """
    beyond = (scenario.pool, scenario.writeback, scenario.puts, scenario.stalls)
    return all(part is None for part in beyond)


def run_fast(scenario: Scenario, seed: int, *, progress: Progress = without_progress) -> Trace:
    """Simulate `scenario`, which `can_run_fast`; report the messages sent to `progress`.

    Cost: tens of nanoseconds per message and per flush, and a second for the first call.
    """
    engine = _Engine(scenario, seed, progress)
    engine.work(ask_first)
    workload = scenario.workload
    is_sync = scenario.flush.flush_disk_type is FlushDiskType.SYNC_FLUSH
    if isinstance(workload, ClosedLoop):
        engine.gather_producers(workload)
        if not is_sync:
            engine.work(laps)
    else:
        for at_ns, sizes in watched(open_arrivals(scenario, workload, seed), progress):
            engine.arrive(at_ns, sizes)
            engine.work(plan)
    engine.work(flush_groups if is_sync else flush_behind)
    return engine.trace()


@dataclass(slots=True)
class _Refill:
    """Drawn values that a kernel consumes.

    `take` keeps the unused ones and draws as many again, or more.
    """

    law: Law
    rng: np.random.Generator
    count: int = DRAWS_AT_ONCE

    def after(self, drawn: Int64s, used: int) -> Int64s:
        self.count = min(2 * self.count, 1 << 20)
        return np.concatenate((drawn[used:], self.law.draw(self.rng, self.count)))


@dataclass(slots=True)
class _Engine:
    """The arrays of one run, and the supply of what a kernel lacks."""

    scenario: Scenario
    seed: int
    progress: Progress
    arrays: Arrays = field(init=False)
    _allocating: Device = field(init=False)
    _syncs: _Refill = field(init=False)
    _refills: dict[str, _Refill] = field(init=False)
    _producers: list[tuple[_Refill, _Refill]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        scenario, seed, times = self.scenario, self.seed, self.scenario.device
        self._allocating = Device(times, stream(seed, "allocator"))
        _, stalls, _, puts, _ = stream(seed, "put lock").spawn(STREAMS)
        syncs, _, wakes, _, turns = stream(seed, "flusher").spawn(STREAMS)
        self._syncs = _Refill(times.sync_law, syncs)
        self._refills = {
            "stalls": _Refill(times.read_ahead_stall, stalls),
            "wakes": _Refill(Uniform32(), wakes),
            "puts": _Refill(Uniform32(), puts),
            "turns": _Refill(times.turn, turns),
        }
        rows = ROWS_AT_FIRST if scenario.messages is None else scenario.messages
        column, table = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
        self.arrays = Arrays(
            fixed=fixed_of(scenario),
            state=state_of(scenario),
            **{name: np.zeros(rows, np.int64) for name in _COLUMNS},
            stalls=column,
            syncs=column,
            wakes=column,
            puts=column,
            turns=column,
            used=column,
            files=np.zeros((0, at.FILE_COLUMNS), np.int64),
            flushes=np.zeros((0, FLUSH_COLUMNS), np.int64),
            heap=table,
            think=table,
            sizes=table,
            **table_arrays(scenario),
        )
        self._more_files(FILES_AT_FIRST + scenario.allocation.files_ahead)

    def work(self, kernel: Callable[[Arrays], int]) -> None:
        """Let a kernel work until it is done."""
        while (answer := kernel(self.arrays)) != at.DONE:
            _REMEDIES[answer](self)

    def arrive(self, at_ns: Int64s, sizes: Int64s) -> None:
        """Add messages of an open load."""
        first, end = self._rows(), self._rows() + len(at_ns)
        if end > len(self.arrays.arrival):
            self._more_rows(end)
        self.arrays.arrival[first:end] = at_ns
        self.arrays.size[first:end] = sizes
        self.arrays.state[at.ARRIVED] = end

    def gather_producers(self, load: ClosedLoop) -> None:
        """Have all closed producers think for the first time."""
        draws = max(PRODUCER_DRAWS // load.producers, 32)
        for number in range(load.producers):
            think = _Refill(load.think, stream(self.seed, f"think {number}"), draws)
            self._producers.append((think, _Refill(load.sizes, stream(self.seed, f"sizes {number}"), draws)))
        first = np.array([think.law.draw(think.rng, 1)[0] for think, _ in self._producers], np.int64)
        order = np.argsort(first, kind="stable")  # a sorted list is a heap
        if self.scenario.duration_ns is not None:
            order = order[first[order] <= self.scenario.duration_ns]
        heap = np.zeros((load.producers, 2), np.int64)
        heap[: len(order), 0], heap[: len(order), 1] = first[order], order
        shape = (load.producers, draws)
        self.arrays = self.arrays._replace(
            heap=heap,
            used=np.full(load.producers, draws, np.int64),
            think=np.zeros(shape, np.int64),
            sizes=np.zeros(shape, np.int64),
        )
        self.arrays.state[at.HEAP] = len(order)

    def trace(self) -> Trace:
        """Return what happened."""
        arrays, rows = self.arrays, self._rows()
        flushes = arrays.flushes[: arrays.state[at.FLUSHES]].view(FLUSH_DTYPE).reshape(-1)
        columns = {f"{name}_ns": getattr(arrays, name)[:rows] for name in ("arrival", "start", "written", "durable")}
        columns |= {"committed_ns": columns["written_ns"], "size": arrays.size[:rows]}
        return Trace(
            scenario=self.scenario,
            seed=self.seed,
            **columns,
            put_ns=answers_ns(self.scenario, self.seed, columns, flushes),
            offset=arrays.offset[:rows],
            producer=arrays.producer[:rows],
            flushes=flushes,
            rolls=self._table(ROLL_DTYPE, int(arrays.state[at.FILE]), at.FIRST_ROW, at.ASKED_NS, at.TURNED_NS),
            allocations=self._allocations(int(columns["durable_ns"][-1]) if rows else 0),
            commits=np.zeros(0, COMMIT_DTYPE),
            writebacks=np.zeros(0, WRITEBACK_DTYPE),
        )

    def _allocations(self, end_ns: int) -> "np.ndarray[tuple[int], np.dtype[np.void]]":
        made = self._table(
            ALLOCATION_DTYPE, int(self.arrays.state[at.FILES_ASKED]), at.REQUESTED_NS, at.BEGUN_NS, at.READY_NS
        )
        return made[made["ready_ns"] <= end_ns]

    def _table(
        self, dtype: "np.dtype[np.void]", files: int, *columns: int
    ) -> "np.ndarray[tuple[int], np.dtype[np.void]]":
        """Return one row for each file after the first one: its number, then the wanted columns."""
        table = np.zeros(files, dtype)
        for name, values in zip(
            dtype.names or (),
            (np.arange(1, files + 1), *self.arrays.files.T[list(columns), 1 : files + 1]),
            strict=True,
        ):
            table[name] = values
        return table

    def _rows(self) -> int:
        return int(self.arrays.state[at.ARRIVED])

    def _more_rows(self, least: int = 0) -> None:
        rows = max(least, 2 * len(self.arrays.arrival))
        self.arrays = self.arrays._replace(**{name: _grown(getattr(self.arrays, name), rows) for name in _COLUMNS})

    def _more_files(self, count: int = 0) -> None:
        scenario, had = self.scenario, len(self.arrays.files)
        files = _grown(self.arrays.files, count or 2 * had)
        for number in range(max(had, 1), len(files)):
            files[number, at.MAKING_NS] = making_ns(
                self._allocating, policy=scenario.allocation, flush=scenario.flush, file_bytes=scenario.file_bytes
            )
        self.arrays = self.arrays._replace(files=files)

    def _more_syncs(self) -> None:
        arrays, state = self.arrays, self.arrays.state
        if state[at.SYNCS_USED] == len(arrays.syncs):
            self.arrays = arrays._replace(syncs=self._syncs.after(arrays.syncs, len(arrays.syncs)))
            state[at.SYNCS_USED] = 0
        else:
            rows = max(2 * len(arrays.flushes), ROWS_AT_FIRST)
            self.arrays = arrays._replace(flushes=_grown(arrays.flushes, rows))

    def _more_stalls(self) -> None:
        self._refill("stalls", at.STALLS_USED)

    def _more_wakes(self) -> None:
        self._refill("wakes", at.WAKES_USED)

    def _more_puts(self) -> None:
        self._refill("puts", at.PUTS_USED)

    def _more_turns(self) -> None:
        self._refill("turns", at.TURNS_USED)

    def _refill(self, name: str, used_at: int) -> None:
        state = self.arrays.state
        drawn = self._refills[name].after(getattr(self.arrays, name), int(state[used_at]))
        self.arrays = self.arrays._replace(**{name: drawn})
        state[used_at] = 0

    def _more_draws(self) -> None:
        self.progress(self._rows())
        arrays = self.arrays
        number = int(arrays.state[at.NEEDY])
        think, sizes = self._producers[number]
        arrays.think[number] = think.law.draw(think.rng, think.count)
        arrays.sizes[number] = sizes.law.draw(sizes.rng, sizes.count)
        arrays.used[number] = 0


_COLUMNS = ("arrival", "size", "start", "written", "durable", "offset", "producer")
_REMEDIES: dict[int, Callable[[_Engine], None]] = {
    at.NEED_STALLS: _Engine._more_stalls,
    at.NEED_FILES: _Engine._more_files,
    at.NEED_SYNCS: _Engine._more_syncs,
    at.NEED_DRAWS: _Engine._more_draws,
    at.NEED_ROWS: _Engine._more_rows,
    at.NEED_WAKES: _Engine._more_wakes,
    at.NEED_PUTS: _Engine._more_puts,
    at.NEED_TURNS: _Engine._more_turns,
}


def _grown(array: Int64s, rows: int) -> Int64s:
    grown = np.zeros((rows, *array.shape[1:]), np.int64)
    grown[: len(array)] = array
    return grown
