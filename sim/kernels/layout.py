"""The state of the compiled parts: places in their arrays, and their answers.

All arrays hold int64. A kernel works until it is done or lacks something. It leaves the arrays in a state from which
the same call continues after the missing values were added.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

from numba import njit, types

from tornpage.impl.config.policy import PAGE_BYTES
from tornpage.sim.device.gap_table import COUNT, GAP_EDGES_NS, START
from tornpage.sim.device.sync_table import PAGE_TOPS, SLOPE_BITS
from tornpage.sim.distributions import Int64s
from tornpage.sim.log.log import BLANK_BYTES

__all__ = ["Arrays", "inlined_part", "kernel", "kernel_part", "measured_ns"]

DONE, NEED_STALLS, NEED_FILES, NEED_SYNCS, NEED_DRAWS, NEED_ROWS, NEED_WAKES, NEED_PUTS, NEED_TURNS = range(9)
"""Answers.

NEED_FILES: rows of `files`. NEED_SYNCS: drawn syncs, or rows of `flushes`. NEED_DRAWS: for one producer.
"""

# fixed: the values of a scenario
(
    FILE_BYTES,
    FILES_AHEAD,
    IS_WARMED,
    IS_FORCED,
    PUT_NS,
    COPY_NS_PER_KIB,
    TOUCH_NS,
    WINDOW_BYTES,
    SYNC_NS_PER_KIB,
    CONVERT_NS,
    CONVERT_NS_PER_KIB,
    WAKE_NS,
    INTERVAL_NS,
    LEAST_PAGES,
    THOROUGH_MS,
    IS_WOKEN,
    IS_SYNC,
    DURATION_NS,
    MESSAGES,
    HAS_PUTS,
    HAS_WAKES,
    HAS_TABLE,
    RESERVED_KNOTS,
    LEAST_WRITTEN_NS,
    LEAST_RESERVED_NS,
    HAS_TURNS,
    ANSWERING_NS,
    ANSWER_NS,
    PUT_BINS,
    WAKE_BINS,
    FIXED,
) = range(31)

# state: what changes
(
    ARRIVED,
    PLANNED,
    LOCK_FREE_NS,
    POSITION,
    FILE,
    FILES_ASKED,
    ALLOCATOR_FREE_NS,
    STALLS_USED,
    NOW_NS,
    IN_ROUND,
    ROUND,
    LAST_FILE,
    CURRENT_FILE,
    WRITTEN,
    DURABLE,
    DURABLE_FILE,
    DURABLE_POSITION,
    THOROUGH_NS,
    SINCE_THOROUGH_MS,
    RULE_PAGES,
    SYNCS_USED,
    FLUSHES,
    ANSWERED,
    HEAP,
    NEEDY,
    WAKES_USED,
    PUTS_USED,
    TURNS_USED,
    ROUND_ROW,
    STATE,
) = range(30)

# columns of `files`, one row per file
MAKING_NS, REQUESTED_NS, BEGUN_NS, READY_NS, FIRST_ROW, ASKED_NS, TURNED_NS, END_POSITION, IS_SYNCED, FILE_COLUMNS = (
    range(10)
)


class Arrays(NamedTuple):
    """The whole state of a run of the fast engine."""

    fixed: Int64s
    state: Int64s
    arrival: Int64s
    size: Int64s
    start: Int64s
    written: Int64s
    durable: Int64s
    offset: Int64s
    producer: Int64s
    stalls: Int64s
    """Drawn waits for read-ahead."""
    syncs: Int64s
    """Drawn times of syncs, or choices among measured ones."""
    wakes: Int64s
    """Choices among measured wake times."""
    puts: Int64s
    """Choices among measured times under the put lock."""
    turns: Int64s
    """Drawn parts of the time between two rounds of group commit."""
    values: Int64s
    """Measured times: syncs of written blocks, of reserved ones, puts, wakes."""
    used: Int64s
    """The number of draws that each closed producer has used."""
    files: Int64s
    """One row per file; columns as above."""
    flushes: Int64s
    """Rows of `sim.results.trace.FLUSH_DTYPE`."""
    heap: Int64s
    """Closed producers that will arrive: rows (time, number), the first one on top."""
    think: Int64s
    """Drawn thinking times, one row per closed producer, after the message of the same column."""
    sizes: Int64s
    """Drawn sizes, in the same layout."""
    bins: Int64s
    """Rows (start, count) of `values`, in the same order; puts begin at PUT_BINS, wakes at WAKE_BINS."""
    knots: Int64s
    """Growth curves of syncs, those of written blocks first."""


_VECTOR = types.Array(types.int64, 1, "C")
_TABLE = types.Array(types.int64, 2, "C")
_TABLES = 7
_ARRAYS = types.NamedTuple(  # type: ignore[no-untyped-call]
    (_VECTOR,) * (len(Arrays._fields) - _TABLES) + (_TABLE,) * _TABLES, Arrays
)
_OPTIONS: Any = {"nogil": True, "_nrt": False}
"""Kernels make no arrays, so references to arrays are not counted.

Counting would cost more than everything else.
"""

_CONSTANTS = (BLANK_BYTES, PAGE_BYTES, GAP_EDGES_NS, PAGE_TOPS, SLOPE_BITS)
"""Values that are compiled in from other modules."""
_SOURCES = crc32(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))), crc32(repr(_CONSTANTS).encode())
)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile a function from `Arrays` to an answer, and keep the result on disk.

    Numba itself reuses the result as long as the function's own file is unchanged, even if its parts changed.
    """
    function.__qualname__ = f"{function.__name__}_{_SOURCES:08x}"
    compiled: Any = njit([types.int64(_ARRAYS)], cache=True, **_OPTIONS)
    wrapped: _Function = compiled(function)
    return wrapped


def kernel_part(function: _Function) -> _Function:
    """Compile a function that kernels call; copying the arrays takes some 100 ns a call."""
    compiled: Any = njit(**_OPTIONS)
    wrapped: _Function = compiled(function)
    return wrapped


def inlined_part(function: _Function) -> _Function:
    """Compile a function into each of its callers, for calls per message or per sync."""
    compiled: Any = njit(inline="always", **_OPTIONS)
    wrapped: _Function = compiled(function)
    return wrapped


@inlined_part
def measured_ns(draw: int, gap: int, first_bin: int, run: Arrays) -> int:
    """Return the measured time that a draw chooses from the bin of a gap.

    It is the twin of `GapTable.took_ns`.
    """
    place = first_bin
    for edge in GAP_EDGES_NS:
        if gap >= edge:
            place += 1
    return int(run.values[run.bins[place, START] + ((draw * run.bins[place, COUNT]) >> 32)])
