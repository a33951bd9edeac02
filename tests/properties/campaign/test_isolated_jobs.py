"""Test isolated jobs that answer, raise, die or hang, and jobs that are ended."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from contextlib import closing
from multiprocessing.context import ForkServerProcess
from typing import Any
from unittest.mock import Mock

import pytest

from tornpage.properties.campaign.workers import Died, JobPool, Plain, _heard, _work_once, _Worker


def double(number: int) -> int:
    return 2 * number


def fail(number: int) -> None:
    raise KeyError("gone")


def die(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang(number: int) -> None:
    while True:
        signal.pause()


def hang_at_one(number: int) -> int:
    if number == 1:
        hang(number)
    return number


def ask_for_an_interrupt(number: int) -> str:
    os.kill(os.getpid(), signal.SIGINT)
    return "deaf"


def alone(function: Callable[[int], Any], *, limit_s: float = 60.0) -> Any:
    """Return the result of the job 21."""
    ((part, made),) = JobPool(Plain(function), iter((21,)), 1, limit_s).results()
    assert part == 21
    return made


def test_a_part_answers() -> None:
    assert alone(double) == 42


def test_a_part_that_raises_or_dies_is_an_answer_too() -> None:
    assert alone(fail) == Died(21, "", "KeyError: 'gone'")
    assert alone(die) == Died(21, "", "was killed by SIGKILL")


def test_half_an_answer_is_none() -> None:
    ours, theirs = multiprocessing.Pipe(duplex=False)
    os.write(theirs.fileno(), (100).to_bytes(4, "big") + b"x")
    theirs.close()
    process = Mock(exitcode=-9)
    assert _heard(_Worker(process, ours, part="part")) == Died("part", "", "was killed by SIGKILL")


def test_a_part_whose_parent_has_gone_says_nothing() -> None:
    """Each job that an interrupt had left ended in a traceback."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    ours.close()
    _work_once(theirs, Plain(double), 21)


def test_an_interrupt_while_a_part_starts_leaves_it_to_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job was forgotten and went on after the command."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a worker of pytest-xdist ignores it
    real = ForkServerProcess.start
    started: list[int | None] = []

    def interrupted(process: ForkServerProcess) -> None:
        real(process)
        started.append(process.pid)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(ForkServerProcess, "start", interrupted)
    apart = JobPool(Plain(hang), iter((0,)), 1, 60.0)
    with pytest.raises(KeyboardInterrupt):
        next(apart.results())
    signal.signal(signal.SIGINT, before)
    assert apart.pool == []
    (pid,) = started
    assert is_gone(pid)


@pytest.mark.slow
def test_a_part_that_hangs_is_ended_at_its_limit_and_the_others_are_carried_out() -> None:
    assert alone(hang, limit_s=0.5) == Died(21, "", "no answer within its limit", is_hung=True)
    made = dict(JobPool(Plain(hang_at_one), iter(range(4)), 2, 5.0).results())
    assert {part: each for part, each in made.items() if part != 1} == {0: 0, 2: 2, 3: 3}
    assert isinstance(made[1], Died)
    assert made[1].is_hung


def test_parts_do_not_hear_of_an_interrupt() -> None:
    assert alone(ask_for_an_interrupt) == "deaf"


def test_a_part_is_asked_for_after_the_results_before_it() -> None:
    """The next job may depend on earlier results, as the order of trials does."""
    taken: list[int] = []
    seen: list[int] = []

    def parts() -> Any:
        for number in range(3):
            seen.append(len(taken))
            yield number

    for part, _ in JobPool(Plain(double), parts(), 1, 60.0).results():
        taken.append(part)
    assert seen == [0, 1, 2]


def test_so_many_run_at_once_and_all_are_ended() -> None:
    pids: list[int | None] = []

    def tick() -> None:
        pids.extend(worker.process.pid for worker in apart.pool)  # type: ignore[union-attr]
        raise KeyboardInterrupt

    apart = JobPool(Plain(hang), iter(range(3)), 2, 60.0, tick=tick)
    with closing(apart.results()) as results, pytest.raises(KeyboardInterrupt):
        next(results)
    assert len(pids) == 2
    assert all(map(is_gone, pids))


def is_gone(pid: int | None) -> bool:
    assert pid is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
