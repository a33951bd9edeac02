"""Build the first arrays of the fast engine's kernels from scenario and tables.

The layout is that of `sim.kernels.layout`.
"""

import numpy as np

from tornpage.impl.config.policy import FlushDiskType
from tornpage.sim.device.gap_table import GAP_BINS, GapTable
from tornpage.sim.device.sync_table import LAYER_BINS, Layer, SyncTable
from tornpage.sim.distributions import NO_TIME, Int64s
from tornpage.sim.kernels import layout as at
from tornpage.sim.scenario import Scenario

__all__ = ["fixed_of", "state_of", "table_arrays"]

NS_PER_MS = 1_000_000
NO_LAYER = Layer(np.zeros(0, np.int64), np.zeros((0, 2), np.int64), np.zeros((0, 3), np.int64), 0)
NO_TABLE = SyncTable("", NO_LAYER, NO_LAYER)
NO_GAPS = GapTable("", NO_LAYER.values, NO_LAYER.bins)


def fixed_of(scenario: Scenario) -> Int64s:
    """Return the values that never change while the scenario runs."""
    flush, times, touches = scenario.flush, scenario.device, not scenario.is_warmed
    has_stalls = touches and times.read_ahead_bytes > 0
    fixed = np.zeros(at.FIXED, np.int64)
    fixed[at.FILE_BYTES] = scenario.file_bytes
    fixed[at.FILES_AHEAD] = scenario.allocation.files_ahead
    fixed[at.IS_WARMED], fixed[at.IS_FORCED] = scenario.is_warmed, scenario.is_forced
    fixed[at.PUT_NS], fixed[at.COPY_NS_PER_KIB] = scenario.put_times.put_ns, times.copy_ns_per_kib
    fixed[at.TOUCH_NS] = times.touch_page_ns if touches else 0
    fixed[at.WINDOW_BYTES] = times.read_ahead_bytes if has_stalls else 0
    fixed[at.SYNC_NS_PER_KIB] = times.sync_ns_per_kib
    fixed[at.CONVERT_NS], fixed[at.CONVERT_NS_PER_KIB] = times.convert_ns, times.convert_ns_per_kib
    fixed[at.WAKE_NS] = times.wake_ns
    fixed[at.INTERVAL_NS] = flush.flush_interval_commit_log * NS_PER_MS
    fixed[at.LEAST_PAGES] = flush.flush_commit_log_least_pages
    fixed[at.THOROUGH_MS] = flush.flush_commit_log_thorough_interval
    fixed[at.IS_WOKEN] = not flush.flush_commit_log_timed
    fixed[at.IS_SYNC] = flush.flush_disk_type is FlushDiskType.SYNC_FLUSH
    fixed[at.DURATION_NS] = -1 if scenario.duration_ns is None else scenario.duration_ns
    fixed[at.MESSAGES] = -1 if scenario.messages is None else scenario.messages
    fixed[at.HAS_PUTS], fixed[at.HAS_WAKES] = scenario.put_times.put is not None, times.wake is not None
    fixed[at.HAS_TURNS] = times.turn != NO_TIME
    fixed[at.ANSWERING_NS], fixed[at.ANSWER_NS] = times.answering_ns, times.answer_ns
    fixed[at.PUT_BINS] = 2 * LAYER_BINS if times.measured is not None else 0
    fixed[at.WAKE_BINS] = fixed[at.PUT_BINS] + (GAP_BINS if scenario.put_times.put is not None else 0)
    if times.measured is not None:
        written, reserved = times.measured.written, times.measured.reserved
        fixed[at.HAS_TABLE], fixed[at.RESERVED_KNOTS] = 1, len(written.knots)
        fixed[at.LEAST_WRITTEN_NS], fixed[at.LEAST_RESERVED_NS] = written.least_ns, reserved.least_ns
    return fixed


def table_arrays(scenario: Scenario) -> dict[str, Int64s]:
    """Return the tables of the device, layer by layer.

    Values are in one array, rows (start, count) in another. The order is: syncs of written and of reserved blocks,
    puts, wakes. Missing tables are left out.
    """
    times, puts = scenario.device, scenario.put_times.put
    table = times.measured or NO_TABLE
    tables: tuple[Layer | GapTable, ...] = (table.written, table.reserved, puts or NO_GAPS, times.wake or NO_GAPS)
    begins = np.cumsum([0, *(len(part.values) for part in tables[:-1])])
    moved = [part.bins + np.array([begin, 0], np.int64) for part, begin in zip(tables, begins, strict=True)]
    return {
        "values": np.concatenate([part.values for part in tables]),
        "bins": np.concatenate(moved),
        "knots": np.concatenate((table.written.knots, table.reserved.knots)),
    }


def state_of(scenario: Scenario) -> Int64s:
    """Return the state at time 0."""
    state = np.zeros(at.STATE, np.int64)
    state[at.SINCE_THOROUGH_MS] = scenario.flush.flush_commit_log_thorough_interval  # the first round is thorough
    if scenario.flush.flush_disk_type is FlushDiskType.SYNC_FLUSH:
        state[at.IN_ROUND] = -1
    return state
