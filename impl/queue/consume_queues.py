"""The consume queues of a store by topic and queue id.

Files are in `consumequeue/TOPIC/QUEUEID`, extensions in `consumequeue_ext`. The directory name has the bytes of the
topic, as RocketMQ writes it where names are UTF-8. A queue exists from its first unit on; a lookup creates nothing.
Source: `DefaultMessageStore.loadConsumeQueue`, and `findConsumeQueue`, which creates a queue for every requested name
(RMQ-B38).
"""

import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tornpage.impl.guards import MakeGuard
from tornpage.impl.io.files import Files
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.whole_files import WholeFiles
from tornpage.impl.log.loading import NO_OFFSET, Finding
from tornpage.impl.message.dispatching import UNIT_BYTES, QueueRun
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.queue.consume_queue_ext import ConsumeQueueExt
from tornpage.impl.queue.directory_tree import DirectoryTree
from tornpage.impl.queue.queue_files import QueueFiles

__all__ = ["ConsumeQueues", "QueueFileProof"]

_LOG = logging.getLogger("tornpage.store")

_QUEUE_ID = re.compile(r"0|-?[1-9][0-9]{0,9}", re.ASCII)
_NAME_BYTES_MAX = 255


class QueueFileProof(NamedTuple):
    """The checksum of the first bytes of a queue file.

    `path` is relative to the store directory.
    """

    path: str
    size_bytes: int
    crc: int


class _UnnameableQueue(ConsumeQueue):
    """Stands for a queue whose topic cannot be a directory name; it stores nothing."""

    def append(self, run: QueueRun) -> None:
        """Store nothing."""

    def reconcile(self, run: QueueRun) -> None:
        """Store nothing."""


class ConsumeQueues:
    """Owns all queues of a store. One thread creates queues; any thread may look them up.

    `clean_exit` says whether the last exit was clean, with everything durable. With `ext` queues have extensions.
    `bit_maps` says whether dispatch computes the bit maps in them.
    """

    def __init__(
        self,
        files: Files,
        root: str,
        *,
        file_bytes: int,
        writable: bool,
        clean_exit: bool,
        ext: bool = False,
        ext_file_bytes: int = 0,
        bit_maps: bool = False,
        consume_queue: Callable[..., ConsumeQueue] = ConsumeQueue,
        consume_queue_ext: Callable[..., ConsumeQueueExt] = ConsumeQueueExt,
        queue_files: Callable[..., QueueFiles] = QueueFiles,
        whole_files: WholeFiles | None = None,
        mapped_file: Callable[..., MappedFile] = MappedFile,
        guard: MakeGuard = threading.Lock,
    ) -> None:
        self._files = files
        self._root = root
        self._file_bytes = -(-file_bytes // UNIT_BYTES) * UNIT_BYTES
        self._ext_file_bytes = ext_file_bytes if ext else 0
        self._writable = writable
        self._clean_exit = clean_exit
        self._bit_maps = bit_maps
        self._consume_queue = consume_queue
        self._consume_queue_ext = consume_queue_ext
        self._queue_files = queue_files
        self._whole_files = WholeFiles(files) if whole_files is None else whole_files
        self._mapped_file = mapped_file
        self._tree = DirectoryTree(files, root)
        self._queues: dict[QueueKey, ConsumeQueue] = {}
        self._unnameable: dict[QueueKey, ConsumeQueue] = {}
        self._leftovers: dict[QueueKey, ConsumeQueue] = {}
        self._findings: list[Finding] = []
        self._guard = guard()

    # ---- loading and reconciling ---------------------------------------------------------------------------------

    def load(self) -> None:
        """Load the queues that exist, not yet compared with the log.

        Other directory entries get a note. Raises OSError.
        """
        for topic in self._directories(f"{self._root}/consumequeue"):
            for queue_id in self._directories(f"{self._root}/consumequeue/{topic}"):
                if _QUEUE_ID.fullmatch(queue_id) is None:
                    self._note_stray(f"{self._root}/consumequeue/{topic}/{queue_id}")
                    continue
                queue = self._make((os.fsencode(topic), int(queue_id)))
                self._queues[queue.key] = queue  # first, so that closing after a failed load closes it too
                queue.load()
        self._forget_empty()

    def _directories(self, path: str) -> Iterator[str]:
        """Yield the names of the directories in `path`, which need not exist; note other entries."""
        for name in self._files.list_directory(path) if self._files.stat(path) else []:
            stat = self._files.stat(f"{path}/{name}")
            if stat is not None and stat.kind == "directory":
                yield name
            else:
                self._note_stray(f"{path}/{name}")

    def _note_stray(self, path: str) -> None:
        self._findings.append(Finding("note", "stray_file", path, NO_OFFSET, f"{path} is no consume queue: ignored"))

    def trust(self, proofs: Sequence[QueueFileProof], log_min: int) -> None:
        """Take as proved the units in queue files whose checksums hold."""
        ends: dict[str, int] = {}
        for proof in proofs:
            directory, _, name = proof.path.rpartition("/")
            ends[f"{self._root}/{directory}"] = (int(name) + proof.size_bytes) // UNIT_BYTES
        for queue in self.all():
            if queue.directory in ends:
                queue.trust(ends[queue.directory], log_min)

    def note_unstored(self, runs: Sequence[QueueRun]) -> None:
        """Note units that the log has and that could not be stored. Raises OSError."""
        for run in runs:
            queue = self._queues.get(run.key)
            if queue is not None:
                queue.drop_before_gap()

    def erase_deleted(self, offsets: Mapping[bytes, int], log_min: int) -> None:
        """Erase what is left of deleted topics.

        `offsets` maps topics to the offset of their deletion. Raises OSError.
        """
        for queue in self.all():
            if queue.key[0] in offsets:
                queue.erase_deleted(offsets[queue.key[0]], log_min)

    def end_reconcile(self, log_min: int) -> bool:
        """End the reconciliation of every queue; return whether anything was erased.

        Raises OSError.
        """
        erased = [queue.end_reconcile(log_min) for queue in self.all()]
        self._forget_empty()
        return any(erased)

    def _forget_empty(self) -> None:
        """Forget queues without a file; the next open does not find them either. Raises OSError."""
        for queue in self.all():
            if queue.is_empty:
                queue.flush()  # makes the removal of its files durable
                self._findings += queue.findings
                del self._queues[queue.key]
                queue.close()  # closes what is left of an extension

    # ---- finding -------------------------------------------------------------------------------------------------

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Return a queue, or None if there is none."""
        try:
            return self._queues.get((topic.encode(errors="surrogateescape"), queue_id))
        except UnicodeEncodeError:
            return None

    def stored(self, key: QueueKey) -> ConsumeQueue | None:
        """Return the queue of a key, or None if there is none."""
        return self._queues.get(key)

    def directory_of(self, key: QueueKey) -> str:
        """Return the directory in which the files of a queue lie, or would lie."""
        return f"{self._root}/consumequeue/{os.fsdecode(key[0])}/{key[1]}"

    @property
    def file_units(self) -> int:
        """The number of units in one file."""
        return self._file_bytes // UNIT_BYTES

    def of(self, key: QueueKey) -> ConsumeQueue:
        """Return the queue of a key for appends, creating it if needed.

        Its directory is created with its first unit. If the topic cannot be a directory name, which no put accepts, the
        queue stores nothing and a finding names it.
        """
        queue = self._queues.get(key)
        return self._new(key) if queue is None else queue

    def _new(self, key: QueueKey) -> ConsumeQueue:
        name, _ = key
        if key not in self._unnameable and (
            not 1 <= len(name) <= _NAME_BYTES_MAX or name in (b".", b"..") or b"/" in name or b"\0" in name
        ):
            path = f"{self._root}/consumequeue"
            message = f"{path}: no directory can be named {name!r}: the messages of that topic are in no queue"
            self._findings.append(Finding("note", "impossible_queue", path, NO_OFFSET, message))
            _LOG.warning("impossible_queue topic=%r queue_id=%d", name, key[1])
            self._unnameable[key] = _UnnameableQueue(key, self._files_in("consumequeue/nowhere", self._file_bytes))
        if key in self._unnameable:
            return self._unnameable[key]
        if key in self._leftovers:
            self._destroy(self._leftovers[key])
        queue = self._make(key)
        with self._guard:
            self._queues[key] = queue
        return queue

    def _make(self, key: QueueKey) -> ConsumeQueue:
        place = f"{os.fsdecode(key[0])}/{key[1]}"
        ext = None
        if self._ext_file_bytes:
            ext = self._consume_queue_ext(self._files_in(f"consumequeue_ext/{place}", self._ext_file_bytes))
        return self._consume_queue(
            key,
            self._files_in(f"consumequeue/{place}", self._file_bytes),
            ext=ext,
            clean_exit=self._clean_exit,
            bit_maps=self._bit_maps,
        )

    def _files_in(self, directory: str, file_bytes: int) -> QueueFiles:
        return self._queue_files(
            self._files,
            f"{self._root}/{directory}",
            tree=self._tree,
            file_bytes=file_bytes,
            writable=self._writable,
            top=f"{self._root}/{directory.partition('/')[0]}",
            whole_files=self._whole_files,
            mapped_file=self._mapped_file,
        )

    def remove(self, queue: ConsumeQueue) -> None:
        """Forget a queue and remove its files durably; its directory stays.

        No append may run meanwhile. The queue is unknown afterwards even if the removal fails, and its numbers restart.
        Files that could not be removed are removed by `remove_leftovers`, or before a queue of the same key is created.
        Raises OSError if the removal fails.
        """
        with self._guard:
            self._queues.pop(queue.key, None)
            self._leftovers[queue.key] = queue
        self._destroy(queue)

    def remove_leftovers(self) -> None:
        """Remove the files that an earlier `remove` could not remove. No append may run meanwhile.

        Raises OSError.
        """
        for queue in tuple(self._leftovers.values()):
            self._destroy(queue)

    def _destroy(self, queue: ConsumeQueue) -> None:
        queue.destroy()
        del self._leftovers[queue.key]
        queue.close()

    def all(self) -> tuple[ConsumeQueue, ...]:
        """Return all queues in the order of their creation."""
        with self._guard:
            return tuple(self._queues.values())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of loading, reconciling and appending."""
        return (*self._findings, *(finding for queue in self.all() for finding in queue.findings))

    # ---- durability ----------------------------------------------------------------------------------------------

    def flush_all(self, least_pages: int = 0) -> None:
        """Flush every queue by a page rule. Raises the OSError of the first one that fails."""
        for queue in self.all():
            queue.flush(least_pages)

    def close(self) -> None:
        """Close all mappings without a write or sync. The queues can still be read, and are empty."""
        for queue in (*self.all(), *self._leftovers.values()):
            queue.close()

    def check(self) -> None:
        """Assert the invariants of all queues. No append may run meanwhile."""
        for queue in self.all():
            queue.check()
