"""The compiled twins of `closed_producer` and `group_commit_flusher`."""

from tornpage.sim.kernels import layout as at
from tornpage.sim.kernels.flushes import NO_PIECE, look, sync_piece, wake_ns
from tornpage.sim.kernels.layout import Arrays, kernel, kernel_part
from tornpage.sim.kernels.puts import put

__all__ = ["flush_groups", "laps"]

BEGINNING, BETWEEN, WAITING, ROUND_BEGINS, IN_ROUND, ANSWERING, ROUND_ENDS, TURNING = -1, 0, 1, 2, 3, 4, 5, 6
"""The next action of group commit, at `IN_ROUND` of the state."""


@kernel_part
def _push(time: int, number: int, run: Arrays) -> None:
    """Let a producer arrive at `time`; of equal times the lowest number comes first."""
    state, heap = run.state, run.heap
    child = state[at.HEAP]
    state[at.HEAP] = child + 1
    while child > 0:
        parent = (child - 1) >> 1
        if heap[parent, 0] < time or (heap[parent, 0] == time and heap[parent, 1] < number):
            break
        heap[child, 0], heap[child, 1] = heap[parent, 0], heap[parent, 1]
        child = parent
    heap[child, 0], heap[child, 1] = time, number


@kernel_part
def _drop(run: Arrays) -> None:
    """Remove the first producer from the heap."""
    state, heap = run.state, run.heap
    end = state[at.HEAP] - 1
    state[at.HEAP] = end
    time, number = heap[end, 0], heap[end, 1]
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= end:
            break
        if child + 1 < end and (
            heap[child + 1, 0] < heap[child, 0]
            or (heap[child + 1, 0] == heap[child, 0] and heap[child + 1, 1] < heap[child, 1])
        ):
            child += 1
        if time < heap[child, 0] or (time == heap[child, 0] and number < heap[child, 1]):
            break
        heap[hole, 0], heap[hole, 1] = heap[child, 0], heap[child, 1]
        hole = child
    heap[hole, 0], heap[hole, 1] = time, number


@kernel_part
def _return(time: int, number: int, run: Arrays) -> None:
    """Let a producer arrive again, unless the load has ended by then."""
    if run.fixed[at.DURATION_NS] < 0 or time <= run.fixed[at.DURATION_NS]:
        _push(time, number, run)


@kernel_part
def _arrive(run: Arrays) -> int:
    """Let the first producer of the heap send a message.

    Returns what is missing before anything changed.
    """
    fixed, state, heap = run.fixed, run.state, run.heap
    row, number = state[at.ARRIVED], heap[0, 1]
    if row == fixed[at.MESSAGES]:
        state[at.HEAP] = 0
        return at.DONE
    if row == len(run.arrival):
        return at.NEED_ROWS
    draw = run.used[number]
    if draw == run.sizes.shape[1]:
        state[at.NEEDY] = number
        return at.NEED_DRAWS
    run.arrival[row] = heap[0, 0]
    run.size[row] = run.sizes[number, draw]
    answer = put(row, run)
    if answer != at.DONE:
        return answer
    run.producer[row] = number
    run.used[number] = draw + 1
    state[at.ARRIVED] = row + 1
    _drop(run)
    if fixed[at.IS_SYNC] == 0:
        _return(run.written[row] + run.think[number, draw], number, run)
    return at.DONE


@kernel
def laps(run: Arrays) -> int:
    """Let producers that are answered from memory send all their messages."""
    while run.state[at.HEAP] > 0:
        answer = _arrive(run)
        if answer != at.DONE:
            return answer
    return at.DONE


@kernel_part
def _arrive_until(time: int, run: Arrays) -> int:
    """Let all producers arrive that do so up to `time`."""
    while run.state[at.HEAP] > 0 and run.heap[0, 0] <= time:
        answer = _arrive(run)
        if answer != at.DONE:
            return answer
    return at.DONE


@kernel_part
def _answer(run: Arrays) -> None:
    """Let the producers think whose messages the last sync made durable.

    They come too late for the check immediately after the sync.
    """
    state = run.state
    if len(run.used) > 0:
        for row in range(state[at.ANSWERED], state[at.DURABLE]):
            number = run.producer[row]
            answered = state[at.NOW_NS] + run.fixed[at.ANSWERING_NS]
            answered += (row - state[at.ROUND_ROW]) * run.fixed[at.ANSWER_NS]
            _return(answered + run.think[number, run.used[number] - 1], number, run)
    state[at.ANSWERED] = state[at.DURABLE]


@kernel
def flush_groups(run: Arrays) -> int:
    """Flush whenever a put waits, until all is durable.

    Open loads have no producers here, and all puts are known.
    """
    fixed, state, written = run.fixed, run.state, run.written
    while True:
        phase = state[at.IN_ROUND]
        if phase == BEGINNING:
            answer = _arrive_until(0, run)
            if answer != at.DONE:
                return answer
            state[at.IN_ROUND] = BETWEEN
        elif phase == BETWEEN:
            if fixed[at.HAS_WAKES] != 0 and state[at.WAKES_USED] == len(run.wakes):
                return at.NEED_WAKES
            nobody_waits = state[at.DURABLE] == state[at.ARRIVED]
            if nobody_waits:
                if state[at.HEAP] == 0:
                    return at.DONE
                answer = _arrive(run)
                if answer != at.DONE:
                    return answer
            if state[at.DURABLE] < state[at.ARRIVED]:
                first_ns = written[state[at.DURABLE]]
                if nobody_waits or first_ns > state[at.NOW_NS]:
                    state[at.NOW_NS] = first_ns + wake_ns(first_ns, run)
                    state[at.IN_ROUND] = WAITING
                else:
                    state[at.IN_ROUND] = ROUND_BEGINS
        elif phase == WAITING:
            answer = _arrive_until(state[at.NOW_NS], run)
            if answer != at.DONE:
                return answer
            state[at.IN_ROUND] = ROUND_BEGINS
        elif phase == ROUND_BEGINS:
            state[at.ROUND] += 1
            look(run)
            state[at.LAST_FILE] = state[at.CURRENT_FILE]
            state[at.ROUND_ROW] = state[at.DURABLE]
            state[at.IN_ROUND] = IN_ROUND
        elif phase == IN_ROUND:
            answer = sync_piece(0, run)
            if answer == at.NEED_SYNCS:
                return answer
            state[at.IN_ROUND] = ROUND_ENDS if answer == NO_PIECE else ANSWERING
        elif phase == ROUND_ENDS:
            turn = (state[at.DURABLE] - state[at.ROUND_ROW]) * fixed[at.ANSWER_NS]
            if fixed[at.HAS_TURNS] != 0:
                if state[at.TURNS_USED] == len(run.turns):
                    return at.NEED_TURNS
                turn += run.turns[state[at.TURNS_USED]]
                state[at.TURNS_USED] += 1
            state[at.NOW_NS] += turn
            state[at.IN_ROUND] = TURNING if turn > 0 else BETWEEN
        elif phase == TURNING:
            answer = _arrive_until(state[at.NOW_NS], run)
            if answer != at.DONE:
                return answer
            state[at.IN_ROUND] = BETWEEN
        else:
            answer = _arrive_until(state[at.NOW_NS], run)
            if answer != at.DONE:
                return answer
            _answer(run)
            look(run)
            state[at.IN_ROUND] = IN_ROUND
