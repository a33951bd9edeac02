"""The real store under an open load: times of each put, flush and commit, by one clock.

Times are ns. Arrivals are those of the simulator for the same scenario and seed, drawn before the clock starts. One
thread puts. Latency counts from the moment at which a message was due, however late the thread or the store was (no
coordinated omission). With group commit puts are futures, so that the thread continues. Their answers come in the
store's own thread.

A slice has a new store of one log file, empty except for its first page. Nothing is dispatched before the close, since
the simulator has the log alone. Other garbage of the process is hidden from the collector of cycles.
"""

import ctypes
import gc
import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from threading import Event
from time import perf_counter_ns, sleep

import numpy as np
from numpy.typing import NDArray

from tornpage.bench.calibration.watched_file import COMMIT_DTYPE, FLUSH_DTYPE, Watch, WatchedFile
from tornpage.bench.figures import scratch
from tornpage.front import MessageStore
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import PAGE_BYTES
from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.message.message import Message, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.properties.contract import HarnessError
from tornpage.sim.distributions import Int64s
from tornpage.sim.run import open_arrivals
from tornpage.sim.scenario import Scenario
from tornpage.sim.workload import ClosedLoop

__all__ = ["COMMIT_DTYPE", "FLUSH_DTYPE", "RECORD_BYTES", "Driven", "drive", "real_time"]

RECORD_BYTES = 1024
"""The bytes of each message of a calibration or validation: the whole record in the log."""
LEAD_NS = 2_000_000
"""From the end of the preparation to the begin of the load."""
ANSWERS_S = 30.0
"""The longest wait for the last answers."""
_PR_SET_TIMERSLACK = 29
_SLEEP_SLACK_NS = 1
_TOPIC = "TopicDriven"
_BESIDES_BODY = 122


@dataclass(frozen=True, slots=True, eq=False)
class Driven:
    """One slice; row i of the columns is the i-th message.

    All times are ns since the load began.
    """

    scenario: Scenario
    seed: int
    due_ns: Int64s
    """When it was meant to be put: the simulator's arrival."""
    began_ns: Int64s
    """When the thread began to put it."""
    written_ns: Int64s
    """When its put returned."""
    answered_ns: Int64s
    """When its producer had the answer: the same, except with group commit."""
    end_offset: Int64s
    """Where its record ends in the log."""
    flushes: NDArray[np.void]
    """Rows of FLUSH_DTYPE that began before the last answer."""
    commits: NDArray[np.void]
    """Rows of COMMIT_DTYPE that began before the last answer."""

    @property
    def latency_ns(self) -> Int64s:
        """From the moment each message was due until its answer."""
        return self.answered_ns - self.due_ns


def drive(directory: str, scenario: Scenario, seed: int) -> Driven:
    """Drive a new store below a directory with the load of a scenario.

    The directory must exist. The scenario's device is ignored. Raises HarnessError when a put is refused or an answer
    is missing, StoreError or OSError when the directory cannot be used.
    """
    due = _due_ns(scenario, seed)
    watch = Watch()
    parts = Parts({MappedFile: partial(WatchedFile, watch), ReputMessages: _Resting})
    with (
        scratch(directory) as path,
        MessageStore.open(f"{path}/store", _config(scenario), parts=parts) as store,
    ):
        record_bytes = scenario.workload.sizes.largest_bytes
        message = Message(_TOPIC, random.Random(1).randbytes(record_bytes - _BESIDES_BODY))
        _prepare(store, message, record_bytes)
        with _undisturbed():
            producer = _Producer(store, message, scenario.answers_after_flush)
            watch.clear()
            start_ns = perf_counter_ns() + LEAD_NS
            producer.produce((due + start_ns).tolist())
            producer.wait()
            end_ns = perf_counter_ns()
        flushes, commits = watch.rows(start_ns, end_ns)
    began, written, answered = (
        np.array(column, np.int64) - start_ns for column in (producer.began, producer.written, producer.answered)
    )
    return Driven(
        scenario,
        seed,
        due_ns=due,
        began_ns=began,
        written_ns=written,
        answered_ns=answered,
        end_offset=np.array(producer.ends, np.int64),
        flushes=flushes,
        commits=commits,
    )


@contextmanager
def real_time() -> Iterator[bool]:
    """Run this process and its threads before others if allowed; yield whether it is allowed.

    A shared machine makes a thread that is due wait for 4 ms and more, which no model of a disk predicts. Source:
    sched_setscheduler(2), SCHED_FIFO.
    """
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_min(os.SCHED_FIFO)))
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, policy, parameters)


class _Producer:
    """Puts each message when it is due, or as soon as the previous one has returned."""

    def __init__(self, store: MessageStore, message: Message, is_synchronous: bool) -> None:
        self._store = store
        self._message = message
        self._is_synchronous = is_synchronous
        self.began: list[int] = []
        self.written: list[int] = []
        self.answered: list[int] = []
        self.ends: list[int] = []
        self._refused: list[PutStatus] = []
        self._open = 0
        self._all_answered = Event()

    def produce(self, due_ns: Sequence[int]) -> None:
        """Put one message for each of `due_ns`, moments of the clock."""
        count = len(due_ns)
        self.began, self.written, self.ends = [0] * count, [0] * count, [0] * count
        self.answered = self.written if not self._is_synchronous else [0] * count
        self._open = count if self._is_synchronous else 0
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, _SLEEP_SLACK_NS, 0, 0, 0)
        if self._is_synchronous:
            self._put_async(due_ns)
        else:
            self._put(due_ns)

    def _put(self, due_ns: Sequence[int]) -> None:
        put, message, ok = self._store.put, self._message, PutStatus.PUT_OK
        began, written, ends = self.began, self.written, self.ends
        for number, due in enumerate(due_ns):
            began[number] = _until(due)
            result = put(message)
            written[number] = perf_counter_ns()
            ends[number] = result.offset + result.size_bytes
            if result.status is not ok:
                self._refused.append(result.status)

    def _put_async(self, due_ns: Sequence[int]) -> None:
        put, message, answered = self._store.put_async, self._message, self._note_answer
        began, written = self.began, self.written
        for number, due in enumerate(due_ns):
            began[number] = _until(due)
            answer = put(message)
            written[number] = perf_counter_ns()
            answer.add_done_callback(partial(answered, number))

    def _note_answer(self, number: int, answer: Future[PutResult]) -> None:
        self.answered[number] = perf_counter_ns()
        result = answer.result()
        self.ends[number] = result.offset + result.size_bytes
        if result.status is not PutStatus.PUT_OK:
            self._refused.append(result.status)
        self._open -= 1  # used by one thread at a time: the flusher's
        if not self._open:
            self._all_answered.set()

    def wait(self) -> None:
        """Wait for the last answers."""
        if self._is_synchronous and self.began and not self._all_answered.wait(ANSWERS_S):
            raise HarnessError(f"{self._open} puts have no answer after {ANSWERS_S:g} s")
        if self._refused:
            raise HarnessError(f"{len(self._refused)} puts were refused, the first with {self._refused[0].name}")


def _until(due_ns: int) -> int:
    """Sleep until a moment of the clock; return the time then."""
    now = perf_counter_ns()
    while now < due_ns:
        sleep((due_ns - now) / 1e9)
        now = perf_counter_ns()
    return now


class _Resting(ReputMessages):
    """Dispatches nothing before the store closes."""

    def note_readable(self, _end_offset: int = 0) -> None:
        """Ignore readable bytes."""


def _due_ns(scenario: Scenario, seed: int) -> Int64s:
    workload = scenario.workload
    if isinstance(workload, ClosedLoop):
        raise HarnessError("a store is driven by an open load only")
    blocks = [at_ns for at_ns, _ in open_arrivals(scenario, workload, seed)]
    return np.concatenate([np.zeros(0, np.int64), *blocks])


def _config(scenario: Scenario) -> MessageStoreConfig:
    """Return the settings of a store with the policies of a scenario."""
    pool = scenario.pool
    policies = asdict(scenario.flush) | asdict(scenario.allocation) | ({} if pool is None else asdict(pool.commit))
    return MessageStoreConfig(
        mapped_file_size_commit_log=scenario.file_bytes,
        mapped_files_ahead=policies.pop("files_ahead"),
        populate_ahead_bytes=0,  # the simulator has pages that are touched and pages that are not
        transient_store_pool_enable=pool is not None,
        transient_store_pool_size=1 if pool is None else pool.buffers,
        fast_fail_if_no_buffer_in_store_pool=pool is not None and pool.fast_fail,
        **policies,
    )


def _prepare(store: MessageStore, message: Message, record_bytes: int) -> None:
    """Fill the first page, so that load and simulation begin at the same place in a page.

    The log also gets its file. Nothing is flushed that the policy leaves: pages that a warm-up has made dirty wait for
    the first flush of the load.
    """
    for _ in range(-(-PAGE_BYTES // record_bytes)):
        result = store.put(message)
        if result.status is not PutStatus.PUT_OK or result.size_bytes != record_bytes:
            raise HarnessError(f"a record of {result.size_bytes} bytes was put, {result.status.name}")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hide the objects of the process so far from the collector of cycles."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
