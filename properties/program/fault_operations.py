"""A fault aimed at calls of the file seam, as a value."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from properties.program.fault_language import parse_fault, parse_predicate
from properties.program.fault_predicates import And, Every, Not, Nth, Or, Predicate, Probability, text_of

__all__ = ["AimFault", "aimed_at", "simpler_aims"]


@dataclass(frozen=True, slots=True)
class AimFault:
    """From now on calls of the disk fail as `effect` says, those that `where` means; up to the next crash or open.

    `where` is a predicate (docs/faults.md, "Aiming"); its draws begin with `seed`. What the store answers is then held
    to what it promised, not to one answer. Raises BadAim, a ValueError.
    """

    effect: str = "sync-error"
    where: str = ""
    seed: int = 0
    op: Literal["aim_fault"] = "aim_fault"

    def __post_init__(self) -> None:
        parse_fault(self.text)

    @property
    def text(self) -> str:
        """The fault as `tornpage explore --fault` takes it."""
        return f"{self.effect}: {self.where}" if self.where else self.effect


def aimed_at(text: str, *, seed: int = 0) -> AimFault:
    """Return the fault that a text says, in plain spelling. Raises BadAim."""
    effect, predicate = parse_fault(text)
    return AimFault(effect, text_of(predicate), seed)


def simpler_aims(aim: AimFault) -> Iterator[AimFault]:
    """Yield faults that are aimed with fewer words, with smaller numbers, or without a seed."""
    for predicate in _simpler(parse_predicate(aim.where, aim.effect)):
        yield replace(aim, where=text_of(predicate))
    if aim.seed:
        yield replace(aim, seed=0)


def _simpler(predicate: Predicate) -> Iterator[Predicate]:
    if predicate != And():
        yield And()
    match predicate:
        case And(parts) | Or(parts):
            yield from parts
            for number, part in enumerate(parts):
                for simpler in _simpler(part):
                    if simpler != And():
                        yield type(predicate)((*parts[:number], simpler, *parts[number + 1 :]))
        case Not(part):
            yield part
        case Nth(number) | Every(number) if number > 1:
            yield from (Nth(each) for each in (1, number // 2, number - 1) if each < number)
        case Probability():
            yield Nth(1)
