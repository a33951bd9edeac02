"""Group commit on its own: one flush per step, and an answer for each request, whatever happens."""

import pytest

from impl.group_commit import GroupCommit


class Flushes:
    """A flush that counts its calls, and raises while `broken`."""

    def __init__(self) -> None:
        self.calls = 0
        self.broken = False

    def __call__(self) -> int:
        self.calls += 1
        if self.broken:
            raise RuntimeError("broken")
        return 100 * self.calls


def test_step_without_requests_flushes_nothing() -> None:
    flush = Flushes()
    GroupCommit(flush).step()
    assert flush.calls == 0


def test_one_flush_answers_all() -> None:
    flush = Flushes()
    group_commit = GroupCommit(flush)
    requests = [group_commit.submit() for _ in range(3)]
    group_commit.step()
    assert [request.result(timeout=0) for request in requests] == [100, 100, 100]
    assert flush.calls == 1


def test_flush_that_raises_answers_that_nothing_is_durable() -> None:
    flush = Flushes()
    flush.broken = True
    group_commit = GroupCommit(flush)
    request = group_commit.submit()
    with pytest.raises(RuntimeError):
        group_commit.step()
    assert request.result(timeout=0) == 0


def test_finish_answers_who_waits_and_who_comes_later() -> None:
    flush = Flushes()
    group_commit = GroupCommit(flush)
    early = group_commit.submit()
    group_commit.finish()
    assert early.result(timeout=0) == 100
    assert group_commit.submit().result(timeout=0) == 200
