"""A key-value store for several threads: one sync serves all that wrote before it.

tornpage explore target examples/shared_keys.py:SharedKeys --seconds 30
"""

import os
import threading
import zlib
from pathlib import Path

from tornpage.testing import KeyValueStore


class SharedKeys(KeyValueStore):
    # Up to four calls overlap. A put that has an answer survives a power loss.
    promises = {"durable": "put", "kill": "put", "callers": 4}

    def __init__(self, directory):
        """Open the store in a directory, or recover what a crash left there."""
        path = Path(directory, "log")
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.end = 0
        self.values = {}
        self.writing = threading.Lock()  # held while a change is appended
        self.syncing = threading.Lock()  # held by the caller that syncs
        self.written = self.synced = 0  # changes in the file, and those of them that are durable
        for line in path.read_bytes().splitlines(keepends=True):
            checksum, _, change = line.rstrip(b"\n").partition(b" ")
            if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(change):
                break
            self.apply(change)
            self.end += len(line)
        os.ftruncate(self.file, self.end)
        os.fsync(self.file)
        parent = os.open(directory, os.O_RDONLY)
        os.fsync(parent)  # the name of the file is durable too
        os.close(parent)

    def write(self, change):
        """Append a change to the file, carry it out in memory, and wait until it is durable."""
        line = b"%08x %s\n" % (zlib.crc32(change), change)
        with self.writing:
            os.pwrite(self.file, line, self.end)
            self.end += len(line)
            self.apply(change)
            self.written += 1
            number = self.written
        with self.syncing:
            if self.synced < number:
                written = self.written
                os.fsync(self.file)
                self.synced = written

    def apply(self, change):
        key, _, value = change.decode().partition(" ")
        if value:
            self.values[key] = bytes.fromhex(value)
        else:
            self.values.pop(key, None)

    def put(self, key, value):
        """Set the value of a key."""
        self.write(f"{key} {value.hex()}".encode())

    def delete(self, key):
        """Remove a key; it may be missing."""
        self.write(key.encode())

    def get(self, key):
        """Return the value of a key, or None if there is none."""
        return self.values.get(key)

    def scan(self):
        """Return all pairs of key and value."""
        return list(self.values.items())

    def flush(self):
        """Make everything durable."""
        os.fsync(self.file)

    def close(self):
        """Close the store."""
        os.close(self.file)
