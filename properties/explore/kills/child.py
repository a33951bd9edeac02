"""Run the process that will be killed: open a real store, run a program, self-SIGKILL.

It is forked by the zygote and reports its progress in a page shared with the judging process. An operation is published
as returned after it returned. So the page may lag behind the truth, but never claims more than was acknowledged. The
program steps the services of the store in its single thread.

One process can run several sessions, each in a directory of its own. A session that comes to the step at which it dies
stays in the middle of that call, and the next session runs on top of its stack. After the last session one SIGKILL ends
all of them. A fork, which costs more than a session, is then paid once for all.

Kills inside one system call or one copy of bytes are left out, because the signal is sent between them.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal, NoReturn

from tornpage import impl
from tornpage.impl.io.files import Files
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message, PutResult
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.model.message import Batch
from tornpage.model.operations import (
    Close,
    Flush,
    Get,
    GetMessage,
    OffsetByTime,
    Open,
    Operation,
    Put,
    PutBatch,
    QueryKey,
    Step,
)
from tornpage.model.payloads import given_of
from tornpage.properties.explore.kills.progress import OPERATIONS_MAX, Progress
from tornpage.properties.explore.kills.step_counting_files import StepCountingFiles
from tornpage.properties.program.bit_maps import filters_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.program.translation import store_batch, store_config, store_message

__all__ = [
    "EXIT_COMPLETED",
    "EXIT_FAILED",
    "HANG_SECONDS",
    "OPERATIONS_MAX",
    "KillMode",
    "Progress",
    "Session",
    "run_child",
]

KillMode = Literal["step", "bytecode"]
"""What is counted: calls at the file seam as they begin, or bytecodes inside the store's modules."""

HANG_SECONDS = 60
_STORE = f"{impl.__name__}."
"""The prefix of each module name of the store."""
_KEYS = ("k1", "k2", "Aa", "BB", "u")
EXIT_COMPLETED = 0
EXIT_FAILED = 3


@dataclass(frozen=True, slots=True)
class Session:
    """Describe what one process does: open the store, carry out the operations, die.

    It dies when the `kill_step`-th step since the start of operation `kill_verb` begins. With `kill_verb` -1 it is a
    rehearsal, which only counts and survives.
    """

    directory: str
    settings: Settings
    operations: tuple[Operation, ...]
    start_ms: int
    mode: KillMode
    kill_verb: int = -1
    kill_step: int = 0


def run_child(sessions: Sequence[Session], components: Parts, pages: Sequence[Progress]) -> NoReturn:
    """Run sessions to their death, with stores made of `components`.

    Each session has a page for its progress.

    Called right after fork, with garbage collection off and interrupts ignored. Never returns and cleans up nothing of
    the parent. The exit code without a kill is EXIT_COMPLETED if every session completed, else EXIT_FAILED. With the
    mode "bytecode" there is one session, because Python does not trace inside a trace function.
    """
    status = EXIT_FAILED
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        sys.setrecursionlimit(sys.getrecursionlimit() * len(sessions))
        status = _Sessions(sessions, components, pages).run()
    finally:
        sys.settrace(None)
        os._exit(status)


class _Sessions:
    """Run sessions in order.

    A session that dies waits in the middle of a call for the signal that ends all.
    """

    def __init__(self, sessions: Sequence[Session], components: Parts, pages: Sequence[Progress]) -> None:
        self._remaining = iter(zip(sessions, pages, strict=True))
        self._components = components
        self._status = EXIT_COMPLETED

    def run(self) -> int:
        """Run every remaining session and return the exit code.

        Does not return if one of them dies.
        """
        for session, page in self._remaining:
            signal.alarm(HANG_SECONDS)
            try:
                _Child(session, self._components, page, self).run()
            except BaseException as error:
                page.fail(error)
                self._status = EXIT_FAILED
            sys.settrace(None)
            page.note_end()
        return self._status

    def die(self) -> NoReturn:
        """Run the sessions that remain, then send SIGKILL to this process."""
        self.run()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a process outlived its SIGKILL")


class _Child:
    """Carry out the operations, each between two marks in the shared page."""

    def __init__(self, life: Session, components: Parts, progress: Progress, sessions: _Sessions) -> None:
        self._life = life
        self._sessions = sessions
        self._progress = progress
        self._config = store_config(life.settings)
        self._now_ms = life.start_ms
        self._count = 0
        self._kill_at = 0
        self._offsets = [0]
        self._waiting: list[Future[PutResult]] = []
        self._services: dict[str, HandDriven] = {}
        self._components = components.replacing({ThreadRunner: self._take_service})
        self._files: Files = OsFiles()
        if life.mode == "step":
            self._files = StepCountingFiles(self._files, self._step)

    def _step(self) -> None:
        self._count += 1
        if self._count == self._kill_at:
            self._progress.note_kill()
            self._sessions.die()

    def run(self) -> None:
        """Open the store and carry out everything."""
        if self._life.mode == "bytecode":
            _forget_cached_answers()
        if self._life.kill_verb < 0:
            self._arm()
        self._open(0)
        for verb, operation in enumerate(self._life.operations, 1):
            self._carry_out(verb, operation)
        sys.settrace(None)
        self._progress.count(len(self._life.operations) + 1, self._count)

    def _begin(self, verb: int) -> None:
        """Publish that an operation begins. In the one to die in, count from here."""
        self._progress.begin(verb, steps=self._count)
        if verb == self._life.kill_verb:
            self._count, self._kill_at = 0, self._life.kill_step
            self._arm()

    def _arm(self) -> None:
        """Start tracing if bytecodes are counted. No frame of the store is on the stack yet."""
        if self._life.mode == "bytecode":
            sys.settrace(self._enter)

    def _open(self, verb: int) -> None:
        self._begin(verb)
        self._store = MessageStore.open(
            self._life.directory,
            self._config,
            files=self._files,
            clock=lambda: self._now_ms,
            parts=self._components,
            filter_bit_map=filters_of(self._life.settings),
        )
        self._progress.end(verb, self._store.max_offset)

    def _take_service(self, service: Service) -> HandDriven:
        driven = self._services[service.name] = HandDriven(service, lambda: self._now_ms)
        return driven

    def _carry_out(self, verb: int, operation: Operation) -> None:
        end_offset = -1
        match operation:
            case Open():
                self._open(verb)
                return
            case Put() | PutBatch():
                end_offset = self._put(verb, operation)
            case Step(name, after_ms):
                self._now_ms += after_ms
                self._begin(verb)
                if name in self._services:
                    self._services[name].step()
                if name == "group-commit":
                    self._answered()
            case Get():
                self._begin(verb)
                base = self._offsets[operation.record % len(self._offsets)]
                self._store.get(base + operation.shift)
            case GetMessage() | QueryKey() | OffsetByTime():
                self._begin(verb)
                _read_something(self._store, operation)
            case Flush():
                self._begin(verb)
                self._store.flush()
            case Close():
                self._begin(verb)
                self._store.close()
                self._answered()
            case _:
                raise ValueError(f"a session cannot {operation.op}")
        self._progress.end(verb, end_offset)

    def _put(self, verb: int, operation: Put | PutBatch) -> int:
        """Put; return the end offset of the records, or -1 if none was stored.

        An asynchronous put has its end offset before its answer.
        """
        given = given_of(operation)
        message = store_batch(given) if isinstance(given, Batch) else store_message(given)
        self._now_ms += operation.advance_ms
        self._begin(verb)
        if operation.later:
            before = self._store.max_offset
            self._waiting.append(self._store.put_async(message))
            return self._store.max_offset if self._store.max_offset > before else -1
        result = self._store.put(message) if isinstance(message, Message) else self._store.put_batch(message)
        if not result.stored:
            return -1
        self._offsets.append(result.offset)
        return result.offset + result.size_bytes

    def _answered(self) -> None:
        """Check that every waiting put has an answer. Raises TimeoutError if not."""
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            answer.result(timeout=0)

    # ---- bytecodes -----------------------------------------------------------------------------------------------

    def _enter(self, frame: FrameType, event: str, _argument: Any) -> Callable[..., Any] | None:
        """Trace only frames of the store, by bytecode."""
        if not frame.f_globals.get("__name__", "").startswith(_STORE):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._bytecode

    def _bytecode(self, _frame: FrameType, event: str, _argument: Any) -> Callable[..., Any]:
        if event == "opcode":
            self._step()
        return self._bytecode


def _read_something(store: MessageStore, operation: GetMessage | QueryKey | OffsetByTime) -> None:
    """Read and release the result. Nothing may raise."""
    queues = store.queues() or [("never written", 0)]
    match operation:
        case GetMessage(queue, shift, max_msg_nums):
            store.get_message(*queues[queue % len(queues)], shift, max_msg_nums=max_msg_nums).release()
        case QueryKey(key, max_num):
            store.query_message(queues[0][0], _KEYS[key % len(_KEYS)], max_num=max_num).release()
        case OffsetByTime(queue, _, shift_ms):
            store.offset_in_queue_by_time(*queues[queue % len(queues)], shift_ms)


def _forget_cached_answers() -> None:
    """Empty the caches of the store's functions. Earlier opens must not change the count."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_STORE):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if clear is not None:
                    clear()
