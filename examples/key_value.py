"""The key-value store of key_value for tornpage: replace its methods by your library.

tornpage explore target key_value.py:KeyValue --seconds 30
"""

import base64
import json
import os
import zlib
from pathlib import Path

from tornpage.testing import KeyValueStore


class KeyValue(KeyValueStore):
    # What your store promises. Only these promises are tested (docs/targets/shapes.md has the list).
    promises = {"durable": "put", "kill": "put", "batch": "atomic"}
    open_many = True  # one process opens many crash states, one after the other; this is faster

    def __init__(self, directory):
        """Open the store in a directory, or recover what a crash left there."""
        path = Path(directory, "log")
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.end = 0
        self.values = {}
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

    def apply(self, changes):
        for key, value in changes:
            self.values[key] = value

    def put(self, key, value):
        """Set the value of a key."""
        self.write([[key, coded(value)]])

    def delete(self, key):
        """Remove a key; it may be missing."""
        self.write([[key, None]])

    def batch(self, changes):
        """Set several keys, or remove those with None: a crash leaves all or none."""
        self.write([[key, coded(value)] for key, value in changes])

    def get(self, key):
        """Return the value of a key, or None if there is none."""
        return decoded(self.values.get(key))

    def scan(self):
        """Return all pairs of key and value."""
        return [(key, decoded(value)) for key, value in self.values.items() if value is not None]

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
