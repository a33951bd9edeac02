"""Decide which frames have yield points, and trace them.

Not covered: frames of watched modules that were on the stack before the task was called, and everything done in C,
which is one step. Another trace function (a debugger's or coverage's) sees nothing of a task.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, Literal

__all__ = ["Granularity", "TraceFunction", "Watch", "location"]

Granularity = Literal["line", "opcode"]
"""What a yield point is in watched code: the begin of a line, or of a bytecode."""

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

    def tracer(self, point: Callable[[FrameType], None]) -> TraceFunction:
        """Return a trace function that calls `point` at each line or bytecode of watched code."""
        by_opcode = self._granularity == "opcode"
        wanted = self._granularity
        decided: dict[CodeType, bool] = {}  # by code object: most calls of a run are of code that was called before

        def inside(frame: FrameType, event: str, _argument: Any) -> Any:
            if event == wanted:
                point(frame)
            return inside

        def enter(frame: FrameType, _event: str, _argument: Any) -> Any:
            code = frame.f_code
            is_covered = decided.get(code)
            if is_covered is None:
                is_covered = decided[code] = self.covers(frame)
            if not is_covered:
                return None
            if by_opcode:
                frame.f_trace_opcodes = True
                frame.f_trace_lines = False
            return inside

        return enter


def location(where: FrameType | str) -> str:
    """Return the module and line of a frame, or the label itself."""
    return where if isinstance(where, str) else f"{where.f_globals.get('__name__', '?')}:{where.f_lineno}"
