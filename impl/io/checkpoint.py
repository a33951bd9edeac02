"""The checkpoint file: the times up to which log, queues and index are durable.

    0 physicMsgTimestamp (i64)   8 logicsMsgTimestamp (i64)   16 indexMsgTimestamp (i64)   24 zeros up to 4096

Times are milliseconds. They are set from records that a successful flush covered, never from records that were only
written. Source: `StoreCheckpoint`.
"""

import struct

from tornpage.impl.io.files import Files, OpenFile

__all__ = ["CHECKPOINT_BYTES", "Checkpoint"]

CHECKPOINT_BYTES = 4096
_TIMES = struct.Struct(">qqq")


class Checkpoint:
    """Owns the file `checkpoint`.

    A missing or short file reads as zeros; `start` creates it at full size.
    """

    def __init__(self, files: Files, path: str, *, keeps_index: bool = True) -> None:
        self._files = files
        self._path = path
        self._file: OpenFile | None = None
        self.physic_msg_timestamp = 0
        self.logics_msg_timestamp = 0
        self.index_msg_timestamp = 0
        self.is_damaged = False
        self._keeps_index = keeps_index

    def load(self) -> None:
        """Read the three times. A negative time is damage and reads as 0. Raises OSError."""
        if self._files.stat(self._path) is None:
            return
        file = self._files.open(self._path, writable=False)
        try:
            data = self._files.read(file, 0, _TIMES.size)
        finally:
            self._files.close(file)
        if len(data) == _TIMES.size:
            times = _TIMES.unpack(data)
            self.is_damaged = min(times) < 0
            self.physic_msg_timestamp, self.logics_msg_timestamp, self.index_msg_timestamp = (max(0, t) for t in times)

    def start(self) -> None:
        """Open the file for writing, at its full size. Raises OSError."""
        stat = self._files.stat(self._path)
        self._file = self._files.create(self._path) if stat is None else self._files.open(self._path, writable=True)
        if stat is None or stat.size_bytes < CHECKPOINT_BYTES:
            self._files.allocate(self._file, CHECKPOINT_BYTES)

    def note_dispatched(self, store_timestamp: int) -> None:
        """Set the times of queues and index to a store timestamp, which may be lower than before.

        After the clock was set back, or the log lost its end, its newest messages are older. The time of an index that
        is not kept never rises; a damaged index may be older than any time.
        """
        self.logics_msg_timestamp = store_timestamp
        said_of_index = store_timestamp if self._keeps_index else min(self.index_msg_timestamp, store_timestamp)
        self.index_msg_timestamp = max(0, said_of_index)

    def flush(self) -> None:
        """Write the times and make them durable. Raises OSError."""
        assert self._file is not None
        times = _TIMES.pack(self.physic_msg_timestamp, self.logics_msg_timestamp, self.index_msg_timestamp)
        self._files.pwrite(self._file, times, 0)
        self._files.mark("checkpoint")
        self._files.sync(self._file)

    def close(self) -> None:
        """Close the file if it is open."""
        if self._file is not None:
            self._files.close(self._file)
            self._file = None
