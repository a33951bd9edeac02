"""Rows in files, one JSON object a line: written line by line as they come, and read again by a later run.

A line is there whole or not: what an interrupted writer left behind the last line break is cut off.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Generic, TypeVar

from properties.score.small import SmallRow
from properties.score.trials import TrialRow

__all__ = ["SMALL", "TRIALS", "BadRows", "KeptRows", "NotKept", "kept_small", "kept_trials"]

TRIALS = "trials.jsonl"
SMALL = "small.jsonl"

Row = TypeVar("Row", TrialRow, SmallRow)


class BadRows(ValueError):
    """A file of rows holds a line that is none."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        super().__init__(f"{path}, line {line}: {why}; take the file away, or name another directory")


class NotKept(Exception):
    """The disk has refused a row; those before it are there."""

    def __init__(self, path: Path, error: OSError) -> None:
        why = error.strerror or str(error)
        super().__init__(f"cannot keep what is done in {path}: {why}; make room and go on, or name another directory")


class KeptRows(Generic[Row]):
    """Rows of one kind in the file at `path`, or of this run alone if that is None. Raises BadRows and OSError."""

    def __init__(self, path: Path | None, kind: type[Row]) -> None:
        self._path = path
        self.rows: list[Row] = [] if path is None else list(_read(path, kind))

    def add(self, row: Row) -> None:
        """Take in a row. Raises NotKept: half of a line may be there then, which the next reader cuts off."""
        self.rows.append(row)
        if self._path is None:
            return
        try:
            with self._path.open("a") as file:
                file.write(json.dumps(asdict(row), separators=(",", ":")) + "\n")
        except OSError as error:
            raise NotKept(self._path, error) from error


def kept_trials(directory: Path | None) -> KeptRows[TrialRow]:
    """Return the trials that a directory holds. Raises BadRows and OSError."""
    return KeptRows(None if directory is None else directory / TRIALS, TrialRow)


def kept_small(directory: Path | None) -> KeptRows[SmallRow]:
    """Return the failures made small that a directory holds. Raises BadRows and OSError."""
    return KeptRows(None if directory is None else directory / SMALL, SmallRow)


def _read(path: Path, kind: type[Row]) -> Iterator[Row]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            yield kind(**json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            raise BadRows(path, number, str(error)) from error
