"""The parts a store is made of, each replaceable: by a planted bug (properties/planted), a lab, or a user.

The mapped file is RocketMQ's service provider interface: whoever wants another way of writing a log file derives from
`impl.mapped_file.MappedFile` and names the class here.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from impl import codec
from impl.abort_marker import AbortMarker
from impl.allocation import AllocateMappedFiles
from impl.background import Background
from impl.batch_encoder import BatchEncoder
from impl.checkpoint import Checkpoint
from impl.clean_commit_log import CleanCommitLog
from impl.clean_consume_queues import CleanConsumeQueues
from impl.clean_files import CleanFiles
from impl.commit_log import CommitLog
from impl.config_file import ConfigFile
from impl.config_table import ConfigTable
from impl.consume_queue import ConsumeQueue
from impl.consume_queue_ext import ConsumeQueueExt
from impl.consume_queues import ConsumeQueues
from impl.consumer_offsets import ConsumerOffsets
from impl.delay_offsets import DelayOffsets
from impl.deleted_topics import DeletedTopics
from impl.derived import Derived
from impl.derived_floor import DerivedFloor
from impl.derived_proof import is_still_true
from impl.disk_watch import DiskWatch
from impl.dispatch_records import dispatch_records
from impl.dispatching import Dispatcher
from impl.durable_floor import DurableFloor
from impl.encoder import RecordEncoder
from impl.group_commit import GroupCommit
from impl.guards import MakeGuard
from impl.index_entries import PLAIN_ENTRIES, IndexEntries
from impl.index_file import IndexFile
from impl.index_service import IndexService
from impl.loading import FoundLog, examine_log
from impl.log_directories import LogDirectories
from impl.log_files import LogFileMaker
from impl.mapped_file import MappedFile
from impl.mapped_file_queue import MappedFileQueue
from impl.message_query import MessageQuery
from impl.multi_dispatch import MultiDispatch
from impl.persist_progress import PersistProgress
from impl.policy import PutLockKind
from impl.progress import Progress
from impl.pull_hold import PullHold
from impl.put_answers import PutAnswers
from impl.put_lock import PutLock, make_put_lock
from impl.queue_offsets import QueueOffsetTable
from impl.queue_reads import QueueReads
from impl.queued_records import QueuedRecords
from impl.read_buffer import ReadBuffers
from impl.recovery import Recovery
from impl.replication import NoReplicas, Replicas
from impl.reput import ReputMessages
from impl.runner import RunnerFactory, ThreadRunner
from impl.scan import LogWalker, RecordChecker, walk_log
from impl.schedule import DeliverDelayedMessages
from impl.schedule_async import DeliverDelayedMessagesAsync
from impl.store_lock import StoreLock
from impl.time_outs import TimeOuts
from impl.topic_cleaning import TopicCleaning
from impl.transient_store_pool import TransientStorePool

__all__ = ["Components"]


@dataclass(frozen=True, slots=True)
class Components:
    """Factories of the parts, called when a store opens."""

    guard: MakeGuard = threading.Lock
    store_lock: Callable[..., StoreLock] = StoreLock
    mapped_file: Callable[..., MappedFile] = MappedFile
    examine: Callable[..., FoundLog] = examine_log
    log_directories: Callable[..., LogDirectories] = LogDirectories
    log_file_maker: Callable[..., LogFileMaker] = LogFileMaker
    allocation: Callable[..., AllocateMappedFiles] = AllocateMappedFiles
    pool: Callable[..., TransientStorePool] = TransientStorePool
    mapped_file_queue: Callable[..., MappedFileQueue] = MappedFileQueue
    commit_log: Callable[..., CommitLog] = CommitLog
    encoder: Callable[..., RecordEncoder] = RecordEncoder
    batch_encoder: Callable[..., BatchEncoder] = BatchEncoder
    dispatch: Callable[..., MultiDispatch] = MultiDispatch
    queue_offsets: Callable[..., QueueOffsetTable] = QueueOffsetTable
    put_answers: Callable[..., PutAnswers] = PutAnswers
    group_commit: Callable[..., GroupCommit] = GroupCommit
    time_outs: Callable[[], TimeOuts] = TimeOuts
    put_lock: Callable[[PutLockKind], PutLock] = make_put_lock
    replicas: Callable[[], Replicas] = NoReplicas
    background: Callable[..., Background] = Background
    runner: RunnerFactory = ThreadRunner
    durable_floor: Callable[..., DurableFloor] = DurableFloor
    checkpoint: Callable[..., Checkpoint] = Checkpoint
    abort_marker: Callable[..., AbortMarker] = AbortMarker
    recovery: Callable[..., Recovery] = Recovery
    check_record: RecordChecker = codec.check_record
    walk_log: LogWalker = walk_log
    dispatch_records: Dispatcher = dispatch_records
    derived: Callable[..., Derived] = Derived
    derived_floor: Callable[..., DerivedFloor] = DerivedFloor
    derived_is_true: Callable[..., bool] = is_still_true
    consume_queues: Callable[..., ConsumeQueues] = ConsumeQueues
    consume_queue: Callable[..., ConsumeQueue] = ConsumeQueue
    consume_queue_ext: Callable[..., ConsumeQueueExt] = ConsumeQueueExt
    index_service: Callable[..., IndexService] = IndexService
    index_file: Callable[..., IndexFile] = IndexFile
    index_entries: IndexEntries = PLAIN_ENTRIES
    read_buffers: Callable[..., ReadBuffers] = ReadBuffers
    queued_records: Callable[..., QueuedRecords] = QueuedRecords
    queue_reads: Callable[..., QueueReads] = QueueReads
    message_query: Callable[..., MessageQuery] = MessageQuery
    reput: Callable[..., ReputMessages] = ReputMessages
    pull_hold: Callable[..., PullHold] = PullHold
    config_file: Callable[..., ConfigFile] = ConfigFile
    progress: Callable[..., Progress] = Progress
    persist_progress: Callable[..., PersistProgress] = PersistProgress
    consumer_offsets: Callable[..., ConsumerOffsets] = ConsumerOffsets
    config_table: Callable[..., ConfigTable[Any]] = ConfigTable
    disk_watch: Callable[..., DiskWatch] = DiskWatch
    clean_commit_log: Callable[..., CleanCommitLog] = CleanCommitLog
    clean_consume_queues: Callable[..., CleanConsumeQueues] = CleanConsumeQueues
    clean_files: Callable[..., CleanFiles] = CleanFiles
    deleted_topics: Callable[..., DeletedTopics] = DeletedTopics
    delay_offsets: Callable[..., DelayOffsets] = DelayOffsets
    schedule: Callable[..., DeliverDelayedMessages] = DeliverDelayedMessages
    schedule_async: Callable[..., DeliverDelayedMessagesAsync] = DeliverDelayedMessagesAsync
    topic_cleaning: Callable[..., TopicCleaning] = TopicCleaning
