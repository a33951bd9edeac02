"""The parts of a store, each replaceable by its type: by a planted bug, by the crash lab, or by a user.

A store asks for each part as `parts.of(MappedFile)(...)`: the class itself unless it is replaced. The same goes for
functions: `parts.of(walk_log)(...)`. `impl.io.mapped_file.MappedFile` is RocketMQ's service provider interface: derive
from it and open the store with `Parts({MappedFile: OtherFile})` to write log files in another way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

__all__ = ["Parts"]

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Parts:
    """What stands in for which part: a subclass or a factory for a class, a function for a function.

    Raises TypeError if a replacement does not fit its part.
    """

    replaced: Mapping[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind, replacement in self.replaced.items():
            _require_fit(kind, replacement)
        object.__setattr__(self, "replaced", MappingProxyType(dict(self.replaced)))

    def of(self, kind: Kind) -> Kind:
        """Return what a store uses as this part: a replacement, else the part itself."""
        found: Kind = self.replaced.get(kind, kind)
        return found

    def replacing(self, replaced: Mapping[Any, Any]) -> "Parts":
        """Return these parts with more of them replaced; the later replacement of a part wins."""
        return Parts({**self.replaced, **replaced})

    def __hash__(self) -> int:
        return hash(frozenset(self.replaced.items()))

    def __reduce__(self) -> tuple[Callable[..., "Parts"], tuple[dict[Any, Any]]]:
        return Parts, (dict(self.replaced),)


def _require_fit(kind: Any, replacement: Any) -> None:
    """Raise TypeError unless `replacement` can stand in for `kind`."""
    if isinstance(kind, type) and isinstance(replacement, type):
        fits = issubclass(replacement, kind)
    else:
        fits = callable(replacement) if callable(kind) else isinstance(replacement, type(kind))
    if not fits:
        raise TypeError(f"{replacement!r} cannot replace {kind!r}: it is not a subclass, factory or value of its kind")
