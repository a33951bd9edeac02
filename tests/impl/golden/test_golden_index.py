"""Compare index files with those of RocketMQ 4.9.3, byte for byte and in order.

They are rebuilt from its log, and made by its puts.
"""

import struct
from pathlib import Path

import pytest

from tests.impl.golden.test_golden_puts import Delivering, history, put_again
from tests.impl.golden.test_golden_queues import RETAINED_PART, copied
from tests.support.impl.golden import golden, opened
from tests.support.impl.golden_files import WHOLE, index_bytes, opening_arguments
from tests.support.impl.stores import SetClock
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.parts import Parts


@pytest.mark.parametrize("case", [case for case in WHOLE if case != RETAINED_PART])
def test_log_alone_gives_the_index_of_rocketmq(case: str, tmp_path: Path) -> None:
    folder = golden(case)
    directory = copied(folder, tmp_path / "store", "commitlog")
    with opened(directory, folder, **opening_arguments(folder)):
        ours = index_bytes(directory)
        assert ours == index_bytes(folder / "store")
    assert index_bytes(directory) == ours


def test_retained_log_gives_an_index_of_what_it_has(tmp_path: Path) -> None:
    """RocketMQ's index has entries of records that retention removed.

    Its files therefore begin elsewhere; the keys are the same.
    """
    folder = golden(RETAINED_PART)
    directory = copied(folder, tmp_path / "store", "commitlog")
    with opened(directory, folder) as store:
        ours, theirs = index_bytes(directory), index_bytes(folder / "store")
        retained = [entry for entry in entries(theirs) if entry[1] >= store.min_offset]
    assert entries(ours) == retained
    assert 0 < len(retained) < len(entries(theirs))


def entries(files: list[bytes], *, slots: int = 100) -> list[tuple[int, int]]:
    """Return (hash, physical offset) of every entry."""
    found = []
    for data in files:
        (number,) = struct.unpack_from(">i", data, 36)
        start = 40 + 4 * slots
        found += [struct.unpack_from(">iq", data, start + 20 * at) for at in range(1, number)]
    return found


@pytest.mark.parametrize("case", WHOLE)
def test_same_puts_give_the_index_of_rocketmq(case: str, tmp_path: Path) -> None:
    folder, clock = golden(case), SetClock()
    with opened(tmp_path, folder, clock, Parts({CommitLog: Delivering}), **opening_arguments(folder)) as store:
        for entry in history(folder):
            put_again(store, clock, case, entry)
    assert index_bytes(tmp_path) == index_bytes(folder / "store")
