"""What the files of a log hold, read by the judges' own decoder: the valid prefix, and what stands behind it.

Files are bytes by name below the store directory; a log may be spread over several directories. No bytes make anything
raise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tornpage.properties.decode.record import Blank, Record
from tornpage.properties.decode.walk import Zeros, walk
from tornpage.properties.judge.log_bytes import left_past

__all__ = ["OTHER_DIRECTORIES", "LogRead", "Problem", "log_names", "read_log"]

OTHER_DIRECTORIES = frozenset({"config", "consumequeue", "consumequeue_ext", "index", "quarantine"})
"""Directories of a store that hold no log."""
_LOG_NAME = re.compile(r"[0-9]{20}")
_LAST_BASE = 1 << 62


@dataclass(frozen=True, slots=True)
class Problem:
    """What no crash leaves behind in a log: where, and a sentence."""

    file: str
    offset: int
    sentence: str


@dataclass(frozen=True, slots=True)
class LogRead:
    """The log from physical offset `begin` to `end`, where `reason` stops it (None: nothing more is there).

    `records` are those of the valid prefix, `behind` valid ones that stand behind its end; `dirty_at` is the first
    byte behind the end that is not zero. `files` names the file of each base offset.
    """

    files: Mapping[int, str]
    begin: int
    end: int
    reason: str | None
    records: tuple[Record, ...]
    behind: tuple[Record, ...]
    dirty_at: int | None
    problems: tuple[Problem, ...]

    def file_of(self, offset: int) -> str:
        """Return the name of the file that holds an offset, or of the last one in front of it."""
        before = [base for base in self.files if base <= offset]
        return self.files[max(before)] if before else "commitlog"


def log_names(names: Sequence[str], directories: Sequence[str]) -> list[tuple[int, str]]:
    """Return base offset and name of each log file in these directories, lowest first."""
    found = [(name.rpartition("/"), name) for name in names]
    return sorted(
        (int(parts[2]), name)
        for parts, name in found
        if parts[0] in directories and _LOG_NAME.fullmatch(parts[2]) and int(parts[2]) <= _LAST_BASE
    )


def read_log(content: Mapping[str, bytes], directories: Sequence[str], *, file_bytes: int, floor: int) -> LogRead:
    """Read a log whose files have `file_bytes` bytes; `floor` is up to where it was once durable, 0 if nobody knows."""
    problems: list[Problem] = []
    files = _one_of_each(content, log_names(list(content), directories), problems)
    if files and not content[files[max(files)]] and floor <= max(files):
        del files[max(files)]  # made, and never written
    begin = min(files, default=0)
    records: list[Record] = []
    behind: list[Record] = []
    end, reason, is_open, expected = begin, None, True, begin
    for base, name in files.items():
        data = content[name]
        if base != expected:
            problems.append(Problem(name, base, f"the log has no file at {expected}, but one at {base}"))
            is_open = False
        if len(data) != file_bytes:
            problems.append(Problem(name, base, f"{name} has {len(data)} bytes instead of {file_bytes}"))
        expected = base + file_bytes
        stopped = "the file ends"
        for item in walk(data, base_offset=base, file_bytes=file_bytes):
            if isinstance(item, Record):
                (records if is_open and item.offset == end else behind).append(item)
                end = item.end_offset if is_open and item.offset == end else end
            elif isinstance(item, Blank):
                stopped = ""
                if is_open and item.offset == end:
                    end = expected
            elif is_open:
                reason, is_open = ("zeros" if isinstance(item, Zeros) else str(item.reason)), False
        if is_open and stopped and end < expected:
            reason, is_open = stopped, False
    return LogRead(
        files, begin, end, reason, tuple(records), tuple(behind), _dirty_at(content, files, end), tuple(problems)
    )


def _one_of_each(
    content: Mapping[str, bytes], found: Sequence[tuple[int, str]], problems: list[Problem]
) -> dict[int, str]:
    """Return one file for each offset: of two the one that holds something; two that do are a problem."""
    files: dict[int, str] = {}
    for base, name in found:
        other = files.get(base)
        if other is None or not content[other].strip(b"\0"):
            files[base] = name
        elif content[name].strip(b"\0"):
            problems.append(Problem(name, base, f"{name} has the place of {other}, and both hold something"))
    return files


def _dirty_at(content: Mapping[str, bytes], files: Mapping[int, str], end: int) -> int | None:
    for base, name in files.items():
        left = left_past(end, base, content[name])
        if left is not None:
            return left[0]
    return None
