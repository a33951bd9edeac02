"""Test concurrent closes, failing callbacks, threads that do not start, interrupted puts."""

import os
import threading
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, SetClock, config_of, open_store
from tornpage.impl.errors import ForkedStore, StoreClosed
from tornpage.impl.io.files import OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.message.message import Message, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

PATIENCE_S = 10


def in_time(work: threading.Thread) -> None:
    work.join(PATIENCE_S)
    assert not work.is_alive(), "it waits forever"


class WaitingFiles(FaultyFiles):
    """A disk that syncs the log when the test allows it.

    A callback added later would run in the caller.
    """

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def sync(self, file: OpenFile) -> None:
        if threading.current_thread().name == "tornpage-group-commit":
            assert self.go.wait(PATIENCE_S)
        super().sync(file)


def test_callback_may_close_the_store_while_another_thread_closes_it(tmp_path: Path) -> None:
    files = WaitingFiles()
    store = open_store(tmp_path, sync=True, files=files)
    closing, closed = threading.Event(), threading.Event()

    def close_too(answer: Future[PutResult]) -> None:
        assert closing.wait(PATIENCE_S)
        store.close()
        closed.set()

    answer = store.put_async(MESSAGE)
    answer.add_done_callback(close_too)
    files.go.set()
    closer = threading.Thread(target=store.close)
    closer.start()
    closing.set()
    in_time(closer)
    assert closed.wait(PATIENCE_S)
    with pytest.raises(StoreClosed):
        store.flush()


def test_store_without_a_thread_to_spare_steps_in_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with open_store(tmp_path, sync=True) as store:
        assert store.put_async(MESSAGE).result(timeout=0).status is PutStatus.PUT_OK
        assert store.put_async(MESSAGE).result(timeout=0).status is PutStatus.PUT_OK


@pytest.mark.parametrize("pooled", [False, True])
def test_services_without_a_thread_to_spare_work_in_the_caller(
    pooled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    config = replace(config_of(), mapped_files_ahead=1, transient_store_pool_enable=pooled)
    with monkeypatch.context() as no_threads:
        no_threads.setattr(threading.Thread, "start", refuse)
        with open_store(tmp_path, config=config) as store:
            results = [store.put(replace(MESSAGE, body=bytes(600))) for _ in range(4)]
            assert {result.status for result in results} == {PutStatus.PUT_OK}
            assert store.flush().durable
    with open_store(tmp_path) as store:
        assert len(list(store.messages())) == 4


@pytest.mark.parametrize("error", [SystemExit(), KeyboardInterrupt(), ValueError()], ids=repr)
def test_callback_that_raises_keeps_nobody_waiting(error: BaseException, tmp_path: Path) -> None:
    def raise_it(answer: Future[PutResult]) -> None:
        raise error

    files = WaitingFiles()
    with open_store(tmp_path, sync=True, files=files) as store:
        answers = [store.put_async(MESSAGE) for _ in range(3)]
        answers[0].add_done_callback(raise_it)
        files.go.set()
        answers += [store.put_async(MESSAGE) for _ in range(3)]
        assert {answer.result(PATIENCE_S).status for answer in answers} == {PutStatus.PUT_OK}


def test_runner_goes_on_after_a_step_that_raises() -> None:
    class RaisesOnce:
        """A service that fails in its first step."""

        name = "test"
        steps = 0

        def step(self, now_ms: int) -> int | None:
            self.steps += 1
            if self.steps == 1:
                runner.wake()
                raise ValueError("once")
            done.set()
            return None

    done = threading.Event()
    runner = ThreadRunner(RaisesOnce())
    runner.wake()
    assert done.wait(PATIENCE_S)
    runner.stop()


class Interrupting(MappedFile):
    """Ctrl-C arrives during the copy of the second record."""

    def append(self, record: bytearray) -> None:
        if self.written_position:
            self.target[self.written_position : self.written_position + 8] = b"\xffhalf..."
            raise KeyboardInterrupt
        super().append(record)


def test_put_that_is_broken_off_stops_the_store_and_is_cut_by_the_next_open(tmp_path: Path) -> None:
    store = open_store(tmp_path, parts=Parts({MappedFile: Interrupting}))
    first = store.put(MESSAGE)
    with pytest.raises(KeyboardInterrupt):
        store.put(MESSAGE)
    assert store.put(MESSAGE).status is PutStatus.SERVICE_NOT_AVAILABLE
    store.close()
    assert store.read_only_reason is not None
    assert "interrupted" in store.read_only_reason
    assert (tmp_path / "abort").exists()
    with open_store(tmp_path) as store:
        assert store.read_only_reason is None
        assert [stored.offset for stored in store.messages()] == [first.offset]
        assert store.put(MESSAGE).queue_offset == 1


def test_file_whose_making_is_broken_off_leaves_no_name(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, files=files) as store:

        def interrupt(path: str) -> None:
            raise KeyboardInterrupt

        files.faults["allocate"] = interrupt
        with pytest.raises(KeyboardInterrupt):
            store.put(MESSAGE)
        assert os.listdir(tmp_path / "commitlog") == []


def test_statistics_are_for_the_opener_alone(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        child = os.fork()
        if child == 0:
            try:
                store.statistics()
            except ForkedStore:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_latencies_do_not_pile_up_when_the_clock_is_set_back(tmp_path: Path) -> None:
    clock = SetClock()
    with open_store(tmp_path, clock=clock) as store:
        clock.now_ms -= 3_600_000
        for _ in range(50):
            store.put(MESSAGE)
        assert len(store._puts._statistics._answers) < 50


def test_get_of_a_store_that_closes_meanwhile_raises_store_closed(tmp_path: Path) -> None:
    store: MessageStore = open_store(tmp_path)
    offset = store.put(MESSAGE).offset
    commit_log = store._commit_log
    looked = commit_log.get

    def close_first(offset: int, *, readable_end: int) -> object:
        store.close()
        return looked(offset, readable_end=readable_end)

    commit_log.get = close_first  # type: ignore[method-assign,assignment]
    with pytest.raises(StoreClosed):
        store.get(offset)


def test_queue_id_of_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for queue_id in (10**5000, -(10**5000)):
            put = store.put(Message("T", b"", queue_id=queue_id, properties={"DELAY": "1"}))
            assert put.status is PutStatus.MESSAGE_ILLEGAL
