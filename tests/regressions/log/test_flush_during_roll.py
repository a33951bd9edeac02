"""A flush during the roll of a file does not skip the blank.

Symptom: after a power loss a synchronous store lost acknowledged records, or opened read-only (contracts 2 and 7).
Cause: a put that rolls over makes the next file, then writes the blank of the old one. A flush by another thread in
between synced the old file up to the blank and continued in the next one. No later flush covered the blank.
Fix: a flush enters a file only if the file before it is durable to its end (impl/log/mapped_file_queue.py, flush).
Found by: a review with real threads.
"""

import threading
from pathlib import Path

from tests.support.impl.stores import open_store
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.store import MessageStore

FILE_BYTES = 1024


def test_blank_is_durable_though_a_flush_came_before_it(tmp_path: Path) -> None:
    stores: list[MessageStore] = []

    class FlushedBeforeItsBlank(MappedFile):
        """Another thread flushes just before the blank is written."""

        def append_blank(self) -> None:
            flusher = threading.Thread(target=stores[0].flush)
            flusher.start()
            flusher.join(timeout=10)
            super().append_blank()

    parts = Parts({MappedFile: FlushedBeforeItsBlank})
    with open_store(tmp_path, file_bytes=FILE_BYTES, sync=True, parts=parts) as store:
        stores.append(store)
        for _ in range(12):
            assert store.put(Message("T", bytes(300))).status is PutStatus.PUT_OK
        durable = [file.end_offset for file in store._log.mapped if file.end_offset <= store.flushed_offset]
        assert durable
        for file in store._log.mapped[: len(durable)]:
            assert file.flushed_position == file.size_bytes, "a part of a closed file was passed over"
