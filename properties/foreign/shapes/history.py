"""Hold the effects of a run, and enumerate what a crash may leave of them.

All values are frozen. A history is a state of the model of every shape.

The effects of concurrent calls are a row. A history has the orders of each row that explain everything that was read
since. Each later read, and each judgement after a crash, leaves out the orders that do not explain it. Rows are
narrowed one by one. This is exact, because what a read shows depends on the order inside each row alone.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby, permutations
from typing import Any

from tornpage.properties.foreign.shapes.language import Fault, Promises

__all__ = [
    "AT_ONCE_MAX",
    "Cut",
    "Effect",
    "History",
    "Order",
    "Orders",
    "Row",
    "cuts",
    "floor_of",
    "in_order",
    "rows_of",
]

_FAULTS: tuple[Fault, Fault] = ("power", "kill")

AT_ONCE_MAX = 4
"""The most calls of one row. They have 24 orders."""

Order = tuple[int, ...]
"""The numbers of the callers of a row, in the order in which their calls took effect."""
Orders = Mapping[int, tuple[Order, ...]]
"""The orders of each row that explain what was read, by the number of the row."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Hold one change of one cell.

    `operation` is the number of its operation in the program. Effects of one atomic batch share a `group`, effects of
    concurrent callers share a number in `together`; 0 is none. `caller` is the number of the caller among these.
    `power` and `kill` name the answer that promised it for each fault, or are empty.
    """

    serial: int
    operation: int
    cell: str
    kind: str
    value: Any = None
    group: int = 0
    together: int = 0
    caller: int = 0
    answered: bool = True
    power: str = ""
    kill: str = ""

    def promised(self, fault: Fault) -> str:
        """Return the answer that promised the effect, or an empty text."""
        return self.kill if fault == "kill" else self.power

    def made_safe(self, answer: str, power: bool, kill: bool) -> "Effect":
        """Return the effect as it is after an answer. The first promise counts."""
        return replace(self, power=self.power or (answer if power else ""), kill=self.kill or (answer if kill else ""))


@dataclass(frozen=True, slots=True)
class History:
    """Hold the effects that are left, those that crashes have taken, and counters.

    `values` counts the values made so far, `serials` the effects. `orders` has the possible orders of each row.
    """

    effects: tuple[Effect, ...] = ()
    gone: tuple[Effect, ...] = ()
    values: int = 0
    serials: int = 0
    orders: dict[int, tuple[Order, ...]] = field(default_factory=dict)

    def added(self, effects: Iterable[Effect]) -> "History":
        """Return the history after effects without numbers."""
        numbered = tuple(replace(effect, serial=self.serials + n) for n, effect in enumerate(effects, 1))
        return replace(self, effects=(*self.effects, *numbered), serials=self.serials + len(numbered))

    def narrowed(self, orders: Orders) -> "History":
        """Return the history with fewer possible orders of some rows.

        Return this one if they are the same.
        """
        if all(self.orders.get(row) == each for row, each in orders.items()):
            return self
        return replace(self, orders={**self.orders, **orders})

    def after(
        self, point: str, answer: str, promises: Promises, *, since: int = 0, callers: Container[int] | None = None
    ) -> "History":
        """Return the history after an answer, which covers effects with a serial above `since`.

        With `callers` it covers those of these callers. If the point is the strongest one that is promised, it covers
        every effect. Otherwise it covers effects with an answer only.
        """
        effects = self.effects
        for fault in _FAULTS:
            effects = tuple(
                effect.made_safe(answer, fault == "power", fault == "kill")
                if effect.serial > since
                and (callers is None or effect.caller in callers)
                and _covers(point, effect, promises.points_of_kind(effect.kind, fault))
                else effect
                for effect in effects
            )
        return replace(self, effects=effects)

    def broken_off(self, before: "History") -> "History":
        """Return this history without the last answer.

        The effects of the state `before` it are as they were. The others have no answer.
        """
        known = {effect.serial: effect for effect in before.effects}
        if known.keys() - {effect.serial for effect in self.effects}:  # an open lost what no close promised
            return replace(before, values=self.values, serials=self.serials)
        rows: dict[int, dict[int, None]] = {}
        for effect in self.effects:
            if effect.together and effect.serial not in known:
                rows.setdefault(effect.together, {})[effect.caller] = None
        return replace(
            self,
            effects=tuple(
                known.get(effect.serial, replace(effect, answered=False, power="", kill="")) for effect in self.effects
            ),
            orders=before.orders | {row: tuple(permutations(callers)) for row, callers in rows.items()},
        )

    def cut_to(self, kept: Sequence[Effect], answer: str = "", orders: Orders | None = None) -> "History":
        """Return the history after a crash that left some effects.

        `orders` are the possible orders of their rows, if they are fewer now. With an answer, that of a recovery, all
        of them are safe from now on.
        """
        serials = {effect.serial for effect in kept}
        gone = tuple(effect for effect in self.effects if effect.serial not in serials)
        left = sorted(kept, key=lambda effect: effect.serial)
        if answer:
            left = [effect.made_safe(answer, True, True) for effect in left]
        callers: dict[int, set[int]] = {}
        for effect in left:
            callers.setdefault(effect.together, set()).add(effect.caller)
        held = {
            row: tuple(dict.fromkeys(tuple(n for n in order if n in callers[row]) for order in each))
            for row, each in (self.orders if orders is None else {**self.orders, **orders}).items()
            if row in callers
        }
        return replace(self, effects=tuple(left), gone=(*self.gone, *gone), orders=held)

    def summary(self) -> str:
        """Return the state after an answer in words."""
        power, kill = (sum(bool(each.promised(fault)) for each in self.effects) for fault in _FAULTS)
        count = len(self.effects)
        writes = f"{count} write{'' if count == 1 else 's'}"
        return f"answered: {writes}, {power} promised to survive a power loss, {kill} a kill"


def _covers(point: str, effect: Effect, points: tuple[str, ...]) -> bool:
    """Return whether an answer to a point makes an effect safe."""
    return point in points and (points[0] == point or effect.answered)


def floor_of(effects: Sequence[Effect], fault: Fault) -> int:
    """Return how many of the first effects must survive a fault."""
    return max((number for number, effect in enumerate(effects, 1) if effect.promised(fault)), default=0)


@dataclass(frozen=True, slots=True)
class Row:
    """Hold effects of concurrent calls with their possible orders, or a single effect."""

    effects: tuple[Effect, ...]
    orders: tuple[Order, ...]

    def sequence(self, order: Order) -> tuple[Effect, ...]:
        """Return the effects in an order of their callers."""
        if len(self.effects) == 1:
            return self.effects
        return tuple(sorted(self.effects, key=lambda effect: order.index(effect.caller)))

    def parts(self, fault: Fault) -> Iterator["Row"]:
        """Yield the parts of the row that a fault may leave, large ones first.

        They are neither all nor nothing. A part has the first effects in some order, and each one that was promised.
        """
        for size in range(len(self.effects) - 1, 0, -1):
            for part in combinations(self.effects, size):
                if all(effect in part for effect in self.effects if effect.promised(fault)):
                    first = {effect.serial for effect in part}
                    orders = tuple(
                        order for order in self.orders if {each.serial for each in self.sequence(order)[:size]} == first
                    )
                    if orders:
                        yield Row(part, orders)


@dataclass(frozen=True, slots=True)
class Cut:
    """Hold the rows of effects that a crash may have left."""

    rows: tuple[Row, ...]

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Return the effects in a possible order."""
        return tuple(effect for row in self.rows for effect in row.sequence(row.orders[0]))

    @property
    def orders(self) -> Orders:
        """Return the possible orders of each row of concurrent calls."""
        return {row.effects[0].together: row.orders for row in self.rows if row.effects[0].together}

    def fitting(self, fits: Callable[[Sequence[Effect], Sequence[Effect]], bool]) -> "Cut | None":
        """Return the cut with the orders of each row for which `fits`, or None if a row has none.

        `fits` gets the effects of the row in an order, and the effects of later rows.
        """
        rows: list[Row] = []
        later: tuple[Effect, ...] = ()
        for row in reversed(self.rows):
            if len(row.orders) > 1:
                orders = tuple(order for order in row.orders if fits(row.sequence(order), later))
                if not orders:
                    return None
                rows.append(Row(row.effects, orders))
            else:
                rows.append(row)
            later = (*row.effects, *later)
        return Cut(tuple(reversed(rows)))


def rows_of(effects: Sequence[Effect], orders: Orders) -> list[Row]:
    """Return effects as rows. Without known orders all are possible."""
    rows: list[Row] = []
    for together, each in groupby(effects, key=lambda effect: effect.together):
        row = tuple(each)
        if not together:
            rows += [Row((effect,), ((effect.caller,),)) for effect in row]
            continue
        known = orders.get(together)
        rows.append(Row(row, tuple(permutations(dict.fromkeys(e.caller for e in row))) if known is None else known))
    return rows


def in_order(effects: Sequence[Effect], orders: Orders) -> tuple[Effect, ...]:
    """Return effects in a possible order."""
    return Cut(tuple(rows_of(effects, orders))).effects if orders else tuple(effects)


def cuts(effects: Sequence[Effect], fault: Fault, orders: Orders) -> Iterator[Cut]:
    """Yield each selection of effects that a fault may leave, the longest first.

    A selection has the first rows as a whole, and a part of the last row. It has every effect that was promised.
    """
    rows = tuple(rows_of(effects, orders))
    floor = max(
        (number for number, row in enumerate(rows, 1) if any(each.promised(fault) for each in row.effects)), default=0
    )
    for count in range(len(rows), max(floor, 1) - 1, -1):
        yield Cut(rows[:count])
        for part in rows[count - 1].parts(fault):
            yield Cut((*rows[: count - 1], part))
    if not floor:
        yield Cut(())
