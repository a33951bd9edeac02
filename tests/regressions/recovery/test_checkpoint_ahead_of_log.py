"""An open sets back a checkpoint that is ahead of the log.

Symptom: a checkpoint with a later time than the newest record kept that time through recoveries and exits.
Cause: an open set back only the times of queues and index, and the time of the log could only grow. RocketMQ, opened on
such a directory, would begin an abnormal recovery after records that it has to read.
Fix: an open sets it back to the newest record that exists (impl/recovery/opening.py, `_lower_log_time`).
Found by: `tornpage judge` on the golden crash images with a lost end of the log.
"""

from pathlib import Path

from tests.support.impl.stores import MESSAGE, HandRunner, SetClock, open_store
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner

YEAR_MS = 365 * 86_400_000


def physic_timestamp(directory: Path) -> int:
    return int.from_bytes((directory / "checkpoint").read_bytes()[:8], signed=True)


def test_an_open_sets_it_back_to_the_newest_record(tmp_path: Path) -> None:
    parts = Parts({ThreadRunner: HandRunner()})
    with open_store(tmp_path, clock=SetClock(), parts=parts) as store:
        newest = store.put(MESSAGE).store_timestamp
    stored = (tmp_path / "checkpoint").read_bytes()
    (tmp_path / "checkpoint").write_bytes((newest + YEAR_MS).to_bytes(8) + stored[8:])
    with open_store(tmp_path, clock=SetClock(), parts=parts):
        assert physic_timestamp(tmp_path) == newest
    assert physic_timestamp(tmp_path) == newest


def test_a_log_without_records_has_none_to_name(tmp_path: Path) -> None:
    with open_store(tmp_path, clock=SetClock(), parts=Parts({ThreadRunner: HandRunner()})):
        pass
    (tmp_path / "checkpoint").write_bytes(YEAR_MS.to_bytes(8).ljust(4096, b"\0"))
    with open_store(tmp_path, clock=SetClock(), parts=Parts({ThreadRunner: HandRunner()})):
        assert physic_timestamp(tmp_path) == 0
