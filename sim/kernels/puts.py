"""Puts under the lock: the compiled twin of `sim.log.log` and `sim.actors.preallocation`.

Begin and end of a put follow from its arrival, the puts before it and the files. So they are known as soon as the
message is. When a file is ready follows from the time of its request.
"""

from tornpage.impl.config.policy import PAGE_BYTES
from tornpage.sim.kernels import layout as at
from tornpage.sim.kernels.layout import Arrays, inlined_part, kernel, kernel_part, measured_ns
from tornpage.sim.log.log import BLANK_BYTES

__all__ = ["ask", "ask_first", "plan", "put"]

_PAGE_BITS = PAGE_BYTES.bit_length() - 1


@kernel_part
def ask(last: int, at_ns: int, run: Arrays) -> None:
    """Request all files up to `last`; the allocator makes one after another."""
    state, files = run.state, run.files
    while state[at.FILES_ASKED] < last:
        file = state[at.FILES_ASKED] + 1
        begun = max(at_ns, state[at.ALLOCATOR_FREE_NS])
        files[file, at.REQUESTED_NS] = at_ns
        files[file, at.BEGUN_NS] = begun
        files[file, at.READY_NS] = begun + files[file, at.MAKING_NS]
        state[at.ALLOCATOR_FREE_NS] = files[file, at.READY_NS]
        state[at.FILES_ASKED] = file


@inlined_part
def put(row: int, run: Arrays) -> int:
    """Give one row its put, in the next file if need be.

    Returns NEED_… before anything changed.
    """
    fixed, state, files = run.fixed, run.state, run.files
    record = run.size[row]
    window = fixed[at.WINDOW_BYTES]
    if window > 0 and state[at.STALLS_USED] + record // window + 2 > len(run.stalls):
        return at.NEED_STALLS
    if fixed[at.HAS_PUTS] != 0 and state[at.PUTS_USED] == len(run.puts):
        return at.NEED_PUTS
    position = state[at.POSITION]
    asked = max(run.arrival[row], state[at.LOCK_FREE_NS])
    begin = asked
    if position + record + BLANK_BYTES > fixed[at.FILE_BYTES]:
        file = state[at.FILE] + 1
        last = file + fixed[at.FILES_AHEAD]
        if last >= len(files):
            return at.NEED_FILES
        ask(last, asked, run)
        begin = max(asked, files[file, at.READY_NS])
        files[file - 1, at.END_POSITION] = position
        files[file, at.FIRST_ROW] = row
        files[file, at.ASKED_NS] = asked
        files[file, at.TURNED_NS] = begin
        state[at.FILE] = file
        position = 0
    end = position + record
    pages = ((end + PAGE_BYTES - 1) >> _PAGE_BITS) - ((position + PAGE_BYTES - 1) >> _PAGE_BITS)
    service = fixed[at.PUT_NS] + ((record * fixed[at.COPY_NS_PER_KIB]) >> 10) + pages * fixed[at.TOUCH_NS]
    if window > 0:
        for _ in range((end + window - 1) // window - (position + window - 1) // window):
            service += run.stalls[state[at.STALLS_USED]]
            state[at.STALLS_USED] += 1
    if fixed[at.HAS_PUTS] != 0:
        gap = run.arrival[row] - (run.arrival[row - 1] if row > 0 else 0)
        service += measured_ns(run.puts[state[at.PUTS_USED]], gap, fixed[at.PUT_BINS], run)
        state[at.PUTS_USED] += 1
    run.start[row] = asked
    run.written[row] = begin + service
    run.offset[row] = state[at.FILE] * fixed[at.FILE_BYTES] + position
    state[at.LOCK_FREE_NS] = begin + service
    state[at.POSITION] = end
    state[at.PLANNED] = row + 1
    return at.DONE


@kernel
def ask_first(run: Arrays) -> int:
    """Request the files after the first one, which exists."""
    ask(run.fixed[at.FILES_AHEAD], 0, run)
    return at.DONE


@kernel
def plan(run: Arrays) -> int:
    """Give each row that has arrived its put."""
    for row in range(run.state[at.PLANNED], run.state[at.ARRIVED]):
        answer = put(row, run)
        if answer != at.DONE:
            return answer
    return at.DONE
