"""Run real threads at a store in a real directory: some order explains all answers."""

import random
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.stores import SetClock
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.parts import Parts
from tornpage.impl.store import MessageStore
from tornpage.model.answers import Answer, QueueRead
from tornpage.model.operations import AnyOperation, AskMaximum, Close, DeleteTopics, Flush, GetAt, Pull, Put, Step
from tornpage.model.parts import Shared
from tornpage.model.state import Layout
from tornpage.properties.judge.linearizability.asking import ask
from tornpage.properties.judge.linearizability.calls import Call, Recorder
from tornpage.properties.judge.linearizability.linearise import Found, linearise
from tornpage.properties.judge.linearizability.specification import points_of, shared_at
from tornpage.properties.planted import parts_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.translation import layout_of, store_config

PLAIN = Settings(file_bytes=4096, queue_units=8, index=False)
SYNC, POOL = replace(PLAIN, sync_flush=True), replace(PLAIN, pool_buffers=4)
ALWAYS = 1 << 40


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-6)
    yield
    sys.setswitchinterval(before)


def config_of(settings: Settings) -> MessageStoreConfig:
    """Return the configuration of a case, with services that step all the time."""
    return replace(store_config(settings), flush_interval_commit_log=2, commit_interval_commit_log=1)


class Crowd:
    """Producers, readers and a thread that flushes, closes or deletes."""

    def __init__(self, directory: Path, settings: Settings, seed: int, parts: Parts | None = None) -> None:
        self.history = Recorder()
        self.layout: Layout = layout_of(settings)
        self.failures: list[BaseException] = []
        self._seed = seed
        self._is_under_way = threading.Event()
        self._clock = SetClock()
        config = config_of(settings)
        self._store = MessageStore.open(directory, config, files=OsFiles(), clock=self._clock, parts=parts)

    def run(self, *, puts: int, reads: int, deletions: int = 0, close: bool = False) -> None:
        """Start all threads and wait for them."""
        threads = [self._thread(self._produce, number, puts) for number in range(3)]
        threads += [self._thread(self._read, number, reads) for number in (3, 4)]
        threads.append(self._thread(self._delete if deletions else self._flush, 5, deletions or 8))
        if close:
            threads.append(self._thread(self._close, 6, 1))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        self._store.close()
        if self.failures:
            raise self.failures[0]

    def _thread(self, work: object, task: int, count: int) -> threading.Thread:
        def guarded() -> None:
            try:
                work(task, count, random.Random(f"{self._seed} {task}"))  # type: ignore[operator]
            except BaseException as error:
                self.failures.append(error)

        return threading.Thread(target=guarded, daemon=True)

    def _ask(self, task: int, request: AnyOperation) -> Call:
        call = ask(self._store, self.history, task, request)
        if len(self.history.calls) >= 30:
            self._is_under_way.set()
        return call

    def _produce(self, task: int, count: int, rng: random.Random) -> None:
        for number in range(count):
            put = Put(
                topic=rng.choice("TTU"), body_bytes=rng.choice((0, 60, 900)), fill=1000 * task + number, advance_ms=0
            )
            self._ask(task, put)

    def _read(self, task: int, count: int, rng: random.Random) -> None:
        following = {"T": 0, "U": 0}
        for _ in range(count):
            topic = rng.choice("TU")
            kind = rng.randrange(4)
            if kind == 0:
                self._ask(task, AskMaximum(topic, 0))
            elif kind == 1:
                self._ask(task, GetAt(rng.choice((0, 112, self._store.max_offset))))
            else:
                call = self._ask(task, Pull(topic, 0, following[topic], rng.choice((1, 32))))
                assert call.answer is not None
                if isinstance(call.answer.client, QueueRead):
                    following[topic] = call.answer.client.next_begin_offset

    def _flush(self, task: int, count: int, rng: random.Random) -> None:
        for _ in range(count):
            self._ask(task, Flush())

    def _delete(self, task: int, count: int, rng: random.Random) -> None:
        for _ in range(count):
            self._ask(task, DeleteTopics(rng.choice((("U",), ("T",), ()))))

    def _close(self, task: int, count: int, rng: random.Random) -> None:
        assert self._is_under_way.wait(60)
        self._ask(task, Close())

    def explained(self) -> Found[Shared]:
        """Search for an order; the services commit at any time."""
        calls = list(self.history.calls)
        if self.layout.has_pool:
            calls.append(Call(-1, Step("commit"), -1, Answer(), ALWAYS))
        return linearise(points_of(calls, self.layout), shared_at(self._clock.now_ms), steps_max=400_000)


CROWDS = {
    "plain": (PLAIN, {}),
    "sync": (SYNC, {}),
    "pool": (POOL, {}),
    "topics are deleted": (PLAIN, {"deletions": 4}),
    "it is closed": (PLAIN, {"close": True}),
    "it is closed, sync": (SYNC, {"close": True}),
}


@pytest.mark.parametrize("name", CROWDS)
def test_some_order_explains_what_threads_were_told(name: str, tmp_path: Path) -> None:
    settings, options = CROWDS[name]
    crowd = Crowd(tmp_path, settings, seed=1)
    crowd.run(puts=8, reads=12, **options)  # type: ignore[arg-type]
    found = crowd.explained()
    assert found.verdict == "holds", [str(call) for call in crowd.history.calls]


@pytest.mark.deep
@pytest.mark.parametrize("name", CROWDS)
def test_long_histories_of_threads_are_explained(name: str, tmp_path: Path) -> None:
    settings, options = CROWDS[name]
    for seed in range(20):
        crowd = Crowd(tmp_path / f"{seed}", settings, seed=seed)
        crowd.run(puts=25, reads=40, **options)  # type: ignore[arg-type]
        found = crowd.explained()
        assert found.verdict == "holds", [str(call) for call in crowd.history.calls]


def test_threads_at_a_store_that_tells_too_much_are_not_explained(tmp_path: Path) -> None:
    """This bug needs no luck: a pull reads a queue whose numbers continued after a deletion."""
    crowd = Crowd(tmp_path, PLAIN, seed=2, parts=parts_of("deleted-numbers-go-on"))
    crowd.run(puts=8, reads=12, deletions=6)
    assert crowd.explained().verdict == "broken"
