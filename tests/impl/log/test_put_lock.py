"""Test both put locks: what they share, and where they differ."""

import random
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from tornpage.impl.config.policy import PutLockKind
from tornpage.impl.log.put_lock import PutLock, SpinLock, make_put_lock


@pytest.fixture(params=list(PutLockKind), ids=lambda kind: kind.name)
def lock(request: pytest.FixtureRequest) -> PutLock:
    return make_put_lock(request.param)


def in_thread(call: Callable[[], object]) -> object:
    """Return the result of a call, or its error, in a new thread."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(call())
        except RuntimeError as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    return results[0]


def test_another_thread_gets_it_only_when_it_is_free(lock: PutLock) -> None:
    def try_it() -> bool:
        taken = lock.acquire(blocking=False)
        if taken:
            lock.release()
        return taken

    assert in_thread(try_it) is True
    assert lock.acquire()
    assert in_thread(try_it) is False
    lock.release()
    assert in_thread(try_it) is True


def test_a_block_gives_it_back_after_an_error_too(lock: PutLock) -> None:
    with pytest.raises(KeyError), lock:
        raise KeyError
    assert lock.acquire(blocking=False)
    lock.release()


def test_releasing_a_free_lock_is_an_error(lock: PutLock) -> None:
    with pytest.raises(RuntimeError):
        lock.release()
    with lock:
        pass
    with pytest.raises(RuntimeError):
        lock.release()


def test_locks_are_apart(lock: PutLock) -> None:
    with lock:
        for kind in PutLockKind:
            assert in_thread(make_put_lock(kind).acquire) is True


def test_only_the_reentrant_lock_is_taken_again_by_its_holder() -> None:
    reentrant, spin = make_put_lock(PutLockKind.REENTRANT), make_put_lock(PutLockKind.SPIN)
    with reentrant, reentrant:
        assert reentrant.acquire(blocking=False)
        reentrant.release()
    with spin:
        assert not spin.acquire(blocking=False)


def test_only_the_spin_lock_is_released_by_another_thread() -> None:
    reentrant, spin = make_put_lock(PutLockKind.REENTRANT), make_put_lock(PutLockKind.SPIN)
    reentrant.acquire()
    spin.acquire()
    assert isinstance(in_thread(reentrant.release), RuntimeError)
    assert in_thread(spin.release) is None
    assert spin.acquire(blocking=False)


def test_a_spin_lock_pauses_between_tries_and_never_when_it_is_free() -> None:
    pauses: list[int] = []

    def pause() -> None:
        pauses.append(len(pauses))
        if len(pauses) == 3:
            spin.release()

    spin = SpinLock(pause)
    assert spin.acquire()
    assert pauses == []
    assert not spin.acquire(blocking=False)
    assert pauses == []
    assert spin.acquire()
    assert pauses == [0, 1, 2]


class Interrupted(Exception):
    """Raised at any place of the main thread."""


@pytest.fixture
def alarm() -> Iterator[Callable[[float], object]]:
    """Raises Interrupted after this many seconds."""

    def ring(_number: int, _frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.signal(signal.SIGALRM, before)


def take_it_for_ever(lock: PutLock) -> None:
    while True:
        with lock:
            pass


def test_an_interrupt_leaves_the_lock_to_nobody(lock: PutLock, alarm: Callable[[float], object]) -> None:
    """One Ctrl-C of twenty during puts left the spin lock held.

    close() waited for the lock forever.
    """
    rng = random.Random(0)
    for _ in range(500):
        try:
            alarm(rng.uniform(2e-5, 2e-4))
            take_it_for_ever(lock)
        except Interrupted:
            pass
        assert lock.acquire(blocking=False)
        lock.release()


def test_nothing_is_lost_between_threads(lock: PutLock) -> None:
    box = [0]
    start = threading.Barrier(3, timeout=10)

    def work() -> None:
        start.wait()
        for _ in range(300):
            with lock:
                seen = box[0]
                box[0] = seen + 1

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert box == [900]
