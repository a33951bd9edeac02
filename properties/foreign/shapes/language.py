"""Define the language in which stores of every shape state their promises.

| field | meaning |
|---|---|
| `durable` | the points after which a write survives a power loss |
| `kill` | the points after which a write survives a process kill |
| `recovered` | a write without an answer is as safe as any other once a crash has left it |
| `consistent` | `power`: after each crash the store has some legal state; `kill`: only after a kill |
| `ordered` | the surviving writes are a prefix of all writes, over all keys, queues or files |
| `callers` | the number of calls that the store takes at the same time |

A point is given by its name, which implies those that follow it in the list of its shape, or as a list of exactly these
points. `"flush"` is a flush or a close. `["flush"]` is a flush alone; a close promises nothing then. `"nothing"` is no
point: the store is consistent after a crash, and may have lost every write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, ClassVar, Literal, TypeVar

__all__ = ["NOTHING", "BadPromise", "Fault", "Promises", "nearest", "points_of", "promises_of"]

Fault = Literal["kill", "power"]
NOTHING = "nothing"
_CALLERS_MAX = 16


class BadPromise(ValueError):
    """Raise this for a promise that cannot be read; the message says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """Hold what the stores of every shape may promise.

    `POINTS` are the points of a shape, the strongest promise first.
    """

    POINTS: ClassVar[tuple[str, ...]] = ("put", "flush", "close")
    WORDS: ClassVar[Mapping[str, tuple[str, ...]]] = {"consistent": ("power", "kill")}
    """The values of fields that are one of several words."""
    REMOVALS: ClassVar[tuple[str, ...]] = ()
    """The points of effects that remove something, for shapes that promise them apart (`removed`, `removed_kill`)."""

    durable: tuple[str, ...] = ()
    kill: tuple[str, ...] = ()
    recovered: bool = False
    consistent: str = "power"
    ordered: bool = False
    callers: int = 1

    @property
    def kills_only(self) -> bool:
        """Return whether nothing is promised after a power loss, so that none is made."""
        return self.consistent == "kill"

    def points(self, fault: Fault) -> tuple[str, ...]:
        """Return the points after which a write survives a fault."""
        return self.kill if fault == "kill" else self.durable

    def points_of_kind(self, kind: str, fault: Fault) -> tuple[str, ...]:
        """Return the points after which an effect of a kind survives a fault."""
        return self.points(fault)

    @classmethod
    def points_of_field(cls, name: str) -> tuple[str, ...]:
        """Return the points that a field is made of, the strongest first. Other fields have none."""
        if name in ("removed", "removed_kill"):
            return cls.REMOVALS
        return cls.POINTS if name in ("durable", "kill") else ()

    def check(self) -> None:
        """Check promises against each other. Raises BadPromise."""

    def said(self) -> str:
        """Return the promises as a line of text."""
        durable = "no promise after a power loss" if self.kills_only else f"durable after {self._said(self.durable)}"
        return "; ".join([f"{durable}, safe from a kill after {self._said(self.kill)}", *self.said_of_shape()])

    def said_of_shape(self) -> list[str]:
        """Return what is promised beyond durability, as parts of a line."""
        return ["one order of all writes"] if self.ordered else []

    def _said(self, points: tuple[str, ...]) -> str:
        if not points:
            return NOTHING
        return points[0] if points == points_of(points[0], self.POINTS) else f"{' and '.join(points)} alone"


Kind = TypeVar("Kind", bound=Promises)


def points_of(value: Any, points: Sequence[str]) -> tuple[str, ...]:
    """Return the points that a word or a list names. Raises BadPromise."""
    if isinstance(value, str):
        if value == NOTHING:
            return ()
        if value in points:
            return tuple(points[list(points).index(value) :])
    elif isinstance(value, Sequence) and all(point in points for point in value):
        return tuple(point for point in points if point in value)
    raise BadPromise(f"{value!r}: {', '.join(points)}, {NOTHING}, or a list of such points")


def promises_of(kind: type[Kind], given: Mapping[str, Any]) -> Kind:
    """Return the promises of a shape as a store has given them. Raises BadPromise."""
    names = [field.name for field in fields(kind)]
    defaults = kind()
    read: dict[str, Any] = {}
    for name, value in given.items():
        if name not in names:
            raise BadPromise(f"the store promises {name!r}, which is not a known promise{nearest(name, names)}")
        if points := kind.points_of_field(name):
            try:
                read[name] = points_of(value, points)
            except BadPromise as error:
                raise BadPromise(f"{name} is {error}") from None
        else:
            _check(kind, name, value, getattr(defaults, name))
            read[name] = value
    read.setdefault("durable", kind.POINTS)
    read.setdefault("kill", read["durable"])
    if read.get("consistent") == "kill" and "durable" not in given:
        read["durable"] = ()
    if kind.REMOVALS:
        for removed, added in (("removed", "durable"), ("removed_kill", "kill")):
            usual = tuple(kind.REMOVALS[kind.POINTS.index(point)] for point in read[added])
            read.setdefault(removed, usual)
    for weak, strong in (("kill", "durable"), ("removed_kill", "removed")):
        if missing := [point for point in read.get(strong, ()) if point not in read[weak]]:
            said, stronger = given.get(weak, given.get("kill")), given.get(strong, kind.POINTS[0])
            raise BadPromise(
                f"{weak} is {said!r} and {strong} {stronger!r}: what survives a power loss survives a kill, "
                f"so {weak} needs {missing[0]} too"
            )
    if read.get("consistent") == "kill" and read["durable"]:
        raise BadPromise('consistent is "kill", so nothing is promised after a power loss: durable has to be "nothing"')
    made = kind(**read)
    made.check()
    return made


def _check(kind: type[Promises], name: str, value: Any, default: Any) -> None:
    words = kind.WORDS.get(name)
    if words is not None:
        if value not in words:
            raise BadPromise(f"{name} is {value!r}: {', '.join(words)}")
    elif isinstance(default, bool):
        if not isinstance(value, bool):
            raise BadPromise(f"{name} is {value!r}: true or false")
    elif not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadPromise(f"{name} is {value!r}, and has to be a number from 1")
    elif name == "callers" and value > _CALLERS_MAX:
        raise BadPromise(f"callers is {value!r}: at most {_CALLERS_MAX}")


def nearest(word: str, known: Sequence[str]) -> str:
    """Return the end of an error about an unknown word: the nearest known one, or all."""
    near = get_close_matches(str(word), known, 1)
    return f"; did you mean {near[0]!r}?" if near else f": {', '.join(known)}"
