"""Find the modules of the store with a lock, and give them locks of the scheduler.

A module holds a lock if a `with` statement names one, or if it creates one. The modules are found in the syntax, so a
new one is watched without further steps.
"""

import ast
import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import Any, Final, NamedTuple

import tornpage.impl
from tornpage.properties.scheduler import (
    CooperativeCondition,
    CooperativeLock,
    CooperativeQueue,
    current_task,
    prepare,
)

__all__ = ["UNWATCHED", "controlled_locks", "modules_with_locks"]

UNWATCHED: Final = {
    "tornpage.impl.guards": "it creates the locks of others and holds none",
    "tornpage.impl.io.memory": "its lock is created at the import and guards one warning",
    "tornpage.impl.log.put_lock": "it is a lock itself; interleavings use the scheduler's",
    "tornpage.impl.replication.tcp": "it waits for sockets",
}
"""The modules with a lock whose lines are no yield points, with the reason."""

_WORDS = ("lock", "mutex", "guard", "condition", "exclusive")
_CREATORS = frozenset(("Lock", "RLock", "Condition", "Semaphore", "Event", "SimpleQueue", "make_guard"))
_CREATION = frozenset(("__init__", "__post_init__", "__new__"))


def modules_with_locks() -> tuple[str, ...]:
    """Return the import names of the modules of the store that hold or create a lock, sorted."""
    return _syntax().with_locks


class _Syntax(NamedTuple):
    """Hold what the syntax of the store shows.

    These are the modules with a lock, the names of functions, and the constant attributes. An attribute is constant if
    it is only assigned at the creation of its object.
    """

    with_locks: tuple[str, ...]
    methods: frozenset[str]
    constants: frozenset[str]


@lru_cache(maxsize=1)
def _syntax() -> _Syntax:
    """Parse all modules of the store once. The trees take 30 MB and are not kept."""
    folder = Path(str(tornpage.impl.__file__)).parent
    with_locks: list[str] = []
    methods: set[str] = set()
    assigned: set[str] = set()
    created: set[str] = set()
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if parts[-1] == "__init__" or parts[0] == "kernels":
            continue
        tree = ast.parse(path.read_bytes())
        if _holds_a_lock(tree):
            with_locks.append(".".join(("tornpage.impl", *parts)))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                methods.add(function.name)
                into = created if function.name in _CREATION else assigned
                into |= {
                    node.attr
                    for node in ast.walk(function)
                    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del)
                }
    return _Syntax(tuple(with_locks), frozenset(methods), frozenset(created - assigned))


def _holds_a_lock(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            names = {name for item in node.items for name in _names(item.context_expr)}
            if any(word in name.lower() for name in names for word in _WORDS):
                return True
        if isinstance(node, ast.Call) and _names(node.func) & _CREATORS:
            return True
    return False


def _names(tree: ast.AST) -> set[str]:
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return found | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


# ---- control ---------------------------------------------------------------------------------------------------------


class _Thread:
    """Stand in for a thread that a task of the run takes over (`tasks_for_threads`)."""

    def __init__(self, *, target: Callable[[], object], **_ignored: object) -> None:
        self.target = target
        self.is_over = False

    def start(self) -> None:
        """Give the thread to a task that waits for one. Raises RuntimeError if none does."""
        if not _WAITING:
            raise RuntimeError("can't start new thread")
        _WAITING.pop(0).thread = self

    def join(self, timeout: float | None = None) -> None:
        """Wait until the task has ended; a time-out is over at once."""
        task = current_task()
        if timeout is None and task is not None and not self.is_over:
            task.wait_for(_Until("the end of a thread", lambda: self.is_over))


class ThreadTask:
    """Run a thread that the code under test starts, as a task of the run."""

    def __init__(self) -> None:
        self.thread: _Thread | None = None
        self.is_over = False
        _WAITING.append(self)

    def run(self) -> None:
        """Wait for a thread and run it; return at once when the run needs no more threads."""
        task = current_task()
        assert task is not None
        if self.thread is None and not self.is_over:
            task.wait_for(_Until("a thread", lambda: self.is_over or self.thread is not None))
        if self.thread is not None:
            try:
                self.thread.target()
            finally:
                self.thread.is_over = True

    def give_up(self) -> None:
        """Note that no thread will be started any more."""
        self.is_over = True
        if self in _WAITING:
            _WAITING.remove(self)


class _Until:
    def __init__(self, what: str, is_there: Callable[[], bool]) -> None:
        self._what = what
        self._is_there = is_there

    @property
    def is_free(self) -> bool:
        return self._is_there()

    def __str__(self) -> str:
        return self._what


_WAITING: list[ThreadTask] = []


class _Threading:
    """Stand in for the module `threading` in one module of the store."""

    def __init__(self, name: str) -> None:
        self.name = name

    def Lock(self) -> CooperativeLock:  # noqa: N802  (the name in the standard library)
        return CooperativeLock(self.name)

    def RLock(self) -> CooperativeLock:  # noqa: N802
        return CooperativeLock(self.name, reentrant=True)

    def Condition(self, lock: CooperativeLock | None = None) -> CooperativeCondition:  # noqa: N802
        return CooperativeCondition(lock or CooperativeLock(self.name, reentrant=True))

    Thread = _Thread

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)


@lru_cache(maxsize=1)
def _controlled() -> tuple[tuple[ModuleType, str, object], ...]:
    """Return the modules, their names for something of `threading`, and what replaces it."""
    found: list[tuple[ModuleType, str, object]] = []
    for name in modules_with_locks():
        if name in UNWATCHED:
            continue
        module = importlib.import_module(name)
        stand_in = _Threading(name.rpartition(".")[2])
        if getattr(module, "threading", None) is threading:
            found.append((module, "threading", stand_in))
        found += [
            (module, each, getattr(stand_in, each))
            for each in ("Lock", "RLock", "Condition")
            if getattr(module, each, None) is getattr(threading, each)
        ]
        if getattr(module, "SimpleQueue", None) is SimpleQueue:
            found.append((module, "SimpleQueue", partial(CooperativeQueue, stand_in.name)))
    prepare(methods=_syntax().methods, constants=_syntax().constants)
    return tuple(found)


@contextmanager
def controlled_locks() -> Iterator[None]:
    """Context in which the watched modules of the store create locks of the scheduler."""
    controlled = _controlled()
    before = [getattr(module, name) for module, name, _ in controlled]
    for module, name, stand_in in controlled:
        setattr(module, name, stand_in)
    try:
        yield
    finally:
        for (module, name, _), original in zip(controlled, before, strict=True):
            setattr(module, name, original)
        _WAITING.clear()
