"""Problems of files, as rows: a damaged file never fails a job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tornpage.pipeline.readers.tables import FORMATS, PROBLEMS
from tornpage.properties.decode.findings import Finding

__all__ = ["PROBLEM_CODES", "Problem", "from_error", "from_findings"]

PROBLEM_CODES: Mapping[str, str] = {
    "CL_BAD_RECORD": "bytes of a log file in which no valid record begins",
    "CL_CUT": "records were deleted before a stream read them",
    "CL_SEAM": "a part of a split file was read from a wrong place: read it again with splitBytes=0",
    "CL_TAIL_MOVING": "the last bytes of a log file that is being written: not known yet",
    "CQ_CUT": "units were deleted, or cut off with the end of their file, before a stream read them",
    "CQ_EMPTY_UNITS": "empty units before used ones",
    "CQ_EXT_UNREADABLE": "units whose address is not that of an extension unit",
    "IX_CUT": "an index file was deleted, or cut off, before a stream read it to its end: at most this much is missing",
    "IX_SLOTS_UNKNOWN": "an index file does not show its number of slots: set the option slots",
    "READ_CHANGED": "a file was written or resized while it was read: its rows are from several moments",
    "READ_ERROR": "a file could not be read, or not to its end",
    "READ_GONE": "a file was removed after it was listed",
    "READ_NO_ACCESS": "a file or directory cannot be read: permission denied",
}
"""The readers' own codes; those of a store directory (CL_…, CP_…) are in docs/findings.md."""


_NO_TEXT = re.compile("[\ud800-\udfff]")
"""The characters by which Python replaces bytes that are not text.

No column of text accepts them.
"""


class Problem(NamedTuple):
    """One row of the problems table."""

    store: str
    file: str
    code: str
    position: int | None
    size: int | None
    message: str


assert Problem._fields == tuple(FORMATS["rocketmq-commitlog"][PROBLEMS])


def from_error(store: str, file: str, error: OSError) -> Problem:
    """Return the problem of a file that could not be read."""
    codes = {FileNotFoundError: "READ_GONE", PermissionError: "READ_NO_ACCESS"}
    code = codes.get(type(error), "READ_ERROR")
    said = f"{PROBLEM_CODES[code]} ({error.strerror or type(error).__name__})"
    return Problem(store, _as_text(file), code, None, None, said)


def from_findings(store: str, findings: tuple[Finding, ...]) -> Iterator[Problem]:
    """Yield the problems of the findings in a directory."""
    for finding in findings:
        yield Problem(store, _as_text(finding.file), finding.code, None, None, _as_text(finding.message))


def _as_text(name: str) -> str:
    """Return a name for a column of text: bytes that are not UTF-8 become U+FFFD."""
    return _NO_TEXT.sub("\ufffd", name)
