"""The parts of a store besides its directory, built in the order of their needs: services, ways of puts and of reads.

No service runs before `StoreParts.start`; until then there is nothing to end but what the directory closes.
"""

from collections.abc import Callable
from dataclasses import dataclass

from impl.background import Background
from impl.components import Components
from impl.config import MessageStoreConfig
from impl.delayed_delivery import DelayedDelivery
from impl.disk_watch import DiskWatch
from impl.files import Clock, Files
from impl.hold_verbs import pull_hold_of
from impl.lifecycle import Lifecycle
from impl.opening import OpenDirectory
from impl.progress import Progress
from impl.progress_wiring import open_progress
from impl.pull_hold import PullHold
from impl.put_path import PutPath
from impl.read_path import ReadPath
from impl.reput import ReputMessages
from impl.retention import Retention
from impl.running_flags import RunningFlags

__all__ = ["Durability", "StoreParts", "Surroundings", "assemble"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a store is opened with, its directory apart. `memory_bytes` is what the machine has, 0 for asking it."""

    config: MessageStoreConfig
    files: Files
    clock: Clock
    components: Components
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
    config, components, clock = around.config, around.components, around.clock
    reput: ReputMessages = components.reput(held.derived, held.log, flags, readable_end=durability.readable_end)
    background = _background(held, around, durability, reput)
    watch: DiskWatch = components.disk_watch(
        around.files, held.log.directories.writable, flags, policy=config.retention_policy(), queue_path=held.directory
    )
    puts = PutPath(
        held,
        lifecycle,
        flags,
        config=config,
        clock=clock,
        components=components,
        flush=durability.flush,
        written=background.written,
        disk_watch=watch,
    )
    reads = _reads(held, lifecycle, flags, around, durability, puts)
    pull_hold = pull_hold_of(held, reads, config=config, components=components)
    delivery = DelayedDelivery(
        held,
        lifecycle,
        files=around.files,
        config=config,
        clock=clock,
        components=components,
        puts=puts,
        reads=reads,
        make_durable=durability.make_all_durable,
    )
    progress = open_progress(
        held, lifecycle, config=config, files=around.files, clock=clock, components=components, owners=delivery.owners
    )
    retention = Retention(
        held,
        lifecycle,
        config=config,
        clock=clock,
        components=components,
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
    return around.components.background(
        around.config,
        runner=around.components.runner,
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
        components=around.components,
        readable_end=durability.readable_end,
        dispatch=held.dispatch,
        files=around.files,
        put_statistics=puts.statistics,
        memory_bytes=around.memory_bytes,
    )
