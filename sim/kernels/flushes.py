"""Flushing: the compiled twin of `sim.actors.flushers`.

The rules and terms are those of `impl.config.policy.FlushPolicy`.
"""

from tornpage.impl.config.policy import PAGE_BYTES
from tornpage.sim.device.gap_table import GAP_BINS
from tornpage.sim.device.sync_table import KNOT_NS, KNOT_PAGES, KNOT_SLOPE, LAYER_BINS, PAGE_TOPS, SLOPE_BITS
from tornpage.sim.kernels import layout as at
from tornpage.sim.kernels.layout import Arrays, inlined_part, kernel, measured_ns
from tornpage.sim.log.log import BLANK_BYTES

__all__ = ["NO_PIECE", "flush_behind", "look", "sync_piece", "wake_ns"]

NO_PIECE = -1
NS_PER_MS = 1_000_000
FOR_EVER_NS = 1 << 62


@inlined_part
def look(run: Arrays) -> None:
    """Advance `WRITTEN` and `CURRENT_FILE` to the present time."""
    state, written, files = run.state, run.written, run.files
    now = state[at.NOW_NS]
    row, end = state[at.WRITTEN], state[at.PLANNED]
    while row < end and written[row] <= now:
        row += 1
    state[at.WRITTEN] = row
    file = state[at.CURRENT_FILE]
    while file < state[at.FILE] and files[file + 1, at.TURNED_NS] <= now:
        file += 1
    state[at.CURRENT_FILE] = file


@inlined_part
def _since_sync(at_ns: int, run: Arrays) -> int:
    """Return the time from the last sync's return to a moment; without a sync, the whole time."""
    number = run.state[at.FLUSHES]
    return int(at_ns - run.flushes[number - 1, 2]) if number > 0 else at_ns


@inlined_part
def wake_ns(at_ns: int, run: Arrays) -> int:
    """Draw how long a sleeper that is woken at a moment takes to run; a draw must be left."""
    took = run.fixed[at.WAKE_NS]
    if run.fixed[at.HAS_WAKES] != 0:
        draw = run.wakes[run.state[at.WAKES_USED]]
        took += measured_ns(draw, _since_sync(at_ns, run), run.fixed[at.WAKE_BINS], run)
        run.state[at.WAKES_USED] += 1
    return int(took)


@inlined_part
def _measured_sync_ns(draw: int, pages: int, is_reserved: int, run: Arrays) -> int:
    """Return the value of `SyncTable.took_ns` for a sync that begins now."""
    fixed, knots = run.fixed, run.knots
    first_bin = is_reserved * LAYER_BINS
    for top in PAGE_TOPS:
        if pages > top:
            first_bin += GAP_BINS
    value = measured_ns(draw, _since_sync(run.state[at.NOW_NS], run), first_bin, run)
    knot, end, least = 0, fixed[at.RESERVED_KNOTS], fixed[at.LEAST_WRITTEN_NS]
    if is_reserved != 0:
        knot, end, least = end, len(knots), fixed[at.LEAST_RESERVED_NS]
    while knot + 1 < end and knots[knot + 1, KNOT_PAGES] <= pages:
        knot += 1
    beyond = max(pages - knots[knot, KNOT_PAGES], 0)
    return int(max(value + knots[knot, KNOT_NS] + ((beyond * knots[knot, KNOT_SLOPE]) >> SLOPE_BITS), least))


@inlined_part
def sync_piece(least_pages: int, run: Arrays) -> int:
    """Sync the oldest piece of one file if this round takes it.

    Returns DONE, NEED_SYNCS or NO_PIECE. After DONE, `NOW_NS` is the end of the sync, its rows are durable, and there
    may be another piece.
    """
    fixed, state, files, flushes = run.fixed, run.state, run.files, run.flushes
    file, position, first = state[at.DURABLE_FILE], state[at.DURABLE_POSITION], state[at.DURABLE]
    if file > state[at.LAST_FILE]:
        return NO_PIECE
    file_bytes = fixed[at.FILE_BYTES]
    is_full = file < state[at.CURRENT_FILE]
    if is_full:
        rows_end = files[file + 1, at.FIRST_ROW]
        to_position = file_bytes
        data_end = files[file, at.END_POSITION] + BLANK_BYTES
    else:
        rows_end = state[at.WRITTEN]
        if rows_end == first:
            return NO_PIECE
        to_position = data_end = run.offset[rows_end - 1] + run.size[rows_end - 1] - file * file_bytes
        if least_pages > 0 and to_position // PAGE_BYTES - position // PAGE_BYTES < least_pages:
            return NO_PIECE
    number = state[at.FLUSHES]
    if state[at.SYNCS_USED] == len(run.syncs) or number == len(flushes):
        return at.NEED_SYNCS
    took, per_kib = run.syncs[state[at.SYNCS_USED]], fixed[at.SYNC_NS_PER_KIB]
    pages = (data_end + PAGE_BYTES - 1) // PAGE_BYTES - position // PAGE_BYTES
    device_bytes = pages * PAGE_BYTES
    is_reserved = 0
    if fixed[at.IS_FORCED] == 0 and (fixed[at.IS_WARMED] == 0 or files[file, at.IS_SYNCED] == 0):
        is_reserved = 1
        took, per_kib = took + fixed[at.CONVERT_NS], per_kib + fixed[at.CONVERT_NS_PER_KIB]
        if fixed[at.IS_WARMED] != 0:
            device_bytes = file_bytes
    if fixed[at.HAS_TABLE] != 0:
        draw = run.syncs[state[at.SYNCS_USED]]
        took = _measured_sync_ns(draw, (device_bytes + PAGE_BYTES - 1) // PAGE_BYTES, is_reserved, run)
    else:
        took += (device_bytes * per_kib) >> 10
    end = state[at.NOW_NS] + took
    flushes[number, 0] = state[at.ROUND]
    flushes[number, 1] = state[at.NOW_NS]
    flushes[number, 2] = end
    flushes[number, 3] = file
    flushes[number, 4] = file * file_bytes + position
    flushes[number, 5] = file * file_bytes + to_position
    flushes[number, 6] = rows_end - first
    flushes[number, 7] = device_bytes
    for row in range(first, rows_end):
        run.durable[row] = end
    files[file, at.IS_SYNCED] = 1
    state[at.SYNCS_USED] += 1
    state[at.FLUSHES] = number + 1
    state[at.NOW_NS] = end
    state[at.DURABLE] = rows_end
    if is_full:
        state[at.DURABLE_FILE], state[at.DURABLE_POSITION] = file + 1, 0
    else:
        state[at.DURABLE_POSITION] = to_position
        state[at.LAST_FILE] = -1  # a file that is still being written ends the round
    return at.DONE


@inlined_part
def _due_ns(run: Arrays) -> int:
    """Return when the put ends that meets the page rule or begins the next file.

    The result is far ahead if there is no such put.
    """
    fixed, state = run.fixed, run.state
    position, pages = state[at.DURABLE_POSITION], state[at.RULE_PAGES]
    target = position + 1 if pages == 0 else (position // PAGE_BYTES + pages) * PAGE_BYTES
    target = state[at.DURABLE_FILE] * fixed[at.FILE_BYTES] + min(target, fixed[at.FILE_BYTES] + 1)
    for row in range(state[at.DURABLE], state[at.ARRIVED]):
        if run.offset[row] + run.size[row] >= target:
            return int(run.written[row])
    return FOR_EVER_NS


@kernel
def flush_behind(run: Arrays) -> int:
    """Flush after the answers, by the clock or when pages wake it, until all is durable.

    Every row has its put.
    """
    fixed, state = run.fixed, run.state
    while True:
        if state[at.IN_ROUND] == 0:
            if state[at.DURABLE] == state[at.ARRIVED]:
                return at.DONE
            if fixed[at.HAS_WAKES] != 0 and state[at.WAKES_USED] == len(run.wakes):
                return at.NEED_WAKES
            begin = state[at.NOW_NS]
            thorough = state[at.SINCE_THOROUGH_MS] >= fixed[at.THOROUGH_MS]
            state[at.RULE_PAGES] = 0 if thorough else fixed[at.LEAST_PAGES]
            if state[at.RULE_PAGES] == 0:
                state[at.THOROUGH_NS] = begin
            start = begin + fixed[at.INTERVAL_NS]
            if fixed[at.IS_WOKEN] != 0:
                due = _due_ns(run)
                wake = wake_ns(begin, run)
                start = begin if due <= begin else min(start, due + wake)
            state[at.NOW_NS] = start
            state[at.ROUND] += 1
            look(run)
            state[at.LAST_FILE] = state[at.CURRENT_FILE]
            state[at.IN_ROUND] = 1
        answer = sync_piece(state[at.RULE_PAGES], run)
        if answer == at.NEED_SYNCS:
            return answer
        if answer == at.DONE:
            look(run)
        else:
            state[at.IN_ROUND] = 0
            state[at.SINCE_THOROUGH_MS] = (state[at.NOW_NS] - state[at.THOROUGH_NS]) // NS_PER_MS
