"""Read and append files of results with one JSON object per line.

A line counts only when it is complete. Bytes that an interrupted writer left after the last line break are ignored.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

__all__ = ["BadRows", "LineFile", "ResumeRows", "ResumeWriteError"]

Row = TypeVar("Row")


class LineFile:
    """Represent the file at `path`, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[bytes]:
        """Return the complete lines. Raises OSError."""
        return self._content()[0].splitlines()

    def cut(self) -> None:
        """Remove an incomplete last line so that another line can follow. Raises OSError."""
        whole, rest = self._content()
        if rest:
            os.truncate(self.path, len(whole))

    def append(self, document: Mapping[str, Any]) -> None:
        """Write a line. Raises OSError, and part of the line may be written then."""
        with self.path.open("a") as file:
            file.write(json.dumps(document, separators=(",", ":")) + "\n")

    def _content(self) -> tuple[bytes, bytes]:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return b"", b""
        length = content.rfind(b"\n") + 1
        return content[:length], content[length:]


class BadRows(ValueError):
    """Raise this if a line of a results file is not a result."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        super().__init__(f"{path}, line {line}: {why}; remove the file, or give another directory")


class ResumeWriteError(Exception):
    """Raise this if a result could not be written. Earlier results are in the file."""

    def __init__(self, path: Path, error: OSError) -> None:
        why = error.strerror or str(error)
        super().__init__(f"cannot write results to {path}: {why}; free space and resume, or give another directory")


class ResumeRows(Generic[Row]):
    """Keep rows of the dataclass `kind` in the file at `path`, or in memory if it is None."""

    def __init__(self, path: Path | None, kind: type[Row]) -> None:
        """Read the rows of earlier runs. Raises BadRows and OSError."""
        self._file = None if path is None else LineFile(path)
        self.rows: list[Row] = []
        if self._file is not None:
            self._file.cut()
            self.rows += _read(self._file, kind)

    def add(self, row: Row) -> None:
        """Add a row. Raises ResumeWriteError."""
        self.rows.append(row)
        if self._file is None:
            return
        try:
            self._file.append(asdict(row))  # type: ignore[call-overload]  # a dataclass, as `kind` says
        except OSError as error:
            raise ResumeWriteError(self._file.path, error) from error


def _read(file: LineFile, kind: type[Row]) -> Iterator[Row]:
    for number, line in enumerate(file.lines(), 1):
        try:
            yield kind(**json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            raise BadRows(file.path, number, str(error)) from error
