"""Test each row of docs/statuses.md about refused puts: the answer, and no other change.

The rows about puts that reach the log are in test_append_statuses.py.
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.impl.put.test_append_statuses import APPEND_ROWS
from tests.support.impl.status_cases import BATCHES, LONG, MESSAGES, Refused, batch_of, groups_of, rows_of
from tests.support.impl.stores import (
    MESSAGE,
    FaultyFiles,
    HandRunner,
    SetClock,
    caught_up,
    config_of,
    log_bytes,
    open_store,
    put,
    snapshot,
    watermarks,
)
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import ForkedStore
from tornpage.impl.message.message import BatchMember, Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.impl.store import MessageStore

PART = "every put"
ENTRY_ROWS = {
    "in a process that did not open": "raises `ForkedStore`",
    "after `close()`": "`SERVICE_NOT_AVAILABLE`",
    "the store is read-only": "`SERVICE_NOT_AVAILABLE`",
    "`broker_role` is `SLAVE`": "`SERVICE_NOT_AVAILABLE`",
    "a running flag forbids writing": "`SERVICE_NOT_AVAILABLE`",
    "the put lock has been held": "`OS_PAGECACHE_BUSY`",
}
"""The rows of the first part with the answers that the tests below expect."""

NO_SERVICE = PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
FOLLOWERS = (
    MESSAGE,
    replace(MESSAGE, topic="Other", properties="INNER_MULTI_DISPATCH\x01%LMQ%a,TopicTest"),
    batch_of(b"one", b"two"),
)
ANYTHING: tuple[Message | MessageBatch, ...] = (
    MESSAGE,
    replace(MESSAGE, topic=""),
    replace(MESSAGE, properties=LONG),
    batch_of(b"one"),
    replace(batch_of(b"one"), body=None),
)
"""Good and bad puts: a row of the first part takes precedence over all others."""


def put_async(store: MessageStore, message: Message | MessageBatch) -> PutResult:
    return store.put_async(message).result(timeout=0)


# ---- the table ---------------------------------------------------------------------------------------------------


def test_each_row_of_the_table_has_a_case(repository: Path) -> None:
    rows = rows_of(repository / "docs" / "statuses.md")
    expected = {
        PART: ENTRY_ROWS,
        "put": {case.row: f"`{case.status.value}`" for case in MESSAGES},
        "put of a batch": {case.row: f"`{case.status.value}`" for case in BATCHES},
        "every put that got this far": APPEND_ROWS,
    }
    for part, answers in expected.items():
        listed = [row for row in rows if row.part == part]
        assert listed, part
        for row in listed:
            found = [row.text] if row.text in answers else [each for each in answers if row.text.startswith(each)]
            assert len(found) == 1, f"{part}: {row.text}: tested by {found}"
            assert row.answer.startswith(answers[found[0]]), row.text
        assert len(listed) == len(answers), part


# ---- put, put of a batch -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cases", groups_of(MESSAGES) + groups_of(BATCHES), ids=lambda cases: cases[0].row[:60])
def test_refused_put_changes_nothing(cases: list[Refused], tmp_path: Path) -> None:
    config = cases[0].config
    # No service runs by itself: a flush in the background would change watermarks and checkpoint.
    ours, twin = (
        open_store(
            tmp_path / name,
            config=config,
            clock=SetClock(),
            parts=Parts().replacing({ThreadRunner: HandRunner()}),
        )
        for name in ("ours", "twin")
    )
    with ours, twin:
        for message in cases[0].before:
            assert ours.put(message) == twin.put(message)
        marks = watermarks(caught_up(ours))
        before = snapshot(tmp_path / "ours")
        for case in cases:
            for verb in (put, put_async):
                assert verb(ours, case.put) == PutResult(case.status), case.why
                assert snapshot(tmp_path / "ours") == before, case.why
                assert watermarks(ours) == marks, case.why
        for follower in FOLLOWERS:
            assert put(ours, follower) == put(twin, follower)
    assert log_bytes(tmp_path / "ours") == log_bytes(tmp_path / "twin")


@pytest.mark.parametrize(
    "message",
    [
        replace(MESSAGE, topic="t" * 127),
        replace(MESSAGE, topic="é" * 63),
        replace(MESSAGE, topic="..."),
        replace(MESSAGE, topic="%RETRY%a b"),
        replace(MESSAGE, body=None),
        replace(MESSAGE, body=bytes(1016 - 120)),
        replace(MESSAGE, properties={"A": "b\x01c"}),
        replace(MESSAGE, properties="\x02\x01\x02\x02A"),
        replace(MESSAGE, queue_id=(1 << 31) - 1, flag=-(1 << 31), reconsume_times=(1 << 31) - 1),
        replace(MESSAGE, born_timestamp=-(1 << 63), prepared_transaction_offset=(1 << 63) - 1),
        replace(MESSAGE, born_host=("::", -(1 << 31)), store_host=("::ffff:1.2.3.4", (1 << 31) - 1)),
        replace(MESSAGE, properties="DELAY\x01x", sys_flag=4),
        replace(MESSAGE, properties="DELAY\x01x", sys_flag=12),
        replace(MESSAGE, properties="DELAY\x01x", topic="RMQ_SYS_TRANS_HALF_TOPIC"),
        replace(MESSAGE, properties="DELAY\x01-2147483648"),
        replace(MESSAGE, properties="DELAY\x010", topic="SCHEDULE_TOPIC_XXXX"),
        replace(MESSAGE, properties="DELAY\x01"),
        batch_of(b"", BatchMember(b"", "DELAY\x01x")),
        batch_of(b"one", properties="DELAY\x01-1"),
        batch_of(b"one", properties="INNER_MULTI_DISPATCH\x01a,,b"),
        batch_of(bytes(1016 - 120)),
    ],
    ids=lambda message: repr(message)[:100],
)
def test_what_is_just_legal_is_stored(message: Message | MessageBatch, tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        result = put(store, message)
        assert (result.status, result.offset) == (PutStatus.PUT_OK, 0)
        assert store.max_offset == result.size_bytes


# ---- every put ---------------------------------------------------------------------------------------------------


def assert_refuses_all(store: MessageStore, directory: Path, expected: PutResult) -> None:
    """Assert the answer to good and bad puts, and that none of them changes anything."""
    caught_up(store)
    before = snapshot(directory)
    for message in ANYTHING:
        assert put(store, message) == expected
        assert put_async(store, message) == expected
    assert snapshot(directory) == before


def test_forked_process_may_not_put(tmp_path: Path) -> None:
    with open_store(tmp_path, parts=Parts({ThreadRunner: HandRunner()})) as store:
        store.put(MESSAGE)
        before = snapshot(tmp_path)
        child = os.fork()
        if child == 0:
            refused = 0
            for message in ANYTHING:
                for verb in (put, put_async):
                    try:
                        verb(store, message)
                    except ForkedStore:
                        refused += 1
                    except BaseException:
                        refused += 100
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2 * len(ANYTHING)
        assert snapshot(tmp_path) == before


def test_closed_store_takes_no_put(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(MESSAGE)
    store.close()
    assert_refuses_all(store, tmp_path, NO_SERVICE)


def test_damaged_store_takes_no_put(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
    with open(tmp_path / "commitlog" / f"{0:020d}", "r+b") as file:
        file.seek(90)
        file.write(b"x")
    with open_store(tmp_path, config=replace(config_of(), check_whole_log_on_recover=True)) as store:
        assert store.read_only_reason is not None
        assert_refuses_all(store, tmp_path, NO_SERVICE)


def test_store_takes_no_put_after_a_failed_sync(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, files=files) as store:
        store.put(MESSAGE)
        files.fail("sync", times=1)
        assert not store.flush().durable
        marks = watermarks(store)
        assert_refuses_all(store, tmp_path, NO_SERVICE)
        assert watermarks(store) == marks


def test_slave_takes_no_put(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
    with open_store(tmp_path, config=replace(config_of(), broker_role=BrokerRole.SLAVE)) as store:
        assert_refuses_all(store, tmp_path, NO_SERVICE)
    with open_store(tmp_path) as store:
        assert store.put(MESSAGE).queue_offset == 1


@pytest.mark.parametrize("bits", [2, 4, 8, 16, 3, 31])
def test_running_flag_forbids_puts_until_it_is_cleared(tmp_path: Path, bits: int) -> None:
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
        store.running_flags.set(RunningFlag(bits))
        assert_refuses_all(store, tmp_path, NO_SERVICE)
        store.running_flags.clear(RunningFlag(bits))
        assert store.put(MESSAGE).queue_offset == 1


@pytest.mark.parametrize(
    ("flag", "status"),
    [(None, PutStatus.OS_PAGECACHE_BUSY), (RunningFlag.NOT_WRITEABLE, PutStatus.SERVICE_NOT_AVAILABLE)],
)
def test_busy_page_cache_refuses_what_comes_meanwhile(
    tmp_path: Path, flag: RunningFlag | None, status: PutStatus
) -> None:
    """The other puts arrive while the first one is in progress.

    The record of the first is in the file, and its lock is still held.
    """
    files, clock = FaultyFiles(), SetClock()
    with open_store(tmp_path, files=files, clock=clock) as store:
        came: list[str] = []

        def meanwhile(label: str) -> None:
            files.on_mark = None
            came.append(label)
            clock.now_ms += 1001
            if flag is not None:
                store.running_flags.set(flag)
            assert_refuses_all(store, tmp_path, PutResult(status))

        files.on_mark = meanwhile
        assert store.put(MESSAGE).status is PutStatus.PUT_OK
        assert came == ["record"]
        if flag is not None:
            store.running_flags.clear(flag)
        assert store.put(MESSAGE).queue_offset == 1
