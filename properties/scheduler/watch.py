"""Decide which frames have yield points, and trace them.

Not covered: frames of watched modules that were on the stack before the task was called, and everything done in C,
which is one step. Another trace function (a debugger's or coverage's) sees nothing of a task.
"""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, Literal

from tornpage.properties.scheduler.accesses import (
    NOTHING,
    Access,
    access_of_code,
    access_of_line,
    access_of_opcode,
    shared_offsets,
)

__all__ = ["Granularity", "TraceFunction", "Watch", "location"]

Granularity = Literal["line", "opcode", "shared", "shared opcode"]
"""What a yield point is in watched code.

`line` is the begin of a line, `opcode` that of a bytecode. `shared` is the begin of a line that may touch shared state,
`shared opcode` that of such a bytecode. A switch before another bytecode gives the same order of accesses as a switch
before the next shared one.
"""

_BY_OPCODE = ("opcode", "shared opcode")

_UNRECORDED = "tornpage.properties.scheduler"
"""The package whose own accesses are part of no step."""

TraceFunction = Callable[[FrameType, str, Any], Any]


class Watch:
    """Decides by module name (a package includes all below it) or by source file."""

    def __init__(self, modules: Iterable[ModuleType | str | Path], granularity: Granularity) -> None:
        self._names: set[str] = set()
        self._files: set[str] = set()
        for module in modules:
            if isinstance(module, Path):
                self._files.add(os.path.realpath(module))
            else:
                self._names.add(module if isinstance(module, str) else module.__name__)
        self._granularity = granularity
        self._known: dict[tuple[str, str], bool] = {}
        self._decided: dict[int, tuple[CodeType, frozenset[int] | None]] = {}
        """By identity, since the hash of a code object takes longer than a step: the code object, and the bytecodes
        with a yield point if it is watched."""

    def __bool__(self) -> bool:
        return bool(self._names or self._files)

    def covers(self, frame: FrameType) -> bool:
        """Whether a frame runs watched code."""
        key = (frame.f_globals.get("__name__", ""), frame.f_code.co_filename)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._decide(*key)
        return known

    def _decide(self, name: str, file: str) -> bool:
        below = any(name == watched or name.startswith(f"{watched}.") for watched in self._names)
        return below or (bool(self._files) and os.path.realpath(file) in self._files)

    def tracer(
        self, point: Callable[[FrameType], None], touch: Callable[[Access], None] | None = None
    ) -> TraceFunction:
        """Return a trace function that calls `point` at each yield point of watched code.

        `touch` receives what a step may touch after the return of a watched function and in code without yield points.
        """
        by_opcode = self._granularity in _BY_OPCODE
        wanted = "opcode" if by_opcode else "line"
        is_shared_only = self._granularity == "shared"
        decided = self._decided
        is_shared_opcode = self._granularity == "shared opcode"

        def inside(frame: FrameType, event: str, _argument: Any) -> Any:
            if event == wanted:
                if is_shared_opcode and frame.f_lasti not in decided[id(frame.f_code)][1]:  # type: ignore[operator]
                    return inside
                if is_shared_only and access_of_line(frame.f_code, frame.f_lineno) is NOTHING:
                    return inside
                point(frame)
            elif event == "return" and touch is not None:
                touch(self._access_after(frame.f_back))
            return inside

        def enter(frame: FrameType, _event: str, _argument: Any) -> Any:
            code = frame.f_code
            found = decided.get(id(code))
            if found is None:
                found = decided[id(code)] = code, shared_offsets(code) if self.covers(frame) else None
            if found[1] is None:
                if touch is not None and not frame.f_globals.get("__name__", "").startswith(_UNRECORDED):
                    touch(access_of_code(code))
                return None
            if by_opcode:
                frame.f_trace_opcodes = True
                frame.f_trace_lines = False
            return inside

        return enter

    def access_at(self, frame: FrameType) -> Access:
        """Return what the step that begins at a yield point may touch in its own function."""
        if self._granularity in _BY_OPCODE:
            return access_of_opcode(frame.f_code, frame.f_lasti)
        return access_of_line(frame.f_code, frame.f_lineno)

    def _access_after(self, frame: FrameType | None) -> Access:
        """Return what the callers of a function may touch before their next yield point."""
        access = NOTHING
        while frame is not None and not frame.f_globals.get("__name__", "").startswith(_UNRECORDED):
            if self.covers(frame):
                rest = NOTHING if self._granularity in _BY_OPCODE else access_of_line(frame.f_code, frame.f_lineno)
                return access.joined(rest)
            access = access.joined(access_of_code(frame.f_code))
            frame = frame.f_back
        return access

    def access_of_stack(self) -> Access:
        """Return what the current functions may touch after a wait or a lock."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").startswith(_UNRECORDED):
            frame = frame.f_back
        return self._access_after(frame)


def location(where: FrameType | str) -> str:
    """Return the module and line of a frame, or the label itself."""
    return where if isinstance(where, str) else f"{where.f_globals.get('__name__', '?')}:{where.f_lineno}"
