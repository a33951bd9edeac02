"""Opening a store directory: lock first, then look, then decide, then mark the exit unclean, and only then change.

The order is the promise of contracts 6, 7 and 14. Source: `DefaultMessageStore.load`, `start`.
"""

from impl.abort_marker import AbortMarker
from impl.checkpoint import Checkpoint
from impl.components import Components
from impl.config import MessageStoreConfig
from impl.durable_floor import DurableFloor, Floor
from impl.errors import NoSpace
from impl.files import Files
from impl.loading import Finding, LogDirectory, examine_log_directory
from impl.mapped_file_queue import MappedFileQueue
from impl.policy import FlushDiskType
from impl.queue_offsets import QueueOffsetTable
from impl.store_lock import StoreLock, make_directories

__all__ = ["OpenDirectory"]


class OpenDirectory:
    """The files of one store directory, held open: what a store writes besides its answers.

    `findings` and `damage` (a sentence, or None) say what was found; a damaged directory is left as it is. Raises
    StoreInUse, WrongFileSize, NoSpace or OSError, holding nothing then.
    """

    def __init__(self, directory: str, config: MessageStoreConfig, *, files: Files, components: Components) -> None:
        self.directory = directory
        self._config = config
        self._files = files
        self.floor: DurableFloor = components.durable_floor(
            files, f"{directory}/config/durableFloor", file_bytes=config.mapped_file_size_commit_log
        )
        self.checkpoint = Checkpoint(files, f"{directory}/checkpoint")
        self.abort: AbortMarker = components.abort_marker(files, directory)
        asynchronous = config.flush_disk_type is FlushDiskType.ASYNC_FLUSH
        self.log: MappedFileQueue = components.mapped_file_queue(
            files,
            f"{directory}/commitlog",
            file_bytes=config.mapped_file_size_commit_log,
            mapped_file=components.mapped_file,
            populate_ahead_bytes=config.populate_ahead_bytes if asynchronous else 0,
        )
        self.dispatch = components.dispatch(light_queues=config.enable_lmq) if config.enable_multi_dispatch else None
        self.queue_offsets: QueueOffsetTable = components.queue_offsets(self.dispatch)
        self.findings: tuple[Finding, ...] = ()
        self.damage: str | None = None
        self._lock = StoreLock(files, directory)
        self._look_first()
        make_directories(files, directory)
        self._lock.acquire()
        try:
            self._recover(components)
        except BaseException:
            self.close()
            raise

    def _look_first(self) -> None:
        """Refuse what can be refused before a directory without a lock file gets anything from us."""
        if self._files.stat(f"{self.directory}/lock") is None:
            self._examine(self.floor.load())

    def _examine(self, floor: Floor | None) -> LogDirectory:
        needed = self._config.mapped_file_size_commit_log
        found = examine_log_directory(self._files, self.log.directory, file_bytes=needed, floor=floor)
        if not found.base_offsets:
            existing = self.log.directory
            while self._files.stat(existing) is None:
                existing = existing.rpartition("/")[0] or "/"
            free_bytes = self._files.disk_usage(existing).free_bytes
            if free_bytes < needed:
                raise NoSpace(self.directory, needed_bytes=needed, free_bytes=free_bytes)
        return found

    def _recover(self, components: Components) -> None:
        floor = self.floor.load()
        clean_exit = not self.abort.present()
        found = self._examine(floor)
        for base_offset in found.base_offsets:
            self.log.adopt(base_offset, writable=True)
        recovery = components.recovery(
            self._files,
            self.log,
            root=self.directory,
            floor=floor,
            clean_exit=clean_exit,
            check=components.check_record,
            learn=self.queue_offsets.learn,
        )
        plan = recovery.plan(found.findings)
        self.findings = plan.findings
        if plan.damaged:
            self.damage = next(finding.message for finding in plan.findings if finding.severity == "damage")
            self.log.flushed_where = max(self.log.min_offset, plan.scan.end_offset)  # it was read from the disk
            return
        self._prepare(found)
        recovery.carry_out(plan)
        self.log.populate_last()
        self.floor.start(self.log.flushed_where)

    def _prepare(self, found: LogDirectory) -> None:
        """Make what every writable store has; the abort marker last, before the log is touched.

        The names in the log directory are synced first: an opener before us may have been killed between removing a
        file and syncing that, and a file that comes back must not do so behind our own removals.
        """
        for name in ("config", "commitlog"):
            make_directories(self._files, f"{self.directory}/{name}")
        self._files.sync_directory(self.log.directory)
        self.checkpoint.load()
        self.checkpoint.start()
        self.abort.create()
        if found.empty_newest is not None:
            self._files.unlink(found.empty_newest)
            self._files.sync_directory(self.log.directory)

    def note_flushed(self, store_timestamp: int) -> None:
        """Say that the log is durable up to its flushed offset, with records up to a store timestamp."""
        self.floor.raise_to(self.log.flushed_where)
        self.checkpoint.physic_msg_timestamp = max(self.checkpoint.physic_msg_timestamp, store_timestamp)

    def note_clean_exit(self) -> None:
        """Make the small files durable, then remove the abort marker. Raises OSError; the marker then stays."""
        self.checkpoint.flush()
        self.floor.sync()
        self.abort.remove()

    def close(self) -> None:
        """Give everything up; nothing is synced here."""
        self.log.close()
        self.floor.close()
        self.checkpoint.close()
        self._lock.release()
