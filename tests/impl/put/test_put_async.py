"""Test `put_async`: when a future is done, its answer, and how many one sync answers."""

import threading
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.status_cases import batch_of
from tests.support.impl.stores import MESSAGE, FaultyFiles, HandRunner, SetClock, open_store, put, snapshot, watermarks
from tornpage.impl.message.message import Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

BATCH = batch_of(b"one", b"two")
EITHER = pytest.mark.parametrize("message", [MESSAGE, BATCH], ids=["message", "batch"])
NO_SERVICE = PutResult(PutStatus.SERVICE_NOT_AVAILABLE)


def by_hand(directory: Path, files: FaultyFiles | None = None) -> tuple[MessageStore, HandRunner]:
    """Open a synchronous store whose group commit the test steps."""
    runner = HandRunner()
    return open_store(directory, sync=True, files=files, parts=Parts({ThreadRunner: runner})), runner


def syncs(files: FaultyFiles) -> int:
    return len([path for verb, path in files.calls if verb == "sync" and "commitlog" in path])


@EITHER
def test_future_of_an_asynchronous_store_is_done_at_once(message: Message | MessageBatch, tmp_path: Path) -> None:
    runner = HandRunner()
    ours = open_store(tmp_path / "ours", clock=SetClock(), parts=Parts({ThreadRunner: runner}))
    twin = open_store(tmp_path / "twin", clock=SetClock())
    with ours, twin:
        for _ in range(3):
            answer = ours.put_async(message)
            assert answer.done()
            assert answer.result() == put(twin, message)
        assert ours.flushed_offset == 0
        assert "group-commit" in runner.services
        assert runner["group-commit"].wakes == 0


@EITHER
def test_future_of_a_synchronous_store_is_done_after_the_step(message: Message | MessageBatch, tmp_path: Path) -> None:
    store, runner = by_hand(tmp_path)
    with store:
        answer = store.put_async(message)
        assert (answer.done(), runner["group-commit"].wakes, store.flushed_offset) == (False, 1, 0)
        assert store.max_offset > 0
        runner.step()
        result = answer.result(timeout=0)
        assert (result.status, result.offset, store.flushed_offset) == (PutStatus.PUT_OK, 0, store.max_offset)


def test_one_sync_answers_all_that_wait(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = by_hand(tmp_path, files)
    with store:
        store.put(MESSAGE)
        files.calls.clear()
        answers = [store.put_async(MESSAGE) for _ in range(4)]
        assert syncs(files) == 0
        assert not any(answer.done() for answer in answers)
        runner.step()
        assert syncs(files) == 1
        assert [answer.result(timeout=0).queue_offset for answer in answers] == [1, 2, 3, 4]
        runner.step()
        assert syncs(files) == 1


def test_a_put_that_comes_during_a_step_waits_for_the_next(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = by_hand(tmp_path, files)
    with store:
        late: list[Future[PutResult]] = []
        first = store.put_async(MESSAGE)
        first.add_done_callback(lambda _: late.append(store.put_async(MESSAGE)))
        runner.step()
        assert first.done()
        assert not late[0].done()
        runner.step()
        assert late[0].result(timeout=0).queue_offset == 1


@pytest.mark.parametrize("sync", [True, False])
def test_wait_false_is_answered_at_once(tmp_path: Path, sync: bool) -> None:
    with open_store(tmp_path, sync=sync, parts=Parts({ThreadRunner: HandRunner()})) as store:
        answer = store.put_async(replace(MESSAGE, properties="WAIT\x01false"))
        assert answer.result(timeout=0).status is PutStatus.PUT_OK
        assert store.flushed_offset == 0


def test_failing_sync_answers_all_with_a_time_out_and_ends_puts(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = by_hand(tmp_path, files)
    with store:
        durable = store.put(MESSAGE)
        answers = [store.put_async(each) for each in (MESSAGE, BATCH, MESSAGE)]
        files.fail("sync", part="commitlog", times=1)
        runner.step()
        results = [answer.result(timeout=0) for answer in answers]
        assert {result.status for result in results} == {PutStatus.FLUSH_DISK_TIMEOUT}
        assert results[0].offset == durable.size_bytes
        assert store.read_only_reason is not None
        assert watermarks(store)[1:3] == (durable.size_bytes, durable.size_bytes)
        assert store.put_async(MESSAGE).result(timeout=0) == NO_SERVICE


def test_what_another_flush_covered_is_no_time_out(tmp_path: Path) -> None:
    """One file is synced and the next is not: the put in the first one is answered as durable."""
    files = FaultyFiles()
    store, runner = by_hand(tmp_path, files)
    with store:
        answers = [store.put_async(replace(MESSAGE, body=bytes(600))) for _ in range(2)]
        files.fail("sync", part=f"{1024:020d}", times=1)
        runner.step()
        statuses = [answer.result(timeout=0).status for answer in answers]
        assert statuses == [PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT]


@pytest.mark.parametrize("fails", [False, True])
def test_close_answers_everything(tmp_path: Path, fails: bool) -> None:
    files = FaultyFiles()
    store, runner = by_hand(tmp_path, files)
    answers = [store.put_async(MESSAGE) for _ in range(3)]
    if fails:
        files.fail("sync", part="commitlog")
    store.close()
    assert all(service.stopped for service in runner.services.values())
    expected = PutStatus.FLUSH_DISK_TIMEOUT if fails else PutStatus.PUT_OK
    assert {answer.result(timeout=0).status for answer in answers} == {expected}
    assert (tmp_path / "abort").exists() is fails
    before = snapshot(tmp_path)
    assert store.put_async(MESSAGE).result(timeout=0) == NO_SERVICE
    assert store.put_async(BATCH).result(timeout=0) == NO_SERVICE
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("verb", ["put", "put_async"])
def test_close_between_append_and_answer_loses_no_answer(tmp_path: Path, verb: str, fails: bool) -> None:
    """The future was never answered, and `put` failed an assertion: the service had ended."""

    class ClosingClock(SetClock):
        """Closes the store at the clock reading between append and answer."""

        reads_left = -1

        def __call__(self) -> int:
            self.reads_left -= 1
            if self.reads_left == 0:
                store.close()
            return super().__call__()

    clock, files = ClosingClock(), FaultyFiles()
    store = open_store(tmp_path, sync=True, clock=clock, files=files)
    store.put(MESSAGE)
    if fails:
        files.fail("sync", part="commitlog")
    clock.reads_left = 3
    result = store.put(MESSAGE) if verb == "put" else store.put_async(MESSAGE).result(timeout=10)
    assert store.put(MESSAGE) == NO_SERVICE
    assert result.offset > 0
    assert result.status is (PutStatus.FLUSH_DISK_TIMEOUT if fails else PutStatus.PUT_OK)
    with open_store(tmp_path) as store:
        assert len(list(store.messages())) == 2


def test_callbacks_are_called_with_the_answer(tmp_path: Path) -> None:
    store, runner = by_hand(tmp_path)
    heard: list[PutStatus] = []
    with store:
        waiting = store.put_async(MESSAGE)
        waiting.add_done_callback(lambda done: heard.append(done.result().status))
        assert heard == []
        runner.step()
        assert heard == [PutStatus.PUT_OK]
        refused = store.put_async(replace(MESSAGE, topic=""))
        refused.add_done_callback(lambda done: heard.append(done.result().status))
        assert heard == [PutStatus.PUT_OK, PutStatus.MESSAGE_ILLEGAL]


def test_future_cannot_be_cancelled(tmp_path: Path) -> None:
    store, runner = by_hand(tmp_path)
    with store:
        answer = store.put_async(MESSAGE)
        assert not answer.cancel()
        runner.step()
        try:
            assert answer.result(timeout=0).status is PutStatus.PUT_OK
        except CancelledError:
            pytest.fail("the record is in the log and its answer was cancelled")


def test_threads_and_the_thread_of_the_store_end_to_end(tmp_path: Path) -> None:
    """Three producers do not wait and one thread commits.

    Each put is answered, and its record is durable by then.
    """
    answers: list[list[Future[PutResult]]] = [[], [], []]
    below: list[bool] = []

    def produce(number: int, store: MessageStore) -> None:
        for at in range(25):
            message: Message | MessageBatch = batch_of(b"a", b"b") if at % 5 == 0 else MESSAGE
            answer = store.put_async(message)
            answer.add_done_callback(
                lambda done: below.append(done.result().offset + done.result().size_bytes <= store.flushed_offset)
            )
            answers[number].append(answer)

    with open_store(tmp_path, sync=True) as store:
        threads = [threading.Thread(target=produce, args=(number, store), daemon=True) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        results = [answer.result(timeout=30) for one in answers for answer in one]
        store.check()
        assert {result.status for result in results} == {PutStatus.PUT_OK}
        taken = sorted(result.queue_offset + n for result in results for n in range(result.message_count))
        assert taken == list(range(3 * 30))
        assert len(list(store.messages())) == 90
    assert below == [True] * 75


def test_store_that_closes_ends_its_thread(tmp_path: Path) -> None:
    with open_store(tmp_path, sync=True) as store:
        store.put_async(MESSAGE).result(timeout=30)
        assert [thread for thread in threading.enumerate() if thread.name == "tornpage-group-commit"]
    assert not [thread for thread in threading.enumerate() if thread.name == "tornpage-group-commit"]
