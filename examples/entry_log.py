"""The log of entry_log for tornpage: replace its methods by your library.

tornpage explore target entry_log.py:EntryLog --seconds 30
"""

import base64
import json
import os
import zlib
from pathlib import Path

from tornpage.testing import LogStore


class EntryLog(LogStore):
    # What your store promises. Only these promises are tested (docs/targets/shapes.md has the list).
    promises = {"durable": "append", "kill": "append", "truncate": "both"}
    open_many = True  # one process opens many crash states, one after the other; this is faster

    def __init__(self, directory):
        """Open the store in a directory, or recover what a crash left there."""
        path = Path(directory, "log")
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.end = 0
        self.entries, self.next = {}, 1
        for line in path.read_bytes().splitlines(keepends=True):
            checksum, _, change = line.partition(b" ")
            if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(change):
                break
            self.apply(*json.loads(change))
            self.end += len(line)
        os.ftruncate(self.file, self.end)
        os.fsync(self.file)
        parent = os.open(directory, os.O_RDONLY)
        os.fsync(parent)  # the name of the file is durable too
        os.close(parent)

    def write(self, *change):
        """Append a change to the file, sync it, then carry it out in memory."""
        text = json.dumps(change).encode() + b"\n"
        line = b"%08x %s" % (zlib.crc32(text), text)
        os.pwrite(self.file, line, self.end)
        os.fsync(self.file)
        self.end += len(line)
        self.apply(*change)

    def apply(self, verb, given):
        if verb == "append":
            self.next = max(self.entries, default=self.next - 1) + 1
            self.entries[self.next] = given
        elif verb == "front":
            self.entries = {index: body for index, body in self.entries.items() if index >= given}
        else:
            self.entries = {index: body for index, body in self.entries.items() if index <= given}

    def append(self, body):
        """Append an entry; return its index."""
        self.write("append", coded(body))
        return self.next

    def read(self, index):
        """Return the entry at an index, or None if there is none."""
        return decoded(self.entries.get(index))

    def bounds(self):
        """Return the indexes of the first and the last entry, or None for an empty log."""
        return (min(self.entries), max(self.entries)) if self.entries else None

    def truncate_front(self, index):
        """Remove the entries before an index."""
        self.write("front", index)

    def truncate_back(self, index):
        """Remove the entries after an index."""
        self.write("back", index)

    def flush(self):
        """Make everything durable."""
        os.fsync(self.file)

    def close(self):
        """Close the store."""
        os.close(self.file)


def coded(value):
    return None if value is None else base64.b64encode(value).decode()


def decoded(text):
    return None if text is None else base64.b64decode(text)
