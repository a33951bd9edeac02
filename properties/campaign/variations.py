"""A case with one thing changed: what the passes of the shrinker are made of."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from properties.program.case import Case, Operation, Put

__all__ = ["shorter", "with_field", "with_operation", "with_operations", "with_puts"]

Item = TypeVar("Item")


def shorter(items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    """Leave out runs of items, long ones first."""
    size = len(items)
    while size >= 1:
        for start in range(0, len(items), size):
            yield (*items[:start], *items[start + size :])
        size //= 2


def with_puts(case: Case, change: Callable[[Put], Put]) -> Case:
    """Change all single puts."""
    return replace(case, operations=tuple(change(o) if isinstance(o, Put) else o for o in case.operations))


def with_operation(case: Case, number: int, operation: Operation) -> Case:
    """Put another operation in the place of one."""
    return with_operations(case, number, (operation,))


def with_operations(case: Case, number: int, operations: Sequence[Operation], *, instead_of: int = 1) -> Case:
    """Put operations in the place of so many from number `number` on."""
    kept, rest = case.operations[:number], case.operations[number + instead_of :]
    return replace(case, operations=(*kept, *operations, *rest))


def with_field(value: Any, name: str, content: object) -> Any:
    """Change one field."""
    return replace(value, **{name: content})
