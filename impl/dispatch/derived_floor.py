"""The derived floor: an offset below which queues and index were once on disk, and the checksums of their bytes.

Whoever opens the store reads those bytes, twenty for each message and key, and walks the log only from the offset on
when they are what they were. A file that is gone, torn or older does not have its checksum, and then the whole log is
walked: the floor saves time and is never needed. It is written after the flush it speaks of, as a new file that
takes the place of the old one.

`config/derivedFloor` is a line `TPDERIVED1 CRC`, the CRC-32 in hexadecimal of what follows, and a JSON object. RocketMQ
believes times in its checkpoint instead (holes C3, C4, H5).
"""

import json
from dataclasses import asdict, dataclass

from isal.isal_zlib import crc32

from tornpage.impl.index.index_layout import IndexFileProof, IndexHeader
from tornpage.impl.io.files import Files
from tornpage.impl.log.log_directories import directory_of
from tornpage.impl.queue.consume_queues import QueueFileProof

__all__ = ["DerivedFloor", "DerivedProof"]

_MAGIC = b"TPDERIVED1 "
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class DerivedProof:
    """What was durable of the records below `offset`, the newest of them stored at `store_timestamp` (milliseconds).

    `blanks` are base offset and position of the blank of each log file in front that has one, `named_queues` the queues
    that those records name (the bytes of the name in hexadecimal, and the queue id). Queue files of one queue
    and index files stand in the order of their names.
    """

    offset: int
    store_timestamp: int
    blanks: tuple[tuple[int, int], ...]
    named_queues: tuple[tuple[str, int], ...]
    queue_files: tuple[QueueFileProof, ...]
    index_files: tuple[IndexFileProof, ...]


class DerivedFloor:
    """Owns the file; its directory exists. `settings` are what the bytes depend on besides the log, as JSON has it."""

    def __init__(self, files: Files, path: str, *, settings: dict[str, object]) -> None:
        self._files = files
        self._path = path
        self._settings = settings

    def load(self) -> DerivedProof | None:
        """Return what was said, or None where nothing was, not under these settings, or not to its end."""
        if self._files.stat(self._path) is None:
            return None
        head, _, body = self._whole().partition(b"\n")
        if head != _head(body):
            return None
        said = json.loads(body)
        if said["settings"] != self._settings:
            return None
        return DerivedProof(
            offset=said["offset"],
            store_timestamp=said["store_timestamp"],
            blanks=tuple((base, position) for base, position in said["blanks"]),
            named_queues=tuple((name, queue_id) for name, queue_id in said["named_queues"]),
            queue_files=tuple(QueueFileProof(*proof) for proof in said["queue_files"]),
            index_files=tuple(
                IndexFileProof(path, IndexHeader(*head), (least, greatest), crc)
                for path, head, (least, greatest), crc in said["index_files"]
            ),
        )

    def forget(self) -> None:
        """Have nothing said, before files are written that were not what was said. Raises OSError.

        Whoever opens the store behind a sync that has failed would find in the page cache that it is true again. A
        power loss may bring the floor back, and leaves no page cache.
        """
        if self._files.stat(self._path) is not None:
            self._files.unlink(self._path)

    def _whole(self) -> bytes:
        file = self._files.open(self._path, writable=False)
        try:
            data = b""
            while piece := self._files.read(file, len(data), _CHUNK_BYTES):
                data += piece
        finally:
            self._files.close(file)
        return data

    def write(self, proof: DerivedProof) -> None:
        """Put a proof in the place of the one before, durably. Raises OSError; the one before is there then."""
        body = json.dumps({"settings": self._settings, **asdict(proof)}, separators=(",", ":")).encode()
        new = f"{self._path}.new"
        if self._files.stat(new) is not None:  # of an attempt that was broken off
            self._files.unlink(new)
        file = self._files.create(new)
        try:
            self._files.pwrite(file, _head(body) + b"\n" + body, 0)
            self._files.sync(file)
        finally:
            self._files.close(file)
        self._files.rename(new, self._path)
        self._files.sync_directory(directory_of(self._path))


def _head(body: bytes) -> bytes:
    return _MAGIC + b"%08x" % crc32(body)
