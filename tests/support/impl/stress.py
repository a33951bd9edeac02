"""Producers, flushers, readers and a checker at one store, and the checks afterwards."""

import errno
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.impl.status_cases import batch_of
from tests.support.impl.stores import MESSAGE, config_of, open_store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.errors import StoreClosed
from tornpage.impl.io.files import OpenFile
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.store import MessageStore

__all__ = ["Crowd", "TroubledFiles", "reopened_bodies", "small_config"]

PATIENCE_S = 60


def message_of(
    rng: random.Random, producer: int, number: int, *, all_wait: bool
) -> tuple[Message | MessageBatch, list[bytes]]:
    """Return a message or a batch and its bodies, which name their producer.

    Their sizes make files roll.
    """
    body = f"{producer}:{number}:".encode().ljust(rng.choice((8, 40, 300, 700)), b"x")
    if len(body) <= 300 and rng.random() < 0.15:
        return batch_of(body, body), [body, body]
    properties = "WAIT\x01false" if rng.random() < 0.3 and not all_wait else ""
    return replace(MESSAGE, body=body, properties=properties), [body]


class TroubledFiles(OsFiles):
    """A disk with occasional failures until it is mended.

    It writes half of a commit, or has no room for another file.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.mended = False
        self.refusals = 0
        self._rng = random.Random(seed)

    def _refuses(self, path: str, code: int) -> OSError | None:
        if self.mended or "commitlog" not in path or self._rng.random() > 0.3:
            return None
        self.refusals += 1
        return OSError(code, os.strerror(code), path)

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        refusal = self._refuses(file.path, errno.EIO)
        super().pwrite(file, data if refusal is None else data[: len(data) // 2], offset)
        if refusal is not None:
            raise refusal

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        refusal = self._refuses(file.path, errno.ENOSPC)
        if refusal is not None:
            raise refusal
        super().allocate(file, size_bytes)


@dataclass
class Crowd:
    """Threads at one store.

    `stored` has the bodies and the answer of each put; `failures` the errors.
    """

    store: MessageStore
    seed: int
    puts: int = 60
    all_wait: bool = False
    commits_fail: bool = False
    sync_fails: bool = False
    stored: list[tuple[list[bytes], PutResult]] = field(default_factory=list)
    answers: list[Future[PutResult]] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _still_producing: int = 0
    _producing: list[threading.Thread] = field(default_factory=list)
    _watching: list[threading.Thread] = field(default_factory=list)

    def start(self, *, producers: int = 4, flushers: int = 1, checkers: int = 1, readers: int = 1) -> None:
        """Let all threads begin."""
        self._producing = [self._thread(lambda n=number: self._produce(n)) for number in range(producers)]  # type: ignore[misc]
        self._still_producing = producers
        watchers: list[Callable[[], None]] = []
        watchers += [self._flush] * flushers + [self._check] * checkers + [self._read] * readers
        self._watching = [self._thread(watcher) for watcher in watchers]
        for thread in self._producing + self._watching:
            thread.start()

    def _thread(self, work: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                work()
            except StoreClosed:
                pass
            except BaseException as error:
                self.failures.append(error)

        return threading.Thread(target=guarded, daemon=True)

    def wait_for(self, stored: int) -> None:
        """Return after this many stored puts, or when no producer puts any more."""
        with self._changed:
            is_so = self._changed.wait_for(
                lambda: len(self.stored) >= stored or not self._still_producing, timeout=PATIENCE_S
            )
        assert is_so, "a producer waits forever"

    def _produce(self, producer: int) -> None:
        try:
            self._put_all(producer)
        finally:
            with self._changed:
                self._still_producing -= 1
                self._changed.notify_all()

    def _put_all(self, producer: int) -> None:
        rng = random.Random(f"{self.seed} {producer}")
        for number in range(self.puts):
            message, bodies = message_of(rng, producer, number, all_wait=self.all_wait)
            if rng.random() < 0.5:
                answer = self.store.put_async(message)
                self.answers.append(answer)
                answer.add_done_callback(lambda done, bodies=bodies: self._note(bodies, done.result()))  # type: ignore[misc]
            elif isinstance(message, MessageBatch):
                self._note(bodies, self.store.put_batch(message))
            else:
                self._note(bodies, self.store.put(message))

    def _note(self, bodies: list[bytes], result: PutResult) -> None:
        if result.stored:
            with self._changed:
                self.stored.append((bodies, result))
                self._changed.notify_all()
        elif result.status not in (PutStatus.SERVICE_NOT_AVAILABLE, PutStatus.CREATE_MAPEDFILE_FAILED):
            self.failures.append(AssertionError(result))

    def _flush(self) -> None:
        flushed_before = 0
        while not self._over.wait(0.001):
            flushed = self.store.flush()
            assert flushed.durable or self.commits_fail or self.sync_fails, self.store.read_only_reason
            assert flushed.flushed_offset >= flushed_before, "the flushed offset went down"
            flushed_before = flushed.flushed_offset

    def _check(self) -> None:
        marks = (0, 0, 0, 0)
        while not self._over.is_set():
            self.store.check()
            now = self._marks()
            self.store.check()  # they were those of an open store
            if self.sync_fails:
                now = (*now[:2], 0, now[3])  # after a failed sync readers see the flushed bytes only
            assert all(before <= after for before, after in zip(marks, now, strict=True)), (marks, now)
            marks = now

    def _marks(self) -> tuple[int, int, int, int]:
        store = self.store
        return store.min_offset, store.flushed_offset, store.committed_offset, store.max_offset

    def _read(self) -> None:
        while not self._over.is_set():
            committed_offset = self.store.committed_offset
            for bodies, result in self.stored[-20:]:
                if result.offset + result.size_bytes <= committed_offset:
                    found = self.store.get(result.offset).message
                    if found is None and self.sync_fails:
                        continue
                    assert found is not None, f"{result} is committed and cannot be read"
                    assert found.body == bodies[0]

    def join(self) -> None:
        """Wait until all have ended; raise the first error."""
        for thread in self._producing:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a producer waits forever"
        for answer in self.answers:
            answer.result(timeout=PATIENCE_S)
        self._over.set()
        for thread in self._watching:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        if self.failures:
            raise self.failures[0]

    def bodies(self) -> list[bytes]:
        """Return the messages that have to be in the log, in its order."""
        in_order = sorted(self.stored, key=lambda each: each[1].offset)
        return [body for bodies, _ in in_order for body in bodies]


def reopened_bodies(directory: Path, config: MessageStoreConfig) -> list[bytes]:
    """Open a cleanly closed store and return its bodies."""
    assert not (directory / "abort").exists()
    with open_store(directory, config=replace(config, mapped_files_ahead=0), files=OsFiles()) as store:
        assert store.findings == ()
        assert store.read_only_reason is None
        return [stored.body for stored in store.messages()]


def small_config(*, sync: bool, pool_buffers: int, files_ahead: int = 1, **changes: object) -> MessageStoreConfig:
    """Return a configuration whose services always have work.

    It has tiny files and intervals of a few milliseconds.
    """
    return replace(
        config_of(sync=sync),
        mapped_files_ahead=files_ahead,
        flush_interval_commit_log=2,
        flush_commit_log_least_pages=1,
        flush_commit_log_thorough_interval=5,
        commit_interval_commit_log=1,
        commit_commit_log_least_pages=1,
        commit_commit_log_thorough_interval=2,
        flush_interval_consume_queue=3,
        flush_consume_queue_thorough_interval=4,
        transient_store_pool_enable=pool_buffers > 0,
        transient_store_pool_size=max(1, pool_buffers),
        **changes,  # type: ignore[arg-type]
    )
