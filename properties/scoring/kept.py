"""Rows of finished trials in a file, one JSON object a line: written line by line, and read again by a later run.

A line is there whole or not: what an interrupted writer left behind the last line break is cut off.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from properties.scoring.trials import TrialRow

__all__ = ["TRIALS", "BadRows", "KeptRows"]

TRIALS = "trials.jsonl"


class BadRows(ValueError):
    """A file of trials holds a line that is none."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        super().__init__(f"{path}, line {line}: {why}; take the file away, or name another directory")


class KeptRows:
    """The rows of a directory, or of this run alone if there is none. Raises BadRows and OSError."""

    def __init__(self, directory: Path | None) -> None:
        self._path = None if directory is None else directory / TRIALS
        self.rows: list[TrialRow] = [] if self._path is None else list(_read(self._path))

    def add(self, row: TrialRow) -> None:
        """Take in a row, in one write."""
        self.rows.append(row)
        if self._path is None:
            return
        line = json.dumps(row.document(), separators=(",", ":")) + "\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


def _read(path: Path) -> Iterable[TrialRow]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            yield TrialRow(**json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            raise BadRows(path, number, str(error)) from error
