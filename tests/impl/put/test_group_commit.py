"""Test group commit alone: one flush per step and an answer for each request."""

import pytest

from tornpage.impl.message.message import PutStatus
from tornpage.impl.put.group_commit import GroupCommit
from tornpage.impl.put.time_outs import Awaited

OK, LATE = PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT


class Flushes:
    """A flush that advances by 100 bytes at each call, and raises while `broken`."""

    def __init__(self) -> None:
        self.calls = 0
        self.broken = False

    def __call__(self) -> int:
        self.calls += 1
        if self.broken:
            raise RuntimeError("broken")
        return 100 * self.calls


def request(answers: list[PutStatus], *, end_offset: int = 100) -> Awaited:
    """Return a request that adds its status to the answers."""
    return Awaited(answers.append, end_offset=end_offset, deadline_ms=5_000, timeout_status=LATE)


def test_step_without_requests_flushes_what_nobody_waits_for() -> None:
    flush = Flushes()
    GroupCommit(flush).step(0)
    assert flush.calls == 1


def test_one_flush_answers_all_by_where_they_end() -> None:
    flush, answers = Flushes(), list[PutStatus]()
    group_commit = GroupCommit(flush)
    for end_offset in (99, 100, 101):
        group_commit.submit(request(answers, end_offset=end_offset))
    assert answers == []
    group_commit.step(0)
    assert answers == [OK, OK, LATE]
    assert flush.calls == 1
    group_commit.step(0)
    assert answers == [OK, OK, LATE]


def test_flush_that_raises_answers_that_nothing_is_durable() -> None:
    flush, answers = Flushes(), list[PutStatus]()
    flush.broken = True
    group_commit = GroupCommit(flush)
    group_commit.submit(request(answers))
    with pytest.raises(RuntimeError):
        group_commit.step(0)
    assert answers == [LATE]
    flush.broken = False
    group_commit.step(0)
    assert answers == [LATE]


def test_request_that_comes_during_a_flush_is_answered_by_the_next() -> None:
    answers: list[PutStatus] = []

    def flush() -> int:
        if not answers:
            group_commit.submit(request(answers, end_offset=1))
        return 100

    group_commit = GroupCommit(flush)
    group_commit.submit(request(answers))
    group_commit.step(0)
    assert answers == [OK]
    group_commit.step(0)
    assert answers == [OK, OK]


def test_finish_answers_who_waits_and_who_comes_later() -> None:
    flush, answers = Flushes(), list[PutStatus]()
    group_commit = GroupCommit(flush)
    group_commit.submit(request(answers))
    group_commit.finish()
    assert answers == [OK]
    group_commit.submit(request(answers, end_offset=200))
    assert answers == [OK, OK]
    assert flush.calls == 2
