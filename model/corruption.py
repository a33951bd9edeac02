"""Specify which promises remain after corruption outside the crash model.

1. A store whose log is poisoned is not corrupted, since the content of its disk is unknown.
2. A corrupted log keeps the records that verify. The store opens read-only and is then closed again.
3. A file that the log can replace loses nothing. The next number of a queue without a record in the log exists only in
   its queue file, so that file is not replaceable.
4. A corrupted or lost progress file is replaced by its backup. Without a backup the progress is empty.
5. Overwritten progress of delay levels is used. Messages that it skips are no longer owed. A slave takes it as it is.
   Any other store brings it within the bounds of its queues, as an open does (model/crash.py).
6. A change of role changes nothing on the disk.
7. Fields that no checksum covers are changed in a copy of the store. What the copy owes is in model/salvage.py and
   model/damage/numbering.py. The store itself is closed and opened.
"""

from dataclasses import replace

from tornpage.model import schedule
from tornpage.model.crash import opened
from tornpage.model.operations import (
    ChangeRole,
    Damage,
    DelayOffsetsAre,
    HarmDerived,
    HarmField,
    HarmNumbers,
    HarmProgress,
)
from tornpage.model.progress import Offsets
from tornpage.model.queues import all_bounds
from tornpage.model.state import CommitLog, Layout, Progress, State
from tornpage.model.step import layout_in

__all__ = ["Corruption", "applies", "corrupted", "is_replaced"]

Corruption = Damage | HarmDerived | HarmField | HarmNumbers | HarmProgress | DelayOffsetsAre | ChangeRole
"""The operations that change the files of a store, or its role, outside the store."""


def applies(state: State, operation: Corruption) -> bool:
    """Return whether a corruption is carried out in a state; an open store is closed first."""
    log = state.log
    match operation:
        case Damage() | HarmField() | HarmNumbers():
            return not log.poisoned and bool(log.retained) and log.hanging is None
        case DelayOffsetsAre() | ChangeRole():
            return not log.poisoned and not state.puts
    return not log.poisoned


def is_replaced(state: State, operation: HarmDerived, layout: Layout) -> bool:
    """Return whether the log can replace everything that a corrupted file of this kind held."""
    if operation.file != "queue":
        return True
    bounds = all_bounds(state.log.changed(dispatched_offset=state.log.end_offset), layout)
    return all(first < end for first, end in bounds.values())


def corrupted(
    state: State,
    operation: Corruption,
    layout: Layout,
    *,
    saved_before: Offsets = (),
    delays_before: Progress = (),
) -> State:
    """Return the state after a corruption; it judges the next open by what is on the disk now.

    `saved_before` and `delays_before` are the contents of the backups of the progress files, () without a backup.
    """
    match operation:
        case Damage():
            return replace(state, is_open=False)
        case HarmProgress(harm):
            saved = () if harm == "both" else saved_before
            return replace(state, consumers=replace(state.consumers, saved=saved))
        case DelayOffsetsAre(kind):
            layout = layout_in(state, layout)
            is_moved = kind == "moved" or (state.is_open and layout.role == "SLAVE")
            lost = delays_before if kind == "lost" else ()
            table = _moved(state.log, operation.by, layout) if is_moved else lost
            return replace(state, log=_with_delays(state.log, table, layout))
        case ChangeRole(role):
            return replace(state, role=role)
    return state


def _moved(log: CommitLog, by: int, layout: Layout) -> Progress:
    """Return the progress of every delay level moved ahead or back by a number of messages."""
    levels = dict.fromkeys(schedule.units_of_levels(log, layout), 0) | dict(log.delays)
    return tuple(sorted((level, max(0, number + by)) for level, number in levels.items()))


def _with_delays(log: CommitLog, table: Progress, layout: Layout) -> CommitLog:
    """Return the log after its delay progress was overwritten; skipped messages are passed by."""
    log = log.changed(saved_delays=table)
    if layout.role == "SLAVE":
        within = schedule.loaded(log, table, layout=layout)
        return schedule.passed_by(log.changed(delays=within), layout=layout).changed(delays=table)
    return schedule.passed_by(opened(log, layout=layout), layout=layout).changed(saved_delays=table)
