"""The queues of mail_queue for tornpage: replace its methods by your library.

tornpage explore target mail_queue.py:MailQueue --seconds 30
"""

import base64
import json
import os
import zlib
from pathlib import Path

from tornpage.testing import QueueStore


class MailQueue(QueueStore):
    # What your store promises. Only these promises are tested (docs/targets/shapes.md has the list).
    promises = {"durable": "put", "kill": "put", "removed": "remove", "take": "lends"}
    open_many = True  # one process opens many crash states, one after the other; this is faster

    def __init__(self, directory):
        """Open the store in a directory, or recover what a crash left there."""
        path = Path(directory, "log")
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.end = 0
        self.queues, self.count, self.taken = {}, 0, set()
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

    def apply(self, verb, queue, given):
        messages = self.queues.setdefault(queue, {})
        if verb == "put":
            self.count += 1
            messages[self.count] = given
        else:
            messages.pop(given, None)

    def put(self, queue, body):
        """Append a message to a queue."""
        self.write("put", queue, coded(body))

    def take(self, queue):
        """Return a handle and the next message, or None. An acknowledgement removes it."""
        for handle, body in self.queues.get(queue, {}).items():
            if handle not in self.taken:
                self.taken.add(handle)
                return handle, decoded(body)
        return None

    def acknowledge(self, queue, handle):
        """Remove a message that was taken."""
        self.write("acknowledge", queue, handle)

    def list(self, queue):
        """Return the messages of a queue, oldest first, those that were taken included."""
        return [decoded(body) for body in self.queues.get(queue, {}).values()]

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
