"""Search all schedules of a Raft group within a bound.

Two reductions are used. States that differ in the numbers of members only, or in messages that can change nothing any
more, count as one. Sleep sets leave out an order of two independent events if the other order was tried. Neither leaves
out a state: `brute_force` visits every state without them, and both have to reach the same ones.

Source for sleep sets: Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems", 1996.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import process_time

from tornpage.impl.parts import Parts
from tornpage.properties.explore.raft.states import (
    KINDS,
    Bound,
    Event,
    GroupState,
    Stepper,
    canonical,
    independent,
    initial,
)

__all__ = ["Search", "brute_force", "search", "sentence_of"]

_REPORT_EVERY = 1_000


@dataclass
class Search:
    """What a search visited.

    `transitions` counts the events carried out, `slept` those that sleep sets left out. `broken` has the promises that
    a state broke, `schedule` the events up to it. It is incomplete if it was stopped.
    """

    states: int = 0
    transitions: int = 0
    slept: int = 0
    deepest: int = 0
    cpu_s: float = 0.0
    is_complete: bool = True
    broken: list[str] = field(default_factory=list)
    schedule: list[str] = field(default_factory=list)
    reached: set[GroupState] = field(default_factory=set)
    events: set[str] = field(default_factory=set)


def search(
    members: int,
    bound: Bound,
    *,
    batch: int,
    parts: Parts,
    compares: bool = True,
    states_max: int | None = None,
    is_over: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] = lambda states: None,
) -> Search:
    """Visit every state within the bound, up to `states_max` states.

    The search ends at the first broken promise.
    Without `compares` no step of a member is compared with the model.
    """
    found, began = Search(), process_time()
    stepper = Stepper(members, batch, parts, compares=compares)
    start, _ = canonical(initial(members, bound))
    asleep_at: dict[GroupState, frozenset[Event]] = {start: frozenset()}
    events_at: dict[GroupState, tuple[Event, ...]] = {}
    parent: dict[GroupState, tuple[GroupState, Event]] = {}
    todo: list[tuple[GroupState, frozenset[Event], frozenset[Event] | None]] = [(start, frozenset(), None)]
    while todo:
        state, asleep, only = todo.pop()
        if state not in events_at:
            events_at[state] = tuple(stepper.enabled(state))
        done: list[Event] = []
        for event in events_at[state]:
            if event in asleep:
                found.slept += 1
                continue
            if only is not None and event not in only:
                done.append(event)
                continue
            after, broken = stepper.carry_out(state, event)
            found.transitions += 1
            found.events.add(event[0])
            if broken:
                found.broken = broken
                found.schedule = [*_schedule(parent, state), described(event)]
                return _ended(found, asleep_at, began)
            sleeping = frozenset(each for each in (*asleep, *done) if independent(each, event))
            done.append(event)
            following, new = canonical(after)
            if following == state:
                continue
            sleeping = frozenset(_renamed(each, new) for each in sleeping)
            known = asleep_at.get(following)
            if known is None:
                asleep_at[following] = sleeping
                parent[following] = state, event
                todo.append((following, sleeping, None))
            elif not known <= sleeping:
                asleep_at[following] = known & sleeping
                todo.append((following, sleeping, known - sleeping))
        if len(asleep_at) % _REPORT_EVERY == 0:
            progress(len(asleep_at))
        if is_over() or (states_max is not None and len(asleep_at) >= states_max):
            found.is_complete = False
            break
    return _ended(found, asleep_at, began)


def brute_force(members: int, bound: Bound, *, batch: int, parts: Parts) -> Search:
    """Visit every state without a reduction. `reached` has their representatives."""
    found, began = Search(), process_time()
    stepper = Stepper(members, batch, parts)
    start = initial(members, bound)
    known = {start}
    todo = [start]
    while todo:
        state = todo.pop()
        found.reached.add(canonical(state)[0])
        for event in stepper.enabled(state):
            after, broken = stepper.carry_out(state, event)
            found.transitions += 1
            found.broken += broken
            if after not in known:
                known.add(after)
                todo.append(after)
    found.states, found.cpu_s = len(known), process_time() - began
    return found


def _ended(found: Search, asleep_at: dict[GroupState, frozenset[Event]], began: float) -> Search:
    found.states, found.reached = len(asleep_at), set(asleep_at)
    found.cpu_s = process_time() - began
    return found


def _renamed(event: Event, new: tuple[int, ...]) -> Event:
    name, member, first, second = event
    return name, new[member], new[first] if name in ("deliver", "transfer") else first, second


def _schedule(parent: dict[GroupState, tuple[GroupState, Event]], state: GroupState) -> list[str]:
    """Return the events up to a state.

    In each state the members are renumbered by their terms and logs.
    """
    events: list[str] = []
    while state in parent:
        state, event = parent[state]
        events.append(described(event))
    return events[::-1]


def described(event: Event) -> str:
    """Return an event as one line."""
    name, member, first, second = event
    match name:
        case "deliver":
            return f"deliver {KINDS[second]} from {first} to {member}"
        case "crash":
            return f"crash {member}, {first} entries left"
        case "transfer":
            return f"transfer from {member} to {first}"
    return f"{name} {member}"


def sentence_of(broken: list[str]) -> str:
    """Return the first broken promise as a sentence without numbers, which identifies it."""
    return "".join(each for each in broken[0] if not each.isdigit()) if broken else ""
