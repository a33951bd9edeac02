"""Define the shape of queues: put, take, acknowledge, delete, list.

| request | answer |
|---|---|
| `put` queue, body | nothing |
| `take` queue | the next message: a handle and the body, or null for both |
| `acknowledge` queue, handle | nothing |
| `delete` queue | nothing; all messages of the queue are removed |
| `list` queue | the bodies of all messages that are not removed, oldest first |
| `flush`, `close` | nothing |

Each queue is a cell. A crash leaves the first puts of a queue. Removals are effects too, with promises of their own
(`removed`): each acknowledgement may be lost alone, and its message is delivered again. In a store that promises one
order (`ordered`), puts and removals of all queues are lost from the end only.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, ClassVar

from tornpage.model.operations import Call, Close, Flush, Open, Operation
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.foreign.shapes.history import Effect, History, Order, Orders, cuts, in_order, rows_of
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
    decoded,
    encoded,
    same,
    shown,
)

__all__ = ["Queue", "QueueBook", "QueuePromises"]

_QUEUES = ("q", "q", "r")
_SIZES = (8, 8, 40, 300, 900, 5000)
_PUTS, _TAKES = 6, 4
_Words = list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePromises(Promises):
    """List the promises of a store of queues.

    With `take` as `lends` a taken message stays until it is acknowledged, and a later session delivers it again. With
    `removes` a take is the removal. `removed` and `removed_kill` are the points after which a removal survives. Without
    `fifo` messages of a queue have no order. Without `list` the judge takes the messages.
    """

    POINTS: ClassVar[tuple[str, ...]] = ("put", "flush", "close")
    REMOVALS: ClassVar[tuple[str, ...]] = ("remove", "flush", "close")
    WORDS: ClassVar[dict[str, tuple[str, ...]]] = {"consistent": ("power", "kill"), "take": ("lends", "removes")}

    take: str = "lends"
    removed: tuple[str, ...] = ()
    removed_kill: tuple[str, ...] = ()
    fifo: bool = True
    list: bool = True
    delete: bool = False
    body_bytes_max: int = 4096

    def points_of_kind(self, kind: str, fault: Fault) -> tuple[str, ...]:
        """Return the points after which an effect of a kind survives a fault."""
        if kind == "put":
            return self.points(fault)
        return self.removed_kill if fault == "kill" else self.removed

    def said_of_shape(self) -> _Words:
        """Return what is promised beyond durability, as parts of a line."""
        removed = " and ".join(self.removed) or "nothing"
        return [f"removals after {removed}", f"a take {self.take}", *Promises.said_of_shape(self)]


@dataclass(frozen=True, slots=True)
class Queue(Shape):
    """Judge queues."""

    promises: QueuePromises

    NAME: ClassVar[str] = "queue"
    PROMISES: ClassVar[type[Promises]] = QueuePromises
    WRITE: ClassVar[str] = "put"
    WHAT: ClassVar[str] = "message"
    AT_ONCE: ClassVar[tuple[str, ...]] = ("put", "take", "acknowledge")

    def value_bytes_max(self) -> int:
        """Return the longest body that the store accepts."""
        return self.promises.body_bytes_max

    def point(self, call: Call) -> str:
        """Return the point of the answer of a write."""
        return "put" if call.verb == "put" else "remove"

    def draw(self, choose: Choose, history: History) -> Call:
        """Draw a call."""
        promises = self.promises
        verbs = ["put"] * _PUTS + ["take"] * _TAKES + ["list"] * promises.list + ["delete"] * promises.delete
        verbs += ["acknowledge"] * 3 if promises.take == "lends" else []
        verb = choose(tuple(verbs))
        if verb == "put":
            return Call("put", choose(_QUEUES), size_bytes=choose(_SIZES))
        return Call(verb, choose(_QUEUES), number=choose((0, 0, 1)) if verb == "acknowledge" else 0)

    def carry_out(self, call: Call, store: Answers, book: Book) -> list[Effect] | None:
        """Carry out a call; return the effects of a write."""
        queue, promises = call.name, self.promises
        match call.verb:
            case "put":
                body = book.next_value(call.size_bytes)
                store.call("put", queue=queue, body=encoded(body))
                return [Effect(0, 0, queue, "put", body)]
            case "take":
                return self._take(queue, store, book)
            case "acknowledge" if promises.take == "lends" and book.taken.get(queue):
                taken = book.taken[queue]
                handle, effect = taken.pop(call.number % len(taken))
                store.call("acknowledge", queue=queue, handle=handle)
                return [Effect(0, 0, queue, "remove", effect.serial)]
            case "delete" if promises.delete:
                store.call("delete", queue=queue)
                book.taken.pop(queue, None)
                return [Effect(0, 0, queue, "delete")]
            case "list" if promises.list:
                book.has(queue, self._listed(store, queue), "a list returns other messages than were put", _said)
        return None

    def _take(self, queue: str, store: Answers, book: Book) -> list[Effect] | None:
        if isinstance(store, Together):
            store.call("take", queue=queue)
            return None
        taken = {effect.serial for _, effect in book.taken.get(queue, [])}
        there = [effect for effect in self._alive(book.effects_of(queue)) if effect.serial not in taken]
        handle, body = _taken(store, queue)
        if body is None:
            same(None, there[0].value if there else None, "a take finds no message, but the queue has one")
            return []
        found = next((effect for effect in there if effect.value == body), None)
        orders = self._orders_with_next(there, found, book.state.orders)
        if found is None or orders is None:
            if self.promises.fifo:
                same(body, there[0].value if there else None, "a take returns another message than the next one")
            raise GuaranteeBroken(
                17, "a take returns a message that the queue does not have", _said(there), shown(body)
            )
        book.state = book.state.narrowed(orders)
        if self.promises.take == "removes":
            return [Effect(0, 0, queue, "remove", found.serial)]
        book.taken.setdefault(queue, []).append((handle, found))
        return []

    def _orders_with_next(self, there: Sequence[Effect], found: Effect | None, orders: Orders) -> Orders | None:
        """Return the orders of concurrent puts in which a message is the next one, or None.

        `there` are the messages that were not taken, in a possible order.
        """
        if found is None or not self.promises.fifo:
            return None if found is None else orders
        earlier = there[: there.index(found)]
        if any(effect.together != found.together or not effect.together for effect in earlier):
            return None
        puts = [effect for effect in there if effect.together == found.together]
        if not found.together or len(puts) == 1:
            return orders
        row = tuple(
            order
            for order in rows_of(puts, orders)[0].orders
            if all(order.index(found.caller) <= order.index(effect.caller) for effect in puts)
        )
        return {**orders, found.together: row} if row else None

    # ---- concurrent callers ------------------------------------------------------------------------------------------

    def placed(self, made: Sequence[Sequence[Effect]], at_once: AtOnce, store: Answers) -> list[Effect]:
        """Return the effects of concurrent calls, with the removals by takes.

        Raises GuaranteeBroken.
        """
        effects = Shape.placed(self, made, at_once, store)
        serials = {
            effect.value: at_once.before.serials + n for n, effect in enumerate(effects, 1) if effect.kind == "put"
        }
        for effect in at_once.before.effects:
            if effect.kind == "put":
                serials.setdefault(effect.value, effect.serial)
        taken: set[bytes] = set()
        for caller, body in self._bodies(at_once, store).items():
            if body is None:
                continue
            queue = at_once.calls[caller].name
            if body not in serials:
                there = self._alive([effect for effect in at_once.before.effects if effect.cell == queue])
                raise GuaranteeBroken(
                    17, "a take returns a message that the queue does not have", _said(there), shown(body)
                )
            if body in taken:
                raise GuaranteeBroken(
                    17, "two concurrent takes return the same message", "each message once", shown(body)
                )
            taken.add(body)
            if self.promises.take == "removes":
                row = at_once.before.serials + 1
                effects.append(Effect(0, 0, queue, "remove", serials[body], together=row, caller=caller))
        return effects

    def _bodies(self, at_once: AtOnce, store: Answers) -> dict[int, bytes | None]:
        """Return the body that each concurrent take returned, by its caller."""
        return {
            caller: bytes_in(store, "take", answer, "body") for caller, answer in at_once.answers_to("take").items()
        }

    def at_once(self, at_once: AtOnce, effects: Sequence[Effect], store: Answers) -> tuple[Orders, frozenset[int]]:
        """Return the orders of all rows that explain what concurrent takes have returned.

        All orders of the calls are tried. Raises GuaranteeBroken.
        """
        before = at_once.before
        numbered = before.added(effects).effects[len(before.effects) :]
        puts = {effect.caller: effect for effect in numbered if effect.kind == "put"}
        bodies = self._bodies(at_once, store)
        row = before.serials + 1
        every = tuple(permutations(range(len(at_once.calls))))
        found: dict[int, list[Order]] = {}
        for order in every:
            start = {**before.orders, row: (order,)}
            orders = self._explained_takes(order, at_once, puts, bodies, start)
            for number, each in (orders or {}).items():
                found[number] = [*found.get(number, ()), *(one for one in each if one not in found.get(number, ()))]
        if not found:
            raise GuaranteeBroken(
                17,
                "no order of the concurrent calls explains what the takes return",
                "each take returns the next message at some moment",
                "; ".join(map(shown, bodies.values())),
            )
        return {number: tuple(each) for number, each in found.items() if number != row or numbered}, frozenset()

    def _explained_takes(
        self,
        order: Order,
        at_once: AtOnce,
        puts: Mapping[int, Effect],
        bodies: Mapping[int, bytes | None],
        orders: Orders,
    ) -> Orders | None:
        """Return the orders of all rows that explain the takes with one order of the calls.

        A take without an answer may have taken its message, or nothing yet. Returns None if nothing explains them.
        """
        there = {
            queue: [
                effect
                for effect in self._alive(in_order([e for e in at_once.before.effects if e.cell == queue], orders))
                if effect.serial not in at_once.taken
            ]
            for queue in dict.fromkeys(call.name for call in at_once.calls)
        }
        for caller in order:
            queue = there[at_once.calls[caller].name]
            if caller in puts:
                queue.append(puts[caller])
            elif caller in bodies:
                found = next((effect for effect in queue if effect.value == bodies[caller]), None)
                narrowed = self._orders_with_next(queue, found, orders)
                if found is not None and narrowed is not None:
                    queue.remove(found)
                    orders = narrowed
                elif caller in at_once.answered and (queue or bodies[caller] is not None):
                    return None
        return orders

    def answered_at_once(self, book: Book, at_once: AtOnce) -> None:
        """Note the handles that concurrent takes gave out."""
        if self.promises.take == "lends":
            by_body = {effect.value: effect for effect in book.state.effects if effect.kind == "put"}
            for answer in at_once.answers_to("take").values():
                if answer["body"] is not None:
                    effect = by_body[base64.b64decode(answer["body"])]
                    book.taken.setdefault(effect.cell, []).append((answer.get("handle"), effect))

    def _listed(self, store: Answers, queue: str) -> tuple[bytes, ...]:
        answer = store.call("list", queue=queue)
        bodies = answer.get("bodies")
        if not isinstance(bodies, list):
            raise store.odd("list", answer, "a list of bodies")
        return self._in_order([decoded(store, "list", answer, body) for body in bodies])

    def _in_order(self, bodies: Sequence[bytes]) -> tuple[bytes, ...]:
        return tuple(bodies if self.promises.fifo else sorted(bodies))

    # ---- after a crash -----------------------------------------------------------------------------------------------

    def observe(self, store: Answers, history: History, book: Book) -> dict[str, Any]:
        """List each queue that ever had a message, or take its messages."""
        queues = dict.fromkeys(effect.cell for effect in (*history.effects, *history.gone))
        if self.promises.list:
            store.ahead("list", ({"queue": queue} for queue in queues))
            return {queue: self._listed(store, queue) for queue in queues}
        for queue in queues:
            most = sum(effect.cell == queue for effect in (*history.effects, *history.gone))
            drained = book.drained.setdefault(queue, [])
            while len(drained) <= most:
                handle, body = _taken(store, queue)
                if body is None:
                    break
                drained.append((handle, body))
        return {queue: self._in_order([body for _, body in book.drained[queue]]) for queue in queues}

    def judged(self, book: Book) -> None:
        """Note that the judge has taken the messages."""
        for queue, drained in book.drained.items():
            by_body = {effect.value: effect for effect in self._alive(book.effects_of(queue))}
            if self.promises.take == "lends":
                book.taken[queue] = [(handle, by_body[body]) for handle, body in drained]
                continue
            before = book.state.serials
            book.state = book.state.added(
                Effect(0, 0, queue, "remove", by_body[body].serial) for _, body in drained
            ).after("remove", "the takes of the judge", self.promises, since=before)

    def value(self, cell: str, effects: Sequence[Effect]) -> tuple[bytes, ...]:
        """Return the bodies of a queue after its effects."""
        return self._in_order([effect.value for effect in self._alive(effects)])

    def _alive(self, effects: Sequence[Effect]) -> list[Effect]:
        removed = {effect.value for effect in effects if effect.kind == "remove"}
        alive: list[Effect] = []
        for effect in effects:
            if effect.kind == "delete":
                alive.clear()
            elif effect.kind == "put" and effect.serial not in removed:
                alive.append(effect)
        return alive

    def fits(self, cell: str, row: Sequence[Effect], later: Sequence[Effect], found: Any) -> bool:
        """Return whether the puts of a row have the order of the messages found."""
        there = [effect.value for effect in row if effect.kind == "put" and effect.value in found]
        return not self.promises.fifo or there == sorted(there, key=found.index)

    def selections(
        self, cell: str, effects: Sequence[Effect], fault: Fault, found: Any, orders: Orders
    ) -> Iterator[Selection]:
        """Yield each legal selection that gives the messages found.

        It has the first puts, and any removals that include the promised ones. What was found decides which
        removals are there, so each selection of puts has one at most.
        """
        puts = [effect for effect in effects if effect.kind == "put"]
        for cut in cuts(puts, fault, orders):
            there = {effect.serial for effect in cut.effects}
            left = {effect.serial for effect in cut.effects if effect.value in found}
            kept = [
                effect
                for effect in effects
                if effect.serial in there or (effect.kind != "put" and not _removed(effect, effects) & left)
            ]
            promised = all(effect in kept for effect in effects if effect.kind != "put" and effect.promised(fault))
            fitting = cut.fitting(lambda row, later: self.fits(cell, row, later, found)) if promised else None
            if fitting is not None:
                narrowed = {**orders, **fitting.orders}
                if self.value(cell, in_order(kept, narrowed)) == found:
                    yield Selection(tuple(kept), fitting.orders)

    def broken(
        self, cell: str, effects: Sequence[Effect], history: History, fault: Fault, found: Any
    ) -> GuaranteeBroken:
        """Return the finding of a queue that no legal selection explains."""
        puts = {effect.value: effect for effect in effects if effect.kind == "put"}
        gone = {effect.value for effect in history.gone if effect.cell == cell and effect.kind == "put"}
        for body in found:
            if body not in puts and body in gone:
                sentence = "a message comes back that an earlier crash had taken"
                return GuaranteeBroken(3, sentence, "nothing", self.said(cell, (body,)))
            if body not in puts:
                sentence = "a queue has a message that was never put there"
                return GuaranteeBroken(1, sentence, self.said(cell, tuple(puts)), self.said(cell, found))
            if found.count(body) > 1:
                return GuaranteeBroken(1, "a queue has a message twice", "each message once", self.said(cell, found))
        removals = [effect for effect in effects if effect.kind != "put"]
        for effect in removals:
            back = [body for body in found if puts[body].serial in _removed(effect, effects)]
            if effect.promised(fault) and back:
                removed_by = f"removed by operation {effect.operation}, promised by {effect.promised(fault)}"
                return GuaranteeBroken(
                    3,
                    "a message is delivered again whose removal was promised to survive",
                    f"{self.said(cell, ())}; {removed_by}",
                    self.said(cell, (back[0],)),
                )
        removed = {serial for effect in removals for serial in _removed(effect, effects)}
        lost = [effect for body, effect in puts.items() if body not in found and effect.serial not in removed]
        floor = max((effect.serial for effect in puts.values() if effect.promised(fault)), default=0)
        if missing := [effect for effect in lost if effect.serial <= floor]:
            by = next(effect for effect in puts.values() if effect.serial == floor)
            return GuaranteeBroken(
                2,
                "a message that was promised to survive is lost",
                f"{self.said(cell, (missing[0].value,))}, of operation {missing[0].operation}; "
                f"promised by {missing[0].promised(fault) or by.promised(fault)}",
                self.said(cell, found),
            )
        later = [body for body in found if lost and puts[body].serial > lost[0].serial]
        if later:
            sentence = "a message survives although an earlier one of its queue is lost"
            return GuaranteeBroken(1, sentence, self.said(cell, (lost[0].value,)), self.said(cell, (later[0],)))
        sentence = "a queue has its messages in another order than they were put"
        return GuaranteeBroken(4, sentence, self.said(cell, self.value(cell, effects)), self.said(cell, found))

    def said(self, cell: str, value: Any) -> str:
        """Return the messages of a queue in words."""
        return f"queue {cell}: {_said(value)}"


class QueueBook(Book):
    """Follow a run of a store of queues."""

    epilogues: ClassVar[tuple[tuple[Operation, ...], ...]] = (
        (),
        (Call("put", "q", size_bytes=8),),
        (Call("take", "q"), Call("acknowledge", "q")),
        (Flush(),),
        (Close(), Open()),
        (Call("take", "q"), Call("acknowledge", "q"), Close()),
    )
    first_write: ClassVar[Operation] = Call("put", "q", size_bytes=8)


def _removed(removal: Effect, effects: Sequence[Effect]) -> set[int]:
    """Return the serial numbers of the puts that a removal removes."""
    if removal.kind == "remove":
        return {removal.value}
    return {effect.serial for effect in effects if effect.kind == "put" and effect.serial < removal.serial}


def _taken(store: Answers, queue: str) -> tuple[Any, bytes | None]:
    answer = store.call("take", queue=queue)
    return answer.get("handle"), bytes_in(store, "take", answer, "body")


def _said(value: Any) -> str:
    bodies = [each.value if isinstance(each, Effect) else each for each in value or ()]
    return ", ".join(map(shown, bodies)) or "no message"
