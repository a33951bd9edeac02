"""Compare the runner of a service, states of a store, and locks with plain rules.

The runner of a service runs on a virtual clock, with stand-ins for threads and conditions. What other threads do is
drawn: it happens while the runner waits.

1. A step begins when it is due or when it is requested, and not before. A request during a step leads to another step.
   A step that fails is repeated a second later. No step begins after the stop.
2. The runner waits until the next step is due, and without end if none is.
3. If no thread can be made, a request runs a step at once.
4. The waiting for an answer lasts as long as it is asked for.
5. An interrupt of a request, or of the start of the thread, is the end of that call only. The next request leads to a
   step.
6. A store only becomes stricter: open, then read-only, then closed. In a child of its process it can never be used.
7. A spin lock is taken once. It pauses between two attempts, and never without need.
"""

import errno
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from unittest.mock import patch

from tornpage.impl.config.policy import PutLockKind
from tornpage.impl.errors import ForkedStore, StoreClosed
from tornpage.impl.log.put_lock import SpinLock, make_put_lock
from tornpage.impl.service import runner
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.impl.service.runner import ThreadRunner
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.lockstep.functions.comparing import is_answered, is_value
from tornpage.properties.lockstep.parts.part_disk import tried

__all__ = ["check"]

_EVENTS = 25
_STEPS_MAX = 60_000
"""Steps after these do nothing, so that a runner which never stops becomes idle."""
_FAILURE_PAUSE_MS = 1_000
_FORKS = 0.25
"""The share of the checks that fork a process."""


def check(rng: random.Random) -> None:
    """Compare all of them. Raises GuaranteeBroken."""
    for has_threads in (True, True, False):
        _run(rng, has_threads=has_threads)
    _waits()
    _lifecycle(rng)
    _spin_lock(rng)


# ---- a runner on a virtual clock -------------------------------------------------------------------------------------


class _IsIdleError(Exception):
    """Ends a run whose runner waits without end."""


class _InterruptError(BaseException):
    """Stands for the exception of a signal handler."""


@dataclass(frozen=True, slots=True)
class _Step:
    """What a drawn step does: it takes time, and ends with a due time or an error.

    `is_asked` steps are requested again while they run.
    """

    takes_ms: int
    due_in_ms: int | None
    error: type[BaseException] | None
    is_asked: bool


@dataclass
class _Stage:
    """The clock, and what happens to a runner: the time of each event and its kind, ascending."""

    steps: list[_Step]
    events: list[tuple[int, str]]
    has_threads: bool
    now: int
    trace: list[tuple[object, ...]] = field(default_factory=list)
    made: "list[_Thread]" = field(default_factory=list)
    is_notified: bool = False
    is_interrupted: bool = False
    do: Callable[[str], object] = lambda _: None
    done: int = 0

    def interrupt_if_drawn(self) -> None:
        """Raise the exception of a signal handler if one is due."""
        if self.is_interrupted:
            raise _InterruptError

    @contextmanager
    def interrupted(self) -> Iterator[None]:
        """Context in which the start of a thread and a notification are interrupted."""
        self.is_interrupted = True
        try:
            yield
        except _InterruptError:
            pass
        finally:
            self.is_interrupted = False

    def next_step(self) -> _Step:
        """Return what the next step does."""
        self.done += 1
        return _step_at(self.steps, self.done)

    def rest(self, seconds: float) -> None:
        """Let the events of a sleep happen; none of them ends it."""
        self.trace.append(("rest", self.now, seconds))
        end = self.now + round(seconds * 1_000)
        while self.events and self.events[0][0] <= end:
            at, kind = self.events.pop(0)
            self.now = max(self.now, at)
            self.do(kind)
        self.now = end


def _step_at(steps: list[_Step], number: int) -> _Step:
    """Return what a step does, counted from 1.

    The first step follows the last drawn one. After `_STEPS_MAX` steps nothing more is due, so that a runner has an
    end.
    """
    return steps[(number - 1) % len(steps)] if number < _STEPS_MAX else _Step(0, None, None, is_asked=False)


class _Thread:
    """Stands for a thread, which the test runs by hand."""

    def __init__(self, stage: _Stage, target: Callable[[], None], name: str, *, daemon: bool) -> None:
        self._stage, self.target, self.name, self.is_daemon = stage, target, name, daemon
        stage.made.append(self)

    def start(self) -> None:
        """Raise RuntimeError if no thread can be made."""
        self._stage.interrupt_if_drawn()
        if not self._stage.has_threads:
            raise RuntimeError("can't start new thread")

    def join(self) -> None:
        """Note the call."""
        self._stage.trace.append(("join",))


class _Lock:
    """Stands for a lock of one thread."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class _Condition:
    """Stands for a condition: a wait lasts until its end, or until an event notifies."""

    def __init__(self, stage: _Stage) -> None:
        self._stage = stage

    def notify_all(self) -> None:
        """Note that a waiting thread continues."""
        self._stage.interrupt_if_drawn()
        self._stage.is_notified = True

    def wait(self, timeout: float | None) -> None:
        """Let events happen until one of them notifies or the time is over."""
        stage = self._stage
        stage.trace.append(("wait", stage.now, timeout))
        end = None if timeout is None else stage.now + timeout * 1_000
        stage.is_notified = False
        while stage.events and (end is None or stage.events[0][0] <= end):
            at, kind = stage.events.pop(0)
            stage.now = max(stage.now, at)
            stage.do(kind)
            if stage.is_notified:
                return
        if end is None:
            raise _IsIdleError
        stage.now = max(stage.now, round(end))


@contextmanager
def _staged(stage: _Stage) -> Iterator[None]:
    def thread(*, target: Callable[[], None], name: str, daemon: bool) -> _Thread:
        return _Thread(stage, target, name, daemon=daemon)

    threads = SimpleNamespace(
        RLock=_Lock, Condition=lambda _: _Condition(stage), Thread=thread, current_thread=lambda: None
    )
    clock = SimpleNamespace(monotonic_ns=lambda: stage.now * 1_000_000 + 999_999, sleep=stage.rest)
    with patch.multiple(runner, threading=threads, time=clock):
        yield


def _run(rng: random.Random, *, has_threads: bool) -> None:
    steps = [_Step(5, 0, None, is_asked=False), *(_drawn_step(rng) for _ in range(6))]  # the first one takes time
    began, first_due = rng.randrange(1_000), rng.choice((None, 0, 10))
    events, at = list[tuple[int, str]](), began
    for number in range(_EVENTS):
        at += rng.choice((0, 1, 9, 10, 11, 400, 1_000))
        events.append((at, "stop" if number == _EVENTS - 1 else rng.choice(("wake", "wake", "pass", "interrupt"))))
    stage, rest_ms = _Stage(steps, list(events), has_threads, began), rng.choice((0, 0, 1, 10))
    trace = [] if not has_threads else _expected(steps, list(events), began, first_due, rest_ms)
    with _staged(stage):
        service = SimpleNamespace(name="s", step=lambda now: _stepped(stage, now))
        if rest_ms:
            service.rest_ms = rest_ms
        running = ThreadRunner(service)

        def interrupted_wake() -> None:
            with stage.interrupted():
                running.wake()

        acts: dict[str, Callable[[], object]] = {
            "wake": running.wake, "stop": running.stop, "pass": lambda: None, "interrupt": interrupted_wake,
        }  # fmt: skip
        stage.do = lambda kind: acts[kind]()
        if not has_threads:
            _without_threads(running, stage, first_due)
            return
        if rng.random() < 0.3:
            _interrupted_start(running, stage, first_due)
        if first_due is not None:
            tried("start", lambda: running.start(after_ms=first_due))
        else:
            tried("wake", running.wake)
        is_value(
            "the threads of a runner", [("tornpage-s", True)], [(each.name, each.is_daemon) for each in stage.made]
        )
        try:
            tried("the thread of a runner", stage.made[0].target)
        except GuaranteeBroken as broken:
            if _IsIdleError.__name__ not in broken.sentence:
                raise
            stage.trace.append(("idle",))
        is_value("the steps and waits of a runner", trace, stage.trace)
        stage.trace.clear()
        tried("wake", running.wake)
        tried("start", lambda: running.start(after_ms=0))
        tried("stop", running.stop)
        is_value("the threads of a stopped runner", 1, len(stage.made))
        is_value("what a stopped runner does", [("join",)], stage.trace)


def _interrupted_start(running: ThreadRunner, stage: _Stage, first_due: int | None) -> None:
    """Interrupt the start of the thread. A thread that exists nevertheless does nothing."""
    with stage.interrupted():
        if first_due is not None:
            tried("start", lambda: running.start(after_ms=first_due))
        else:
            tried("wake", running.wake)
    for thread in stage.made:
        tried("a thread whose start was interrupted", thread.target)
    is_value("the steps of a thread whose start was interrupted", [], stage.trace)
    stage.made.clear()


def _drawn_step(rng: random.Random) -> _Step:
    error = rng.choice((None, None, None, OSError, ValueError))
    return _Step(rng.choice((0, 0, 5, 15)), rng.choice((None, 0, 1, 10, 500)), error, rng.random() < 0.2)


def _stepped(stage: _Stage, now: int) -> int | None:
    step = stage.next_step()
    stage.trace.append(("step", stage.now, now))
    stage.now += step.takes_ms
    if step.is_asked:
        stage.do("wake")
    if step.error is not None:
        raise step.error(errno.EIO, "a step that was chosen to fail")
    return None if step.due_in_ms is None else stage.now + step.due_in_ms


def _expected(
    steps: list[_Step], events: list[tuple[int, str]], now: int, first_due: int | None, rest_ms: int
) -> list[tuple[object, ...]]:
    """Return the steps, rests and waits of a runner.

    It is started, or a step is requested if there is no first due time. `rest_ms` follows each step. An interrupted
    request requests nothing.
    """
    trace, done, is_asked, is_stopped = list[tuple[object, ...]](), 0, first_due is None, False
    due = None if first_due is None else now + first_due
    while True:
        while not is_asked and not is_stopped and (due is None or due > now):
            trace.append(("wait", now, None if due is None else (due - now) / 1_000))
            if not events or (due is not None and events[0][0] > due):
                if due is None:
                    return [*trace, ("idle",)]
                now = due
                continue
            happened = ""
            while events and happened in ("", "pass", "interrupt") and (due is None or events[0][0] <= due):
                at, happened = events.pop(0)
                now = max(now, at)
            if happened in ("pass", "interrupt"):
                if due is None:
                    return [*trace, ("idle",)]
                now = max(now, due)
            if happened == "stop":
                trace.append(("join",))
            is_asked, is_stopped = happened == "wake", happened == "stop"
        if is_stopped:
            return trace
        done += 1
        step, began = _step_at(steps, done), now
        trace.append(("step", now, now))
        now += step.takes_ms
        is_asked = step.is_asked
        if step.error is not None:
            due = began + _FAILURE_PAUSE_MS
        else:
            due = None if step.due_in_ms is None else now + step.due_in_ms
        if rest_ms:
            trace.append(("rest", now, rest_ms / 1_000))
            end = now + rest_ms
            while events and events[0][0] <= end:
                _, happened = events.pop(0)
                is_asked |= happened == "wake"
                if happened == "stop":
                    trace.append(("join",))
                    is_stopped = True
            now = end


def _without_threads(running: ThreadRunner, stage: _Stage, first_due: int | None) -> None:
    """Request steps of a runner that gets no thread: each request runs one at once."""
    stage.steps = [_Step(each.takes_ms, each.due_in_ms, each.error, is_asked=False) for each in stage.steps]
    if first_due is not None:
        tried("start", lambda: running.start(after_ms=first_due))
    is_value("the steps of a runner without a thread", [], stage.trace)
    for number in range(1, 4):
        tried("wake", running.wake)
        is_value("the steps of a runner without a thread", number, len(stage.trace))
    tried("stop", running.stop)
    tried("wake", running.wake)
    is_value("the steps of a stopped runner without a thread", 3, len(stage.trace))


def _waits() -> None:
    """Compare how long an answer is waited for, and whether it is there then."""
    for timeout_ms in (0, 1, 250, 60_000):
        for is_late, is_done in ((False, True), (True, True), (True, False)):
            asked = list[float]()

            def exception(timeout: float, *, is_late: bool = is_late, asked: list[float] = asked) -> None:
                asked.append(timeout)
                if is_late:
                    raise TimeoutError

            answer = SimpleNamespace(exception=exception, done=lambda is_done=is_done: is_done)
            alone = ThreadRunner(SimpleNamespace(name="s", step=lambda _: None))
            found = tried("wait", lambda: alone.wait(answer, timeout_ms=timeout_ms))  # type: ignore[arg-type] # noqa: B023
            is_value(f"whether an answer is there after {timeout_ms} ms", is_done, found)
            is_value(f"how long an answer is waited for in {timeout_ms} ms", [timeout_ms / 1_000], asked)


# ---- the states of a store, and locks --------------------------------------------------------------------------------


def _use(state: Lifecycle) -> tuple[str, str]:
    """Return how the two checks of a store end."""
    ends = []
    for check_state in (state.require_opener, state.require_open):
        try:
            tried("a check of the state", check_state)
            ends.append("")
        except GuaranteeBroken as broken:
            ends.append(
                next((each.__name__ for each in (ForkedStore, StoreClosed) if each.__name__ in broken.sentence), "?")
            )
    return ends[0], ends[1]


def _lifecycle(rng: random.Random) -> None:
    state, reason = Lifecycle("/part"), str(rng.randrange(9))
    is_value(
        "a new store", ("", None, "/part", ("", "")), (state.shut, state.read_only_reason, state.directory, _use(state))
    )
    if rng.random() < 0.5:
        state.become_read_only(reason)
        is_value(
            "a read-only store", ("read-only", reason, ("", "")), (state.shut, state.read_only_reason, _use(state))
        )
    if rng.random() < 0.5:
        state.shut = "closed"
        state.become_read_only("later")
        is_value(
            "a closed store",
            ("closed", "later", ("", "StoreClosed")),
            (state.shut, state.read_only_reason, _use(state)),
        )
    if rng.random() < _FORKS:
        before = state.shut
        is_value("how a child of its process sees a store", "forked", _in_child(state))
        is_value("a store after a fork", before, state.shut)
    state.note_fork()
    is_value("a store of another process", ("forked", ("ForkedStore", "ForkedStore")), (state.shut, _use(state)))


def _in_child(state: Lifecycle) -> str:
    """Return the state of a store that a forked child sees."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(write, (state.shut or "open").encode())
        finally:
            os._exit(0)
    os.close(write)
    found = os.read(read, 99).decode()
    os.close(read)
    os.waitpid(child, 0)
    return found


def _spin_lock(rng: random.Random) -> None:
    pauses, needed = [0], rng.choice((1, 2, 5))

    def pause() -> None:
        pauses[0] += 1
        if pauses[0] == needed:
            lock.release()

    lock = SpinLock(pause)
    is_value("whether a free lock is taken", True, tried("acquire", lock.acquire))
    is_value("whether a taken lock is taken", False, tried("acquire", lambda: lock.acquire(blocking=False)))
    is_value("the pauses without need", 0, pauses[0])
    is_value("whether a lock is taken in the end", True, tried("acquire", lock.acquire))
    is_value("the pauses until a lock is free", needed, pauses[0])
    pauses[0] = 0
    with lock:
        is_value("the pauses of a block until a lock is free", needed, pauses[0])
        is_value("whether the lock of a block is taken", False, tried("acquire", lambda: lock.acquire(blocking=False)))
    is_value("whether a lock is free after its block", True, tried("acquire", lambda: lock.acquire(blocking=False)))
    lock.release()
    is_answered("the release of a free lock", "RuntimeError: release unlocked lock", lock.release)
    kinds = {PutLockKind.SPIN: False, PutLockKind.REENTRANT: True}
    for kind, is_reentrant in kinds.items():
        made = make_put_lock(kind)
        with made:
            again = made.acquire(blocking=False)
            is_value(f"whether {kind.name} is taken twice by one thread", is_reentrant, again)
            if again:
                made.release()
