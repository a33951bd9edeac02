"""Take the power from the store of an interleaving, recover it, and judge it.

The log of the explaining order says what has to survive. The stored bytes come from the recorded disk. All judges of a
recovered store apply (properties/judge/judges.py).
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tornpage.impl.parts import Parts
from tornpage.impl.store import MessageStore
from tornpage.model.crash import crash
from tornpage.model.operations import Choice, DeleteTopics
from tornpage.model.parts import Shared
from tornpage.model.progress import Offsets, QueueKey
from tornpage.model.state import CommitLog, State
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.failing_disk import UnmarkedDisk
from tornpage.properties.disk.images import compose, disk_state, in_flight_writes
from tornpage.properties.explore.interleavings.parts import stepped_parts
from tornpage.properties.explore.interleavings.stage import MEMORY_BYTES, Stage
from tornpage.properties.judge.evidence import LegalLogs, Recovered, durable_image, key_of
from tornpage.properties.judge.judges import JUDGES
from tornpage.properties.judge.ledgers import (
    CONSUMER_OFFSETS,
    DELAY_OFFSETS,
    DerivedLedger,
    Ledger,
    Peek,
    SavedVersion,
    versions_in,
)
from tornpage.properties.judge.linearizability.linearise import Point, linearise
from tornpage.properties.judge.linearizability.specification import points_of, shared_at
from tornpage.properties.judge.rulings import require
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.program.log_places import LOG_DIRECTORY, ROOT, log_files
from tornpage.properties.program.translation import store_config

__all__ = ["power_loss_is_survived"]

_DISK: Final = "posix-strict"
_PROGRESS = (CONSUMER_OFFSETS, DELAY_OFFSETS)
_LOST_SHARE = 0.5
"""The share of power losses in which no write in flight survives."""


def power_loss_is_survived(
    stage: Stage, position: int, after: State, *, is_closed: bool, parts: Parts, rng: random.Random
) -> None:
    """Recover the disk after the first `position` entries of its journal, and judge it.

    All judges are evaluated. No task ran at that time, and `after` is the state of the model. If the store was closed,
    all records and the progress of consumers have to survive. `rng` draws what else survives. Raises GuaranteeBroken.
    """
    log, layout = after.log, stage.layout
    state = disk_state(stage.files.base, stage.files.journal, position, disk=_DISK)
    image = compose(state, _drawn_choices(state, rng))
    promised = max((each.end_offset for each in stage.promises if each.journal <= position), default=0)
    legal = _legal_logs(stage, log, image, floor_offset=log.end_offset if is_closed else promised)
    saved = versions_in(image.files, _PROGRESS)
    legal_versions = {path: frozenset((each,)) for path, each in saved.items()}
    if is_closed:
        legal_versions[CONSUMER_OFFSETS] = frozenset(
            (_legal_progress(stage, after.consumers.committed, saved[CONSUMER_OFFSETS]),)
        )
    files = stage.disk_of(image)
    store = _opened(stage, files, parts)
    found = Recovered(
        store,
        files,
        Ledger.of(log, file_bytes=layout.file_bytes, peek=_peek_of(stage)),
        DerivedLedger(layout, log.records, log.deleted),
        legal,
        durable_image(files, disk=_DISK),
        stage.settings,
        layout,
        versions_before=saved,
        legal_versions=legal_versions,
    )
    if found.key in legal:
        found = replace(found, derived=found.derived.with_deleted(legal[found.key].deleted, store.max_offset))
    for judge in JUDGES:
        require(judge(found))


def _legal_progress(stage: Stage, committed: Offsets, saved: SavedVersion) -> SavedVersion:
    """Return the progress that has to be on the disk after a close.

    `committed` is that of the explaining order. Of two commits at the same time either may be the last one, and no
    answer tells which was. So the saved progress is right if another order explains it together with all answers.
    """
    if not isinstance(saved, tuple):
        return committed
    if _is_same(stage, committed, saved):
        return saved
    moments = points_of(stage.history.calls, stage.layout, clock_moves=True)
    end = 1 + max((call.began if call.ended is None else call.ended for call in stage.history.calls), default=0)

    def saves(shared: Shared) -> Iterator[Shared]:
        if _is_same(stage, shared.state.consumers.committed, saved):
            yield shared

    found = linearise([*moments, Point("the saved progress", end, end + 1, saves)], shared_at(stage.wall_ms))
    return committed if found.verdict == "broken" else saved


def _is_same(stage: Stage, committed: Offsets, saved: Offsets) -> bool:
    """Return whether a file has the progress of a model.

    A commit beside a deletion of its topic counts in the new queue as 0, or not at all. No answer tells which happened,
    so a file is right with both.
    """
    if any(isinstance(call.request, DeleteTopics) for call in stage.history.calls):
        return _without_zeros(saved) == _without_zeros(committed)
    return saved == committed


def _without_zeros(offsets: Offsets) -> dict[QueueKey, int]:
    return {key: offset for key, offset in offsets if offset}


def _drawn_choices(state: DiskState, rng: random.Random) -> dict[str, Choice]:
    """Return which writes in flight survive, and which version of each."""
    if rng.random() < _LOST_SHARE:
        return {}
    return {write.name: rng.randrange(write.alternatives) for write in in_flight_writes(state)}


def _legal_logs(stage: Stage, log: CommitLog, image: Image, *, floor_offset: int) -> LegalLogs:
    """Return the logs that may survive.

    A removed file may be back if the disk has it. A topic that was deleted while a put closed a log file may be deleted
    below the blank, or below the next file, which is the same.
    """
    bases = [int(path.rpartition("/")[2]) for path in log_files(image.files)]
    ends = [record.end_offset for record in log.records]
    before = log.changed(
        flushed_offset=floor_offset,
        min_offset=min((*bases, log.min_offset)),
        deleted=tuple((topic, max((end for end in ends if end <= below), default=0)) for topic, below in log.deleted),
    )
    return {key_of(each): each for each in crash(before, log, "power loss", layout=stage.layout)}


def _peek_of(stage: Stage) -> Peek:
    """Return a function that reads log files of the disk, also of those that were removed."""
    state = disk_state(stage.files.base, stage.files.journal, len(stage.files.journal), disk=_DISK)
    contents = {inode.name: inode.latest() for inode in state.inodes.values() if log_files((inode.name,))}

    def peek(name: str, position: int, size_bytes: int) -> bytes:
        return bytes(contents.get(f"{LOG_DIRECTORY}/{name}", b"")[position : position + size_bytes])

    return peek


def _opened(stage: Stage, files: UnmarkedDisk, parts: Parts) -> MessageStore:
    def clock() -> int:
        return stage.wall_ms

    try:
        return MessageStore.open(
            ROOT,
            store_config(stage.settings),
            files=files,
            clock=clock,
            parts=stepped_parts(parts, runner=lambda service: HandDriven(service, clock)),
            memory_bytes=MEMORY_BYTES,
        )
    except Exception as error:
        raise GuaranteeBroken(7, f"the store does not open: {type(error).__name__}: {error}") from error
