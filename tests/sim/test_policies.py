"""Test the decisions of the store's policies, each by hand."""

import subprocess
import sys
from pathlib import Path

import pytest

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy, ImpossiblePolicy, WarmUp

TIMED = FlushPolicy(FlushDiskType.ASYNC_FLUSH)


def test_defaults_are_those_of_message_store_config() -> None:
    assert (TIMED.flush_interval_commit_log, TIMED.flush_commit_log_least_pages) == (500, 4)
    assert TIMED.flush_commit_log_thorough_interval == 10_000
    assert AllocationPolicy() == AllocationPolicy(1, WarmUp.NONE, 4096)


@pytest.mark.parametrize(
    ("written", "flushed", "least_pages", "full", "due"),
    [
        (16_383, 0, 4, False, False),
        (16_384, 0, 4, False, True),
        (20_000, 4_095, 4, False, True),  # page 4 against page 0: touched boundaries count, not bytes
        (20_000, 4_096, 4, False, False),
        (1, 0, 4, True, True),
        (1, 0, 0, False, True),
        (5, 5, 0, False, False),
        (5, 5, 4, True, False),
        (4_096, 4_095, 1, False, True),
        (4_095, 0, 1, False, False),
    ],
)
def test_a_file_is_due_by_page_boundaries(written: int, flushed: int, least_pages: int, full: bool, due: bool) -> None:
    answer = FlushPolicy.is_due(
        written_position=written, flushed_position=flushed, least_pages=least_pages, file_is_full=full
    )
    assert answer is due


def test_the_page_rule_falls_when_the_thorough_interval_has_passed() -> None:
    assert TIMED.least_pages(since_thorough_ms=9_999) == 4
    assert TIMED.least_pages(since_thorough_ms=10_000) == 0
    assert FlushPolicy(FlushDiskType.ASYNC_FLUSH, 500, 4, 0).least_pages(since_thorough_ms=0) == 0


def test_files_are_wanted_oldest_first() -> None:
    assert list(AllocationPolicy(0).wanted(file_index=7)) == [7]
    assert list(AllocationPolicy(1).wanted(file_index=7)) == [7, 8]
    assert list(AllocationPolicy(3).wanted(file_index=0)) == [0, 1, 2, 3]
    assert [AllocationPolicy(n).name for n in range(3)] == ["on-demand", "one-ahead", "2-ahead"]
    names = [AllocationPolicy(1, warm_up).name for warm_up in WarmUp]
    assert names == ["one-ahead", "one-ahead+touch", "one-ahead+warm", "one-ahead+populate"]


def test_warming_syncs_only_under_sync_flush_and_covers_every_page() -> None:
    policy = AllocationPolicy(1, WarmUp.TOUCH_AND_FORCE, 100)
    assert policy.warm_up_syncs(file_pages=250, flush_disk_type=FlushDiskType.SYNC_FLUSH) == (100, 100, 50)
    assert policy.warm_up_syncs(file_pages=250, flush_disk_type=FlushDiskType.ASYNC_FLUSH) == ()
    for warm_up in (WarmUp.NONE, WarmUp.TOUCH, WarmUp.POPULATE):
        silent = AllocationPolicy(1, warm_up, 100)
        assert silent.warm_up_syncs(file_pages=250, flush_disk_type=FlushDiskType.SYNC_FLUSH) == ()


@pytest.mark.parametrize(
    "fields", [(0, 4, 1), (1, -1, 1), (1, 4, -1)], ids=["no interval", "negative pages", "negative thorough"]
)
def test_impossible_policies_are_refused_by_name(fields: tuple[int, int, int]) -> None:
    with pytest.raises(ImpossiblePolicy, match="it has to be"):
        FlushPolicy(FlushDiskType.ASYNC_FLUSH, *fields)
    with pytest.raises(ImpossiblePolicy, match="files_ahead is -1"):
        AllocationPolicy(-1)


def test_policies_load_neither_files_nor_clocks_nor_the_store() -> None:
    program = (
        "import sys, dataclasses, enum, importlib, typing, warnings; before = set(sys.modules)\n"
        "import tornpage.impl.config.policy\n"
        "print(*(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == {
        "tornpage",
        "tornpage.impl",
        "tornpage.impl.config",
        "tornpage.impl.config.policy",
    }
