"""Convert JSON values to frozen dataclasses, checked field by field.

The type of a field decides its values: str, int, float (finite; an int is accepted), bool, `X | None`, `tuple[X, ...]`,
`dict[str, X]`, a dataclass, Scalar. Unknown keys are ignored. A key is optional if its field has a default.
"""

import dataclasses
import json
import math
import types
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from tornpage.reports.errors import ReportError

__all__ = ["Count", "Positive", "Scalar", "read_json", "shaped"]

Scalar = str | int | float | bool | None
Count = Annotated[int, "not negative"]
Positive = Annotated[float, "not negative"]

Shaped = TypeVar("Shaped")
_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


class _Mismatch(Exception):
    """The value at a place does not have its type."""


def read_json(path: Path) -> Any:
    """Return the value in a file of JSON. Raises ReportError."""
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise ReportError(str(path), f"cannot be read: {error.strerror or error}", "name a run directory") from error
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _malformed(path, f"is no JSON text: {reason}") from error


def shaped(kind: type[Shaped], value: Any, *, path: Path, place: str) -> Shaped:
    """Return `value`, found at `place` of the file `path`, as a `kind`. Raises ReportError."""
    try:
        result = _shape(kind, value, place)
    except _Mismatch as error:
        raise _malformed(path, str(error)) from error
    assert isinstance(result, kind)
    return result


def _malformed(path: Path, what: str) -> ReportError:
    return ReportError(str(path), what, "run the command that wrote it again, or take the file away")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _shape(kind: Any, value: Any, place: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin is Annotated:
        result = _shape(arguments[0], value, place)
        if result < 0:
            raise _Mismatch(f"{place} is {result}, less than 0")
        return result
    if origin in (Union, types.UnionType):
        return _union(arguments, value, place)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise _Mismatch(f"{place} is no list")
        return tuple(_shape(arguments[0], item, f"{place}[{number}]") for number, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise _Mismatch(f"{place} is no object")
        return {name: _shape(arguments[1], item, f"{place}.{name}") for name, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return _record(kind, value, place)
    return _plain(kind, value, place)


def _union(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    if value is None and types.NoneType in kinds:
        return None
    others = [kind for kind in kinds if kind is not types.NoneType]
    for kind in others:
        try:
            return _shape(kind, value, place)
        except _Mismatch:
            if kind is others[-1]:
                raise
    raise AssertionError("a union has members")


def _record(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise _Mismatch(f"{place} is no object")
    hints = _hints(kind)
    given = {}
    for field in dataclasses.fields(kind):
        if field.name in value:
            given[field.name] = _shape(hints[field.name], value[field.name], f"{place}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise _Mismatch(f"{place} has no {field.name!r}")
    return kind(**given)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _plain(kind: Any, value: Any, place: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = _float(value, place)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _Mismatch(f"{place} is not {_NAMES[kind]}")
    if isinstance(value, float) and not math.isfinite(value):
        raise _Mismatch(f"{place} is not a finite number")
    return value


def _float(value: int, place: str) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise _Mismatch(f"{place} is too large a number") from error
