"""The recorded disk of a trial, on which a commit of the transient store pool may fail half way."""

import errno
import os

from impl.files import OpenFile
from properties.log_places import log_files
from properties.recorder.recording_files import RecordingFiles

__all__ = ["FailingDisk"]


class FailingDisk(RecordingFiles):
    """`failing_writes` is how many writes to log files fail next, those through a mapping left out: each stores half
    of its bytes and answers EIO. `half_written_end` is the physical offset up to which the last of them came.
    """

    failing_writes = 0
    half_written_end = 0

    def mend(self) -> None:
        """Let everything succeed again; whoever reads the files next decides what a half write is worth."""
        self.failing_syncs = self.failing_writes = self.half_written_end = 0

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        """Write, or fail half way."""
        if not self.failing_writes or not log_files([file.path]):
            super().pwrite(file, bytes(data), offset)
            return
        self.failing_writes -= 1
        half_bytes = len(data) // 2
        super().pwrite(file, bytes(data[:half_bytes]), offset)
        self.half_written_end = int(file.path.rpartition("/")[2]) + offset + half_bytes
        raise OSError(errno.EIO, os.strerror(errno.EIO), file.path)
