"""Test the pool of write buffers: last in first out, one user at a time, low-pool warning."""

import errno
import logging
import threading

import pytest

from tornpage.impl.io.memory import LockedMemory
from tornpage.impl.log.transient_store_pool import TransientStorePool

BUFFER_BYTES = 8192


def borrowed(pool: TransientStorePool) -> memoryview:
    """Borrow a buffer that must be there."""
    view = pool.borrow()
    assert view is not None
    return view


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the messages logged since the last call."""
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    caplog.clear()
    return [text for text in said if text.startswith("transient_store_pool")]


class Reserve:
    """Fails to reserve the `fails_at`-th buffer; lists the buffers it made."""

    def __init__(self, *, fails_at: int = 1 << 30) -> None:
        self.made: list[LockedMemory] = []
        self._fails_at = fails_at

    def __call__(self, size_bytes: int) -> LockedMemory:
        """Reserve a buffer or fail."""
        if len(self.made) + 1 == self._fails_at:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        self.made.append(LockedMemory(size_bytes))
        return self.made[-1]

    def released(self) -> list[bool]:
        """Return for each buffer whether it was released."""
        found = []
        for memory in self.made:
            try:
                len(memory.view)
            except ValueError:
                found.append(True)
            else:
                found.append(False)
        return found


def test_a_pool_lends_what_it_has_and_then_nothing() -> None:
    pool = TransientStorePool(2, BUFFER_BYTES)
    assert (pool.count, pool.buffer_bytes, pool.free) == (2, BUFFER_BYTES, 2)
    first, second = borrowed(pool), borrowed(pool)
    assert (len(first), len(second), pool.free) == (BUFFER_BYTES, BUFFER_BYTES, 0)
    first[:1], second[:1] = b"1", b"2"
    assert bytes(first[:1]) == b"1"
    assert pool.borrow() is None
    pool.give_back(first)
    assert pool.free == 1
    assert pool.borrow() is not None
    assert pool.borrow() is None


def test_a_pool_of_none_lends_nothing() -> None:
    pool = TransientStorePool(0, BUFFER_BYTES)
    assert pool.borrow() is None
    assert (pool.free, pool.close()) == (0, 0)


def test_what_came_home_last_goes_out_first_with_its_old_bytes() -> None:
    pool = TransientStorePool(3, BUFFER_BYTES)
    views = [borrowed(pool) for _ in range(3)]
    for number, view in enumerate(views):
        view[-1] = number
    for number in (1, 2, 0):
        pool.give_back(views[number])
    again = [borrowed(pool) for _ in range(3)]
    assert [view[-1] for view in again] == [0, 2, 1]


def test_a_view_ends_with_its_loan() -> None:
    pool = TransientStorePool(1, BUFFER_BYTES)
    late = borrowed(pool)
    pool.give_back(late)
    with pytest.raises(ValueError, match="released"):
        late[0] = 1
    assert borrowed(pool)[0] == 0


@pytest.mark.parametrize("who", ["twice", "twice, lent again", "slice", "stranger", "other pool"])
def test_only_what_is_on_loan_comes_back(who: str) -> None:
    pool, other = TransientStorePool(2, BUFFER_BYTES), TransientStorePool(1, BUFFER_BYTES)
    view = borrowed(pool)
    match who:
        case "twice" | "twice, lent again":
            pool.give_back(view)
            if who == "twice, lent again":
                borrowed(pool)
            wrong = view
        case "slice":
            wrong = view[:]
        case "stranger":
            wrong = memoryview(bytearray(BUFFER_BYTES))
        case _:
            wrong = borrowed(other)
    free = pool.free
    with pytest.raises(ValueError, match="not on loan"):
        pool.give_back(wrong)
    assert pool.free == free


def test_a_pool_that_runs_low_says_so_once_for_each_time(caplog: pytest.LogCaptureFixture) -> None:
    pool = TransientStorePool(5, BUFFER_BYTES)
    views = [borrowed(pool) for _ in range(3)]
    assert warnings(caplog) == [], "two of five are 40 %"
    views.append(borrowed(pool))
    assert warnings(caplog) == ["transient_store_pool_low free=1 count=5"]
    views.append(borrowed(pool))
    assert pool.borrow() is None
    pool.give_back(views.pop())
    views.append(borrowed(pool))
    assert warnings(caplog) == [], "it was low all the time"
    pool.give_back(views.pop())
    pool.give_back(views.pop())
    views.append(borrowed(pool))
    assert warnings(caplog) == ["transient_store_pool_low free=1 count=5"]


def test_threads_never_share_a_buffer() -> None:
    pool = TransientStorePool(2, BUFFER_BYTES)
    start, errors = threading.Barrier(4), []

    def use(number: int) -> None:
        start.wait()
        for turn in range(300):
            view = pool.borrow()
            if view is None:
                continue
            mine = bytes([number, turn % 256])
            view[:2] = mine
            if bytes(view[:2]) != mine or pool.free > 1:
                errors.append((number, turn))
            pool.give_back(view)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert pool.free == 2


def test_close_releases_what_is_home_at_once_and_the_rest_as_it_comes() -> None:
    reserve = Reserve()
    pool = TransientStorePool(3, BUFFER_BYTES, reserve=reserve)
    view = borrowed(pool)
    assert pool.close() == 1
    assert reserve.released() == [True, True, False]
    assert (pool.free, pool.borrow()) == (0, None)
    view[:3] = b"abc"
    pool.give_back(view)
    assert reserve.released() == [True, True, True]
    assert (pool.close(), pool.free) == (0, 0)
    with pytest.raises(ValueError, match="not on loan"):
        pool.give_back(view)


def test_memory_that_cannot_be_reserved_is_an_error_with_a_remedy() -> None:
    reserve = Reserve(fails_at=3)
    with pytest.raises(OSError, match="Cannot allocate memory: ") as caught:
        TransientStorePool(3, BUFFER_BYTES, reserve=reserve)
    assert caught.value.errno == errno.ENOMEM
    assert "3 buffers of 8192 bytes" in str(caught.value)
    assert "transient_store_pool_size" in str(caught.value)
    assert reserve.released() == [True, True]


def test_more_memory_than_there_are_addresses_is_refused() -> None:
    with pytest.raises(OSError, match="lower transient_store_pool_size"):
        TransientStorePool(1, 1 << 50)
