"""Opening a store directory: lock, examine, decide, set the abort marker, change files.

Contracts 6, 7 and 14 depend on this order. Source: `DefaultMessageStore.load`, `start`.
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
from tornpage.impl.dispatch.queue_numbers import QueueNumbers
from tornpage.impl.errors import BadConfig, NoSpace
from tornpage.impl.index.index_entries import PLAIN_ENTRIES
from tornpage.impl.index.index_file import IndexFile
from tornpage.impl.index.index_layout import IndexLayout
from tornpage.impl.index.index_service import IndexService
from tornpage.impl.io.checkpoint import Checkpoint
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.store_lock import StoreLock, make_directories
from tornpage.impl.io.whole_files import WholeFiles
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.durable_floor import DurableFloor, Floor
from tornpage.impl.log.loading import Finding, FoundLog, examine_log
from tornpage.impl.log.log_directories import LogDirectories, directory_of
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.queue_offsets import QueueOffsetTable
from tornpage.impl.log.scan import walk_log
from tornpage.impl.log.transient_store_pool import TransientStorePool
from tornpage.impl.log.verified_records import VerifiedRecords
from tornpage.impl.message.codec import check_record
from tornpage.impl.message.dispatching import UNIT_BYTES, DispatchRules, FilterBitMap
from tornpage.impl.message.multi_dispatch import MultiDispatch
from tornpage.impl.message.properties_text import parser_of
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.queue.consume_queue_ext import ConsumeQueueExt
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.impl.recovery.derived_floor_raising import RaiseDerivedFloor
from tornpage.impl.recovery.derived_proof import checksums_hold
from tornpage.impl.recovery.evidence import LastUnit, flushed_time, last_units
from tornpage.impl.recovery.recovery import Recovery
from tornpage.impl.service.runner import ThreadRunner

__all__ = ["AbortMarker", "OpenDirectory", "derived_of", "rewrite_unproved"]


class AbortMarker:
    """Owns `<root>/abort`. The file exists while the store is open for writing.

    If it exists at load, the last exit was unclean. The marker is durable before the first write. Its removal is
    durable before the lock is released. RocketMQ 4.9.3 ensures neither and can take a crash for a clean exit (hole H6).
    Source: `DefaultMessageStore.createTempFile`.
    """

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._root = root
        self._path = f"{root}/abort"

    def present(self) -> bool:
        """Whether the last exit was unclean, or the store is open now."""
        return self._files.stat(self._path) is not None

    def create(self) -> None:
        """Create the marker unless it exists, and make its name durable. Raises OSError."""
        if not self.present():
            self._files.close(self._files.create(self._path))
        self._files.sync_directory(self._root)

    def remove(self) -> None:
        """Remove the marker durably. Call it after everything else is on disk. Raises OSError."""
        self._files.unlink(self._path)
        self._files.sync_directory(self._root)


class OpenDirectory:
    """The open files of one store directory: everything a store writes except its answers.

    `findings` lists what was found. `damage` is a sentence, or None for a sound directory. A damaged directory is not
    changed. Raises BadConfig, StoreInUse, WrongFileSize, NoSpace or OSError; no file stays open then.
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
        self._whole_files = parts.of(WholeFiles)(files)
        self._maker = parts.of(LogFileMaker)(
            files,
            self._log_directories(parts),
            file_bytes=config.mapped_file_size_commit_log,
            mapped_file=parts.of(MappedFile),
            policy=config.allocation_policy(),
            flush_disk_type=config.flush_disk_type,
            whole_files=self._whole_files,
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
        self._refuse_early()
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
            verified=parts.of(VerifiedRecords)(config.verify_reads),
        )

    def _refuse_early(self) -> None:
        """Refuse an unusable directory that has no lock file, before anything is created in it."""
        if self._files.stat(f"{self.directory}/lock") is None:
            self._examine(self.floor.load())

    def _examine(self, floor: Floor | None) -> FoundLog:
        needed, directories = self._config.mapped_file_size_commit_log, self.log.directories
        found = self._examine_log(self._files, directories, file_bytes=needed, floor=floor)
        if not found.paths:
            # a killed open may have left the first file unfinished, and this open removes it
            free_bytes = directories.free_bytes() + sum(self._whole_files.leftovers(directories.writable).values())
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
            recovery.leave(plan)
            self._load_derived(parts, writable=False, clean_exit=clean_exit).skip_all(self.log)
            return
        self._use_pool(parts)
        self._prepare(found)
        recovery.carry_out(plan)
        self.log.populate_last()
        self.floor.start(self.log.flushed_where)
        index_timestamp = self.checkpoint.index_msg_timestamp
        if index_timestamp and clean_exit:
            index_timestamp += 1  # after a clean exit all entries of that millisecond are durable
        self._clear_derived_times(clean_exit=clean_exit)  # before loading, which removes unusable files
        if proof is None:
            self._derived_floor.forget()
        derived = self._load_derived(parts, writable=True, clean_exit=clean_exit)
        derived.reconcile(self.log, self.queue_offsets, index_timestamp=index_timestamp, proof=proof)
        self.deleted_topics.settle(log_min=self.log.min_offset, log_max=self.log.max_offset)
        if not clean_exit:
            rewrite_unproved(derived, self.directory, proof)
        self._lower_log_time(derived.store_timestamp)
        self.findings += (*derived.findings, *self.deleted_topics.findings)
        if self._config.first_file_at_open and not self.log.mapped and self._config.broker_role is not BrokerRole.SLAVE:
            self._allocation.prepare(0)

    def _flushed_time(self, floor: Floor | None, parts: Parts) -> int:
        """Return the store time up to which a log without a floor was flushed; 0 without proof."""
        has_pool = self._config.transient_store_pool_enable
        return parts.of(flushed_time)(self.checkpoint, has_pool=has_pool, now_ms=self._clock()) if floor is None else 0

    def _last_units(self, parts: Parts) -> list[LastUnit]:
        config = self._config
        return parts.of(last_units)(
            self._files,
            self.directory,
            queue_file_bytes=config.consume_queue_file_bytes,
            log_file_bytes=config.mapped_file_size_commit_log,
        )

    def _lower_log_time(self, store_timestamp: int) -> None:
        """Lower the checkpoint's log time to the newest record.

        With a later time RocketMQ would begin a recovery too late. Raises OSError.
        """
        if self.checkpoint.physic_msg_timestamp > store_timestamp:
            self.checkpoint.physic_msg_timestamp = store_timestamp
            self.checkpoint.flush()

    def _proof(self, found: FoundLog, floor: Floor | None, parts: Parts) -> DerivedProof | None:
        """Return the derived floor, or None if it cannot be trusted.

        The log must be durable up to it and its checksums must hold.
        """
        config = self._config
        is_damaged = any(finding.severity == "damage" for finding in found.findings)
        if floor is None or config.check_whole_log_on_recover or is_damaged:
            return None
        proof = self._derived_floor.load()
        if proof is None or self.deleted_topics.any_deleted(each.path for each in proof.queue_files):
            return None
        if not self.log.min_offset <= proof.offset <= floor.offset:
            return None
        layout = IndexLayout(config.max_hash_slot_num, config.max_index_num) if config.message_index_enable else None
        queue_file_bytes = config.consume_queue_file_bytes
        still_true = parts.of(checksums_hold)(
            self._files, self.directory, proof, queue_file_bytes=queue_file_bytes, layout=layout
        )
        return proof if still_true else None

    def _clear_derived_times(self, *, clean_exit: bool) -> None:
        """Clear the times of queues and index in the checkpoint, since recovery may rebuild both.

        After an unclean exit the cleared checkpoint is written even if both times are zero already: an
        earlier open may have written that checkpoint without being able to sync it. Raises OSError.
        """
        says_something = self.checkpoint.logics_msg_timestamp or self.checkpoint.index_msg_timestamp
        if not clean_exit or says_something or self.checkpoint.is_damaged:
            self.checkpoint.note_dispatched(0)
            self.checkpoint.flush()

    def _load_derived(self, parts: Parts, *, writable: bool, clean_exit: bool) -> Derived:
        """Load queues and index as they are. Raises OSError."""
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
            whole_files=self._whole_files,
        )
        self._raise_floor = RaiseDerivedFloor(self._derived_floor, self._derived, self.log, root=self.directory)
        self._derived.load()
        return self._derived

    def range_of(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Return minimum and maximum of a queue, including records not dispatched yet."""
        queue = self.derived.queues.find(topic, queue_id)
        number = self.queue_offsets.next_offset((topic.encode(errors="surrogateescape"), queue_id))
        return (0, number) if queue is None else (queue.min_offset, max(queue.max_offset, number))

    @property
    def derived(self) -> Derived:
        """Queues and index. The directory must be open."""
        assert self._derived is not None
        return self._derived

    @property
    def raise_derived_floor(self) -> RaiseDerivedFloor:
        """The part that raises the derived floor. The directory must be open."""
        assert self._raise_floor is not None
        return self._raise_floor

    def _use_pool(self, parts: Parts) -> None:
        """Allocate the configured pool of write buffers in locked memory.

        Only a writable store has it. Raises BadConfig if the memory cannot be locked.
        """
        count, file_bytes = self._config.pool_buffers, self._config.mapped_file_size_commit_log
        if not count:
            return
        try:
            self._pool = parts.of(TransientStorePool)(count, file_bytes)
        except OSError as error:
            raise BadConfig("transient_store_pool_size", count, str(error.strerror)) from error
        self.log.use_pool(self._pool)

    def _prepare(self, found: FoundLog) -> None:
        """Create what every writable store has.

        The abort marker is the last step before the log is changed. Raises OSError.
        """
        make_directories(self._files, f"{self.directory}/config")
        self.log.directories.prepare()
        self.checkpoint.start()
        self._whole_files.prepare(self.log.directories.writable)
        self.abort.create()
        derived = (f"{self.directory}/{name}" for name in ("consumequeue", "consumequeue_ext", "index"))
        self._whole_files.remove_leftovers((*self.log.directories.writable, *derived))
        for path in found.leftovers:
            self._files.unlink(path)
            self._files.sync_directory(directory_of(path))

    def note_flushed(self, store_timestamp: int) -> None:
        """Raise the durable floor to the log's flushed offset, and the log time of the checkpoint.

        `store_timestamp` is the newest store time of the flushed records, in milliseconds.
        """
        self.floor.raise_to(self.log.flushed_where)
        self.checkpoint.physic_msg_timestamp = max(self.checkpoint.physic_msg_timestamp, store_timestamp)

    def note_clean_exit(self) -> None:
        """Make queues, index and small files durable, then remove the abort marker.

        Raises OSError; the abort marker then stays.
        """
        self.derived.queues.remove_leftovers()
        self.deleted_topics.write_if_doubtful()
        self.raise_derived_floor.sample()
        self.derived.flush()
        self.raise_derived_floor.raise_floor()
        self.checkpoint.note_dispatched(self.derived.store_timestamp)
        self.checkpoint.flush()
        self.floor.sync()
        self.abort.remove()

    def stop_allocation(self) -> None:
        """Stop allocating log files ahead and remove the unused ones."""
        self._allocation.close()

    def close(self) -> None:
        """Close all files without a sync, and release the lock."""
        if self._derived is not None:
            self._derived.close()
        self.log.close()
        if self._pool is not None:
            self._pool.close()
        self.floor.close()
        self.checkpoint.close()
        self._lock.release()


def rewrite_unproved(derived: Derived, directory: str, proof: DerivedProof | None) -> None:
    """Mark every page below `directory` that the proof does not cover for the next sync.

    After a failed sync the kernel counts the pages as clean, so the next sync succeeds and writes
    nothing until a reboot. The next open finds the data in the page cache and cannot tell whether it is on the disk.
    Data covered by a derived floor was durable before the floor was written. Source: none, RocketMQ trusts its page
    cache (docs/faults.md, "sync-lost").

    Cost: one copy of the units and entries past the proof, and of the slots of index files with such entries.
    Raises OSError.
    """
    units: dict[str, int] = {}
    for queue_file in () if proof is None else proof.queue_files:
        path, _, name = f"{directory}/{queue_file.path}".rpartition("/")
        units[path] = (int(name) + queue_file.size_bytes) // UNIT_BYTES
    for queue in derived.queues.all():
        queue.rewrite_from(units.get(queue.directory, 0))
    entries = (
        {} if proof is None else {f"{directory}/{each.path}": each.header.next_number for each in proof.index_files}
    )
    for index_file in () if derived.index is None else derived.index.index_files:
        proved = entries.get(index_file.path, 0)
        if index_file.header.next_number > proved:
            index_file.rewrite_from(max(1, proved))


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
    whole_files: WholeFiles,
) -> Derived:
    """Build the consume queues, the index and the dispatcher of a store.

    On a slave no listener is called.
    """
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
        whole_files=whole_files,
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
        whole_files=whole_files,
    )
    rules = DispatchRules(
        index=config.message_index_enable,
        delay_levels=config.delay_levels(),
        multi_dispatch=dispatch,
        ext=config.enable_consume_queue_ext,
        bit_map_of=bit_map_of,
        parse=parser_of(config.rocketmq_version),
    )
    return parts.of(Derived)(
        queues,
        index if config.message_index_enable else None,
        dispatch=parts.of(dispatch_records),
        rules=rules,
        listeners=() if config.broker_role is BrokerRole.SLAVE else arriving,
        deleted=deleted,
        numbers=parts.of(QueueNumbers),
    )
