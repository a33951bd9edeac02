"""Opening a store directory: lock first, then look, then decide, then mark the exit unclean, and only then change.

The order is the promise of contracts 6, 7 and 14. Source: `DefaultMessageStore.load`, `start`.
"""

from collections.abc import Sequence

from tornpage.impl.config.log_paths import resolved_log_paths
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole, FlushDiskType
from tornpage.impl.dispatch.arriving import MessageArrivingListener
from tornpage.impl.dispatch.deleted_topics import DeletedTopics
from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.dispatch.derived_floor import DerivedFloor, DerivedProof
from tornpage.impl.dispatch.dispatch_records import dispatch_records
from tornpage.impl.errors import BadConfig, NoSpace
from tornpage.impl.index.index_entries import PLAIN_ENTRIES
from tornpage.impl.index.index_file import IndexFile
from tornpage.impl.index.index_layout import IndexLayout
from tornpage.impl.index.index_service import IndexService
from tornpage.impl.io.checkpoint import Checkpoint
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.store_lock import StoreLock, make_directories
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.durable_floor import DurableFloor, Floor
from tornpage.impl.log.loading import Finding, FoundLog, examine_log
from tornpage.impl.log.log_directories import LogDirectories, directory_of
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.queue_offsets import QueueOffsetTable
from tornpage.impl.log.scan import walk_log
from tornpage.impl.log.transient_store_pool import TransientStorePool
from tornpage.impl.message.codec import check_record
from tornpage.impl.message.dispatching import UNIT_BYTES, DispatchRules, FilterBitMap
from tornpage.impl.message.multi_dispatch import MultiDispatch
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.queue.consume_queue_ext import ConsumeQueueExt
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.impl.recovery.derived_floor_raising import RaiseDerivedFloor
from tornpage.impl.recovery.derived_proof import is_still_true
from tornpage.impl.recovery.evidence import LastUnit, flushed_time, last_units
from tornpage.impl.recovery.recovery import Recovery
from tornpage.impl.service.runner import ThreadRunner

__all__ = ["AbortMarker", "OpenDirectory", "derived_of", "write_again"]


class AbortMarker:
    """Owns `<root>/abort`, which is present while the store is open for writing: at load it means an unclean exit.

    It is durable before the first write and its removal is durable before the lock is given up: RocketMQ 4.9.3 does
    neither and can take a crash for a clean exit (hole H6). Source: `DefaultMessageStore.createTempFile`.
    """

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._root = root
        self._path = f"{root}/abort"

    def present(self) -> bool:
        """Whether the last exit was unclean, or the store is open now."""
        return self._files.stat(self._path) is not None

    def create(self) -> None:
        """Make the marker, durable in name, if it is not there."""
        if not self.present():
            self._files.close(self._files.create(self._path))
        self._files.sync_directory(self._root)

    def remove(self) -> None:
        """Take the marker away, durably: everything else is on disk."""
        self._files.unlink(self._path)
        self._files.sync_directory(self._root)


class OpenDirectory:
    """The files of one store directory, held open: what a store writes besides its answers.

    `findings` and `damage` (a sentence, or None) say what was found; a damaged directory is left as it is. Raises
    BadConfig, StoreInUse, WrongFileSize, NoSpace or OSError, holding nothing then.
    """

    def __init__(
        self,
        directory: str,
        config: MessageStoreConfig,
        *,
        files: Files,
        clock: Clock,
        parts: Parts,
        bit_map_of: FilterBitMap | None = None,
        arriving: Sequence[MessageArrivingListener] = (),
    ) -> None:
        self.directory = directory
        self._config = config
        self._files = files
        self._examine_log = parts.of(examine_log)
        self.floor = parts.of(DurableFloor)(
            files, f"{directory}/config/durableFloor", file_bytes=config.mapped_file_size_commit_log
        )
        self.checkpoint = parts.of(Checkpoint)(
            files, f"{directory}/checkpoint", keeps_index=config.message_index_enable
        )
        self._derived_floor = parts.of(DerivedFloor)(
            files, f"{directory}/config/derivedFloor", settings=config.derived_settings()
        )
        self.deleted_topics = parts.of(DeletedTopics)(files, f"{directory}/config/deletedTopics")
        self.abort = parts.of(AbortMarker)(files, directory)
        self._pool: TransientStorePool | None = None
        self._maker = parts.of(LogFileMaker)(
            files,
            self._log_directories(parts),
            file_bytes=config.mapped_file_size_commit_log,
            mapped_file=parts.of(MappedFile),
            policy=config.allocation_policy(),
            flush_disk_type=config.flush_disk_type,
        )
        self._allocation = parts.of(AllocateMappedFiles)(
            self._maker, policy=config.allocation_policy(), runner=parts.of(ThreadRunner)
        )
        self.log = self._queue(parts)
        self.dispatch = (
            parts.of(MultiDispatch)(light_queues=config.enable_lmq) if config.enable_multi_dispatch else None
        )
        self.queue_offsets = parts.of(QueueOffsetTable)(self.dispatch)
        self._clock = clock
        self._bit_map_of = bit_map_of
        self._arriving = arriving
        self._derived: Derived | None = None
        self._raise_floor: RaiseDerivedFloor | None = None
        self.findings: tuple[Finding, ...] = ()
        self.damage: str | None = None
        self._lock = parts.of(StoreLock)(files, directory)
        self._look_first()
        make_directories(files, directory)
        self._lock.acquire()
        try:
            self._recover(parts)
        except BaseException:
            self.close()
            raise

    def _log_directories(self, parts: Parts) -> LogDirectories:
        config = self._config
        paths, read_only = resolved_log_paths(
            self.directory, config.store_path_commit_log, config.read_only_commit_log_store_paths
        )
        return parts.of(LogDirectories)(
            self._files,
            paths,
            read_only=read_only,
            file_bytes=config.mapped_file_size_commit_log,
            clean_forcibly_ratio=config.disk_space_clean_forcibly_ratio,
        )

    def _queue(self, parts: Parts) -> MappedFileQueue:
        config = self._config
        asynchronous = config.flush_disk_type is FlushDiskType.ASYNC_FLUSH
        return parts.of(MappedFileQueue)(
            self._maker,
            self._allocation,
            fast_fail=config.fast_fail_if_no_buffer_in_store_pool,
            populate_ahead_bytes=config.populate_ahead_bytes if asynchronous and not config.pool_buffers else 0,
        )

    def _look_first(self) -> None:
        """Refuse what can be refused before a directory without a lock file gets anything from us."""
        if self._files.stat(f"{self.directory}/lock") is None:
            self._examine(self.floor.load())

    def _examine(self, floor: Floor | None) -> FoundLog:
        needed, directories = self._config.mapped_file_size_commit_log, self.log.directories
        found = self._examine_log(self._files, directories, file_bytes=needed, floor=floor)
        if not found.paths:
            free_bytes = directories.free_bytes()
            if free_bytes < needed:
                raise NoSpace(self.directory, needed_bytes=needed, free_bytes=free_bytes)
        return found

    def _recover(self, parts: Parts) -> None:
        floor = self.floor.load()
        clean_exit = not self.abort.present()
        found = self._examine(floor)
        for path in found.paths:
            self.log.adopt(path, writable=True)
        self.deleted_topics.load()
        proof = self._proof(found, floor, parts)
        self.checkpoint.load()
        recovery = parts.of(Recovery)(
            self._files,
            self.log,
            root=self.directory,
            floor=floor,
            clean_exit=clean_exit,
            check=parts.of(check_record),
            walk=parts.of(walk_log),
            proof=proof,
            flushed_time=self._flushed_time(floor, parts),
            last_units=self._last_units(parts) if floor is None and clean_exit else (),
        )
        plan = recovery.plan(found.findings)
        self.findings = plan.findings
        if plan.damaged:
            self.damage = next(finding.message for finding in plan.findings if finding.severity == "damage")
            self.log.flushed_where = max(self.log.min_offset, plan.scan.end_offset)  # it was read from the disk
            self._load_derived(parts, writable=False, clean_exit=clean_exit).leave_alone(self.log)
            return
        self._use_pool(parts)
        self._prepare(found)
        recovery.carry_out(plan)
        self.log.populate_last()
        self.floor.start(self.log.flushed_where)
        index_timestamp = self.checkpoint.index_msg_timestamp
        if index_timestamp and clean_exit:
            index_timestamp += 1  # all of that time are durable then
        self._promise_nothing_of_derived(clean_exit=clean_exit)  # before loading: that removes files it cannot use
        if proof is None:
            self._derived_floor.forget()
        derived = self._load_derived(parts, writable=True, clean_exit=clean_exit)
        derived.reconcile(self.log, self.queue_offsets, index_timestamp=index_timestamp, proof=proof)
        self.deleted_topics.settle(log_min=self.log.min_offset, log_max=self.log.max_offset)
        if not clean_exit:
            write_again(derived, self.directory, proof)
        self._promise_no_later_log(derived.store_timestamp)
        self.findings += (*derived.findings, *self.deleted_topics.findings)

    def _flushed_time(self, floor: Floor | None, parts: Parts) -> int:
        """Return the store time up to which a log without a floor was flushed; 0 where nothing proves it."""
        has_pool = self._config.transient_store_pool_enable
        return parts.of(flushed_time)(self.checkpoint, has_pool=has_pool, now_ms=self._clock()) if floor is None else 0

    def _last_units(self, parts: Parts) -> list[LastUnit]:
        queue_file_bytes = self._config.consume_queue_file_bytes
        return parts.of(last_units)(self._files, self.directory, queue_file_bytes=queue_file_bytes)

    def _promise_no_later_log(self, store_timestamp: int) -> None:
        """Have the checkpoint name no time behind the newest record: RocketMQ would begin a recovery too late."""
        if self.checkpoint.physic_msg_timestamp > store_timestamp:
            self.checkpoint.physic_msg_timestamp = store_timestamp
            self.checkpoint.flush()

    def _proof(self, found: FoundLog, floor: Floor | None, parts: Parts) -> DerivedProof | None:
        """Return what need not be looked at again: it was durable, and what follows from it is there."""
        config = self._config
        is_damaged = any(finding.severity == "damage" for finding in found.findings)
        if floor is None or config.check_whole_log_on_recover or is_damaged:
            return None
        proof = self._derived_floor.load()
        if proof is None or self.deleted_topics.are_in(each.path for each in proof.queue_files):
            return None
        if not self.log.min_offset <= proof.offset <= floor.offset:
            return None
        layout = IndexLayout(config.max_hash_slot_num, config.max_index_num) if config.message_index_enable else None
        queue_file_bytes = config.consume_queue_file_bytes
        still_true = parts.of(is_still_true)(
            self._files, self.directory, proof, queue_file_bytes=queue_file_bytes, layout=layout
        )
        return proof if still_true else None

    def _promise_nothing_of_derived(self, *, clean_exit: bool) -> None:
        """Have the checkpoint say nothing of queues and index: what was durable there may be made anew now.

        One that says nothing may only be what an opener before us wrote, whose sync has failed.
        """
        says_something = self.checkpoint.logics_msg_timestamp or self.checkpoint.index_msg_timestamp
        if not clean_exit or says_something or self.checkpoint.is_damaged:
            self.checkpoint.note_dispatched(0)
            self.checkpoint.flush()

    def _load_derived(self, parts: Parts, *, writable: bool, clean_exit: bool) -> Derived:
        """Load queues and index as they are."""
        self._derived = derived_of(
            self.directory,
            self._config,
            files=self._files,
            clock=self._clock,
            parts=parts,
            writable=writable,
            clean_exit=clean_exit,
            deleted=self.deleted_topics,
            dispatch=self.dispatch,
            bit_map_of=self._bit_map_of,
            arriving=self._arriving,
        )
        self._raise_floor = RaiseDerivedFloor(self._derived_floor, self._derived, self.log, root=self.directory)
        self._derived.load()
        return self._derived

    def range_of(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Return minimum and maximum of a queue; what the log gives it counts before it is dispatched."""
        queue = self.derived.queues.find(topic, queue_id)
        number = self.queue_offsets.next_offset((topic.encode(errors="surrogateescape"), queue_id))
        return (0, number) if queue is None else (queue.min_offset, max(queue.max_offset, number))

    @property
    def derived(self) -> Derived:
        """Queues and index of an open directory."""
        assert self._derived is not None
        return self._derived

    @property
    def raise_derived_floor(self) -> RaiseDerivedFloor:
        """Who says how far queues and index are durable, of an open directory."""
        assert self._raise_floor is not None
        return self._raise_floor

    def _use_pool(self, parts: Parts) -> None:
        """Have the buffers that were asked for, locked memory of several files: only for a store that may be used."""
        count, file_bytes = self._config.pool_buffers, self._config.mapped_file_size_commit_log
        if not count:
            return
        try:
            self._pool = parts.of(TransientStorePool)(count, file_bytes)
        except OSError as error:
            raise BadConfig("transient_store_pool_size", count, str(error.strerror)) from error
        self.log.use_pool(self._pool)

    def _prepare(self, found: FoundLog) -> None:
        """Make what every writable store has; the abort marker last, before the log is touched."""
        make_directories(self._files, f"{self.directory}/config")
        self.log.directories.prepare()
        self.checkpoint.start()
        self.abort.create()
        for path in found.leftovers:
            self._files.unlink(path)
            self._files.sync_directory(directory_of(path))

    def note_flushed(self, store_timestamp: int) -> None:
        """Say that the log is durable up to its flushed offset, with records up to a store timestamp."""
        self.floor.raise_to(self.log.flushed_where)
        self.checkpoint.physic_msg_timestamp = max(self.checkpoint.physic_msg_timestamp, store_timestamp)

    def note_clean_exit(self) -> None:
        """Make queues, index and small files durable, then remove the abort marker. Raises OSError; it then stays."""
        self.derived.queues.remove_left()
        self.deleted_topics.make_certain()
        self.raise_derived_floor.sample()
        self.derived.flush()
        self.raise_derived_floor.raise_floor()
        self.checkpoint.note_dispatched(self.derived.store_timestamp)
        self.checkpoint.flush()
        self.floor.sync()
        self.abort.remove()

    def stop_allocation(self) -> None:
        """Make no more log files, and remove those that nobody needed."""
        self._allocation.close()

    def close(self) -> None:
        """Give everything up; nothing is synced here."""
        if self._derived is not None:
            self._derived.close()
        self.log.close()
        if self._pool is not None:
            self._pool.close()
        self.floor.close()
        self.checkpoint.close()
        self._lock.release()


def write_again(derived: Derived, directory: str, proof: DerivedProof | None) -> None:
    """Have the next sync of each file below `directory` write what the proof does not speak of. Raises OSError.

    A kernel whose sync fails counts the pages as clean, so that the next sync succeeds and writes nothing, as long as
    the machine lives. The next opener finds in memory what should be on the disk and cannot tell whether it is there.
    What a derived floor speaks of was durable before it was written. Source: none, RocketMQ trusts its page cache
    (docs/faults.md, "sync-lost").

    Cost: one copy of the units and entries behind the proof, and of the slots of index files with such entries.
    """
    units: dict[str, int] = {}
    for queue_file in () if proof is None else proof.queue_files:
        path, _, name = f"{directory}/{queue_file.path}".rpartition("/")
        units[path] = (int(name) + queue_file.size_bytes) // UNIT_BYTES
    for queue in derived.queues.all():
        queue.write_again(units.get(queue.directory, 0))
    entries = (
        {} if proof is None else {f"{directory}/{each.path}": each.header.next_number for each in proof.index_files}
    )
    for index_file in () if derived.index is None else derived.index.index_files:
        proved = entries.get(index_file.path, 0)
        if index_file.header.next_number > proved:
            index_file.write_again(max(1, proved))


def derived_of(
    directory: str,
    config: MessageStoreConfig,
    *,
    files: Files,
    clock: Clock,
    parts: Parts,
    writable: bool,
    clean_exit: bool,
    deleted: DeletedTopics,
    dispatch: MultiDispatch | None,
    bit_map_of: FilterBitMap | None,
    arriving: Sequence[MessageArrivingListener],
) -> Derived:
    """Return what follows from the log of the store in a directory. A slave tells no listener of what arrives."""
    queues = parts.of(ConsumeQueues)(
        files,
        directory,
        file_bytes=config.consume_queue_file_bytes,
        writable=writable,
        clean_exit=clean_exit,
        ext=config.enable_consume_queue_ext,
        ext_file_bytes=config.mapped_file_size_consume_queue_ext,
        bit_maps=bit_map_of is not None,
        consume_queue=parts.of(ConsumeQueue),
        consume_queue_ext=parts.of(ConsumeQueueExt),
    )
    index = parts.of(IndexService)(
        files,
        f"{directory}/index",
        slots=config.max_hash_slot_num,
        entries_max=config.max_index_num,
        clock=clock,
        writable=writable,
        entries=parts.of(PLAIN_ENTRIES),
        index_file=parts.of(IndexFile),
    )
    rules = DispatchRules(
        index=config.message_index_enable,
        delay_levels=config.delay_levels(),
        multi_dispatch=dispatch,
        ext=config.enable_consume_queue_ext,
        bit_map_of=bit_map_of,
    )
    return parts.of(Derived)(
        queues,
        index if config.message_index_enable else None,
        dispatch=parts.of(dispatch_records),
        rules=rules,
        listeners=() if config.broker_role is BrokerRole.SLAVE else arriving,
        deleted=deleted,
    )
