"""Answer puts that wait for a flush or a replica, beside a list (contracts 2, 15, 16).

Flushes and replicas are stand-ins, and the services are stepped by the program. Times are milliseconds.

1. A put waits for a flush in a synchronous store, and for a replica in a synchronous master, unless its producer does
   not wait. It does not wait for a replica if none is connected or the best one lags by the limit or more; its answer
   is SLAVE_NOT_AVAILABLE then.
2. A flush gives PUT_OK to each put before it whose end it has reached, and FLUSH_DISK_TIMEOUT to the others. One flush
   answers all. A failed one reaches nothing.
3. What is not known at its deadline is a time-out. Each wait has its own deadline. The later status answers a put, and
   a replica's status other than PUT_OK replaces that of the flush.
4. A put is answered once. The statistics get the answer first, then callbacks and waiting threads. An exception of a
   callback is lost.
5. Each put of a synchronous store wakes the group commit. A deadline that became the first one wakes the time-outs.
6. A producer waits as long as the longer time-out and 5 s more. Then all that is unknown counts as a time-out.
7. At the end the group commit stops and flushes once, the time-outs stop, and all puts are answered. A later put is
   answered at once, with a flush of its own.

Around the append, a put follows these rules:

8. The disks are checked if a check is due. A shut store, a slave, flags that forbid writing, and a put lock held for
   longer than the limit refuse a put in this order, before the log is asked.
9. The services get the end of a put, or the end of the log if nothing was stored. Statistics get the time of each
   answer, and each put without a record as a failure. They take a step at a failure or if one is due.
"""

import errno
import logging
import random
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole, FlushDiskType, FlushPolicy
from tornpage.impl.message.message import Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.put.group_commit import GroupCommit
from tornpage.impl.put.put_answers import PendingAnswer, PutAnswers
from tornpage.impl.put.put_path import PutPath
from tornpage.impl.put.replication import ReplicaGate, make_replicas
from tornpage.impl.put.time_outs import Request, TimeOuts
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.service.running_flags import RunningFlag, RunningFlags
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.lockstep.functions.comparing import is_value
from tornpage.properties.lockstep.parts.part_disk import tried

__all__ = ["check"]

_PROGRAMS, _EVENTS, _PATHS, _PUTS = 4, 40, 2, 12
_GRACE_MS = 5_000
_FLUSH, _REPLICA = "group-commit", "time-outs"
_OK, _DISK, _SLAVE, _NONE = "PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE"
_THREAD_S = 20.0


def check(rng: random.Random) -> None:
    """Run some programs. Raises GuaranteeBroken."""
    logs = [logging.getLogger(name) for name in ("tornpage.store", "concurrent.futures")]
    before = [log.disabled for log in logs]
    for log in logs:
        log.disabled = True  # the failed callbacks are meant
    try:
        for _ in range(_PROGRAMS):
            _Program(rng).run()
        for _ in range(_PATHS):
            _Path(rng).run()
        _without_replicas()
    finally:
        for log, was_disabled in zip(logs, before, strict=True):
            log.disabled = was_disabled


# ---- stand-ins -------------------------------------------------------------------------------------------------------


class _Runner:
    """Stands for the runner of a service: counts requests, and waits without time."""

    def __init__(self, stage: "_Program", name: str) -> None:
        self._stage, self._name = stage, name

    def now_ms(self) -> int:
        """Return the time of the program."""
        return self._stage.now

    def start(self, *, after_ms: int) -> None:
        """Do nothing: the program runs the service."""

    def wake(self) -> None:
        """Count it."""
        self._stage.wakes[self._name] += 1

    def wait(self, answer: "Future[PutResult]", *, timeout_ms: int) -> bool:
        """Note how long, and return at once."""
        self._stage.trace.append(("wait", self._name, timeout_ms))
        return answer.done()

    def stop(self) -> None:
        """Note it."""
        self._stage.trace.append(("stop", self._name))


@dataclass(eq=False)
class _Put:
    """A put of the reference.

    `status` has the known statuses of flush and replica, `due` the deadlines of the unknown ones.
    """

    result: PutResult
    status: dict[str, str]
    due: dict[str, int]
    counted: list[PutResult] = field(default_factory=list)
    called: list[str] = field(default_factory=list)
    expected_calls: list[str] = field(default_factory=list)
    request: Request | None = None
    pending: PendingAnswer | None = None

    @property
    def end(self) -> int:
        """The end of its record."""
        return self.result.offset + self.result.size_bytes

    @property
    def answer(self) -> str | None:
        """The status of the answer, None while something is unknown."""
        if self.due:
            return None
        replica = self.status.get(_REPLICA, _OK)
        return self.status.get(_FLUSH, _OK) if replica == _OK else replica

    def settle(self, what: str, status: str) -> None:
        """Let a status be known, unless it is."""
        if self.due.pop(what, None) is not None:
            self.status[what] = status


class _Program:
    """One program: the settings of a store, and the puts that wait."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.now, self.trace = rng.choice((0, 1_000)), list[tuple[object, ...]]()
        self.wakes = {_FLUSH: 0, _REPLICA: 0}
        self._is_sync, self._is_master = rng.random() < 0.7, rng.random() < 0.7
        self._flush_ms, self._slave_ms = rng.sample((10, 20, 35, 6_000), 2)
        self._behind_max = rng.choice((1, 100, 1_000))
        self._acknowledged: int | None = None
        self._flushed: int | None = 0
        self._end = rng.choice((0, 500))
        self._puts = list[_Put]()
        self._submitted = list[_Put]()
        self._due: int | None = None
        self._ended = False
        self._answers_now: PutStatus | None = None
        self._requests = list[Request]()
        replicas: Any = _Replicas(self)
        self._commit, self._time_outs = GroupCommit(self._flush), TimeOuts()
        policy = FlushPolicy(
            FlushDiskType.SYNC_FLUSH if self._is_sync else FlushDiskType.ASYNC_FLUSH, sync_flush_timeout=self._flush_ms
        )
        role = BrokerRole.SYNC_MASTER if self._is_master else BrokerRole.ASYNC_MASTER
        self._ours = PutAnswers(
            flush_policy=policy, group_commit=self._commit, time_outs=self._time_outs,
            runner=lambda service: _Runner(self, service.name),
            replica_gate=ReplicaGate(role, replicas, fallbehind_max=self._behind_max), slave_timeout_ms=self._slave_ms,
        )  # fmt: skip

    @property
    def acknowledged(self) -> int | None:
        """What the best replica has confirmed."""
        return self._acknowledged

    def ask_replicas(self, request: Request) -> None:
        """Take a request for a replica, which may be answered at once."""
        self._requests.append(request)
        if self._answers_now is not None:
            request.answer(self._answers_now)

    def _flush(self) -> int:
        self.trace.append(("flush",))
        if self._flushed is None:
            raise OSError(errno.EIO, "a flush that was chosen to fail")
        return self._flushed

    # ---- events --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Draw events, then end the services."""
        rng = self._rng
        events = (self._put, self._put, self._put, self._commits, self._confirm, self._pass, self._late, self._wait)
        for _ in range(_EVENTS):
            rng.choice(events)()
            self._compare()
        self._thread()
        self._finish()
        for _ in range(2):
            self._put()
            self._compare()

    def _put(self) -> None:
        rng = self._rng
        size = rng.choice((1, 90, 100))
        result = PutResult(PutStatus.PUT_OK, self._end, size, 3, 7, 1, ("127.0.0.1", 1), ())
        self._end += size
        waits = rng.random() < 0.8
        self._acknowledged = rng.choice(
            (None, self._end - self._behind_max, self._end - self._behind_max + 1, self._end)
        )
        self._flushed = rng.choice((self._end, self._end - 1))
        self._answers_now = rng.choice((None, None, None, PutStatus.PUT_OK, PutStatus.FLUSH_SLAVE_TIMEOUT))
        put = self._drawn(result, waits=waits)
        fails = rng.random() < 0.1

        def count(answer: PutResult) -> None:
            is_value(
                "whether an answer is counted before it is known", False, put.pending is not None and put.pending.done()
            )
            put.counted.append(answer)
            if fails:
                raise ValueError("a count that was chosen to fail")

        before, asked = dict(self.wakes), len(self._requests)
        found = tried("settle", lambda: self._ours.settle(result, waits=waits, on_answer=count))
        self._woken(before, put)
        is_value("the requests for a replica", int(_REPLICA in put.due), len(self._requests) - asked)
        self._open(put, found)

    def _drawn(self, result: PutResult, *, waits: bool) -> _Put:
        end = result.offset + result.size_bytes
        put = _Put(result, {}, {})
        if self._is_sync and waits:
            put.due[_FLUSH] = self.now + self._flush_ms
        if self._is_master and waits:
            if self._acknowledged is None or end - self._acknowledged >= self._behind_max:
                put.status[_REPLICA] = _NONE
            else:
                put.due[_REPLICA] = self.now + self._slave_ms
        return put

    def _woken(self, before: dict[str, int], put: _Put) -> None:
        """Judge the requests of steps by a put, and note its deadlines."""
        is_value("the wakes of the group commit by a put", int(self._is_sync), self.wakes[_FLUSH] - before[_FLUSH])
        wakes = 0
        for what in (_REPLICA, _FLUSH):
            due = put.due.get(what)
            if due is not None and not self._ended and (self._due is None or due < self._due):
                self._due, wakes = due, wakes + 1
        is_value("the wakes of the time-outs by a put", wakes, self.wakes[_REPLICA] - before[_REPLICA])

    def _open(self, put: _Put, found: PutResult | PendingAnswer) -> None:
        if not put.due:
            expected = put.result._replace(status=PutStatus[put.answer or ""])
            is_value("the answer of a put that does not wait", expected, found)
            return
        if not isinstance(found, PendingAnswer):
            raise GuaranteeBroken(16, "a put that has to wait is answered at once", "a pending answer", repr(found))
        put.pending = found
        put.request = self._requests[-1] if _REPLICA in put.due else None
        if _FLUSH in put.due and not self._ended:
            self._submitted.append(put)
        if _REPLICA in put.due and self._answers_now is not None:
            put.settle(_REPLICA, self._answers_now.name)
        if self._ended:
            self.trace.clear()
            put.settle(_REPLICA, _SLAVE)
            reached = self._flushed is not None and self._flushed >= put.end
            put.settle(_FLUSH, _OK if reached else _DISK)
        self._puts.append(put)
        if put.answer is None and self._rng.random() < 0.5:
            self._call(put, "before")

    def _call(self, put: _Put, name: str) -> None:
        """Add callbacks, of which one raises."""
        assert put.pending is not None

        def first(_: object) -> None:
            put.called.append(name)
            raise ValueError("a callback that was chosen to fail")

        put.pending.add_done_callback(first)
        put.pending.add_done_callback(lambda _: put.called.append(f"{name} second"))
        put.expected_calls += [name, f"{name} second"]

    def _commits(self) -> None:
        """Step the group commit."""
        self._flushed = self._rng.choice((self._end, max(0, self._end - 100), None))
        served, self._submitted, is_failed = self._submitted, [], False
        try:
            tried("a step of the group commit", lambda: self._commit.step(self.now))
        except OSError:
            is_failed = True
        is_value("whether a step of the group commit fails", self._flushed is None, is_failed)
        is_value("the flushes of a step", [("flush",)], self.trace)
        self.trace.clear()
        for put in served:
            put.settle(_FLUSH, _OK if self._flushed is not None and self._flushed >= put.end else _DISK)

    def _confirm(self) -> None:
        """Answer a request for a replica, also one that has its answer."""
        puts = [put for put in self._puts if put.request is not None]
        if puts:
            put, status = self._rng.choice(puts), self._rng.choice((PutStatus.PUT_OK, PutStatus.FLUSH_SLAVE_TIMEOUT))
            assert put.request is not None
            tried("an answer of a replica", lambda: put.request.answer(status))  # type: ignore[union-attr]
            put.settle(_REPLICA, status.name)
            is_value("whether a request is answered", True, put.request.is_answered)

    def _pass(self) -> None:
        deadlines = [due for put in self._puts for due in put.due.values()]
        self.now = max(
            self.now + self._rng.choice((0, 1, 20)), self._rng.choice((0, *deadlines, *[d - 1 for d in deadlines]))
        )

    def _late(self) -> None:
        """Step the time-outs."""
        found = tried("a step of the time-outs", lambda: self._time_outs.step(self.now))
        for put in self._puts:
            for what, status in ((_FLUSH, _DISK), (_REPLICA, _SLAVE)):
                if put.due.get(what, self.now + 1) <= self.now:
                    put.settle(what, status)
        self._due = min((due for put in self._puts for due in put.due.values()), default=None)
        is_value("the first deadline after a step", self._due, found)

    def _wait(self) -> None:
        """Wait for an answer without its coming, or for one that is there."""
        puts = [put for put in self._puts if put.pending is not None]
        if not puts or self._rng.random() < 0.6:
            return
        put = self._rng.choice(puts)
        pending = put.pending
        assert pending is not None
        found = tried("wait", lambda: self._ours.wait(pending))
        patience = max(self._flush_ms, self._slave_ms) + _GRACE_MS
        is_value("how long a producer waits", [("wait", _FLUSH, patience)], self.trace)
        self.trace.clear()
        put.settle(_FLUSH, _DISK)
        put.settle(_REPLICA, _SLAVE)
        is_value("the answer of a wait", put.answer, found.status.name)

    def _thread(self) -> None:
        """Let a thread wait for an answer, as `concurrent.futures` does, while it comes."""
        put = next((put for put in reversed(self._puts) if put.answer is None), None)
        if put is None or put.pending is None or self._rng.random() < 0.6:
            return
        pending, found, kind = put.pending, list[object](), self._rng.random() < 0.5

        def wait_for() -> None:
            if kind:
                found.append(pending.result(timeout=_THREAD_S).status.name)
            else:
                done, _ = wait([pending], timeout=_THREAD_S, return_when=FIRST_COMPLETED)
                found.append(next(iter(done)).result().status.name if done else "nothing")

        thread = threading.Thread(target=wait_for, daemon=True)
        thread.start()
        pending.give_up()
        put.settle(_FLUSH, _DISK)
        put.settle(_REPLICA, _SLAVE)
        thread.join(2 * _THREAD_S)
        is_value("the answer in a thread that waits", [put.answer], found)
        self._compare()

    def _finish(self) -> None:
        self._flushed = self._rng.choice((self._end, max(0, self._end - 100)))
        tried("finish", self._ours.finish)
        is_value("what an end does", [("stop", _FLUSH), ("flush",), ("stop", _REPLICA)], self.trace)
        self.trace.clear()
        for put in self._submitted:
            put.settle(_FLUSH, _OK if self._flushed >= put.end else _DISK)
        for put in self._puts:
            put.settle(_FLUSH, _DISK)
            put.settle(_REPLICA, _SLAVE)
        self._ended = True
        self._compare()

    # ---- comparisons ---------------------------------------------------------------------------------------------

    def _compare(self) -> None:
        is_value("what the services did besides", [], self.trace)
        for put in self._puts:
            self._compare_put(put)
        self._puts = [put for put in self._puts if put.answer is None or self._rng.random() < 0.8]

    def _compare_put(self, put: _Put) -> None:
        pending, status = put.pending, put.answer
        assert pending is not None
        is_value("whether a put is answered", (status is not None,) * 2, (pending.done(), pending.is_answered))
        is_value("whether an answer can be cancelled", (False, False), (pending.cancel(), pending.cancelled()))
        if status is None:
            for ask in (pending.result, pending.exception):
                try:
                    ask(timeout=0)
                except TimeoutError:
                    continue
                raise GuaranteeBroken(16, "an answer that is not known is given")
            is_value("what is counted before an answer", ([], []), (put.counted, put.called))
            return
        expected = put.result._replace(status=PutStatus[status])
        is_value("the answer of a put", (expected, None), (pending.result(timeout=0), pending.exception(timeout=0)))
        is_value("what is counted of a put", [expected], put.counted)
        if self._rng.random() < 0.1:
            self._call(put, "after")
        is_value("the callbacks of an answer", put.expected_calls, put.called)


class _Replicas:
    """Stands for the replicas of a store."""

    def __init__(self, program: _Program) -> None:
        self._program = program

    @property
    def acknowledged_offset(self) -> int | None:
        """What the best one has confirmed."""
        return self._program.acknowledged

    def request(self, request: Request) -> None:
        """Take a request."""
        self._program.ask_replicas(request)


def _without_replicas() -> None:
    """Ask a store without replicas."""
    none, given = make_replicas(), list[PutStatus]()
    request: Any = SimpleNamespace(timeout_status=PutStatus.FLUSH_SLAVE_TIMEOUT, answer=given.append)
    none.request(request)
    is_value("the answer without replicas", (None, [PutStatus.FLUSH_SLAVE_TIMEOUT]), (none.acknowledged_offset, given))


# ---- around the append -----------------------------------------------------------------------------------------------


class _Path:
    """Puts through the path of a store whose log, disks and services are stand-ins."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self._now = rng, 10_000
        self._calls = list[tuple[object, ...]]()
        self._flags, self._life = RunningFlags(), Lifecycle("/part")
        self._role = rng.choice((BrokerRole.ASYNC_MASTER, BrokerRole.ASYNC_MASTER, BrokerRole.SLAVE))
        self._busy_ms = rng.choice((0, 50))
        self._next = PutResult(PutStatus.PUT_OK)
        log: Any = SimpleNamespace(
            put=self._appended("put"),
            put_batch=self._appended("put_batch"),
            begin_time_in_lock=0,
            stop=self._note("stop"),
        )
        watch: Any = SimpleNamespace(checked_ms=0, due_ms=0, step=lambda now: self._calls.append(("disks", now)))
        counts: Any = SimpleNamespace(
            record_put=lambda elapsed: self._calls.append(("time", elapsed)), record_failure=self._note("failure"),
            step=lambda now: self._calls.append(("step", now)), stepped_ms=0, due_ms=0,
            snapshot=lambda now: ("snapshot", now),
        )  # fmt: skip
        self._log, self._watch, self._counts = log, watch, counts
        self._end = 777
        config = MessageStoreConfig(broker_role=self._role, os_page_cache_busy_time_out_mills=self._busy_ms)
        stands: Any = SimpleNamespace(max_offset=self._end)
        durability: Any = SimpleNamespace(flush=self._note("flush"))
        parts = Parts({ThreadRunner: lambda service: _Idle()})
        self._path = PutPath(
            stands, log, self._life, self._flags, config=config, clock=self._clock, parts=parts,
            durability=durability, written=lambda end: self._calls.append(("written", end)), disk_watch=watch,
            statistics=counts,
        )  # fmt: skip
        is_value("the checks of the disks at an open", [("disks", self._now)], self._calls)
        self._calls.clear()

    def _note(self, name: str) -> Callable[[], None]:
        return lambda: self._calls.append((name,))

    def _clock(self) -> int:
        return self._now

    def _appended(self, name: str) -> Callable[..., PutResult]:
        def put(message: object, *, now_ms: int) -> PutResult:
            self._calls.append((name, message, now_ms))
            self._now += self._takes
            return self._next

        return put

    _takes = 0

    def run(self) -> None:
        """Put some messages."""
        rng = self._rng
        for _ in range(_PUTS):
            self._now += rng.choice((0, 1, 100))
            began = self._now
            self._takes = rng.choice((0, 1, 700))
            self._watch.checked_ms, self._watch.due_ms = rng.choice(
                ((began, began + 1), (0, began), (began + 1, began + 9))
            )
            end = began + self._takes
            self._counts.stepped_ms, self._counts.due_ms = rng.choice(
                ((end, end + 1), (0, end), (end + 1, end + 9), (0, end + 1))
            )
            self._log.begin_time_in_lock = rng.choice((0, began, began - self._busy_ms, began - self._busy_ms - 1))
            flag = rng.choice(
                (None, None, None, RunningFlag.NOT_READABLE, RunningFlag.NOT_WRITEABLE, RunningFlag.DISK_FULL)
            )
            if flag is not None:
                self._flags.set(flag)
            self._put(began, is_shut=False)
            for each in RunningFlag:
                self._flags.clear(each)
        self._life.shut = "closed"
        self._put(self._now, is_shut=True)
        is_value("the statistics of puts", ("snapshot", self._now), tried("statistics", self._path.statistics))
        is_value("what statistics do", [("step", self._now)], self._calls)
        self._calls.clear()
        tried("refuse", self._path.refuse)
        is_value("what the end of puts does", [("stop",)], self._calls)

    def _put(self, began: int, *, is_shut: bool) -> None:
        rng, given = self._rng, self._rng.choice((Message("T", b"b"), MessageBatch("T", b"b")))
        self._next = rng.choice(
            (
                PutResult(PutStatus.PUT_OK, 0, 90, 0, began, 1, ("127.0.0.1", 1), ()),
                PutResult(PutStatus.PUT_OK, 91, 9, 1, began, 1, ("127.0.0.1", 1), ()),
                PutResult(PutStatus.MESSAGE_ILLEGAL),
            )
        )
        held = self._log.begin_time_in_lock
        expected = list[tuple[object, ...]]()
        answer = self._next
        if not is_shut and not self._watch.checked_ms <= began < self._watch.due_ms:
            expected.append(("disks", began))
        if is_shut or self._role is BrokerRole.SLAVE or not self._flags.writeable:
            answer = PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
        elif held and began - held > self._busy_ms:
            answer = PutResult(PutStatus.OS_PAGECACHE_BUSY)
        else:
            expected.append(("put" if isinstance(given, Message) else "put_batch", given, began))
            expected.append(("written", answer.offset + answer.size_bytes if answer.offset >= 0 else self._end))
            expected.append(("time", self._takes))
            end = began + self._takes
            if answer.offset < 0:
                expected.append(("failure",))
            if answer.offset < 0 or not self._counts.stepped_ms <= end < self._counts.due_ms:
                expected.append(("step", end))
        way = rng.choice((self._path.append, self._path.put_without_waiting, self._path.put_async))
        found = tried("a put", lambda: way(given))  # type: ignore[arg-type]
        if isinstance(found, Future):
            found = found.result(timeout=0)
        is_value("the answer of a put", answer, found)
        is_value("what a put calls", expected, self._calls)
        self._calls.clear()


class _Idle:
    """Stands for a runner that is not needed."""

    def wake(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""
