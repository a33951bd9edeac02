"""The derived floor: the offset up to which queues and index were durable, with checksums.

An open reads the bytes of queues and index, twenty for each message and key. If the checksums hold, it walks the log
only from the offset on. A removed, torn or older file has another checksum, and then the whole log is walked. The floor
saves time; nothing depends on it. It is written after the flush that it describes, by renaming a new file.

`config/derivedFloor` is a line `TPDERIVED1 CRC`, with the CRC-32 in hexadecimal of the bytes that follow, and a JSON
object. RocketMQ trusts times in its checkpoint instead (holes C3, C4, H5).
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
    """The durable state of queues and index for the records below `offset`.

    `store_timestamp` is the newest store time among those records, in milliseconds. `blanks` are pairs of base offset
    and position of the blank, for each earlier log file that has one. `named_queues` are the queues named by those
    records (the bytes of the name in hexadecimal, and the queue id). Queue files of one queue, and index files, are
    ordered by name.
    """

    offset: int
    store_timestamp: int
    blanks: tuple[tuple[int, int], ...]
    named_queues: tuple[tuple[str, int], ...]
    queue_files: tuple[QueueFileProof, ...]
    index_files: tuple[IndexFileProof, ...]


class DerivedFloor:
    """Owns the file of the derived floor; its directory must exist.

    `settings` are the settings on which the bytes of queues and index depend, as JSON values.
    """

    def __init__(self, files: Files, path: str, *, settings: dict[str, object]) -> None:
        self._files = files
        self._path = path
        self._settings = settings

    def load(self) -> DerivedProof | None:
        """Return the stored proof.

        Returns None if there is none, it is damaged, or the settings differ. Raises OSError.
        """
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
        """Remove the floor before files that it describes are written. Raises OSError.

        After a failed sync, the next open would find in the page cache that the floor holds again. A power loss may
        bring the removed floor back, but it also clears the page cache.
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
        """Replace the stored proof durably. Raises OSError; the previous proof then stays."""
        body = json.dumps({"settings": self._settings, **asdict(proof)}, separators=(",", ":")).encode()
        new = f"{self._path}.new"
        if self._files.stat(new) is not None:  # left by an interrupted attempt
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
