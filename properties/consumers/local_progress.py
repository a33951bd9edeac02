"""Crash a broadcasting member while it saves its progress, and judge what is left."""

from dataclasses import dataclass, replace
from functools import partial

from tornpage.impl.consumer.client import Client
from tornpage.impl.consumer.offset_store import LocalOffsets
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import OffsetUpdated, UpdateStatus
from tornpage.impl.consumer.settings import ConsumerSettings, MessageModel
from tornpage.impl.parts import Parts
from tornpage.model.consumers.operations import CrashLocal
from tornpage.properties.consumers import judge
from tornpage.properties.consumers.host import BROKER, GROUP, TOPIC
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.crashing import killed_journal, lose_power
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.program.case import Disk

__all__ = ["LocalCrash", "crash_local_progress", "judge_local_progress"]

_QUEUE = MessageQueue(TOPIC, BROKER, 0)


@dataclass(frozen=True, slots=True)
class LocalCrash:
    """A crash inside a save of local progress. The files `left` may hold one of `offsets`."""

    performed: CrashLocal
    left: RecordingFiles
    offsets: tuple[int, ...]
    lost_writes: int = 0


def crash_local_progress(
    crash: CrashLocal, parts: Parts, now_ms: int, *, disk: Disk, tracker: DirtyTracker, certify: bool
) -> LocalCrash:
    """Save local progress twice, and crash inside the second save.

    Raises GuaranteeBroken if a save fails.
    """
    _first_offset_is_kept(_local_offsets(RecordingFiles(EMPTY_DISK, tracker=tracker), parts), now_ms)
    files = RecordingFiles(EMPTY_DISK, tracker=tracker)
    saves: list[int] = []
    for offset in (1, 2):
        offsets = _local_offsets(files, parts)
        saves.append(len(files.events))
        offsets.update(_QUEUE, offset, increase_only=True)
        observed("persist_all", partial(offsets.persist_all, (), now_ms))
    back = min(max(0, crash.back), len(files.events) - saves[1])
    position = files.events[len(files.events) - back - 1] if back else len(files.journal)
    legal = (1, 2) if back else (2,)
    if crash.kill:
        left = RecordingFiles(files.base, tracker=tracker, journal=killed_journal(files, position))
        return LocalCrash(replace(crash, back=back, survived={}, others="lost"), left, legal)
    lost = lose_power(files, position, crash.survived, crash.others, disk=disk, certify=certify)
    left = RecordingFiles(lost.image, tracker=tracker)
    return LocalCrash(replace(crash, back=back, survived=lost.survived), left, legal, lost.lost_writes)


def _first_offset_is_kept(offsets: LocalOffsets, now_ms: int) -> None:
    """Contract 20: the first offset of a queue stays, and each answer states it."""
    for offset in (5, 9, 0):
        call = observed("keep_first", partial(offsets.keep_first, _QUEUE, offset, now_ms))
        found = call.outcome(now_ms), offsets.get(_QUEUE)
        wanted = OffsetUpdated(UpdateStatus.STORED, 5), 5
        if found != wanted:
            what = "the first offset of a broadcasting member is another one"
            raise GuaranteeBroken(20, what, str(wanted), str(found))


def judge_local_progress(crash: LocalCrash, parts: Parts) -> None:
    """Load the progress that a crash left, and judge it. Raises GuaranteeBroken."""
    found = observed("load", lambda: _local_offsets(crash.left, parts).get(_QUEUE))
    judge.local_progress_is_whole(found, crash.offsets)


def _local_offsets(files: RecordingFiles, parts: Parts) -> LocalOffsets:
    settings = ConsumerSettings(consumer_group=GROUP, client_id="10.0.0.9@1", message_model=MessageModel.BROADCASTING)
    return parts.of(LocalOffsets)(Client(settings, {}, incarnation="1", parts=parts), files, "/local")
