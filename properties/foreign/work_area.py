"""Hold the work area of a store under test: in-memory directories and a process."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from tornpage.properties.disk.disk import Image
from tornpage.properties.foreign.process import StoreProcess
from tornpage.properties.foreign.watching import write_directory
from tornpage.properties.scratch import memory_directory, remove_tree

__all__ = ["WorkArea"]


class WorkArea:
    """Hold one directory per disk, and the process on the last one, until no longer used."""

    def __init__(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="tornpage-target-", dir=memory_directory()))
        self.process: StoreProcess | None = None
        self._count = 0

    def new_disk(self, image: Image, names: Mapping[str, int] | None = None) -> Path:
        """Return a directory with the content of an image. Paths with the same number in `names` are one file."""
        self._count += 1
        root = self.top / f"disk{self._count}"
        root.mkdir()
        write_directory(image, root, names)
        return root

    def end(self) -> None:
        """Kill the process and remove everything."""
        if self.process is not None:
            self.process.kill()
        remove_tree(str(self.top))
