"""Test the dispatch service: it sees all readable bytes and misses no wake-up.

It also reports why it stopped.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.support.impl.stores import MESSAGE, Arrivals, FaultyFiles, HandRunner, SetClock, config_of, open_store, put
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.dispatch.arriving import Arrival
from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC
from tornpage.impl.message.key_hash import java_hash
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.service.running_flags import RunningFlag, RunningFlags
from tornpage.impl.store import MessageStore

MULTI = replace(config_of(), enable_multi_dispatch=True, enable_lmq=True)


def opened(
    directory: Path,
    *,
    config: MessageStoreConfig | None = None,
    files: FaultyFiles | None = None,
    arriving: Sequence[object] = (),
) -> tuple[MessageStore, HandRunner]:
    runner = HandRunner()
    store = MessageStore.open(
        directory,
        config or config_of(),
        files=files or FaultyFiles(),
        clock=SetClock(ticking=True),
        parts=Parts({ThreadRunner: runner}),
        listeners=arriving,  # type: ignore[arg-type]
    )
    return store, runner


def numbers(store: MessageStore, message: Message = MESSAGE) -> tuple[int, int]:
    return (
        store.min_offset_in_queue(message.topic, message.queue_id),
        store.max_offset_in_queue(message.topic, message.queue_id),
    )


# ---- waking and sleeping -----------------------------------------------------------------------------------------


def test_a_position_below_an_empty_log_leaves_nothing_to_dispatch() -> None:
    calls: list[int] = []

    def dispatch(_log: object, readable_end: int) -> bool:
        calls.append(readable_end)
        assert len(calls) == 1, "it looks again and again"
        return False  # as `Derived.dispatch` at the end of the log

    derived = SimpleNamespace(error=None, reput_from_offset=0, dispatch=dispatch)
    log = SimpleNamespace(min_offset=4096, readable_end=4096)
    reput = ReputMessages(cast("Derived", derived), cast("MappedFileQueue", log), RunningFlags())
    reput.drain()
    assert reput.behind_bytes == 0


def test_put_wakes_it_once_until_it_runs_and_it_sleeps_again(tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    with store:
        assert (runner["reput"].wakes, runner["reput"].due_ms) == (0, None)
        result = store.put(MESSAGE)
        assert runner["reput"].wakes == 1
        assert store.dispatch_behind_bytes == result.size_bytes
        assert runner.step("reput") is None
        assert (store.dispatch_behind_bytes, store.reput_from_offset) == (0, result.size_bytes)
        assert numbers(store) == (0, 1)
        store.put(MESSAGE)
        assert runner["reput"].wakes == 2


def test_refused_put_wakes_nobody(tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    with store:
        assert store.put(Message("", b"")).status is PutStatus.MESSAGE_ILLEGAL
        assert runner["reput"].wakes == 0


@pytest.mark.parametrize("puts", [1, 2, 3, 4])
def test_put_behind_a_look_is_seen_or_wakes_it(puts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A put may follow any look at the end of the log.

    The same round sees it, or it wakes the service.
    """
    store, runner = opened(tmp_path)
    with store:
        look, left = MappedFileQueue.readable_end.__get__, [None] * puts

        def look_and_put(log: MappedFileQueue) -> int:
            end: int = look(log)
            if left and end == store.reput_from_offset:
                left.pop()
                store.put(MESSAGE)
            return end

        store.put(MESSAGE)
        monkeypatch.setattr(MappedFileQueue, "readable_end", property(look_and_put))
        wakes = 0
        while left or store.dispatch_behind_bytes:
            assert runner["reput"].wakes > wakes
            wakes = runner["reput"].wakes
            runner.step("reput")
        assert numbers(store) == (0, 1 + puts)


def test_store_with_something_left_begins_at_once(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, _ = opened(tmp_path / "live")
    with store:
        store.put(MESSAGE)
    for path in sorted((tmp_path / "live" / "consumequeue").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    files.fail("allocate", part="consumequeue")
    store, runner = opened(tmp_path / "live", files=files)
    with store:
        assert store.read_only_reason is None
        assert runner["reput"].due_ms == 0
        assert store.put(MESSAGE).queue_offset == 1
        with pytest.raises(OSError, match="consumequeue"):
            runner.step("reput")
        files.mend()
        runner.step("reput")
        assert numbers(store) == (0, 2)


# ---- readable messages -----------------------------------------------------------------------------------------


def test_only_what_is_committed_is_dispatched(tmp_path: Path) -> None:
    store, runner = opened(tmp_path, config=replace(config_of(), transient_store_pool_enable=True))
    with store:
        store.put(MESSAGE)
        assert runner["reput"].wakes == 0
        runner.step("reput")
        assert (numbers(store), store.dispatch_behind_bytes) == ((0, 0), 0)
        runner.step("commit")
        assert runner["reput"].wakes == 1
        runner.step("reput")
        assert numbers(store) == (0, 1)
        store.put(MESSAGE)
        store.flush()
        assert runner["reput"].wakes == 2


def test_behind_a_failed_sync_only_what_is_durable_is_dispatched(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = opened(tmp_path, files=files)
    with store:
        store.put(MESSAGE)
        store.flush()
        store.put(MESSAGE)
        files.fail("sync", part="commitlog")
        assert not store.flush().durable
        runner.step("reput")
        assert (numbers(store), store.dispatch_behind_bytes) == ((0, 1), 0)
    assert (tmp_path / "abort").exists()


def test_it_goes_over_the_ends_of_files(tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    with store:
        for _ in range(40):
            store.put(MESSAGE)
        runner.step("reput")
        assert store.max_offset > 4 * 1024
        assert (numbers(store), store.dispatch_behind_bytes) == ((0, 40), 0)


# ---- failures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["create", "allocate", "map", "make_directory"])
def test_queue_file_that_cannot_be_made_is_tried_again_and_nothing_is_doubled(verb: str, tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = opened(tmp_path, files=files)
    with store:
        files.fail(verb, part="consumequeue", times=3)
        for _ in range(5):
            store.put(replace(MESSAGE, properties={"KEYS": "k"}))
        for _ in range(3):
            with pytest.raises(OSError, match="consumequeue"):
                runner.step("reput")
            assert store.reput_from_offset == 0
        runner.step("reput")
        assert numbers(store) == (0, 5)
        with store.query_message(MESSAGE.topic, "k") as found:
            assert len(found.messages) == 5
    with open_store(tmp_path) as again:
        assert again.findings == ()


def test_what_is_no_record_stops_dispatch_and_puts_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, runner = opened(tmp_path)
    first, second = store.put(MESSAGE), store.put(MESSAGE)
    store._log.mapped[0].view[second.offset + 4] ^= 0xFF
    runner.step("reput")
    assert numbers(store) == (0, 1)
    assert store.reput_from_offset == second.offset == first.size_bytes
    assert store.dispatch_error == f"dispatch stopped at offset {second.offset}: bad_magic"
    assert "dispatch_stopped" in caplog.text
    assert store.running_flags.bits == RunningFlag.WRITE_LOGICS_QUEUE_ERROR
    assert store.put(MESSAGE).status is PutStatus.SERVICE_NOT_AVAILABLE
    runner.step("reput")
    store.close()
    assert store.read_only_reason == store.dispatch_error
    assert (tmp_path / "abort").exists()


def test_record_of_another_place_stops_dispatch(tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    result = store.put(MESSAGE)
    store._log.mapped[0].view[28:36] = (1024).to_bytes(8, "big")
    runner.step("reput")
    assert store.dispatch_error == f"dispatch stopped at offset {result.offset}: bad_position"
    store.close()


def test_close_with_a_dispatch_that_cannot_go_on_ends_and_says_so(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, _ = opened(tmp_path, files=files)
    store.put(MESSAGE)
    files.fail("allocate", part="consumequeue")
    store.close()
    assert store.read_only_reason is not None
    assert "dispatch at offset 0 failed" in store.read_only_reason
    assert (tmp_path / "abort").exists()
    with open_store(tmp_path) as again:
        assert numbers(again) == (0, 1)


def test_thread_that_failed_tries_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tornpage.impl.service.runner._PAUSE_AFTER_FAILURE_MS", 10)
    files = FaultyFiles()
    arrivals = Arrivals()
    with open_store(tmp_path, files=files, arriving=[arrivals]) as store:
        files.fail("allocate", part="consumequeue", times=3)
        store.put(MESSAGE)
        arrivals.wait_for(1, MESSAGE.topic)
        assert numbers(store) == (0, 1)


# ---- listeners ---------------------------------------------------------------------------------------------------


def test_listener_hears_of_each_message_that_can_be_read(tmp_path: Path) -> None:
    heard: list[tuple[Arrival, int]] = []
    store: MessageStore

    def hear(arrival: Arrival) -> None:
        heard.append((arrival, numbers(store)[1]))

    store, runner = opened(tmp_path, arriving=[hear])
    with store:
        results = [store.put(replace(MESSAGE, properties={"TAGS": "a", "x": str(n)})) for n in range(2)]
        assert not heard
        runner.step("reput")
    assert all(readable >= arrival.next_offset for arrival, readable in heard)
    assert [arrival for arrival, _ in heard] == [
        Arrival(MESSAGE.topic, 1, n + 1, java_hash("a"), result.store_timestamp, b"", {"TAGS": "a", "x": str(n)})
        for n, result in enumerate(results)
    ]


def test_listener_hears_of_named_queues_and_of_transactions(tmp_path: Path) -> None:
    heard: list[Arrival] = []
    store, runner = opened(tmp_path, config=MULTI, arriving=[heard.append])
    with store:
        put(store, replace(MESSAGE, properties={"INNER_MULTI_DISPATCH": "other,%LMQ%one"}))
        put(store, replace(MESSAGE, sys_flag=4))
        runner.step("reput")
    assert [(each.topic, each.queue_id, each.next_offset) for each in heard] == [
        (MESSAGE.topic, 1, 1),
        ("other", 1, 1),
        ("%LMQ%one", 0, 1),
        (MESSAGE.topic, 1, 1),
    ]


def test_listener_that_fails_is_logged_and_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Arrival] = []

    def fails(arrival: Arrival) -> None:
        raise ValueError("deaf")

    store, runner = opened(tmp_path, arriving=[fails, heard.append])
    with store:
        store.put(MESSAGE)
        runner.step("reput")
        assert (len(heard), numbers(store), store.dispatch_error) == (1, (0, 1), None)
    assert "listener_failed" in caplog.text


def test_delayed_message_arrives_in_the_schedule_topic(tmp_path: Path) -> None:
    heard: list[Arrival] = []
    store, runner = opened(tmp_path, arriving=[heard.append])
    with store:
        result = store.put(replace(MESSAGE, properties={"DELAY": "1", "TAGS": "a"}))
        runner.step("reput")
    assert [(each.topic, each.tags_code) for each in heard] == [(SCHEDULE_TOPIC, result.store_timestamp + 1_000)]


def test_slave_tells_no_listener(tmp_path: Path) -> None:
    heard: list[Arrival] = []
    config = replace(config_of(), broker_role=BrokerRole.SLAVE)
    store, _ = opened(tmp_path / "slave", config=config, arriving=[heard.append])
    store.close()
    assert store._held.derived._listeners == ()


# ---- threads -----------------------------------------------------------------------------------------------------


def test_steps_of_several_threads_do_not_mix(tmp_path: Path) -> None:
    """Where no thread can be started, the putting threads run the steps."""
    store, _ = opened(tmp_path)
    with store:
        for _ in range(200):
            store.put(MESSAGE)
        threads = [threading.Thread(target=store._reput.step, args=(0,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert numbers(store) == (0, 200)
        store._held.derived.queues.check()


def test_no_put_is_forgotten_by_a_thread_that_falls_asleep(tmp_path: Path) -> None:
    arrivals = Arrivals()
    with open_store(tmp_path, parts=Parts({ThreadRunner: ThreadRunner}), arriving=[arrivals]) as store:
        for number in range(300):
            store.put(MESSAGE)
            arrivals.wait_for(number + 1, MESSAGE.topic)
            assert numbers(store) == (0, number + 1)


def test_dispatch_that_finds_no_file_says_so(tmp_path: Path) -> None:
    store, _ = opened(tmp_path)
    with store:
        store.put(MESSAGE)
        derived: Derived = store._held.derived
        log: MappedFileQueue = store._log
        assert derived.dispatch(log, log.max_offset)
        derived._move_to(1 << 30)
        assert derived.dispatch(log, 1 << 40)
        assert derived.error == f"dispatch stopped at offset {1 << 30}: no_file"
        assert not derived.dispatch(log, 1 << 40)


def test_put_that_only_ended_a_file_wakes_it(tmp_path: Path) -> None:
    class Refusing(MappedFile):
        def append(self, record: bytearray) -> None:
            if self.base_offset and self._mark == "record":
                raise OSError("refused")
            super().append(record)

    runner = HandRunner()
    big = replace(MESSAGE, body=bytes(600))
    with open_store(tmp_path, parts=Parts({ThreadRunner: runner, MappedFile: Refusing})) as store:
        store.put(big)
        runner.step("reput")
        assert store.put(big).status is PutStatus.UNKNOWN_ERROR
        assert (store.dispatch_behind_bytes, runner["reput"].wakes) == (1024 - store.reput_from_offset, 2)
        runner.step("reput")
        assert (store.dispatch_behind_bytes, store.reput_from_offset) == (0, 1024)
