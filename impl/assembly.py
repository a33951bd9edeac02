"""Building the parts of one store in the order of their dependencies."""

from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.impl.background import Background
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.delay.delayed_delivery import DelayedDelivery
from tornpage.impl.dispatch.arriving import MessageArrivingListener
from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.durability import Durability
from tornpage.impl.groups.progress import Progress, open_progress
from tornpage.impl.guards import make_guard
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.flushing import FlushRealTime
from tornpage.impl.log.scan import walk_log
from tornpage.impl.message.codec import check_record
from tornpage.impl.message.dispatching import FilterBitMap
from tornpage.impl.parts import Parts
from tornpage.impl.put.put_path import PutPath, commit_log_of
from tornpage.impl.put.receiving import ReceivedRecords
from tornpage.impl.read.pull_hold import PullHold
from tornpage.impl.read.read_path import ReadPath, StorePulls
from tornpage.impl.recovery.opening import OpenDirectory
from tornpage.impl.retention.retention import Retention
from tornpage.impl.service.disk_watch import DiskWatch
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.service.running_flags import RunningFlags
from tornpage.impl.statistics.store_statistics import StoreStatistics

__all__ = ["StoreParts", "open_parts"]


@dataclass(frozen=True, slots=True)
class StoreParts:
    """The parts of one store."""

    held: OpenDirectory
    commit_log: CommitLog
    reput: ReputMessages
    durability: Durability
    background: Background
    puts: PutPath
    reads: ReadPath
    pull_hold: PullHold
    delivery: DelayedDelivery
    progress: Progress
    retention: Retention
    received: ReceivedRecords

    def start(self) -> None:
        """Start the services; no service runs before."""
        self.background.start()
        self.retention.start()
        self.progress.start()
        self.delivery.start()


def open_parts(
    directory: str,
    config: MessageStoreConfig,
    lifecycle: Lifecycle,
    flags: RunningFlags,
    *,
    files: Files,
    clock: Clock,
    parts: Parts,
    arriving: Sequence[MessageArrivingListener],
    bit_map_of: FilterBitMap | None,
    memory_bytes: int | None,
) -> StoreParts:
    """Open and recover a directory and build all parts.

    `memory_bytes` None means the memory of the machine. Raises what `OpenDirectory` raises; no file stays open then.
    """
    held = OpenDirectory(
        directory, config, files=files, clock=clock, parts=parts, arriving=arriving, bit_map_of=bit_map_of
    )
    if held.damage is not None:
        lifecycle.become_read_only(held.damage)
    try:
        return _built(held, config, lifecycle, flags, files, clock, parts, memory_bytes)
    except BaseException:
        held.close()
        raise


def _built(
    held: OpenDirectory,
    config: MessageStoreConfig,
    lifecycle: Lifecycle,
    flags: RunningFlags,
    files: Files,
    clock: Clock,
    parts: Parts,
    memory_bytes: int | None,
) -> StoreParts:
    reput = parts.of(ReputMessages)(held.derived, held.log, flags)
    statistics = StoreStatistics(started_ms=clock())
    commit_log = commit_log_of(held, config, parts, statistics=statistics, clock=clock)
    durability = Durability(held, commit_log, lifecycle, reput, guard=parts.of(make_guard))
    background = parts.of(Background)(
        config,
        runner=parts.of(ThreadRunner),
        flush_service=parts.of(FlushRealTime),
        durability=durability,
        checkpoint=held.checkpoint,
        derived=held.derived,
        floor=held.raise_derived_floor,
        reput=reput,
        log=held.log,
    )
    watch = parts.of(DiskWatch)(
        files, held.log.directories.writable, flags, policy=config.retention_policy(), queue_path=held.directory
    )
    puts = PutPath(
        held.log,
        commit_log,
        lifecycle,
        flags,
        config=config,
        clock=clock,
        parts=parts,
        durability=durability,
        written=background.written,
        disk_watch=watch,
        statistics=statistics,
    )
    reads = ReadPath(
        held.log,
        held.derived.queues,
        held.derived.index,
        lifecycle=lifecycle,
        flags=flags,
        config=config,
        clock=clock,
        parts=parts,
        dispatch=held.dispatch,
        files=files,
        memory_bytes=memory_bytes,
        is_damaged=held.damage is not None,
    )
    pull_hold = parts.of(PullHold)(
        StorePulls(reads),
        runner=parts.of(ThreadRunner),
        held_max=config.max_held_pulls,
        short_polling_ms=None if config.long_polling_enable else config.short_polling_time_mills,
        path=held.directory,
        guard=parts.of(make_guard),
    )
    held.derived.add_follower(pull_hold.dispatched)
    delivery = DelayedDelivery(
        held,
        lifecycle,
        files=files,
        config=config,
        clock=clock,
        parts=parts,
        puts=puts,
        reads=reads,
        durability=durability,
    )
    progress = open_progress(
        held, lifecycle, config=config, files=files, clock=clock, parts=parts, owners=delivery.owners
    )
    retention = Retention(
        held,
        lifecycle,
        config=config,
        clock=clock,
        parts=parts,
        watch=watch,
        reput=reput,
        commit_log=commit_log,
        buffers=reads.buffers,
        restart_numbers=progress.restart_numbers,
        queues_deleted=pull_hold.queues_deleted,
    )
    received = parts.of(ReceivedRecords)(
        held.log,
        commit_log,
        lifecycle,
        role=config.broker_role,
        record_bytes_max=config.max_message_size,
        written=background.written,
        check=parts.of(check_record),
        walk=parts.of(walk_log),
    )
    return StoreParts(
        held, commit_log, reput, durability, background, puts, reads, pull_hold, delivery, progress, retention, received
    )
