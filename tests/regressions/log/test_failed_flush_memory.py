"""Failing flushes take no memory.

Symptom: a store with failing commits grew in memory with each flush.
Cause: each flush recorded the end of the log and its time, to know the time once that end is durable. A flush that
fails never removes such a note.
Fix: one note for each end of the log (impl/log/commit_log.py, `flush`).
Found by: a review.
"""

from dataclasses import replace
from pathlib import Path

from tests.support.impl.stores import MESSAGE, FaultyFiles, HandRunner, config_of, open_store
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner


def test_one_end_is_noted_once(tmp_path: Path) -> None:
    files = FaultyFiles()
    config = replace(config_of(), transient_store_pool_enable=True)
    with open_store(tmp_path, config=config, files=files, parts=Parts({ThreadRunner: HandRunner()})) as store:
        store.put(MESSAGE)
        files.fail("pwrite", part="commitlog")
        for _ in range(50):
            assert not store.flush().durable
        assert len(store._commit_log._unflushed) == 1
        files.mend()
        last = store.put(MESSAGE)
        assert store.flush().durable
        assert store._held.checkpoint.physic_msg_timestamp == last.store_timestamp
        assert len(store._commit_log._unflushed) == 0
