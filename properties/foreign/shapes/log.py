"""Define the shape of logs: append, read, bounds, truncate at the front and at the back.

| request | answer |
|---|---|
| `append` body | the index of the entry: one more than that of the entry before it |
| `read` index | the body, or null |
| `bounds` | the indexes of the first and the last entry, or null for both |
| `truncate_front` index | nothing; entries before the index are removed |
| `truncate_back` index | nothing; entries after the index are removed |
| `flush`, `close` | nothing |

The log is one cell. A crash leaves the first effects of it. A truncation at the front may be lost alone, and its
entries come back, unless the store promises one order (`ordered`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tornpage.model.operations import Call, Close, Flush, Open, Operation
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.foreign.shapes.history import Effect, History, Orders, cuts, floor_of
from tornpage.properties.foreign.shapes.language import Fault, Promises
from tornpage.properties.foreign.shapes.shape import (
    Answers,
    AtOnce,
    Book,
    Choose,
    Selection,
    Shape,
    Together,
    bytes_in,
    encoded,
    same,
    shown,
)

__all__ = ["Log", "LogBook", "LogPromises"]

_LOG = "the log"
_SIZES = (8, 8, 40, 300, 900, 5000)

Entries = tuple[tuple[int, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPromises(Promises):
    """List the promises of a log.

    `truncate` names the ends at which the log can be truncated. `removed` and `removed_kill` are the points after which
    a truncation survives.
    """

    POINTS: ClassVar[tuple[str, ...]] = ("append", "flush", "close")
    REMOVALS: ClassVar[tuple[str, ...]] = ("remove", "flush", "close")
    WORDS: ClassVar[dict[str, tuple[str, ...]]] = {
        "consistent": ("power", "kill"),
        "truncate": ("none", "front", "back", "both"),
    }

    truncate: str = "none"
    removed: tuple[str, ...] = ()
    removed_kill: tuple[str, ...] = ()
    body_bytes_max: int = 4096

    def points_of_kind(self, kind: str, fault: Fault) -> tuple[str, ...]:
        """Return the points after which an effect of a kind survives a fault."""
        if kind == "append":
            return self.points(fault)
        return self.removed_kill if fault == "kill" else self.removed

    def said_of_shape(self) -> list[str]:
        """Return what is promised beyond durability, as parts of a line."""
        ends = {"none": [], "both": ["truncated at both ends"]}.get(
            self.truncate, [f"truncated at the {self.truncate}"]
        )
        return [*ends, *Promises.said_of_shape(self)]


@dataclass(frozen=True, slots=True)
class Log(Shape):
    """Judge logs."""

    promises: LogPromises

    NAME: ClassVar[str] = "log"
    PROMISES: ClassVar[type[Promises]] = LogPromises
    WRITE: ClassVar[str] = "append"
    WHAT: ClassVar[str] = "entry"
    AT_ONCE: ClassVar[tuple[str, ...]] = ("append",)

    def value_bytes_max(self) -> int:
        """Return the longest body that the store accepts."""
        return self.promises.body_bytes_max

    def point(self, call: Call) -> str:
        """Return the point of the answer of a write."""
        return "append" if call.verb == "append" else "remove"

    def draw(self, choose: Choose, history: History) -> Call:
        """Draw a call."""
        verbs = ["append"] * 7 + ["read"] * 2 + ["bounds"]
        verbs += ["truncate_front"] if self.promises.truncate in ("front", "both") else []
        verbs += ["truncate_back"] if self.promises.truncate in ("back", "both") else []
        verb = choose(tuple(verbs))
        if verb == "append":
            return Call("append", size_bytes=choose(_SIZES))
        return Call(verb, number=0 if verb == "bounds" else choose(range(6)))

    def carry_out(self, call: Call, store: Answers, book: Book) -> list[Effect] | None:
        """Carry out a call; return the effects of a write."""
        entries: Entries = book.now(_LOG)
        match call.verb:
            case "append":
                body = book.next_value(call.size_bytes)
                answer = store.call("append", body=encoded(body))
                made = [Effect(0, 0, _LOG, "append", (0, body))]
                return made if isinstance(store, Together) else self._numbered(made, [answer], store, entries)
            case "read" if entries:
                index, body = entries[call.number % len(entries)]
                same(_read(store, index), body, "a read returns another entry than was appended")
            case "bounds":
                expected = (entries[0][0], entries[-1][0]) if entries else None
                same(_bounds(store), expected, "the bounds are not those of the log", _said_bounds)
            case "truncate_front" if entries and self.promises.truncate in ("front", "both"):
                index = entries[call.number % len(entries)][0]
                store.call("truncate_front", index=index)
                return [Effect(0, 0, _LOG, "front", index)]
            case "truncate_back" if entries and self.promises.truncate in ("back", "both"):
                index = entries[-1 - call.number % len(entries)][0]
                store.call("truncate_back", index=index)
                return [Effect(0, 0, _LOG, "back", index)]
        return None

    def placed(self, made: Sequence[Sequence[Effect]], at_once: AtOnce, store: Answers) -> list[Effect]:
        """Return the effects of concurrent appends in the order of their indexes.

        A crash leaves the first of them, because the log has chosen an order.
        """
        entries: Entries = self.value(_LOG, at_once.before.effects)
        effects = [effect for each in made for effect in each]
        numbered = self._numbered(effects, [at_once.answers[effect.caller] for effect in effects], store, ())
        ordered = sorted((replace(effect, together=0) for effect in numbered), key=lambda effect: effect.value[0])
        indexes = [effect.value[0] for effect in ordered]
        first = entries[-1][0] + 1 if entries else indexes[0]
        if indexes != list(range(first, first + len(indexes))):
            sentence = "concurrent appends return indexes that do not follow each other"
            raise GuaranteeBroken(4, sentence, f"{first} to {first + len(indexes) - 1}", str(indexes))
        return ordered

    def _numbered(
        self, effects: list[Effect], answers: Sequence[Mapping[str, Any]], store: Answers, entries: Entries
    ) -> list[Effect]:
        numbered = []
        for effect, answer in zip(effects, answers, strict=True):
            index = answer.get("index")
            if not isinstance(index, int) or isinstance(index, bool):
                raise store.odd("append", answer, "a whole number 'index'")
            if entries and index != entries[-1][0] + 1:
                sentence = "an append returns another index than the next one"
                raise GuaranteeBroken(4, sentence, str(entries[-1][0] + 1), str(index))
            numbered.append(replace(effect, value=(index, effect.value[1])))
        return numbered

    # ---- after a crash -----------------------------------------------------------------------------------------------

    def observe(self, store: Answers, history: History, book: Book) -> dict[str, Any]:
        """Read all entries within the bounds, and one past each end."""
        bounds = _bounds(store)
        if bounds is None:
            return {_LOG: ()}
        first, last = bounds
        most = sum(effect.kind == "append" for effect in (*history.effects, *history.gone))
        if last - first >= most:
            sentence = "the log has more entries than were appended"
            raise GuaranteeBroken(1, sentence, f"{most} at most", _said_bounds(bounds))
        outsides = [index for index in (first - 1, last + 1) if index >= 0]
        store.ahead("read", ({"index": index} for index in (*range(first, last + 1), *outsides)))
        entries = []
        for index in range(first, last + 1):
            body = _read(store, index)
            if body is None:
                raise GuaranteeBroken(4, "the log has a gap", f"an entry at index {index}", _said_bounds(bounds))
            entries.append((index, body))
        for outside in outsides:
            if (body := _read(store, outside)) is not None:
                sentence = "a read past the bounds of the log finds an entry"
                raise GuaranteeBroken(4, sentence, f"nothing at index {outside}", shown(body))
        return {_LOG: tuple(entries)}

    def value(self, cell: str, effects: Sequence[Effect]) -> Entries:
        """Return the entries of the log after its effects."""
        entries: dict[int, bytes] = {}
        for effect in effects:
            if effect.kind == "append":
                entries[effect.value[0]] = effect.value[1]
            else:
                is_front = effect.kind == "front"
                gone = [index for index in entries if (index < effect.value if is_front else index > effect.value)]
                for index in gone:
                    del entries[index]
        return tuple(sorted(entries.items()))

    def selections(
        self, cell: str, effects: Sequence[Effect], fault: Fault, found: Any, orders: Orders
    ) -> Iterator[Selection]:
        """Yield each legal selection that gives the entries found.

        Truncations at the front after the last promised one may be there or not.
        """
        if self.promises.ordered:
            yield from Shape.selections(self, cell, effects, fault, found, orders)
            return
        fronts = [effect for effect in effects if effect.kind == "front"]
        promised = floor_of(fronts, fault)
        for cut in cuts([effect for effect in effects if effect.kind != "front"], fault, orders):
            for count in range(len(fronts), promised - 1, -1):
                kept = sorted((*cut.effects, *fronts[:count]), key=lambda effect: effect.serial)
                if self.value(cell, kept) == found:
                    yield Selection(tuple(kept), {})

    def broken(
        self, cell: str, effects: Sequence[Effect], history: History, fault: Fault, found: Any
    ) -> GuaranteeBroken:
        """Return the finding of a log that no legal selection explains."""
        promised = dict(self.value(cell, effects[: floor_of(effects, fault)]))
        there, final = dict(found), dict(self.value(cell, effects))
        by = {effect.value: effect for effect in effects if effect.kind == "append"}
        for index, body in promised.items():
            if index not in there and final.get(index) == body:
                effect = by[index, body]
                later = next(each for each in reversed(effects) if each.promised(fault))
                return GuaranteeBroken(
                    2,
                    "an entry that was promised to survive is lost",
                    f"index {index}: {shown(body)}, of operation {effect.operation}; "
                    f"promised by {effect.promised(fault) or later.promised(fault)}",
                    self.said(cell, found),
                )
        gone = {effect.value for effect in history.gone if effect.kind == "append"}
        for index, body in found:
            if (index, body) not in by:
                number, sentence = 1, "the log has an entry that was never appended there"
                if (index, body) in gone:
                    number, sentence = 3, "an entry comes back that an earlier crash had taken"
                wanted = shown(final.get(index))
                return GuaranteeBroken(number, sentence, f"index {index}: {wanted}", f"index {index}: {shown(body)}")
        for index, body in found:
            if index not in promised and index not in final and (index, body) in by:
                sentence = "an entry comes back whose truncation was promised to survive"
                return GuaranteeBroken(3, sentence, self.said(cell, tuple(final.items())), self.said(cell, found))
        return Shape.broken(self, cell, effects, history, fault, found)

    def said(self, cell: str, value: Any) -> str:
        """Return the entries of a log in words."""
        if not value:
            return "an empty log"
        return f"{_said_bounds((value[0][0], value[-1][0]))}, the last one {shown(value[-1][1])}"


class LogBook(Book):
    """Follow a run of a log."""

    epilogues: ClassVar[tuple[tuple[Operation, ...], ...]] = (
        (),
        (Call("append", size_bytes=8),),
        (Flush(),),
        (Close(), Open()),
        (Call("append", size_bytes=40), Close()),
        (Call("truncate_front"), Call("append", size_bytes=8)),
    )
    first_write: ClassVar[Operation] = Call("append", size_bytes=8)


def _read(store: Answers, index: int) -> bytes | None:
    return bytes_in(store, "read", store.call("read", index=index), "body")


def _bounds(store: Answers) -> tuple[int, int] | None:
    answer = store.call("bounds")
    first, last = answer.get("first"), answer.get("last")
    if first is None and last is None and "first" in answer:
        return None
    if not all(isinstance(index, int) and not isinstance(index, bool) for index in (first, last)):
        raise store.odd("bounds", answer, "two indexes 'first' and 'last', or null for both")
    return (first, last) if first <= last else None  # type: ignore[operator, return-value]


def _said_bounds(bounds: tuple[int, int] | None) -> str:
    if bounds is None:
        return "no entry"
    return f"the entry {bounds[0]}" if bounds[0] == bounds[1] else f"the entries {bounds[0]} to {bounds[1]}"
