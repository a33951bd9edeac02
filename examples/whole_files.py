"""The file library of whole_files for tornpage: replace its methods by your library.

tornpage explore target whole_files.py:WholeFiles --seconds 30
"""

import os
from pathlib import Path

from tornpage.testing import FileStore


class WholeFiles(FileStore):
    # What your library promises. Only these promises are tested (docs/targets/shapes.md has the list).
    promises = {"durable": "write", "kill": "write", "atomic": True, "remove": True}
    open_many = True  # one process opens many crash states, one after the other; this is faster

    def __init__(self, directory):
        """Open the library in a directory, or recover what a crash left there."""
        self.directory = Path(directory)

    def write(self, name, content):
        """Create a file, or replace its content: a crash leaves the old content or the new one."""
        new = self.directory / f".{name}.new"
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self.directory / name)
        self.flush()

    def read(self, name):
        """Return the content of a file, or None if there is none."""
        path = self.directory / name
        return path.read_bytes() if path.exists() else None

    def remove(self, name):
        """Remove a file; it may be missing."""
        (self.directory / name).unlink(missing_ok=True)
        self.flush()

    def flush(self):
        """Make the names durable."""
        directory = os.open(self.directory, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
