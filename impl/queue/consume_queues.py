"""The consume queues of a store by topic and queue id: `consumequeue/TOPIC/QUEUEID`, extensions in `consumequeue_ext`.

A topic is a directory name of the same bytes, as RocketMQ writes it where names are UTF-8. A queue is there from its
first unit on; looking for one creates nothing. Source: `DefaultMessageStore.loadConsumeQueue`, and `findConsumeQueue`,
which makes a queue of every name that is asked for (RMQ-B38).
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
from tornpage.impl.log.loading import Finding
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
    """The first bytes of a queue file; `path` begins below the directory of the store."""

    path: str
    size_bytes: int
    crc: int


class _NowhereQueue(ConsumeQueue):
    """Stands for a queue that no directory can be named after: nothing is kept."""

    def append(self, run: QueueRun) -> None:
        """Pass."""

    def reconcile(self, run: QueueRun) -> None:
        """Pass."""


class ConsumeQueues:
    """Owns all queues of a store. One thread asks for new ones; any may look.

    `clean_exit` says whether the last opener closed the store, everything durable. With `ext` queues have extensions;
    `bit_maps` says whether dispatch knows the bit maps in them.
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
        self._mapped_file = mapped_file
        self._tree = DirectoryTree(files, root)
        self._queues: dict[QueueKey, ConsumeQueue] = {}
        self._nowhere: dict[QueueKey, ConsumeQueue] = {}
        self._left: dict[QueueKey, ConsumeQueue] = {}
        self._findings: list[Finding] = []
        self._guard = guard()

    # ---- loading and reconciling ---------------------------------------------------------------------------------

    def load(self) -> None:
        """Map the queues that are there, unproved; what is no queue is noted and left alone. Raises OSError."""
        for topic in self._directories(f"{self._root}/consumequeue"):
            for queue_id in self._directories(f"{self._root}/consumequeue/{topic}"):
                if _QUEUE_ID.fullmatch(queue_id) is None:
                    self._note_stray(f"{self._root}/consumequeue/{topic}/{queue_id}")
                    continue
                queue = self._make((os.fsencode(topic), int(queue_id)))
                self._queues[queue.key] = queue  # first: who gives up in the middle of a load closes it too
                queue.load()
        self._forget_empty()

    def _directories(self, path: str) -> Iterator[str]:
        """Yield the directories in one, which need not exist, and note what else is there."""
        for name in self._files.list_directory(path) if self._files.stat(path) else []:
            stat = self._files.stat(f"{path}/{name}")
            if stat is not None and stat.kind == "directory":
                yield name
            else:
                self._note_stray(f"{path}/{name}")

    def _note_stray(self, path: str) -> None:
        self._findings.append(Finding("note", "stray_file", path, -1, f"{path} is no consume queue: ignored"))

    def believe(self, proofs: Sequence[QueueFileProof], log_min: int) -> None:
        """Take for proved, in each queue, the units in files that are as they were."""
        ends: dict[str, int] = {}
        for proof in proofs:
            directory, _, name = proof.path.rpartition("/")
            ends[f"{self._root}/{directory}"] = (int(name) + proof.size_bytes) // UNIT_BYTES
        for queue in self.all():
            if queue.directory in ends:
                queue.believe(ends[queue.directory], log_min)

    def heard_of(self, runs: Sequence[QueueRun]) -> None:
        """Say that the log has these units, although the disk refuses to store them now. Raises OSError."""
        for run in runs:
            queue = self._queues.get(run.key)
            if queue is not None:
                queue.drop_in_front()

    def erase_deleted(self, offsets: Mapping[bytes, int], log_min: int) -> None:
        """Erase what is left of topics that were deleted, each below a physical offset. Raises OSError."""
        for queue in self.all():
            if queue.key[0] in offsets:
                queue.erase_deleted(offsets[queue.key[0]], log_min)

    def end_reconcile(self, log_min: int) -> bool:
        """End the reconciling of every queue; return whether anything was erased. Raises OSError."""
        erased = [queue.end_reconcile(log_min) for queue in self.all()]
        self._forget_empty()
        return any(erased)

    def _forget_empty(self) -> None:
        """Forget queues without a file, as the next open will not find them either."""
        for queue in self.all():
            if queue.is_empty:
                queue.flush()  # its files are gone for good
                self._findings += queue.findings
                del self._queues[queue.key]
                queue.close()  # what is left of an extension

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
        """Return the queue of a key, to be appended to; the disk knows of it from its first unit on.

        A name that no directory can have, which no put accepts, gives a queue that keeps nothing, and a finding.
        """
        queue = self._queues.get(key)
        return self._new(key) if queue is None else queue

    def _new(self, key: QueueKey) -> ConsumeQueue:
        name, _ = key
        if key not in self._nowhere and (
            not 1 <= len(name) <= _NAME_BYTES_MAX or name in (b".", b"..") or b"/" in name or b"\0" in name
        ):
            path = f"{self._root}/consumequeue"
            message = f"{path}: no directory can be named {name!r}: the messages of that topic are in no queue"
            self._findings.append(Finding("note", "impossible_queue", path, -1, message))
            _LOG.warning("impossible_queue topic=%r queue_id=%d", name, key[1])
            self._nowhere[key] = _NowhereQueue(key, self._files_in("consumequeue/nowhere", self._file_bytes))
        if key in self._nowhere:
            return self._nowhere[key]
        if key in self._left:
            self._destroy(self._left[key])
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
            mapped_file=self._mapped_file,
        )

    def remove(self, queue: ConsumeQueue) -> None:
        """Forget a queue and remove its files, durably; its directory stays. Nobody appends meanwhile. Raises OSError.

        It is unknown from here on, whatever the disk refuses: its numbers begin anew. Files that stay are removed by
        `remove_left`, or before a queue of the same key comes to be, from whatever number it is told.
        """
        with self._guard:
            self._queues.pop(queue.key, None)
            self._left[queue.key] = queue
        self._destroy(queue)

    def remove_left(self) -> None:
        """Remove what the disk has refused to remove so far. Nobody appends meanwhile. Raises OSError."""
        for queue in tuple(self._left.values()):
            self._destroy(queue)

    def _destroy(self, queue: ConsumeQueue) -> None:
        queue.destroy()
        del self._left[queue.key]
        queue.close()

    def all(self) -> tuple[ConsumeQueue, ...]:
        """Return the queues there are now, in the order in which they came to be."""
        with self._guard:
            return tuple(self._queues.values())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found in loading, reconciling and appending."""
        return (*self._findings, *(finding for queue in self.all() for finding in queue.findings))

    # ---- durability ----------------------------------------------------------------------------------------------

    def flush_all(self, least_pages: int = 0) -> None:
        """Flush every queue by a page rule. Raises the OSError of the first one that fails."""
        for queue in self.all():
            queue.flush(least_pages)

    def close(self) -> None:
        """Give up all mappings; nothing is written or synced here. The queues can still be asked, and are empty."""
        for queue in (*self.all(), *self._left.values()):
            queue.close()

    def check(self) -> None:
        """Assert what the queues promise, while nothing is appended."""
        for queue in self.all():
            queue.check()
