"""Define what a module of a shape provides, and the book that follows one run of a store.

The book carries out calls on the store and on the history side by side. After a crash it judges the store.
"""

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import shake_128
from typing import Any, ClassVar, Protocol, TypeVar

from tornpage.model.operations import Call, Operation
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.foreign.shapes.history import Effect, History, cuts, floor_of
from tornpage.properties.foreign.shapes.language import Fault, Promises

__all__ = [
    "Answers",
    "Book",
    "Choose",
    "Run",
    "Shape",
    "Together",
    "bytes_in",
    "decoded",
    "encoded",
    "same",
    "shown",
    "value_of",
]

Item = TypeVar("Item")
Choose = Callable[[Sequence[Any]], Any]
"""Return one of several things. A campaign and Hypothesis draw programs with the same code."""

EVERYTHING = "everything"
"""The cell of all effects in a store that promises one order."""


class Answers(Protocol):
    """Represent a session of a store, as far as shapes use it."""

    def call(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a request; return its answer. Raises GuaranteeBroken for an error."""

    def ahead(self, do: str, requests: Iterable[Mapping[str, Any]]) -> None:
        """Send requests that only read before they are asked, if the store allows it."""

    def odd(self, do: str, answer: Any, expected: str) -> GuaranteeBroken:
        """Return the failure of an answer of another form than requested."""


class Run(Protocol):
    """Follow one run of a store of any shape: its operations, and what crashes leave.

    `state` is a frozen value. A run continues from an earlier state after `go_on_with`.
    """

    epilogues: ClassVar[tuple[tuple[Operation, ...], ...]]
    """Operations after a crash, of which one list is drawn."""
    first_write: ClassVar[Operation]
    """The shortest write."""

    @property
    def state(self) -> Any:
        """Return the present state."""

    @property
    def promises(self) -> Promises:
        """Return the promises of the store."""

    def draw(self, choose: Choose) -> Operation:
        """Draw a read or a write."""

    def carry_out(self, operation: Operation, store: Any, number: int) -> bool:
        """Carry out an operation and compare; return whether a crash may fall into it.

        `number` counts the operations of the program, this one included.
        """

    def flushed(self, answer: str) -> None:
        """Note the answer of a flush."""

    def closed(self, answer: str) -> None:
        """Note the answer of a close."""

    def recovered(self, answer: str) -> None:
        """Note the answer of an open after a crash."""

    def judge(self, store: Any, fault: Fault, since: Any) -> int:
        """Judge the store after a crash; return the number of lost writes.

        The run continues with what the store has. `since` is the state before an operation that has not
        answered, or the present state. Raises GuaranteeBroken.
        """

    def go_on_with(self, state: Any) -> None:
        """Continue from a state."""

    def legal(self, fault: Fault, before: Any, after: Any) -> str:
        """Return in words what a crash between two states may leave."""


class Together(list[dict[str, Any]]):
    """Collect the requests of concurrent callers instead of sending them."""

    def call(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Keep a request. Its answer is checked later."""
        self.append({"do": do, **arguments})
        return {}


@dataclass(frozen=True, slots=True)
class Shape(ABC):
    """Describe a shape: its verbs, and how effects give a state.

    A module of a shape extends this.
    """

    promises: Any

    NAME: ClassVar[str] = ""
    PROMISES: ClassVar[type[Promises]] = Promises
    WRITE: ClassVar[str] = "put"
    """The verb that a run has to carry out, and the point of its answer."""
    WHAT: ClassVar[str] = "write"
    """What an effect is called in findings."""

    @abstractmethod
    def draw(self, choose: Choose, history: History) -> Call:
        """Draw a read or a write."""

    @abstractmethod
    def carry_out(self, call: Call, store: Answers, book: "Book") -> list[Effect] | None:
        """Carry out a call; return the effects of a write.

        A read is compared here and returns None. The effects have no serial numbers and belong to no operation yet.
        """

    def point(self, call: Call) -> str:
        """Return the point of the answer of a write."""
        return self.WRITE

    @abstractmethod
    def observe(self, store: Answers, history: History, book: "Book") -> dict[str, Any]:
        """Read a store after a crash; return what it has by cell."""

    def judged(self, book: "Book") -> None:  # noqa: B027 (most shapes have nothing to note)
        """Note what reading the store after a crash has changed in it."""

    def apart(self, parts: Sequence[Call]) -> list[Call]:
        """Return calls of concurrent callers that are judged: one call per cell."""
        return list({part.name: part for part in parts}.values())

    def placed(self, effects: list[Effect], answers: Sequence[Mapping[str, Any]], store: Answers) -> list[Effect]:
        """Return the effects of concurrent calls with what their answers say about them."""
        return effects

    @abstractmethod
    def value(self, cell: str, effects: Sequence[Effect]) -> Any:
        """Return what a cell has after effects of it."""

    def nothing(self) -> Any:
        """Return what a cell without effects has."""
        return self.value("", ())

    def selections(
        self, cell: str, effects: Sequence[Effect], fault: Fault, found: Any
    ) -> Iterator[tuple[Effect, ...]]:
        """Yield each legal selection of effects that gives what was found, the longest first."""
        yield from (cut for cut in cuts(effects, fault) if self.value(cell, cut) == found)

    def broken(
        self, cell: str, effects: Sequence[Effect], history: History, fault: Fault, found: Any
    ) -> GuaranteeBroken:
        """Return the finding of a cell that no legal selection explains."""
        floor = floor_of(effects, fault)
        for count in range(floor):
            if self.value(cell, effects[:count]) == found:
                return self.lost(cell, effects, effects[floor - 1], fault, found)
        gone = [effect for effect in history.gone if effect.cell == cell]
        if any(self.value(cell, (*effects, effect)) == found for effect in gone):
            sentence = f"a {self.WHAT} comes back that an earlier crash had taken"
            return GuaranteeBroken(3, sentence, self.said(cell, self.value(cell, effects)), self.said(cell, found))
        return GuaranteeBroken(
            1,
            f"the store has something else than any {self.WHAT} left",
            " or ".join(dict.fromkeys(self.said(cell, self.value(cell, cut)) for cut in cuts(effects, fault))),
            self.said(cell, found),
        )

    def lost(self, cell: str, effects: Sequence[Effect], effect: Effect, fault: Fault, found: Any) -> GuaranteeBroken:
        """Return the finding of a lost effect that was promised."""
        wanted = self.said(cell, self.value(cell, effects[: floor_of(effects, fault)]))
        return GuaranteeBroken(
            2,
            f"a {self.WHAT} that was promised to survive is lost",
            f"{wanted}, of operation {effect.operation}; promised by {effect.promised(fault)}",
            self.said(cell, found),
        )

    def said(self, cell: str, value: Any) -> str:
        """Return what a cell has in words."""
        return f"{cell}: {shown(value)}"

    def value_bytes_max(self) -> int:
        """Return the longest value that the store accepts."""
        return int(self.promises.value_bytes_max)


class Book:
    """Follow one run of a store: the history, the calls, and the judgement of each crash."""

    epilogues: ClassVar[tuple[tuple[Operation, ...], ...]] = ()
    first_write: ClassVar[Operation] = Call()

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.state = History()
        self._together = 0
        self.taken: dict[str, list[tuple[Any, Effect]]] = {}
        """Handles that the present session gave out, with the effect of each, by cell."""
        self.drained: dict[str, list[tuple[Any, bytes]]] = {}
        """Handles and bodies that the judge has taken, by cell."""

    @property
    def promises(self) -> Promises:
        """Return the promises of the store."""
        promises: Promises = self.shape.promises
        return promises

    # ---- operations --------------------------------------------------------------------------------------------------

    def draw(self, choose: Choose) -> Operation:
        """Draw a read or a write, or writes of concurrent callers if the store takes them."""
        call = self.shape.draw(choose, self.state)
        if self.promises.callers > 1 and choose((True, False, False)):
            calls = [call, *(self.shape.draw(choose, self.state) for _ in range(5))]
            writes = self.shape.apart([each for each in calls if each.verb == self.shape.WRITE])
            if len(writes) > 1:
                return Call("together", parts=tuple(writes[: self.promises.callers]))
        return call

    def carry_out(self, operation: Operation, store: Any, number: int) -> bool:
        """Carry out a call and compare; return whether it was a write."""
        if not isinstance(operation, Call):
            return False
        before = self.state.serials
        if operation.verb == "together":
            effects = self._carry_out_together(operation, store)
        else:
            effects = self.shape.carry_out(operation, store, self)
        if effects is None:
            return False
        self.state = self.state.added(replace(effect, operation=number) for effect in effects)
        answer = f"the answer of operation {number} ({operation.verb})"
        points = [self.shape.point(operation), *(["commit"] if operation.verb == "batch" else [])]
        for point in points:
            self.state = self.state.after(point, answer, self.promises, since=before)
        return True

    def _carry_out_together(self, call: Call, store: Any) -> list[Effect] | None:
        """Send the writes of concurrent callers in one request."""
        if self.promises.callers < 2:
            return None
        requests, effects, group = Together(), [], self.state.serials + 1
        parts = self.shape.apart([part for part in call.parts if part.verb == self.shape.WRITE])
        for part in parts[: self.promises.callers]:
            made = self.shape.carry_out(part, requests, self) or []  # type: ignore[arg-type]
            effects += [replace(effect, together=group) for effect in made]
        answer = store.call("together", calls=list(requests))
        answers = answer.get("answers")
        if not isinstance(answers, list) or len(answers) != len(requests):
            raise store.odd("together", answer, f"{len(requests)} answers")
        for each in answers:
            if not isinstance(each, dict) or "error" in each:
                raise GuaranteeBroken(8, "the store answers a concurrent call with an error", "an answer", str(each))
        return self.shape.placed(effects, answers, store)

    def next_value(self, size_bytes: int) -> bytes:
        """Return the next value of the run."""
        self.state = replace(self.state, values=self.state.values + 1)
        return value_of(self.state.values, min(size_bytes, self.shape.value_bytes_max()))

    def effects_of(self, cell: str) -> tuple[Effect, ...]:
        """Return the effects of a cell, in order."""
        return tuple(effect for effect in self.state.effects if effect.cell == cell)

    def now(self, cell: str) -> Any:
        """Return what a cell has now."""
        return self.shape.value(cell, self.effects_of(cell))

    def flushed(self, answer: str) -> None:
        """Note the answer of a flush."""
        self.state = self.state.after("flush", answer, self.promises)

    def closed(self, answer: str) -> None:
        """Note the answer of a close."""
        self.state = self.state.after("close", answer, self.promises)

    def recovered(self, answer: str) -> None:
        """Note the answer of an open after a crash."""
        if self.promises.recovered:
            self.state = self.state.cut_to(self.state.effects, answer)

    # ---- crashes -----------------------------------------------------------------------------------------------------

    def go_on_with(self, state: History) -> None:
        """Continue from a state."""
        self.state = state

    def judge(self, store: Any, fault: Fault, since: History) -> int:
        """Judge the store after a crash, and continue with what it has."""
        history = self.state if since is self.state else self.state.broken_off(since)
        self.taken, self.drained = {}, {}
        found = self.shape.observe(store, history, self)
        kept = self._explained(history, found, fault)
        self.state = history.cut_to(kept)
        self.shape.judged(self)
        return len(history.effects) - len(kept)

    def _explained(self, history: History, found: Mapping[str, Any], fault: Fault) -> list[Effect]:
        """Return the longest legal selection of effects that gives what was found.

        Raises GuaranteeBroken if there is none.
        """
        shape, by_cell = self.shape, self._by_cell(history)
        for cell in found:
            by_cell.setdefault(cell, [])
        chosen: dict[str, tuple[Effect, ...]] = {}
        left: dict[str, Iterator[tuple[Effect, ...]]] = {}
        for cell, effects in by_cell.items():
            there = found[cell] if cell in found else shape.nothing()
            left[cell] = shape.selections(cell, effects, fault, there)
            selection = next(left[cell], None)
            if selection is None:
                raise shape.broken(cell, effects, history, fault, there)
            chosen[cell] = selection
        if self.promises.ordered:
            return self._explained_in_order(history, found, fault)
        self._make_whole(history, chosen, left)
        return [effect for selection in chosen.values() for effect in selection]

    def _explained_in_order(self, history: History, found: Mapping[str, Any], fault: Fault) -> list[Effect]:
        """Return the longest prefix of all effects that gives what was found in every cell."""
        for cut in cuts(history.effects, fault):
            if _is_whole(cut, history.effects) and all(
                self.shape.value(cell, [e for e in cut if e.cell == cell]) == there for cell, there in found.items()
            ):
                return list(cut)
        last = [effect for effect in history.effects if effect.promised(fault)]
        promised = f", with operation {last[-1].operation}, promised by {last[-1].promised(fault)}" if last else ""
        raise GuaranteeBroken(
            1,
            f"a {self.shape.WHAT} survives although an earlier one is lost",
            f"the first {self.shape.WHAT}s, in one order{promised}",
            "; ".join(self.shape.said(cell, there) for cell, there in found.items()),
        )

    def _make_whole(
        self,
        history: History,
        chosen: dict[str, tuple[Effect, ...]],
        left: Mapping[str, Iterator[tuple[Effect, ...]]],
    ) -> None:
        """Shorten selections until each atomic batch is there or not. Raises GuaranteeBroken.

        Legal selections are closed under the longer choice in each cell, so this finds the longest one if there is any.
        """
        groups: dict[int, list[Effect]] = {}
        for effect in history.effects:
            if effect.group:
                groups.setdefault(effect.group, []).append(effect)
        while True:
            half = next((group for group in groups.values() if _is_half(group, chosen)), None)
            if half is None:
                return
            there = [effect for effect in half if effect in chosen[effect.cell]]
            missing = next(effect for effect in half if effect not in there)
            for effect in there:
                shorter = next((each for each in left[effect.cell] if effect not in each), None)
                if shorter is None:
                    raise GuaranteeBroken(
                        1,
                        "a part of an atomic batch survives without the rest",
                        f"all or nothing of the batch of operation {effect.operation}",
                        f"its {self.shape.WHAT} of {effect.cell}, and not that of {missing.cell}",
                    )
                chosen[effect.cell] = shorter

    def _by_cell(self, history: History) -> dict[str, list[Effect]]:
        cells: dict[str, list[Effect]] = {}
        for effect in history.effects:
            cells.setdefault(effect.cell, []).append(effect)
        return cells

    def legal(self, fault: Fault, before: History, after: History) -> str:
        """Return in words what a crash may leave."""
        history = after if before is after else after.broken_off(before)
        promised = sum(bool(effect.promised(fault)) for effect in history.effects)
        most = len(history.effects)
        writes = f"{most} {self.shape.WHAT}{'' if most == 1 else 's'}"
        if promised == most:
            return writes
        where = "over all" if self.promises.ordered else "in each cell"
        return f"the first of {writes}, {where}, with the {promised} that were promised"


def _is_half(group: Sequence[Effect], chosen: Mapping[str, Sequence[Effect]]) -> bool:
    there = [effect in chosen[effect.cell] for effect in group]
    return any(there) and not all(there)


def _is_whole(cut: Sequence[Effect], effects: Sequence[Effect]) -> bool:
    """Return whether a selection has each atomic batch as a whole or not at all."""
    groups = {effect.group for effect in cut if effect.group}
    return all(effect in cut for effect in effects if effect.group in groups)


# ---- values ----------------------------------------------------------------------------------------------------------


def value_of(number: int, size_bytes: int) -> bytes:
    """Return value `number` of a run: its number, then bytes without a pattern."""
    head = number.to_bytes(4, "big")
    return (head + shake_128(head).digest(max(0, size_bytes - len(head))))[:size_bytes]


def shown(value: bytes | None) -> str:
    """Return a value as shown in a report."""
    if value is None:
        return "nothing"
    return f"{len(value)} bytes" + (f" {value[:8].hex()}…" if value else "")


def same(found: Any, expected: Any, sentence: str, said: Callable[[Any], str] = shown) -> None:
    """Check the answer of a read. Raises GuaranteeBroken."""
    if found != expected:
        raise GuaranteeBroken(17, sentence, said(expected), said(found))


def encoded(value: bytes | None) -> str | None:
    """Return a value as JSON has it."""
    return None if value is None else base64.b64encode(value).decode()


def decoded(store: Answers, do: str, answer: Mapping[str, Any], value: object) -> bytes:
    """Return a value of an answer. Raises GuaranteeBroken."""
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            pass
    raise store.odd(do, answer, "a value in base64")


def bytes_in(store: Answers, do: str, answer: Mapping[str, Any], name: str) -> bytes | None:
    """Return a value of an answer by its name, or None for null. Raises GuaranteeBroken."""
    if name not in answer:
        raise store.odd(do, answer, f"{name!r}, or null for none")
    return None if answer[name] is None else decoded(store, do, answer, answer[name])
