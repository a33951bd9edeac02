"""Files of results, one JSON object a line: written line by line as they come, and read again by a later run.

A line is there whole or not: what an interrupted writer left behind the last line break counts for nothing.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

__all__ = ["BadRows", "KeptRows", "LineFile", "NotKept"]

Row = TypeVar("Row")


class LineFile:
    """The file at `path`, which need not be there yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[bytes]:
        """Return the whole lines. Raises OSError."""
        return self._content()[0].splitlines()

    def cut(self) -> None:
        """Take away a line that was broken off, so that another one can follow. Raises OSError."""
        whole, rest = self._content()
        if rest:
            os.truncate(self.path, len(whole))

    def append(self, document: Mapping[str, Any]) -> None:
        """Write a line. Raises OSError: half of it may be there then."""
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
    """A file of rows holds a line that is none."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        super().__init__(f"{path}, line {line}: {why}; take the file away, or name another directory")


class NotKept(Exception):
    """The disk has refused a row; those before it are there."""

    def __init__(self, path: Path, error: OSError) -> None:
        why = error.strerror or str(error)
        super().__init__(f"cannot keep what is done in {path}: {why}; make room and go on, or name another directory")


class KeptRows(Generic[Row]):
    """Rows, all of the dataclass `kind`, in the file at `path`; of this run alone if that is None."""

    def __init__(self, path: Path | None, kind: type[Row]) -> None:
        """Read the rows of earlier runs. Raises BadRows and OSError."""
        self._file = None if path is None else LineFile(path)
        self.rows: list[Row] = []
        if self._file is not None:
            self._file.cut()
            self.rows += _read(self._file, kind)

    def add(self, row: Row) -> None:
        """Take in a row. Raises NotKept."""
        self.rows.append(row)
        if self._file is None:
            return
        try:
            self._file.append(asdict(row))  # type: ignore[call-overload]  # a dataclass, as `kind` says
        except OSError as error:
            raise NotKept(self._file.path, error) from error


def _read(file: LineFile, kind: type[Row]) -> Iterator[Row]:
    for number, line in enumerate(file.lines(), 1):
        try:
            yield kind(**json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            raise BadRows(file.path, number, str(error)) from error
