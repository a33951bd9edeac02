"""Test deletions in the model: by hour, age and room; blockers; queues and topics."""

import pytest

from tests.model.support import message_of
from tornpage.model.commitlog import GetStatus, get, put
from tornpage.model.crash import Kind, crash, reopened
from tornpage.model.dispatch import next_queue_offset
from tornpage.model.flushing import flush
from tornpage.model.index import query
from tornpage.model.queues import bounds_of, dispatch, queue_of
from tornpage.model.reading import get_message, offset_by_time
from tornpage.model.retention import ask_for_runs, clean, delete_topics
from tornpage.model.state import CommitLog, Layout

FILE_BYTES = 1024
HOUR_MS = 3_600_000
NIGHT_MS = 4 * HOUR_MS
LAYOUT = Layout(file_bytes=FILE_BYTES, record_bytes_max=1 << 20, trailer=True, sync_flush=False, files_max=100)
DAYS_MS = 72 * HOUR_MS


def log_of(count: int, *, settled: bool = True, topic: str = "T") -> CommitLog:
    """Return a log with one message in each file, stored one millisecond apart."""
    log = CommitLog()
    for number in range(count):
        message = message_of(topic, bytes(800), properties="KEYS\x01k")
        log, outcome = put(log, message, layout=LAYOUT, store_timestamp=number)
        assert outcome.records
    return flush(dispatch(log))[0] if settled else log


def cleaned(
    log: CommitLog, *, now_ms: int = NIGHT_MS + DAYS_MS, percent: int = 0, held: tuple[int, ...] = ()
) -> CommitLog:
    return clean(log, layout=LAYOUT, now_ms=now_ms, percent=percent, held=held)[0]


# ---- which files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now_ms", "percent", "files"),
    [
        (NIGHT_MS + DAYS_MS, 0, 3),
        (NIGHT_MS + DAYS_MS - 1, 0, 0),  # five to four
        (NIGHT_MS + DAYS_MS + HOUR_MS, 0, 0),
        (NIGHT_MS + DAYS_MS + HOUR_MS, 75, 0),
        (NIGHT_MS + DAYS_MS + HOUR_MS, 76, 3),
        (NIGHT_MS, 0, 0),
        (NIGHT_MS, 85, 0),
        (HOUR_MS, 86, 3),
    ],
)
def test_hour_age_and_room(now_ms: int, percent: int, files: int) -> None:
    log = cleaned(log_of(4), now_ms=now_ms, percent=percent)
    assert log.min_offset == files * FILE_BYTES
    assert len(log.retained) == 4 - files


@pytest.mark.parametrize(("now_ms", "files"), [(DAYS_MS, 0), (DAYS_MS + 1, 1), (DAYS_MS + 2, 2), (DAYS_MS + 3, 3)])
def test_a_file_is_as_old_as_the_record_behind_it(now_ms: int, files: int) -> None:
    assert cleaned(ask_for_runs(log_of(4)), now_ms=now_ms).min_offset == files * FILE_BYTES


def test_ten_files_go_in_a_run_and_twenty_runs_are_asked_for() -> None:
    log = cleaned(ask_for_runs(log_of(13)), now_ms=NIGHT_MS - 1 + DAYS_MS)
    assert (log.min_offset, log.manual_runs) == (10 * FILE_BYTES, 19)
    for _ in range(19):
        log = cleaned(log, now_ms=0)
    assert log.manual_runs == 0
    assert cleaned(log, now_ms=NIGHT_MS - 1 + DAYS_MS) == log


def test_what_is_not_durable_or_not_dispatched_stays() -> None:
    unsettled = log_of(4, settled=False)
    assert cleaned(dispatch(unsettled), percent=99).min_offset == 0
    assert cleaned(flush(unsettled)[0], percent=99).min_offset == 0
    assert cleaned(flush(dispatch(unsettled))[0], percent=99).min_offset == 3 * FILE_BYTES


def test_the_last_file_stays() -> None:
    assert cleaned(log_of(1), percent=99).min_offset == 0
    assert cleaned(CommitLog(), percent=99).retained == ()


@pytest.mark.parametrize(("percent", "full"), [(90, False), (91, True)])
def test_a_full_disk_is_seen(percent: int, full: bool) -> None:
    assert bool(cleaned(log_of(2), percent=percent).flags & 16) is full
    assert cleaned(log_of(2).changed(flags=17)).flags == 1


def test_a_poisoned_log_is_left_alone() -> None:
    log = log_of(4).changed(poisoned=True)
    assert cleaned(log, percent=99) == log
    assert delete_topics(log, layout=LAYOUT, in_use=()) == (log, ())


# ---- readers in the way ------------------------------------------------------------------------------------------


def test_a_file_that_is_held_leaves_the_log_and_stops_the_run() -> None:
    log = cleaned(log_of(4), held=(FILE_BYTES,))
    assert (log.min_offset, log.oldest_offset) == (2 * FILE_BYTES, FILE_BYTES)
    assert cleaned(log, held=(FILE_BYTES,)).oldest_offset == FILE_BYTES
    assert cleaned(log).oldest_offset == 3 * FILE_BYTES


def test_its_reader_has_two_minutes() -> None:
    begin_ms = NIGHT_MS + DAYS_MS
    log = cleaned(log_of(4), now_ms=begin_ms, held=(0,))
    assert cleaned(log, now_ms=begin_ms + 119_999, held=(0,)).oldest_offset == 0
    after, done = clean(log, layout=LAYOUT, now_ms=begin_ms + 120_000, percent=0, held=(0,))
    assert (after.oldest_offset, done.forced) == (3 * FILE_BYTES, True)


def test_it_is_back_after_a_restart() -> None:
    assert reopened(cleaned(log_of(4), held=(0,))).min_offset == 0
    assert reopened(cleaned(log_of(4))).min_offset == 3 * FILE_BYTES


# ---- remaining files -------------------------------------------------------------------------------------------


def test_readers_find_what_is_left() -> None:
    log = cleaned(log_of(4))
    assert get(log, 0) == (GetStatus.OFFSET_TOO_SMALL, None)
    assert get(log, 3 * FILE_BYTES)[0] is GetStatus.FOUND
    assert [unit.queue_offset for unit in queue_of(log, LAYOUT, ("T", 0))] == [3]
    assert get_message(log, LAYOUT, "T", 0, 0)[:4] == (GetStatus.OFFSET_TOO_SMALL, 3, 3, 4)
    assert query(log, LAYOUT, "T", "k", 32, 0, 1 << 62) == (log.records[3],)


def test_numbers_go_on_behind_a_queue_that_has_nothing_left() -> None:
    log = log_of(3)
    log, _ = put(log, message_of("U", bytes(800)), layout=LAYOUT, store_timestamp=3)
    log = cleaned(flush(dispatch(log))[0])
    assert bounds_of(log, LAYOUT, ("T", 0)) == (3, 3)
    assert next_queue_offset(log, ("T", 0), layout=LAYOUT) == 3
    assert offset_by_time(log, LAYOUT, "T", 0, 0) == {3}
    answers = [get_message(log, LAYOUT, "T", 0, offset)[:2] for offset in (2, 3, 4)]
    assert answers == [
        (GetStatus.OFFSET_TOO_SMALL, 3), (GetStatus.OFFSET_OVERFLOW_ONE, 3), (GetStatus.OFFSET_OVERFLOW_BADLY, 3),
    ]  # fmt: skip


# ---- topics ------------------------------------------------------------------------------------------------------


def test_a_deleted_topic_begins_anew() -> None:
    log, gone = delete_topics(log_of(2), layout=LAYOUT, in_use=("U",))
    assert gone == ("T",)
    assert bounds_of(log, LAYOUT, ("T", 0)) is None
    assert next_queue_offset(log, ("T", 0), layout=LAYOUT) == 0
    assert len(query(log, LAYOUT, "T", "k", 32, 0, 1 << 62)) == 2
    log, outcome = put(log, message_of("T", bytes(800)), layout=LAYOUT, store_timestamp=9)
    assert outcome.record is not None
    assert outcome.record.queue_offset == 0
    assert bounds_of(reopened(log), LAYOUT, ("T", 0)) == (0, 1)
    assert delete_topics(log, layout=LAYOUT, in_use=("T",))[1] == ()


@pytest.mark.parametrize("topic", ["SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "%LMQ%a"])
def test_some_topics_are_never_deleted(topic: str) -> None:
    assert delete_topics(log_of(1, topic=topic), layout=LAYOUT, in_use=())[1] == ()


# ---- crash faults ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["power loss", "process kill"])
def test_a_run_may_be_cut_behind_any_file(kind: Kind) -> None:
    before = log_of(4)
    logs = list(crash(before, cleaned(before), kind, layout=LAYOUT))
    assert [log.min_offset for log in logs] == [number * FILE_BYTES for number in range(4)]
    assert {len(log.records) for log in logs} == {4}


def test_a_finished_run_stays_and_a_file_that_hangs_is_back() -> None:
    after = cleaned(log_of(4), held=(FILE_BYTES,))
    assert {log.min_offset for log in crash(after, after, "power loss", layout=LAYOUT)} == {FILE_BYTES}


def test_a_deletion_of_topics_has_happened_or_not() -> None:
    before = log_of(2)
    after, _ = delete_topics(before, layout=LAYOUT, in_use=())
    assert [log.deleted for log in crash(before, after, "process kill", layout=LAYOUT)] == [(), after.deleted]
    assert [log.deleted for log in crash(after, after, "process kill", layout=LAYOUT)] == [after.deleted]


def test_a_log_cut_in_front_of_a_deletion_forgets_what_lay_between() -> None:
    log = flush(log_of(1))[0]
    log, _ = put(log, message_of("T", bytes(10)), layout=LAYOUT, store_timestamp=5)
    log, _ = delete_topics(log, layout=LAYOUT, in_use=())
    cut = next(crash(log, log, "power loss", layout=LAYOUT))
    assert len(cut.records) == 1
    assert cut.deleted == (("T", cut.end_offset),)


def test_the_last_file_stays_though_none_of_its_records_survives() -> None:
    log = log_of(2)
    log, _ = put(log, message_of("T", bytes(800)), layout=LAYOUT, store_timestamp=9)
    log = cleaned(log, percent=99)
    lost = next(crash(log, log, "power loss", layout=LAYOUT))
    assert (lost.min_offset, lost.files) == (FILE_BYTES, 2)
