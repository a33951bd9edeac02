"""How simple a case is: an order in which shrinking only ever goes down, so that it ends.

Fewer operations count first, then fewer facts that a power loss took, then crashes nearer to an answer, smaller log
files, fewer things that are not as usual, smaller numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from properties.program.case import Case, Concurrent, Crash

__all__ = ["Weight", "weight_of"]

Weight = tuple[int, int, int, int, int, int]


def weight_of(case: Case, *, losses: int) -> Weight:
    """Return what to compare; `losses` is how many facts its power losses took."""
    operations = sum(
        1 + len(operation.first) + len(operation.second) if isinstance(operation, Concurrent) else 1
        for operation in case.operations
    )
    back = sum(operation.back for operation in case.operations if isinstance(operation, Crash))
    document = case.document()
    document["settings"].pop("file_bytes", None)
    for operation in document["operations"]:
        operation.pop("back", None)
    return operations, losses, back, case.settings.file_bytes, _count(document), _magnitude(document)


def _count(value: Any) -> int:
    """Count what a reader has to read; the version 0 of a fact too, since it is named, but no idle yield point."""
    if isinstance(value, Mapping):
        return sum(1 + _count(each) for each in value.values())
    if isinstance(value, str):
        return 0
    if isinstance(value, Sequence):
        return sum(_count(each) if isinstance(each, int) else 1 + _count(each) for each in value)
    return int(bool(value))


def _magnitude(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_magnitude, value.values()))
    if isinstance(value, str):
        return len(value)
    return len(value) + sum(map(_magnitude, value)) if isinstance(value, Sequence) else abs(int(value or 0))
