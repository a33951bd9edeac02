"""Test that a light future behaves as one of the standard library at any time."""

import threading
from concurrent.futures import ALL_COMPLETED, as_completed, wait

import pytest

from tornpage.impl.put.put_answers import LightFuture


def test_result_is_there_once_it_is_set() -> None:
    future: LightFuture[int] = LightFuture()
    assert not future.done()
    with pytest.raises(TimeoutError):
        future.result(timeout=0)
    with pytest.raises(TimeoutError):
        future.exception(timeout=0)
    future.set_result(7)
    assert future.done()
    assert not future.running()
    assert (future.result(timeout=0), future.exception(timeout=0)) == (7, None)


def test_it_cannot_be_cancelled() -> None:
    future: LightFuture[int] = LightFuture()
    assert not future.cancel()
    future.set_result(1)
    assert not future.cancelled()
    assert future.result() == 1


def test_callbacks_before_and_behind_the_result_are_called_once_in_order() -> None:
    future: LightFuture[int] = LightFuture()
    heard: list[str] = []
    future.add_done_callback(lambda done: heard.append(f"first {done.result()}"))
    future.add_done_callback(lambda _: heard.append("second"))
    future.set_result(3)
    future.add_done_callback(lambda _: heard.append("late"))
    assert heard == ["first 3", "second", "late"]


def test_waiting_for_several_sees_all_of_them() -> None:
    futures: list[LightFuture[int]] = [LightFuture() for _ in range(50)]
    futures[0].set_result(0)

    def set_the_others() -> None:
        for number, future in enumerate(futures[1:], 1):
            future.set_result(number)

    setter = threading.Thread(target=set_the_others)
    setter.start()
    assert sorted(future.result() for future in as_completed(futures, timeout=30)) == list(range(50))
    done, missing = wait(futures, timeout=30, return_when=ALL_COMPLETED)
    setter.join()
    assert (len(done), len(missing)) == (50, 0)


def test_no_waiter_is_forgotten_whenever_it_comes() -> None:
    """The waiting thread makes the condition while the other one sets the result.

    One of the two has to see the other.
    """
    for _ in range(2_000):
        future: LightFuture[int] = LightFuture()
        heard: list[int] = []
        together = threading.Barrier(2)

        def set_it(future: LightFuture[int] = future, together: threading.Barrier = together) -> None:
            together.wait()
            future.set_result(1)

        setter = threading.Thread(target=set_it)
        setter.start()
        together.wait()
        future.add_done_callback(lambda done, heard=heard: heard.append(done.result()))  # type: ignore[misc]
        assert future.result(timeout=30) == 1
        setter.join()
        assert heard == [1]


def test_repr_and_hash_are_those_of_a_future() -> None:
    future: LightFuture[int] = LightFuture()
    assert "pending" in repr(future)
    future.set_result(1)
    assert "finished" in repr(future)
    assert len({future, future}) == 1
