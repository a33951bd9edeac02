"""The parts of a store.

Planted bugs, the crash lab or a user may replace each part by its type. A store asks for each part as
`parts.of(MappedFile)(...)` and gets the class itself unless it is replaced. Functions are replaced in the same way:
`parts.of(walk_log)(...)`. `impl.io.mapped_file.MappedFile` is RocketMQ's service provider interface: to write log files
in another way, derive from it and open the store with `Parts({MappedFile: OtherFile})`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

__all__ = ["Parts"]

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Parts:
    """Maps each replaced part to its replacement.

    A class is replaced by a subclass or a factory, a function by a function. Raises TypeError if a replacement does not
    fit its part.
    """

    replaced: Mapping[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind, replacement in self.replaced.items():
            _require_fit(kind, replacement)
        object.__setattr__(self, "replaced", MappingProxyType(dict(self.replaced)))

    def of(self, kind: Kind) -> Kind:
        """Return the replacement of a part, or the part itself."""
        found: Kind = self.replaced.get(kind, kind)
        return found

    def replacing(self, replaced: Mapping[Any, Any]) -> "Parts":
        """Return these parts with more of them replaced.

        A later replacement of the same part wins.
        """
        return Parts({**self.replaced, **replaced})

    def __hash__(self) -> int:
        return hash(frozenset(self.replaced.items()))

    def __reduce__(self) -> tuple[Callable[..., "Parts"], tuple[dict[Any, Any]]]:
        return Parts, (dict(self.replaced),)


def _require_fit(kind: Any, replacement: Any) -> None:
    """Raise TypeError unless `replacement` can replace `kind`."""
    if isinstance(kind, type) and isinstance(replacement, type):
        fits = issubclass(replacement, kind)
    else:
        fits = callable(replacement) if callable(kind) else isinstance(replacement, type(kind))
    if not fits:
        raise TypeError(f"{replacement!r} cannot replace {kind!r}: it is not a subclass, factory or value of its kind")
