"""Compare queues and extensions with those of RocketMQ 4.9.3, byte for byte.

They are rebuilt from its log, kept at an open, and made by its puts.
"""

import hashlib
import shutil
from pathlib import Path

import pytest

from tests.impl.golden.test_golden_puts import Delivering, history, put_again
from tests.support.impl.golden import golden, opened
from tests.support.impl.golden_files import WHOLE, derived_bytes, opening_arguments
from tests.support.impl.stores import SetClock
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.parts import Parts

RETAINED_PART = "03-rollover-blanks-retention"
"""Retention had removed the first log files: only the queues have units of their records."""


def copied(folder: Path, directory: Path, *parts: str) -> Path:
    """Copy a golden store, or parts of it."""
    for part in parts or [path.name for path in (folder / "store").iterdir()]:
        source = folder / "store" / part
        if source.is_dir():
            shutil.copytree(source, directory / part)
        else:
            directory.mkdir(exist_ok=True)
            shutil.copy2(source, directory / part)
    return directory


def stamps(directory: Path) -> dict[str, int]:
    """Return the modification time of each file of queues and index, in ns."""
    return {
        name: (directory / name).stat().st_mtime_ns
        for name in derived_bytes(directory, "consumequeue", "consumequeue_ext", "index")
    }


def visible(queues: dict[str, bytes], *, first_units: dict[str, int]) -> dict[str, bytes]:
    """Return the joined files of each queue, from the first unit of a retained record on."""
    joined: dict[str, bytes] = {}
    for name in sorted(queues):
        queue, base = name.rsplit("/", 1)
        skipped = max(0, 20 * first_units.get(queue, 0) - int(base))
        joined[queue] = joined.get(queue, b"") + queues[name][skipped:]
    return joined


@pytest.mark.parametrize("case", WHOLE)
def test_log_alone_gives_the_queues_of_rocketmq(case: str, tmp_path: Path) -> None:
    folder = golden(case)
    directory = copied(folder, tmp_path / "store", "commitlog")
    with opened(directory, folder, **opening_arguments(folder)) as store:
        minima = {f"consumequeue/{name}/{number}": store.min_offset_in_queue(name, number)
                  for name, number in store.queues()}  # fmt: skip
        ours, theirs = derived_bytes(directory), derived_bytes(folder / "store")
        assert len(theirs) > 0
        if case == RETAINED_PART:
            assert visible(ours, first_units=minima) == visible(theirs, first_units=minima)
            assert ours.keys() <= theirs.keys()
        else:
            assert not any(minima.values())
            assert ours == theirs
    assert derived_bytes(directory) == ours


@pytest.mark.parametrize("case", WHOLE)
def test_queues_and_index_of_rocketmq_are_left_as_they_are(case: str, tmp_path: Path) -> None:
    folder = golden(case)
    directory = copied(folder, tmp_path / "store")
    before = derived_bytes(directory, "consumequeue", "consumequeue_ext", "index"), stamps(directory)
    with opened(directory, folder, **opening_arguments(folder)) as store:
        assert store.findings == ()
    assert (derived_bytes(directory, "consumequeue", "consumequeue_ext", "index"), stamps(directory)) == before


def test_bit_maps_that_nobody_can_tell_are_left_as_they_are(tmp_path: Path) -> None:
    """Bit maps stay although their author is absent: the last exit was clean."""
    folder = golden("07-queue-ext-bitmaps")
    directory = copied(folder, tmp_path / "store")
    before = derived_bytes(directory), stamps(directory)
    with opened(directory, folder) as store:
        assert store.findings == ()
    assert (derived_bytes(directory), stamps(directory)) == before


@pytest.mark.parametrize("case", WHOLE)
def test_same_puts_give_the_queues_of_rocketmq(case: str, tmp_path: Path) -> None:
    folder, clock = golden(case), SetClock()
    parts = Parts({CommitLog: Delivering})
    with opened(tmp_path, folder, clock, parts, **opening_arguments(folder)) as store:
        for entry in history(folder):
            put_again(store, clock, case, entry)
    ours, theirs = derived_bytes(tmp_path), derived_bytes(folder / "store")
    assert {name: hashlib.sha256(data).digest() for name, data in ours.items()} == {
        name: hashlib.sha256(data).digest() for name, data in theirs.items()
    }
