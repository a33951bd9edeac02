"""Jobs apart: one that answers, one that raises, one that dies, one that hangs, and those that are ended."""

import multiprocessing
import os
import signal
from multiprocessing.context import ForkServerProcess
from unittest.mock import Mock

import pytest

from properties.score.apart import Apart, _answer_of, _child, _Running, alone


def double(number: int) -> int:
    return 2 * number


def fail() -> None:
    raise KeyError("gone")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> None:
    while True:
        signal.pause()


def ask_for_an_interrupt() -> str:
    os.kill(os.getpid(), signal.SIGINT)
    return "deaf"


def test_a_job_answers() -> None:
    answer = alone(double, (21,), limit_s=60)
    assert (answer.end, answer.value) == ("answered", 42)


def test_a_job_that_raises_or_dies_is_an_answer_too() -> None:
    raised, died = alone(fail, (), limit_s=60), alone(die, (), limit_s=60)
    assert (raised.end, raised.why) == ("died", "KeyError: 'gone'")
    assert (died.end, died.why) == ("died", "ended with exit code -9")


def test_half_an_answer_is_none() -> None:
    ours, theirs = multiprocessing.Pipe(duplex=False)
    os.write(theirs.fileno(), (100).to_bytes(4, "big") + b"x")
    theirs.close()
    process = Mock(exitcode=-9)
    assert _answer_of(_Running("", process, ours, 0.0)).why == "ended with exit code -9"


def test_a_job_whose_asker_has_gone_says_nothing() -> None:
    """Each job that an interrupt had left behind ended in a traceback."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    ours.close()
    _child(theirs, double, (21,))


def test_an_interrupt_while_a_job_starts_leaves_it_to_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was forgotten, and went on behind the command."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a worker of pytest-xdist ignores it
    real = ForkServerProcess.start

    def interrupted(process: ForkServerProcess) -> None:
        real(process)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(ForkServerProcess, "start", interrupted)
    apart: Apart[str] = Apart(hang, workers=1)
    with pytest.raises(KeyboardInterrupt):
        apart.start("job", (), limit_s=60)
    signal.signal(signal.SIGINT, before)
    assert apart.busy == 1
    apart.stop()
    assert apart.busy == 0


def test_a_job_that_hangs_is_ended_at_its_limit() -> None:
    assert alone(hang, (), limit_s=0.5).end == "hung"


def test_jobs_do_not_hear_of_an_interrupt() -> None:
    assert alone(ask_for_an_interrupt, (), limit_s=60).value == "deaf"


def test_so_many_run_at_once_and_all_are_ended() -> None:
    apart: Apart[int] = Apart(hang, workers=2)
    for number in range(2):
        apart.start(number, (), limit_s=60)
    assert (apart.busy, apart.has_room) == (2, False)
    pids = [job.process.pid for job in apart._running]
    apart.stop()
    assert apart.busy == 0
    for pid in pids:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
