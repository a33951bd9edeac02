"""Test every log that may remain after a crash fault: from the durable prefix to all."""

from collections.abc import Sequence

import pytest

from tests.model.support import batch_of, layout_of, message_of, put_all
from tornpage.model.commitlog import CommitLog, Conditions, flush, put
from tornpage.model.crash import crash, recovered_from, reopened
from tornpage.model.message import PutStatus

SYNC_FAILS = Conditions(sync_fails=True)
LAYOUT = layout_of()
"""Two records of 92 bytes to a file of 256: records at 0, 92, 256, 348, 512."""

SYNC = layout_of(sync_flush=True)


def log_of(puts: int, *, flushed: int = 0) -> CommitLog:
    """Return a log of `puts` records with the first `flushed` durable."""
    log, _ = put_all(*[message_of()] * flushed, layout=LAYOUT)
    log, _ = flush(log)
    log, _ = put_all(*[message_of()] * (puts - flushed), layout=LAYOUT, log=log)
    return log


def shapes(logs: Sequence[CommitLog]) -> list[tuple[int, int]]:
    """Return (records, end offset) of each log, checking their common properties."""
    for log in logs:
        assert log.flushed_offset == log.end_offset, "what recovery presents is durable"
        assert not log.poisoned
        assert log.files == -(-log.end_offset // 256)
        assert log.records == log_of(5).records[: len(log.records)]
        assert (log.dispatched_offset, log.queued) == (log.end_offset, 0), "an open finds everything dispatched"
    return sorted({(len(log.records), log.end_offset) for log in logs})


@pytest.mark.parametrize(
    ("puts", "flushed", "expected"),
    [
        (0, 0, [(0, 0)]),
        (1, 0, [(0, 0), (1, 92)]),
        (1, 1, [(1, 92)]),
        (2, 0, [(0, 0), (1, 92), (2, 184)]),
        (2, 1, [(1, 92), (2, 184)]),
        (3, 0, [(0, 0), (1, 92), (2, 184), (2, 256), (3, 348)]),
        (3, 2, [(2, 184), (2, 256), (3, 348)]),
        (3, 3, [(3, 348)]),
        (5, 0, [(0, 0), (1, 92), (2, 184), (2, 256), (3, 348), (4, 440), (4, 512), (5, 604)]),
        (5, 3, [(3, 348), (4, 440), (4, 512), (5, 604)]),
        (5, 5, [(5, 604)]),
    ],
)
def test_power_loss_keeps_the_durable_prefix_or_more(puts: int, flushed: int, expected: list[tuple[int, int]]) -> None:
    log = log_of(puts, flushed=flushed)
    assert shapes(list(crash(log, log, "power loss", layout=LAYOUT))) == expected


@pytest.mark.parametrize("puts", range(6))
@pytest.mark.parametrize("flushed", range(6))
def test_process_kill_keeps_everything(puts: int, flushed: int) -> None:
    log = log_of(puts, flushed=min(puts, flushed))
    assert shapes(list(crash(log, log, "process kill", layout=LAYOUT))) == [(puts, log.end_offset)]


def test_put_that_has_not_returned_may_survive_whole_or_not_at_all() -> None:
    before = log_of(2, flushed=2)
    after = log_of(3, flushed=2)
    closed = (2, 256)  # the first file was closed for the lost record
    assert shapes(list(crash(before, after, "process kill", layout=LAYOUT))) == [(2, 184), closed, (3, 348)]
    assert shapes(list(crash(before, after, "power loss", layout=LAYOUT))) == [(2, 184), closed, (3, 348)]


def test_sync_put_that_has_not_returned_promises_nothing_yet() -> None:
    before = log_of(1, flushed=1)
    after, outcome = put(before, message_of(), layout=SYNC, store_timestamp=1)
    assert outcome.status is PutStatus.PUT_OK
    assert after.flushed_offset == 184
    assert {len(log.records) for log in crash(before, after, "power loss", layout=SYNC)} == {1, 2}
    assert {len(log.records) for log in crash(after, after, "power loss", layout=SYNC)} == {2}


def test_flush_that_has_not_returned_promises_nothing_yet() -> None:
    before = log_of(2)
    after, _ = flush(before)
    assert shapes(list(crash(before, after, "power loss", layout=LAYOUT))) == [(0, 0), (1, 92), (2, 184)]
    assert shapes(list(crash(after, after, "power loss", layout=LAYOUT))) == [(2, 184)]


def test_put_without_wait_is_not_durable() -> None:
    log, outcome = put(log_of(1, flushed=1), message_of(properties="WAIT\x01false"), layout=SYNC, store_timestamp=1)
    assert outcome.status is PutStatus.PUT_OK
    assert sorted(len(found.records) for found in crash(log, log, "power loss", layout=SYNC)) == [1, 2]


def test_put_that_timed_out_is_not_durable() -> None:
    log, outcome = put(log_of(1, flushed=1), message_of(), layout=SYNC, store_timestamp=2, conditions=SYNC_FAILS)
    assert outcome.status is PutStatus.FLUSH_DISK_TIMEOUT
    assert shapes(list(crash(log, log, "power loss", layout=SYNC))) == [(1, 92), (2, 184)]


def test_a_durable_closing_stays() -> None:
    """Once recovery has found the file closed, a later power loss does not open it again."""
    log = recovered_from(log_of(3), 2, 256, layout=LAYOUT)
    assert shapes(list(crash(log, log, "power loss", layout=LAYOUT))) == [(2, 256)]
    after, _ = put(log, message_of(), layout=LAYOUT, store_timestamp=3)
    assert [record.offset for record in after.records] == [0, 92, 256]
    assert shapes(list(crash(after, after, "power loss", layout=LAYOUT))) == [(2, 256), (3, 348)]


def test_recovered_log_goes_on_where_it_ends() -> None:
    cut = recovered_from(log_of(5), 3, 348, layout=LAYOUT)
    after, outcome = put(cut, message_of(), layout=LAYOUT, store_timestamp=9)
    assert outcome.record is not None
    assert (outcome.record.offset, outcome.record.queue_offset) == (348, 3)
    assert after.files == 2


def test_disasters_repeat_without_bringing_anything_back() -> None:
    """Power fails repeatedly: each legal log is a prefix of an earlier legal one."""
    log = log_of(5)
    for survivor in crash(log, log, "power loss", layout=LAYOUT):
        assert all(again == survivor for again in crash(survivor, survivor, "power loss", layout=LAYOUT))


def test_empty_new_file_is_no_part_of_the_answer() -> None:
    log = log_of(2, flushed=2).changed(files=2)
    assert shapes(list(crash(log, log, "power loss", layout=LAYOUT))) == [(2, 184)]


def test_any_prefix_of_a_batch_may_survive() -> None:
    before = log_of(1, flushed=1)
    layout = layout_of(file_bytes=1024)
    after, outcome = put(before, batch_of(b"", b"", b""), layout=layout, store_timestamp=2)
    assert len(outcome.records) == 3
    for logs in (
        crash(before, after, "power loss", layout=layout),
        crash(before, after, "process kill", layout=layout),
    ):
        found = list(logs)
        assert [len(log.records) for log in found] == [1, 2, 3, 4]
        assert all(log.records == after.records[: len(log.records)] for log in found)
    assert [len(log.records) for log in crash(after, after, "power loss", layout=layout)] == [1, 2, 3, 4]
    assert [len(log.records) for log in crash(after, after, "process kill", layout=layout)] == [4]


def test_a_synced_batch_is_whole() -> None:
    after, outcome = put(log_of(1), batch_of(b"", b""), layout=SYNC, store_timestamp=2)
    assert outcome.status is PutStatus.PUT_OK
    assert [len(log.records) for log in crash(after, after, "power loss", layout=SYNC)] == [3]


def test_a_batch_that_rolled_over_leaves_the_file_before_it_closed_or_open() -> None:
    before = log_of(1, flushed=1)
    after, _ = put(before, batch_of(b"", b""), layout=LAYOUT, store_timestamp=2)
    assert [record.offset for record in after.records] == [0, 256, 348]
    ends = [(len(log.records), log.end_offset) for log in crash(before, after, "process kill", layout=LAYOUT)]
    assert ends == [(1, 92), (1, 256), (2, 348), (3, 440)]


def test_queue_goes_on_behind_the_part_of_a_batch_that_survived() -> None:
    layout = layout_of(file_bytes=1024)
    log, _ = put_all(batch_of(b"", b"", b""), layout=layout)
    for survivor in crash(log, log, "power loss", layout=layout):
        _, outcome = put(survivor, message_of(), layout=layout, store_timestamp=9)
        assert outcome.record is not None
        assert outcome.record.queue_offset == len(survivor.records)


def test_refused_bytes_close_the_file_or_not() -> None:
    before = log_of(2, flushed=2)
    after, _ = put(before, message_of(), layout=LAYOUT, store_timestamp=3, conditions=Conditions(append_fails=True))
    assert shapes(list(crash(before, after, "process kill", layout=LAYOUT))) == [(2, 184), (2, 256)]
    assert shapes(list(crash(after, after, "process kill", layout=LAYOUT))) == [(2, 256)]
    assert shapes(list(crash(after, after, "power loss", layout=LAYOUT))) == [(2, 184), (2, 256)]


def test_named_queues_go_on_behind_the_survivors() -> None:
    """Restarts and crashes give no offset of a named queue twice.

    They forget removed light queues.
    """
    layout = layout_of(file_bytes=4096, multi_dispatch=True, light_queues=True, light_queues_max=2)
    names = ["%LMQ%a", "%LMQ%b", "%LMQ%a"]
    log, _ = put_all(*[message_of(properties={"INNER_MULTI_DISPATCH": name}) for name in names], layout=layout)
    expected = {0: ("0", True), 1: ("1", True), 2: ("1", False), 3: ("2", False)}
    found = {}
    for survivor in crash(log, log, "power loss", layout=layout):
        _, outcome = put(
            survivor, message_of(properties={"INNER_MULTI_DISPATCH": "%LMQ%a"}), layout=layout, store_timestamp=9
        )
        _, third = put(
            survivor, message_of(properties={"INNER_MULTI_DISPATCH": "%LMQ%c"}), layout=layout, store_timestamp=9
        )
        assert outcome.record is not None
        offset = str(outcome.record.message.properties).rpartition("\x01")[2]
        found[len(survivor.records)] = (offset, third.status is PutStatus.PUT_OK)
    assert found == expected


def test_flags_end_with_the_process() -> None:
    log = log_of(1, flushed=1).changed(flags=16)
    assert [found.flags for found in crash(log, log, "power loss", layout=LAYOUT)] == [0]
    assert [found.flags for found in crash(log, log, "process kill", layout=LAYOUT)] == [0]


def test_what_was_cut_is_remembered_through_lives() -> None:
    log = log_of(3)
    (one,) = [found for found in crash(log, log, "power loss", layout=LAYOUT) if len(found.records) == 1]
    assert one.cut == log.records[1:]
    assert reopened(one).cut == one.cut
    again, _ = put(one, message_of(), layout=LAYOUT, store_timestamp=9)
    none = [found for found in crash(again, again, "power loss", layout=LAYOUT) if len(found.records) == 1]
    assert [found.cut for found in none] == [(*one.cut, again.records[1])]
