"""Specify what may become of the copies of a log (contract 15).

1. Only a master's log grows by puts. A slave's log grows by what its master has sent to it, in order, and not past what
   has arrived.
2. A slave receives nothing before its log is a prefix of its master's. If it is longer than the common point of both,
   it is cut there first.
3. The common point is the smaller end of the newest generation that both have. Both logs are equal below it
   (`equal_below`; `tests/model/test_replication.py` checks all states of a small bound).
4. A power loss keeps at least the durable entries of a copy, and any number of the next ones. A kill keeps all.
5. An open makes the log durable. An open as a master begins a generation at the end of the log.
6. Retention removes whole files from the begin of a log, durable ones only, and never the last file.
7. A slave without a log begins where the log of its master begins. A slave that needs bytes which its master has
   removed receives nothing. If it may discard its log, it is cut to nothing.

Each function takes a state and returns the next one, or all legal ones.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from tornpage.model.replication.state import Copy, Entry, Generation, Replicated, Role, Wire

__all__ = [
    "accepted",
    "arrive",
    "clean",
    "common_point",
    "connect",
    "crash",
    "cut",
    "disconnect",
    "end_file",
    "equal_below",
    "flush",
    "initial",
    "is_gone",
    "join",
    "may_join",
    "open_as",
    "put",
    "receive",
    "send",
    "shut",
]

Loss = Literal["power", "kill"]


def initial(nodes: int) -> Replicated:
    """Return empty copies. Every node is down until it is opened."""
    return Replicated((Copy(is_up=False),) * nodes, (None,) * nodes)


# ---- nodes -----------------------------------------------------------------------------------------------------------


def open_as(state: Replicated, node: int, role: Role, *, identity: int) -> Replicated:
    """Open a node in a role.

    What it has is durable then; a master begins a generation of a new identity.
    """
    copy = state.copies[node]
    generations = copy.generations
    if role == "master":
        kept = tuple(each for each in generations if each.start <= copy.end)
        number = max((each.number for each in generations), default=0) + 1
        start = copy.end if generations else 0
        generations = (*kept, Generation(number, start, identity))
    opened = replace(copy, role=role, is_up=True, durable=len(copy.log), generations=generations)
    return state.with_copy(node, opened)


def shut(state: Replicated, node: int, *, synced: bool = True) -> Replicated:
    """Close a node: its own link ends, and all of its log is durable unless a sync failed."""
    copy = state.copies[node]
    closed = replace(copy, is_up=False, durable=len(copy.log) if synced else copy.durable)
    return state.without(node, closed)


def crash(
    state: Replicated, node: int, loss: Loss, *, file_bytes: int, before: Copy | None = None
) -> Iterator[Replicated]:
    """Yield every state in which a crash may leave a node.

    `before` is the node before the operation in which the crash falls, None for a crash at rest. An operation that cuts
    the log may have cut any part of it, and one that cleans it may have deleted any of its first files.
    """
    copy = state.copies[node]
    for each, fewest, most in _kept_by_crash(copy, loss, before):
        begins: tuple[int, ...] = (each.begin,)
        if before is not None and before.log and before.log == copy.log:
            begins = tuple(range(before.begin, copy.begin + 1, file_bytes))
        for count in range(fewest, most + 1):
            for begin in begins:
                for left in _left(replace(each, is_up=False, begin=begin), each.log[:count]):
                    yield state.without(node, left)


def _left(copy: Copy, log: tuple[Entry, ...]) -> Iterator[Copy]:
    """Yield what is left of a copy with a shorter log.

    An empty log may still have its first file.
    """
    if log and log[-1].end > copy.begin:
        yield replace(copy, log=log, durable=min(copy.durable, len(log)))
        return
    yield _emptied(copy)
    if copy.begin:
        removed = tuple(each for each in copy.log if each.end <= copy.begin)
        yield replace(copy, log=removed, durable=len(removed))


def _emptied(copy: Copy) -> Copy:
    return replace(copy, log=(), durable=0, begin=0)


def _kept_by_crash(copy: Copy, loss: Loss, before: Copy | None) -> Iterator[tuple[Copy, int, int]]:
    """Yield copies, each with the fewest and the most entries that a crash may leave."""
    for each in (copy,) if before is None else (before, copy):
        fewest = each.durable if loss == "power" else len(each.log)
        if before is not None and each is copy and copy.log[: len(before.log)] == before.log:
            fewest = min(fewest, len(before.log))  # entry by entry
        if before is not None and each is before and before.log[: len(copy.log)] == copy.log:
            fewest = min(fewest, len(copy.log))
        yield each, fewest, len(each.log)


def put(state: Replicated, node: int, *, begin: int, end: int, identity: int) -> Replicated:
    """Append a record at [begin, end) to the log of a master.

    A gap before it is the end of a file.

    `identity` is a new positive number; the end of a file has its negative.
    """
    copy = state.copies[node]
    gap = (Entry(-identity, copy.end, begin),) if begin > copy.end else ()
    return state.with_copy(node, replace(copy, log=(*copy.log, *gap, Entry(identity, begin, end))))


def end_file(state: Replicated, node: int, *, end: int, identity: int) -> Replicated:
    """End the last file of a master for a record that could not be copied to the next one."""
    copy = state.copies[node]
    return state.with_copy(node, replace(copy, log=(*copy.log, Entry(-identity, copy.end, end))))


def flush(state: Replicated, node: int, offset: int) -> Replicated:
    """Make everything below an offset durable on a node."""
    copy = state.copies[node]
    count = sum(each.end <= offset for each in copy.log)
    if count <= copy.durable:
        return state
    return state.with_copy(node, replace(copy, durable=max(copy.durable, count)))


def clean(state: Replicated, node: int, *, file_bytes: int) -> Iterator[Replicated]:
    """Yield the state after each number of deleted files, none included."""
    copy = state.copies[node]
    durable_end = copy.log[copy.durable - 1].end if copy.durable else 0
    last = max(0, copy.end - 1) // file_bytes * file_bytes
    for begin in range(copy.begin, max(copy.begin, min(last, durable_end)) + 1, file_bytes):
        yield state.with_copy(node, replace(copy, begin=begin))


# ---- links -----------------------------------------------------------------------------------------------------------


def connect(state: Replicated, replica: int, master: int) -> Replicated:
    """Begin a new link of a replica; bytes under way on its old one never arrive."""
    return state.with_wire(replica, Wire(master))


def disconnect(state: Replicated, replica: int) -> Replicated:
    """End the link of a replica."""
    return state.with_wire(replica, None)


def send(state: Replicated, replica: int) -> Replicated:
    """Let the master send what it has on the link of a replica."""
    wire = state.wires[replica]
    if wire is None or not wire.is_open:
        return state
    copy = state.copies[wire.master]
    if wire.log is copy.log and wire.generations is copy.generations and copy.begin in wire.begins:
        return state
    begins = wire.begins if copy.begin in wire.begins else (*wire.begins, copy.begin)
    return state.with_wire(replica, replace(wire, log=copy.log, begins=begins, generations=copy.generations))


def arrive(state: Replicated, replica: int, offset: int, *, is_answered: bool) -> Replicated:
    """Let bytes up to an offset arrive at a replica, and the master's answer to its greeting."""
    wire = state.wires[replica]
    if wire is None:
        return state
    if offset <= wire.arrived and wire.is_answered >= is_answered:
        return state
    arrived = replace(wire, arrived=max(wire.arrived, offset), is_answered=wire.is_answered or is_answered)
    return state.with_wire(replica, arrived)


def join(state: Replicated, replica: int) -> Iterator[Replicated]:
    """Yield the state after the master has accepted the log of a replica, if it may."""
    wire, copy = state.wires[replica], state.copies[replica]
    if wire is None or wire.joined or not wire.is_answered:
        return
    if copy.log and (common_point(wire, copy) != copy.end or min(wire.begins) > copy.end):
        return
    joined = replace(copy, generations=wire.generations)
    yield state.with_copy(replica, joined).with_wire(replica, replace(wire, joined=True))


def cut(state: Replicated, replica: int, *, discards: bool = False) -> Iterator[Replicated]:
    """Yield the state after a replica was cut at the common point, if it is longer.

    It is opened again for that. A replica that `discards` is cut to nothing if its master has removed what it needs.
    """
    wire, copy = state.wires[replica], state.copies[replica]
    if wire is None or wire.joined or not wire.is_answered:
        return
    point = common_point(wire, copy)
    if point is not None and point < copy.end:
        kept = tuple(each for each in copy.log if each.end <= point)
    elif discards and point is not None and max(wire.begins) > point:
        kept = ()
    else:
        return
    is_left = kept and kept[-1].end > copy.begin
    left = replace(copy, log=kept, durable=len(kept)) if is_left else _emptied(copy)
    yield state.with_copy(replica, left).with_wire(replica, None)


def receive(state: Replicated, replica: int) -> Iterator[Replicated]:
    """Yield the state after each number of entries that a replica may have appended."""
    wire, copy = state.wires[replica], state.copies[replica]
    if wire is None or not wire.joined or wire.log[: len(copy.log)] != copy.log:
        return
    for count in range(len(copy.log) + 1, len(wire.log) + 1):
        if wire.log[count - 1].end > wire.arrived:
            return
        for begin in (copy.begin,) if copy.log else wire.begins:
            if wire.log[count - 1].end > begin or wire.log[count - 1].end == begin < wire.arrived:
                yield state.with_copy(replica, replace(copy, log=wire.log[:count], begin=begin))


# ---- agreement -------------------------------------------------------------------------------------------------------


def common_point(wire: Wire, copy: Copy) -> int | None:
    """Return the offset below which the log of a replica is that of its master.

    None without a common generation.
    """
    ours = _spans(wire.generations, wire.log[-1].end if wire.log else 0)
    theirs = _spans(copy.generations, copy.end)
    common = [generation for generation in ours if generation in theirs]
    if not common:
        return None
    newest = max(common, key=lambda generation: ours[generation][0])
    return min(ours[newest][1], theirs[newest][1])


def _spans(generations: Iterable[Generation], log_end: int) -> dict[Generation, tuple[int, int]]:
    """Return place in the row and end of each generation that the log reaches."""
    reached = [each for each in generations if each.start <= log_end]
    ends = [*(each.start for each in reached[1:]), log_end]
    return {each: (place, ends[place]) for place, each in enumerate(reached)}


def may_join(state: Replicated, replica: int, master: int) -> bool:
    """Return whether a replica has no log, or a generation in common with a master."""
    ours, theirs = state.copies[master], state.copies[replica]
    return (
        replica == master
        or not theirs.log
        or common_point(Wire(master, ours.log, generations=ours.generations), theirs) is not None
    )


def is_gone(state: Replicated, replica: int, master: int) -> bool:
    """Return whether a master has removed what a replica needs after its cut."""
    ours, theirs = state.copies[master], state.copies[replica]
    if replica == master or not theirs.log:
        return False
    point = common_point(Wire(master, ours.log, generations=ours.generations), theirs)
    return point is not None and point < ours.begin and (point == theirs.end or point > theirs.begin)


def equal_below(first: Copy, second: Copy, offset: int) -> bool:
    """Return whether two logs have the same entries below an offset, and none across it."""
    below = [tuple(each for each in copy.log if each.begin < offset) for copy in (first, second)]
    return below[0] == below[1] and all(not row or row[-1].end <= offset for row in below)


def accepted(states: Iterable[Replicated], seen: tuple[tuple[int, int] | None, ...]) -> list[Replicated]:
    """Return the states whose logs begin and end where the nodes were seen to.

    None is a node that was not seen.
    """
    return [
        state
        for state in dict.fromkeys(states)
        if all(each is None or (copy.begin, copy.end) == each for copy, each in zip(state.copies, seen, strict=True))
    ]
