"""The parts a store is made of, each replaceable: by a planted bug (properties/planted), a lab, or a user.

The mapped file is RocketMQ's service provider interface: whoever wants another way of writing a log file derives from
`impl.mapped_file.MappedFile` and names the class here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from impl import codec
from impl.abort_marker import AbortMarker
from impl.batch_encoder import BatchEncoder
from impl.commit_log import CommitLog
from impl.durable_floor import DurableFloor
from impl.encoder import RecordEncoder
from impl.mapped_file import MappedFile
from impl.mapped_file_queue import MappedFileQueue
from impl.multi_dispatch import MultiDispatch
from impl.policy import PutLockKind
from impl.put_answers import PutAnswers
from impl.put_lock import PutLock, make_put_lock
from impl.queue_offsets import QueueOffsetTable
from impl.recovery import Recovery
from impl.replication import NoReplicas, Replicas
from impl.runner import Runner, Step, ThreadRunner
from impl.scan import RecordChecker

__all__ = ["Components"]


def _thread_runner(step: Step) -> Runner:
    return ThreadRunner(step, name="tornpage-group-commit")


@dataclass(frozen=True, slots=True)
class Components:
    """Factories of the parts, called when a store opens."""

    mapped_file: Callable[..., MappedFile] = MappedFile
    mapped_file_queue: Callable[..., MappedFileQueue] = MappedFileQueue
    commit_log: Callable[..., CommitLog] = CommitLog
    encoder: Callable[..., RecordEncoder] = RecordEncoder
    batch_encoder: Callable[..., BatchEncoder] = BatchEncoder
    dispatch: Callable[..., MultiDispatch] = MultiDispatch
    queue_offsets: Callable[..., QueueOffsetTable] = QueueOffsetTable
    put_answers: Callable[..., PutAnswers] = PutAnswers
    put_lock: Callable[[PutLockKind], PutLock] = make_put_lock
    replicas: Callable[[], Replicas] = NoReplicas
    runner: Callable[[Step], Runner] = _thread_runner
    durable_floor: Callable[..., DurableFloor] = DurableFloor
    abort_marker: Callable[..., AbortMarker] = AbortMarker
    recovery: Callable[..., Recovery] = Recovery
    check_record: RecordChecker = codec.check_record
