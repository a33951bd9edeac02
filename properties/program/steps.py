"""Read and write the operations of cases of clusters and of consumer groups."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

__all__ = ["changed", "described_step", "read_step"]


def changed(value: Any) -> dict[str, Any]:
    """Return the fields of an operation or of settings that differ from their defaults."""
    default = type(value)()
    named = ((each.name, getattr(value, each.name)) for each in fields(value) if each.name != "op")
    return {name: found for name, found in named if found != getattr(default, name)}


def read_step(kinds: Mapping[str, Any], item: dict[str, Any]) -> Any:
    """Return the operation of a document.

    Raises KeyError, TypeError or ValueError if it has another form.
    """
    kind = kinds[item.pop("op")]
    operation = kind(**item)
    for name, default in asdict(kind()).items():
        if type(getattr(operation, name)) is not type(default):
            raise ValueError(f"{name} of {operation.op} is {getattr(operation, name)!r}")
    survived = getattr(operation, "survived", None)
    if survived:
        kept = {name: tuple(v) if isinstance(v, list) else v for name, v in survived.items()}
        return replace(operation, survived=kept)
    return operation


def described_step(operation: Any) -> str:
    """Return an operation as a readable line of a program."""
    return f"{operation.op}({', '.join(f'{name}={value!r}' for name, value in changed(operation).items())})"
