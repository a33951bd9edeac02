"""The next round repeats a failed write of the checkpoint.

Symptom: one failed write of the checkpoint left the old one on the disk for another minute.
Cause: the round counted as thorough before it had succeeded. The next one, a second later, applied the page rule again
and wrote no checkpoint.
Fix: a round is thorough once the checkpoint is on the disk (impl/dispatch/queue_flush.py, `step`).
Found by: a review.
"""

from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, HandRunner, open_store
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner


@pytest.mark.parametrize("verb", ["pwrite", "sync"])
def test_next_round_writes_it(verb: str, tmp_path: Path) -> None:
    files, runner = FaultyFiles(), HandRunner()
    with open_store(tmp_path, files=files, parts=Parts({ThreadRunner: runner})) as store:
        timestamp = store.put(MESSAGE).store_timestamp
        store.flush()
        files.fail(verb, part="checkpoint", times=1)
        with pytest.raises(OSError, match="Input/output"):
            runner.step("flush-queues", after_ms=1_000)
        files.calls.clear()
        runner.step("flush-queues", after_ms=1_000)
        assert (tmp_path / "checkpoint").read_bytes()[:8] == timestamp.to_bytes(8)
        assert ("sync", str(tmp_path / "checkpoint")) in files.calls
