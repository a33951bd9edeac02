"""Test the entries in memory against the log below them."""

import random

import pytest

from tornpage.impl.raft.entry_codec import HEADER_BYTES
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.recent import RecentEntries
from tornpage.properties.raft.memory import MemoryLog


class CountingLog(MemoryLog):
    """A log that counts how often its entries are read."""

    reads = 0

    def entries(self, begin: int, size_bytes_max: int) -> tuple[Carried, ...]:
        self.reads += 1
        return super().entries(begin, size_bytes_max)


@pytest.mark.parametrize("seed", range(5))
def test_entries_are_those_of_the_log(seed: int) -> None:
    rng = random.Random(seed)
    log = CountingLog([], 0, 3)
    recent = RecentEntries(log, 300)
    for step in range(400):
        if rng.random() < 0.1 and recent.end:
            recent.cut(rng.randrange(recent.end + 1))
        else:
            recent.append([Carried(step, bytes(rng.randrange(80))) for _ in range(rng.randint(1, 4))])
        if rng.random() < 0.3:
            recent.sync()
        assert (recent.end, recent.synced) == (log.end, log.synced)
        begin, size_bytes = rng.randrange(recent.end + 1), rng.randrange(400)
        found = recent.entries(begin, size_bytes)
        assert list(found) == log.rows[begin : begin + len(found)]
        assert bool(found) is (begin < log.end)


def test_new_entries_are_read_from_memory_up_to_a_size() -> None:
    log = CountingLog([Carried(1, b"old")], 1, 9)
    recent = RecentEntries(log, 1_000)
    recent.append([Carried(2, bytes(2))] * 10)
    size = HEADER_BYTES + 2
    assert [len(recent.entries(1, limit)) for limit in (0, size - 1, size, 3 * size, 100 * size)] == [1, 1, 1, 3, 10]
    assert recent.entries(11, 100) == ()
    assert log.reads == 0


def test_a_batch_from_files_is_read_once() -> None:
    """A leader sends the same batch to a member that does not answer."""
    log = CountingLog([Carried(1, b"old")] * 5, 5, 3)
    recent = RecentEntries(log, 1_000)
    assert [len(recent.entries(0, 10)) for _ in range(3)] == [3, 3, 3]
    assert log.reads == 1
    recent.cut(1)
    assert recent.entries(0, 10) == (Carried(1, b"old"),)


def test_memory_is_bounded() -> None:
    recent = RecentEntries(MemoryLog([], 0, 9), 1_000)
    for _ in range(500):
        recent.append([Carried(1, bytes(52))])
    held = [begin for begin in range(500) if len(recent.entries(begin, 1 << 20)) > 9]
    assert len(held) <= 2 * 1_000 // 100
