"""Define what a module of a shape provides, and the book that follows one run of a store.

The book carries out calls on the store and on the history side by side. After a crash it judges the store.
"""

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import shake_128
from itertools import permutations
from typing import Any, ClassVar, Protocol, TypeVar

from tornpage.model.operations import Call, Operation
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.foreign.shapes.history import (
    AT_ONCE_MAX,
    Cut,
    Effect,
    History,
    Orders,
    cuts,
    floor_of,
    in_order,
    rows_of,
)
from tornpage.properties.foreign.shapes.language import Fault, Promises

__all__ = [
    "Answers",
    "AtOnce",
    "Book",
    "Choose",
    "Run",
    "Selection",
    "Shape",
    "Together",
    "bytes_in",
    "decoded",
    "encoded",
    "read_at_once",
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

    def together(self, calls: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Send concurrent calls; yield each answer as it comes.

        It is the number of events of the disk before which the answer came, the number of the call, and the answer.
        Raises GuaranteeBroken for an error.
        """

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
    def midway(self) -> Sequence[tuple[int, Any]]:
        """Return the states after some answers of the last operation, if it has several callers.

        Each state has the number of events of the disk before which its last answer came.
        """

    @property
    def state(self) -> Any:
        """Return the present state."""

    @property
    def promises(self) -> Promises:
        """Return the promises of the store."""

    def draw(self, choose: Choose) -> Operation:
        """Draw a read or a write."""

    def carry_out(self, operation: Operation, store: Any, number: int) -> bool:
        """Carry out an operation and compare; return whether the state has changed.

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
class AtOnce:
    """Hold the calls of concurrent callers with their answers, by the number of the caller.

    All of them overlap. `answered` are the callers that have their answers at some moment. `before` is the history at
    the begin of the calls, and `taken` has the serial numbers of the messages that were taken then.
    """

    calls: tuple[Call, ...]
    answers: Mapping[int, Mapping[str, Any]]
    answered: tuple[int, ...]
    before: History
    taken: frozenset[int] = frozenset()

    def answers_to(self, verb: str) -> dict[int, Mapping[str, Any]]:
        """Return the answers to the calls of a verb, also those that come later."""
        return {caller: answer for caller, answer in self.answers.items() if self.calls[caller].verb == verb}


@dataclass(frozen=True, slots=True)
class Selection:
    """Hold effects that a crash may have left, and the orders of rows that explain them."""

    effects: tuple[Effect, ...]
    orders: Orders


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
    AT_ONCE: ClassVar[tuple[str, ...]] = ()
    """The verbs that concurrent callers use."""

    @abstractmethod
    def draw(self, choose: Choose, history: History) -> Call:
        """Draw a read or a write."""

    @abstractmethod
    def carry_out(self, call: Call, store: Answers, book: "Book") -> list[Effect] | None:
        """Carry out a call; return the effects of a write.

        A read is compared here and returns None. The effects have no serial numbers and belong to no operation yet.
        With `Together` as the store, a read makes its request only, and `at_once` compares.
        """

    def point(self, call: Call) -> str:
        """Return the point of the answer of a write."""
        return self.WRITE

    @abstractmethod
    def observe(self, store: Answers, history: History, book: "Book") -> dict[str, Any]:
        """Read a store after a crash; return what it has by cell."""

    def judged(self, book: "Book") -> None:  # noqa: B027 (most shapes have nothing to note)
        """Note what reading the store after a crash has changed in it."""

    def placed(self, made: Sequence[Sequence[Effect]], at_once: AtOnce, store: Answers) -> list[Effect]:
        """Return the effects of concurrent calls with what their answers say about them."""
        return [effect for effects in made for effect in effects]

    def at_once(self, at_once: AtOnce, effects: Sequence[Effect], store: Answers) -> tuple[Orders, frozenset[int]]:
        """Compare the answers of concurrent calls; return the orders that explain them.

        Also returns the callers without an answer whose writes were read and are promised for that. `effects` are
        those of the calls. Raises GuaranteeBroken if no order explains the answers.
        """
        callers = dict.fromkeys(effect.caller for effect in effects if effect.together)
        row = next((effect.together for effect in effects if effect.together), 0)
        return ({row: tuple(permutations(callers))} if row else {}), frozenset()

    def answered_at_once(self, book: "Book", at_once: AtOnce) -> None:  # noqa: B027 (most shapes have nothing to note)
        """Note what the answers of concurrent calls give to later calls."""

    def fits(self, cell: str, row: Sequence[Effect], later: Sequence[Effect], found: Any) -> bool:
        """Return whether effects of one row, in this order, can give what was found.

        `later` are the effects of later rows. All effects are of one cell.
        """
        return True

    @abstractmethod
    def value(self, cell: str, effects: Sequence[Effect]) -> Any:
        """Return what a cell has after effects of it."""

    def nothing(self) -> Any:
        """Return what a cell without effects has."""
        return self.value("", ())

    def selections(
        self, cell: str, effects: Sequence[Effect], fault: Fault, found: Any, orders: Orders
    ) -> Iterator[Selection]:
        """Yield each legal selection of effects that gives what was found, the longest first."""
        for cut in cuts(effects, fault, orders):
            if (selection := self.explained(cell, cut, found)) is not None:
                yield selection

    def explained(self, cell: str, cut: Cut, found: Any) -> Selection | None:
        """Return the effects of a cut in the orders that give what was found, or None."""
        fitting = cut.fitting(lambda row, later: self.fits(cell, row, later, found))
        if fitting is None or self.value(cell, fitting.effects) != found:
            return None
        return Selection(fitting.effects, fitting.orders)

    def broken(
        self, cell: str, effects: Sequence[Effect], history: History, fault: Fault, found: Any
    ) -> GuaranteeBroken:
        """Return the finding of a cell that no legal selection explains.

        The effects are in a possible order.
        """
        floor = floor_of(effects, fault)
        for count in range(floor):
            if self.value(cell, effects[:count]) == found:
                return self.lost(cell, effects, effects[floor - 1], fault, found)
        gone = [effect for effect in history.gone if effect.cell == cell]
        if any(self.value(cell, (*effects, effect)) == found for effect in gone):
            sentence = f"a {self.WHAT} comes back that an earlier crash had taken"
            return GuaranteeBroken(3, sentence, self.said(cell, self.value(cell, effects)), self.said(cell, found))
        values = (self.value(cell, cut.effects) for cut in cuts(effects, fault, history.orders))
        return GuaranteeBroken(
            1,
            f"the store has something else than any {self.WHAT} left",
            " or ".join(dict.fromkeys(self.said(cell, value) for value in values)),
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
        self.midway: list[tuple[int, History]] = []
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
        """Draw a read or a write, or overlapping calls of concurrent callers.

        The calls overlap only if the store takes that. Mostly they are calls of one key, queue or file.
        """
        call = self.shape.draw(choose, self.state)
        if self.promises.callers > 1 and choose((True, False, False)):
            calls = self._at_once([call, *(self.shape.draw(choose, self.state) for _ in range(5))])
            if choose((True, True, False)):
                calls = [replace(each, name=calls[0].name) if each.name else each for each in calls]
            if len(calls) > 1:
                return Call("together", parts=tuple(calls))
        return call

    def _at_once(self, calls: Sequence[Call]) -> list[Call]:
        """Return the calls that concurrent callers may make, as many as the store takes."""
        most = min(self.promises.callers, AT_ONCE_MAX)
        return [each for each in calls if each.verb in self.shape.AT_ONCE][:most]

    def carry_out(self, operation: Operation, store: Any, number: int) -> bool:
        """Carry out a call and compare; return whether the state has changed.

        A read changes it if it shows the order of concurrent calls.
        """
        self.midway = []
        if not isinstance(operation, Call):
            return False
        before = self.state
        if operation.verb == "together":
            return self._carry_out_together(operation, store, number)
        effects = self.shape.carry_out(operation, store, self)
        if effects is None:
            return self.state is not before
        self.state = self.state.added(replace(effect, operation=number) for effect in effects)
        answer = f"the answer of operation {number} ({operation.verb})"
        for point in self._points(operation):
            self.state = self.state.after(point, answer, self.promises, since=before.serials)
        return True

    def _points(self, call: Call) -> list[str]:
        return [self.shape.point(call), *(["commit"] if call.verb == "batch" else [])]

    def _carry_out_together(self, operation: Call, store: Any, number: int) -> bool:
        """Send the calls of concurrent callers; take their answers as they come."""
        calls = self._at_once(operation.parts)
        taken = frozenset(effect.serial for each in self.taken.values() for _, effect in each)
        requests, before = Together(), self.state
        made: list[list[Effect]] = []
        asked: list[Call] = []
        for call in calls if self.promises.callers > 1 else []:
            effects = self.shape.carry_out(call, requests, self)  # type: ignore[arg-type]
            if len(requests) > len(asked):
                row, caller = before.serials + 1, len(asked)
                group = row + sum(len(each) for each in made)  # the number of an atomic batch
                made.append(
                    [
                        replace(each, together=row, caller=caller, group=group if each.group else 0)
                        for each in effects or []
                    ]
                )
                asked.append(call)
        if not asked:
            return False
        before = replace(before, values=self.state.values)
        arrived = list(store.together(list(requests)))
        callers = tuple(caller for _, caller, _ in arrived)
        at_once = AtOnce(tuple(asked), {caller: answer for _, caller, answer in arrived}, callers, before, taken)
        placed = [replace(effect, operation=number) for effect in self.shape.placed(made, at_once, store)]
        for count, (moment, _, _) in enumerate(arrived, 1):
            self.state = self._after_callers(replace(at_once, answered=callers[:count]), placed, store)
            self.midway.append((moment, self.state))
        self.shape.answered_at_once(self, at_once)
        return True

    def _after_callers(self, at_once: AtOnce, effects: Sequence[Effect], store: Any) -> History:
        """Return the state after the answers of some callers. Raises GuaranteeBroken."""
        before, callers = at_once.before, at_once.answered
        orders, read = self.shape.at_once(at_once, effects, store)
        state = before.added(
            replace(effect, answered=effect.caller in callers or effect.caller in read) for effect in effects
        ).narrowed(orders)
        for caller in (*callers, *(read - set(callers))):
            call = at_once.calls[caller]
            operation = next((effect.operation for effect in effects), 0)
            answer = f"the answer of operation {operation} (together) to {call.verb}"
            for point in self._points(call):
                state = state.after(point, answer, self.promises, since=before.serials, callers={caller})
        return state

    def next_value(self, size_bytes: int) -> bytes:
        """Return the next value of the run."""
        self.state = replace(self.state, values=self.state.values + 1)
        return value_of(self.state.values, min(size_bytes, self.shape.value_bytes_max()))

    def effects_of(self, cell: str) -> tuple[Effect, ...]:
        """Return the effects of a cell, in a possible order."""
        return in_order([effect for effect in self.state.effects if effect.cell == cell], self.state.orders)

    def now(self, cell: str) -> Any:
        """Return what a cell has now, in a possible order of concurrent calls."""
        return self.shape.value(cell, self.effects_of(cell))

    def has(self, cell: str, found: Any, sentence: str, said: Callable[[Any], str] | None = None) -> None:
        """Check what a read has found in a cell. Raises GuaranteeBroken.

        The read may show an order of concurrent calls.
        """
        narrowed = found_in(self.shape, self.state, cell, found)
        if narrowed is None:
            raise GuaranteeBroken(17, sentence, (said or shown)(self.now(cell)), (said or shown)(found))
        self.state = narrowed

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
        self.state = history.cut_to(kept.effects, orders=kept.orders)
        self.shape.judged(self)
        return len(history.effects) - len(kept.effects)

    def _explained(self, history: History, found: Mapping[str, Any], fault: Fault) -> Selection:
        """Return the longest legal selection of effects that gives what was found.

        Raises GuaranteeBroken if there is none.
        """
        shape, by_cell = self.shape, self._by_cell(history)
        for cell in found:
            by_cell.setdefault(cell, [])
        there = {cell: found[cell] if cell in found else shape.nothing() for cell in by_cell}
        for cell, effects in by_cell.items():
            if next(shape.selections(cell, effects, fault, there[cell], history.orders), None) is None:
                raise shape.broken(cell, in_order(effects, history.orders), history, fault, there[cell])
        if self.promises.ordered:
            return self._explained_in_order(history, there, fault)
        search = _Search(shape, there, fault, _groups(history.effects))
        selection = search.longest(tuple(by_cell.items()), Selection((), history.orders))
        if selection is None:
            raise search.broken(by_cell, history)
        return selection

    def _explained_in_order(self, history: History, found: Mapping[str, Any], fault: Fault) -> Selection:
        """Return the longest prefix of all effects that gives what was found in every cell."""
        shape = self.shape

        def fits(row: Sequence[Effect], later: Sequence[Effect]) -> bool:
            return all(
                shape.fits(cell, [e for e in row if e.cell == cell], [e for e in later if e.cell == cell], found[cell])
                for cell in dict.fromkeys(effect.cell for effect in row)
            )

        groups = _groups(history.effects)
        for cut in cuts(history.effects, fault, history.orders):
            fitting = cut.fitting(fits) if _is_whole(cut.effects, groups) else None
            if fitting is not None and all(
                shape.value(cell, [effect for effect in fitting.effects if effect.cell == cell]) == there
                for cell, there in found.items()
            ):
                return Selection(fitting.effects, fitting.orders)
        last = [effect for effect in history.effects if effect.promised(fault)]
        promised = f", with operation {last[-1].operation}, promised by {last[-1].promised(fault)}" if last else ""
        raise GuaranteeBroken(
            1,
            f"a {self.shape.WHAT} survives although an earlier one is lost",
            f"the first {self.shape.WHAT}s, in one order{promised}",
            "; ".join(self.shape.said(cell, there) for cell, there in found.items()),
        )

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


class _Search:
    """Search for one selection of effects that explains what was found in all cells."""

    def __init__(
        self, shape: Shape, found: Mapping[str, Any], fault: Fault, groups: Sequence[Sequence[Effect]]
    ) -> None:
        self._shape, self._found, self._fault, self._groups = shape, found, fault, groups

    def longest(self, cells: Sequence[tuple[str, Sequence[Effect]]], chosen: Selection) -> Selection | None:
        """Return the longest selection in which each atomic batch is there or not, or None.

        All cells have the same order of a row. Legal selections are closed under the longer choice in each cell, so the
        longest choice for the first cells is a part of the longest selection.
        """
        if not cells:
            return chosen
        (cell, effects), rest = cells[0], cells[1:]
        waiting = {name for name, _ in rest}
        for selection in self._shape.selections(cell, effects, self._fault, self._found[cell], chosen.orders):
            both = Selection((*chosen.effects, *selection.effects), {**chosen.orders, **selection.orders})
            if not any(_is_half(group, both.effects, waiting) for group in self._groups):
                explained = self.longest(rest, both)
                if explained is not None:
                    return explained
        return None

    def broken(self, cells: Mapping[str, Sequence[Effect]], history: History) -> GuaranteeBroken:
        """Return the finding of cells that have a selection each, and none in common."""
        kept = [
            effect
            for cell, effects in cells.items()
            for effect in next(
                self._shape.selections(cell, effects, self._fault, self._found[cell], history.orders)
            ).effects
        ]
        for group in self._groups:
            if _is_half(group, kept, ()):
                there, missing = (next(each for each in group if (each in kept) == wanted) for wanted in (True, False))
                return GuaranteeBroken(
                    1,
                    "a part of an atomic batch survives without the rest",
                    f"all or nothing of the batch of operation {group[0].operation}",
                    f"its {self._shape.WHAT} of {there.cell}, and not that of {missing.cell}",
                )
        return GuaranteeBroken(
            17,
            "no order of the concurrent calls explains what the store has",
            "one order for all that was read",
            "; ".join(self._shape.said(cell, there) for cell, there in self._found.items()),
        )


def found_in(shape: Shape, history: History, cell: str, found: Any) -> History | None:
    """Return a history with the orders of concurrent calls that explain a read, or None."""
    effects = [effect for effect in history.effects if effect.cell == cell]
    selection = shape.explained(cell, Cut(tuple(rows_of(effects, history.orders))), found)
    return None if selection is None else history.narrowed(selection.orders)


def read_at_once(
    shape: Shape,
    at_once: AtOnce,
    effects: Sequence[Effect],
    reads: Mapping[int, Any],
    orders: Orders,
    sentence: str,
) -> tuple[Orders, frozenset[int]]:
    """Compare the reads of concurrent callers in cells that have one value.

    Returns what `Shape.at_once` returns. `reads` are the values by caller. Each read overlaps each write. It returns
    the value of one of them, or the value before all of them. So it leaves the order of the writes open. Raises
    GuaranteeBroken.
    """
    before, read = at_once.before, set[int]()
    for caller in at_once.answered:
        if caller not in reads:
            continue
        cell, found = at_once.calls[caller].name, reads[caller]
        writers = [effect.caller for effect in effects if effect.cell == cell and effect.value == found]
        earlier = found_in(shape, before, cell, found)
        if not writers and earlier is None:
            values = [shape.value(cell, [e for e in before.effects if e.cell == cell])]
            values += [effect.value for effect in effects if effect.cell == cell]
            raise GuaranteeBroken(17, sentence, " or ".join(map(shown, values)), shown(found))
        if not writers and earlier is not None:
            before = earlier
        elif earlier is None and len(writers) == 1 and shape.promises.reads == "durable":
            read.add(writers[0])
    return {**before.orders, **orders}, frozenset(read)


def _groups(effects: Iterable[Effect]) -> list[list[Effect]]:
    """Return the effects of each atomic batch."""
    groups: dict[int, list[Effect]] = {}
    for effect in effects:
        if effect.group:
            groups.setdefault(effect.group, []).append(effect)
    return list(groups.values())


def _is_half(group: Sequence[Effect], kept: Sequence[Effect], waiting: Container[str]) -> bool:
    """Return whether a batch is there in part, apart from cells that wait for their choice."""
    there = [effect in kept for effect in group if effect.cell not in waiting]
    return any(there) and not all(there)


def _is_whole(cut: Sequence[Effect], groups: Sequence[Sequence[Effect]]) -> bool:
    """Return whether a selection has each atomic batch as a whole or not at all."""
    return not any(_is_half(group, cut, ()) for group in groups)


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
