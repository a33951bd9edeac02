"""The parts of a store besides its directory, built in the order of their needs: services, ways of puts and of reads.

No service runs before `StoreParts.start`; until then there is nothing to end but what the directory closes.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tornpage.impl.background import Background
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.delay.delayed_delivery import DelayedDelivery
from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.groups.progress import Progress
from tornpage.impl.groups.progress_wiring import open_progress
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.log.flushing import FlushRealTime
from tornpage.impl.parts import Parts
from tornpage.impl.put.put_path import PutPath
from tornpage.impl.read.hold_verbs import pull_hold_of
from tornpage.impl.read.pull_hold import PullHold
from tornpage.impl.read.read_path import ReadPath
from tornpage.impl.recovery.opening import OpenDirectory
from tornpage.impl.retention.retention import Retention
from tornpage.impl.service.disk_watch import DiskWatch
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.service.running_flags import RunningFlags

__all__ = ["Durability", "StoreParts", "Surroundings", "assemble"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a store is opened with, its directory apart. `memory_bytes` is what the machine has, 0 for asking it."""

    config: MessageStoreConfig
    files: Files
    clock: Clock
    parts: Parts
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Durability:
    """What only the whole store can do: flush and commit by a page rule, make all durable, say what readers see."""

    flush: Callable[..., int]
    commit: Callable[[int], bool]
    make_all_durable: Callable[[], bool]
    readable_end: Callable[[], int]


@dataclass(frozen=True, slots=True)
class StoreParts:
    """The parts of one store besides its directory."""

    reput: ReputMessages
    background: Background
    puts: PutPath
    reads: ReadPath
    pull_hold: PullHold
    delivery: DelayedDelivery
    progress: Progress
    retention: Retention

    def start(self) -> None:
        """Let the services run."""
        self.background.start()
        self.retention.start()
        self.progress.start()
        self.delivery.start()


def assemble(
    held: OpenDirectory, lifecycle: Lifecycle, flags: RunningFlags, around: Surroundings, durability: Durability
) -> StoreParts:
    """Build all parts; puts come first, since everything else looks at them. Raises OSError."""
    config, parts, clock = around.config, around.parts, around.clock
    reput = parts.of(ReputMessages)(held.derived, held.log, flags, readable_end=durability.readable_end)
    background = _background(held, around, durability, reput)
    watch = parts.of(DiskWatch)(
        around.files, held.log.directories.writable, flags, policy=config.retention_policy(), queue_path=held.directory
    )
    puts = PutPath(
        held,
        lifecycle,
        flags,
        config=config,
        clock=clock,
        parts=parts,
        flush=durability.flush,
        written=background.written,
        disk_watch=watch,
    )
    reads = _reads(held, lifecycle, flags, around, durability, puts)
    pull_hold = pull_hold_of(held, reads, config=config, parts=parts)
    delivery = DelayedDelivery(
        held,
        lifecycle,
        files=around.files,
        config=config,
        clock=clock,
        parts=parts,
        puts=puts,
        reads=reads,
        make_durable=durability.make_all_durable,
    )
    progress = open_progress(
        held, lifecycle, config=config, files=around.files, clock=clock, parts=parts, owners=delivery.owners
    )
    retention = Retention(
        held,
        lifecycle,
        config=config,
        clock=clock,
        parts=parts,
        watch=watch,
        reput=reput,
        commit_log=puts.commit_log,
        buffers=reads.buffers,
        begin_anew=progress.begin_anew,
        queues_deleted=pull_hold.queues_deleted,
    )
    return StoreParts(reput, background, puts, reads, pull_hold, delivery, progress, retention)


def _background(held: OpenDirectory, around: Surroundings, durability: Durability, reput: ReputMessages) -> Background:
    log = held.log
    return around.parts.of(Background)(
        around.config,
        runner=around.parts.of(ThreadRunner),
        flush_service=around.parts.of(FlushRealTime),
        flush=durability.flush,
        commit=durability.commit,
        flushed_where=lambda: log.flushed_where,
        committed_where=lambda: log.committed_where,
        checkpoint=held.checkpoint,
        derived=held.derived,
        floor=held.raise_derived_floor,
        reput=reput,
        log=log,
    )


def _reads(
    held: OpenDirectory,
    lifecycle: Lifecycle,
    flags: RunningFlags,
    around: Surroundings,
    durability: Durability,
    puts: PutPath,
) -> ReadPath:
    return ReadPath(
        held.log,
        held.derived.queues,
        held.derived.index,
        lifecycle=lifecycle,
        flags=flags,
        config=around.config,
        clock=around.clock,
        parts=around.parts,
        readable_end=durability.readable_end,
        dispatch=held.dispatch,
        files=around.files,
        put_statistics=puts.statistics,
        memory_bytes=around.memory_bytes,
    )
