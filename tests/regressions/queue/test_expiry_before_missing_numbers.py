"""Symptom: a clean-up deleted a queue file with messages that the log still had.

Reads skipped them until the next open.
Cause: the last unit of the file alone decided. Numbers without a message hold pre-fill, whose offset is 0, and pre-fill
at the end of a file counted as an expired message.
Fix: the last message at or before the end of the file decides.
Found by: programs of one queue against a plain list of units (properties/lockstep/parts/queues.py).
"""

from pathlib import Path

from tests.support.impl.queues import queue_of, run_of
from tornpage.impl.queue.units import Unit


def test_file_with_a_message_before_missing_numbers_stays(tmp_path: Path) -> None:
    queue = queue_of(tmp_path)
    queue.append(run_of(0, 4))
    queue.append(run_of(5, 2))  # no message has the number 4, the last one of the first file
    queue.correct_min_offset(300)
    assert queue.drop_expired(300, 1_000) == (0, False)
    assert queue.unit(3) == Unit(300, 99, 7)
    queue.correct_min_offset(500)
    assert queue.drop_expired(500, 1_000) == (1, False)
    assert queue.unit(5) == Unit(500, 99, 7)
    queue.close()
