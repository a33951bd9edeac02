"""Test the zygote of Python targets: equal results, one fork, and no process left."""

import os
import queue
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.properties.foreign.test_promises import Log
from tornpage.model.operations import Close, Crash, Flush, Open, Operation, Put
from tornpage.properties.campaign.replay import replay
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.foreign.campaign import TargetPlan, TargetResult, run_target_campaign
from tornpage.properties.foreign import process as process_module
from tornpage.properties.foreign import zygote as zygote_module
from tornpage.properties.foreign.process import StoreProcess
from tornpage.properties.foreign.spec import read_spec
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.foreign.zygote import can_clone_sibling, zygotes
from tornpage.properties.program.case import Case, Settings

pytestmark = [
    pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can"),
    pytest.mark.skipif(not can_clone_sibling(), reason="no process can create a child of its own parent here"),
]

_GONE_SECONDS = 20.0


class Threaded(Log):
    """Does its work in a thread that its constructor starts."""

    def __init__(self, directory: str) -> None:
        self._work: queue.SimpleQueue[tuple[str, bytes, tuple[str, ...]]] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
        super().__init__(directory)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            self._done.put(super().put(*self._work.get()))  # type: ignore[arg-type, call-arg]

    def put(self, *arguments: object) -> tuple[int, int]:
        self._work.put(arguments)  # type: ignore[arg-type]
        return self._done.get(timeout=5)


def settings(name: str) -> Settings:
    return Settings(target=f"{__file__}:{name}")


def campaign(name: str, states: int) -> TargetResult:
    with choose_tracker("auto") as tracker:
        return run_target_campaign(TargetPlan(settings(name), seed=3, states=states), tracker=tracker)


def replayed(name: str, *operations: Operation) -> object:
    with choose_tracker("auto") as tracker:
        return replay(Case(settings(name), operations), tracker=tracker)


@contextmanager
def counted_forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Yield the processes that this one forks."""
    forked: list[int] = []
    fork = os.fork

    def counting() -> int:
        found = fork()
        if found:
            forked.append(found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(os, "fork", counting)
        yield forked


@pytest.mark.slow
def test_campaign_is_equal_with_and_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with counted_forks(monkeypatch) as forked:
        with_it = campaign("Threaded", 20)
    monkeypatch.setattr(zygote_module, "can_clone_sibling", lambda: False)
    with counted_forks(monkeypatch) as forked_without:
        without = campaign("Threaded", 20)
    assert (with_it.result_hash, with_it.verdict) == (without.result_hash, without.verdict)
    assert len(forked) <= 3 < 20 < len(forked_without)  # the store, its canary, and the probe for tracing


def test_judge_is_forked_once_for_all_sessions_of_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    with counted_forks(monkeypatch) as forked:
        assert replayed("Threaded", Put("T", 0), Flush(), Crash(kill=True), Put("T", 0), Close(), Open()) is None
    assert len(forked) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(forked[0], 0)


def test_replay_traces_no_process_after_its_last_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made of that recording."""
    traced: list[bool] = []

    class Noted(StoreProcess):
        def __init__(self, *arguments: object, **named: object) -> None:
            super().__init__(*arguments, **named)  # type: ignore[arg-type]
            traced.append(self.is_traced)

    monkeypatch.setattr("tornpage.properties.foreign.work_area.StoreProcess", Noted)
    assert replayed("Threaded", Put("T", 0), Crash(), Put("T", 0), Flush(), Crash(kill=True), Put("T", 0)) is None
    assert traced == [True, True, False]


def test_process_can_end_while_the_zygote_lives(tmp_path: Path) -> None:
    """Symptom: the zygote held a pipe of the first process, whose end counted as a hang."""
    with zygotes():
        store = StoreProcess(read_spec(f"{__file__}:Threaded"), tmp_path, answer_seconds=5)
        store.greet()
        os.kill(store._id, signal.SIGTERM)
        with pytest.raises(process_module.Died, match="is killed by SIGTERM"):
            store.ask("flush")
        store.kill()


def test_zygote_that_was_killed_is_an_error_and_no_hang(tmp_path: Path) -> None:
    with zygotes():
        spec = read_spec(f"{__file__}:Threaded")
        store = StoreProcess(spec, tmp_path)
        (zygote,) = zygote_module._run.held.values()
        os.kill(zygote.pid, signal.SIGKILL)
        store.greet()  # a process that is there goes on
        with pytest.raises(HarnessError, match="has ended"):
            StoreProcess(spec, tmp_path)
        store.kill()


SCRIPT = """
import os, signal, sys
from pathlib import Path
from tornpage.properties.foreign import zygote
from tornpage.properties.foreign.process import StoreProcess
from tornpage.properties.foreign.spec import read_spec
with zygote.zygotes():
    store = StoreProcess(read_spec(sys.argv[1]), Path(sys.argv[2]))
    store.greet()
    (found,) = zygote._run.held.values()
    for each in found.pid, store._id:  # neither can notice that a pipe was closed
        os.kill(each, signal.SIGSTOP)
    print(found.pid, store._id, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_after_the_end_of_the_judge(number: int, tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", SCRIPT, f"{__file__}:Threaded", str(tmp_path)]
    judge = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert judge.stdin is not None
    assert judge.stdout is not None
    watched = [os.pidfd_open(int(each)) for each in judge.stdout.readline().split()]
    assert len(watched) == 2
    judge.send_signal(number)
    judge.wait()
    for each in watched:
        assert select.select([each], [], [], _GONE_SECONDS)[0], "a process is left"
        os.close(each)
    judge.stdin.close()
    judge.stdout.close()
