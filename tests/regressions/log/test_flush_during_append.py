"""A record flushed during its append is in the checkpoint.

Symptom: after a clean close the checkpoint was older than the newest record.
Cause: a flush by another thread ran between the bytes of a record and the note of its time. It covered the record with
the time of the record before. Later flushes, including that of the close, found no new bytes and did not look at the
time.
Fix: each flush notes the time, with or without new bytes (impl/log/commit_log.py, `flush`).
Found by: a review for races.
"""

import threading
from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, HandRunner, open_store
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore


@pytest.mark.parametrize("puts", [1, 2])
def test_next_flush_notes_the_time(puts: int, tmp_path: Path) -> None:
    stores: list[MessageStore] = []

    class FlushedAtOnce(MappedFile):
        """Another thread flushes as soon as the bytes are in the file."""

        def append(self, record: bytearray) -> None:
            super().append(record)
            flusher = threading.Thread(target=stores[0].flush)
            flusher.start()
            flusher.join(timeout=10)

    parts = Parts({MappedFile: FlushedAtOnce, ThreadRunner: HandRunner()})
    with open_store(tmp_path, parts=parts) as store:
        stores.append(store)
        results = [store.put(MESSAGE) for _ in range(puts)]
        assert store.flushed_offset == store.max_offset
        before = [0, *(result.store_timestamp for result in results)][-2]
        assert store._held.checkpoint.physic_msg_timestamp == before
    assert (tmp_path / "checkpoint").read_bytes()[:8] == results[-1].store_timestamp.to_bytes(8)
