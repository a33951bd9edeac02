"""Hold the work area of a store under test: in-memory directories and a process.

A process that opens several directories one after the other saves the start of a process for each crash state. A work
area without a pool has processes of its own, which a crash kills.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from tornpage.properties.disk.disk import Image
from tornpage.properties.foreign.process import StoreFailed, StoreProcess
from tornpage.properties.foreign.spec import Spec
from tornpage.properties.foreign.watching import WatchedDirectory, write_directory
from tornpage.properties.scratch import memory_directory, remove_tree

__all__ = ["OPENS_MAX", "ProcessPool", "WorkArea"]

OPENS_MAX = 200
"""Directories that one process opens before it is replaced."""
_IDLE_MAX = 3
"""A session, and a traced and an untraced branch of it."""


class ProcessPool:
    """Keep processes whose store is closed, for the next directory."""

    def __init__(self) -> None:
        self._idle: list[StoreProcess] = []
        self.is_in_use = True

    def take(self, root: Path, watched: WatchedDirectory | None) -> StoreProcess | None:
        """Return a process that is to open a directory, or None.

        It is traced if the directory is watched.
        """
        for process in self._idle:
            if process.is_traced == (watched is not None):
                self._idle.remove(process)
                process.reuse(root, watched)
                return process
        return None

    def give_back(self, process: StoreProcess) -> None:
        """Close the store of a process and keep the process. A process that fails is killed."""
        process.leave_directory()
        can_stay = self.is_in_use and process.opens_many and process.opens < OPENS_MAX
        if not can_stay or len(self._idle) >= _IDLE_MAX or not (process.is_closed or _closes(process)):
            process.kill()
        else:
            self._idle.append(process)

    def end(self) -> None:
        """Kill all processes; none is kept after that."""
        self.is_in_use = False
        while self._idle:
            self._idle.pop().kill()


def _closes(process: StoreProcess) -> bool:
    process.stays = True
    try:
        return "error" not in process.ask("close")
    except StoreFailed:
        return False


class WorkArea:
    """Hold one directory per disk, and the process on the last one, until no longer used."""

    def __init__(self, pool: ProcessPool | None = None) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="tornpage-target-", dir=memory_directory()))
        self.process: StoreProcess | None = None
        self.has_reused = False
        self._pool = pool
        self._count = 0

    def new_disk(self, image: Image, names: Mapping[str, int] | None = None) -> Path:
        """Return a directory with the content of an image.

        Paths with the same number in `names` are one file.
        """
        self._count += 1
        root = self.top / f"disk{self._count}"
        root.mkdir()
        write_directory(image, root, names)
        return root

    def start(self, spec: Spec, root: Path, *, watched: WatchedDirectory | None, answer_seconds: float) -> StoreProcess:
        """Return a process for a store in a directory. A process that is still there ends."""
        self.release()
        if self._pool is not None and (reused := self._pool.take(root, watched)) is not None:
            self.process, self.has_reused = reused, True
            return reused
        self.process = StoreProcess(spec, root, watched=watched, answer_seconds=answer_seconds)
        self.process.stays = self._pool is not None
        return self.process

    def end_process(self, watched: WatchedDirectory) -> bool:
        """End the process as a crash does, and complete the recording.

        Return whether the process was killed. A process of a pool goes on elsewhere. It may still write to the
        directory, and these writes are not recorded. Raises HarnessError if the recording is wrong.
        """
        if self._pool is not None and not watched.unsupported and self.process is not None and self.process.is_traced:
            watched.look()
            watched.proves_journal()
            self.release()
            return False
        if self.process is not None:
            self.process.kill()
            self.process = None
        watched.look()
        watched.proves_itself()
        return True

    def leave_pool(self) -> bool:
        """Kill a process that was reused; return whether there was one.

        After that each process of this work area is a new one.
        """
        if self.process is None or self.process.opens == 1:
            return False
        self.process.kill()
        self.process = self._pool = None
        return True

    def release(self) -> None:
        """End the process, or give it back to the pool."""
        process, self.process = self.process, None
        if process is None:
            return
        if self._pool is None:
            process.kill()
        else:
            self._pool.give_back(process)

    def end(self) -> None:
        """Kill the process and remove everything."""
        if self.process is not None:
            self.process.kill()
        remove_tree(str(self.top))
