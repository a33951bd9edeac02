"""Check pruning against brute force: enumerate and judge a workload both ways and compare.

Brute force shares no rule with pruning. It takes each version of a page and each tear of two versions, in both orders
and with every mask, whether or not the bytes differ. It recovers and judges every image every time it appears.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product

from tornpage.model.operations import Choice, Crash
from tornpage.properties.campaign.replay import signature
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import DiskState
from tornpage.properties.disk.images import InFlightWrite, in_flight_writes
from tornpage.properties.explore.exhaustive.choices import SECTOR_BYTES, bounded_choices
from tornpage.properties.explore.exhaustive.operation_set import Workload
from tornpage.properties.explore.exhaustive.outcomes import CachingJudge, Judging, everything
from tornpage.properties.explore.exhaustive.workload import Bound, CrashState, Enumerate, WorkloadStates
from tornpage.properties.program.case import Settings

__all__ = ["Checked", "check_workload", "every_choice"]


@dataclass(frozen=True, slots=True)
class Checked:
    """Hold the result of both ways: the number of states, and the differences as sentences."""

    workload: Workload
    states: int
    pruned_states: int
    differences: list[str]


def check_workload(
    workload: Workload,
    settings: Settings,
    bound: Bound,
    *,
    tracker: DirtyTracker,
    sparing: Callable[[], Judging] = CachingJudge,
    choices: Enumerate = bounded_choices,
    is_over: Callable[[], bool] = lambda: False,
) -> Checked | None:
    """Enumerate both ways and compare image, recovered state and verdict at each crash point.

    Return None once `is_over` is true. `sparing` and `choices` are the rules under test.
    """
    pruned = WorkloadStates(workload, settings, bound, tracker, judging=sparing, choices=choices)
    brute = WorkloadStates(workload, settings, bound, tracker, judging=lambda: everything, choices=every_choice)
    seen = []
    for states in (brute, pruned):
        at: dict[str, set[str]] = defaultdict(set)
        count = 0
        for state in states.everywhere():
            if is_over():
                return None
            at[_place(state)].add(_became(state))
            count += 1
        seen.append((at, count))
    (by_force, brute_states), (by_rule, pruned_states) = seen
    return Checked(workload, brute_states, pruned_states, list(_differences(by_force, by_rule)))


def _place(state: CrashState) -> str:
    """Return the identity of a state: after which operation, at which event, with which image.

    A recovery is crashed once for each image that leads to it, so the way to the image is left out.
    """
    crash = state.done[-1] if state.done else None
    back = crash.back if isinstance(crash, Crash) else -1
    if state.kind == "recovery":
        return f"recovery crashed, image {state.image.hex()}"
    return f"operation {len(state.done)}, {state.kind} {back} events back, image {state.image.hex()}"


def _became(state: CrashState) -> str:
    if state.broken is not None:
        return f"breaks {signature(state.broken)}"
    return f"becomes {state.recovered.hex()}"


def _differences(brute: dict[str, set[str]], pruned: dict[str, set[str]]) -> Iterator[str]:
    """Yield a sentence for each crash point that only one way has, or where the two disagree."""
    for place in sorted(brute.keys() | pruned.keys()):
        if place not in pruned:
            yield f"{place}: pruned away, but {_told(brute[place])} by brute force"
        elif place not in brute:
            yield f"{place}: not met by brute force"
        elif brute[place] != pruned[place]:
            yield f"{place}: {_told(brute[place])} by brute force, {_told(pruned[place])} pruned"


def _told(became: set[str]) -> str:
    return " and ".join(sorted(became))


def every_choice(state: DiskState, bound: int, beyond: int = -1) -> Iterator[dict[str, Choice]]:
    """Yield each choice within a bound, many of them repeatedly. `beyond` must be -1."""
    assert beyond == -1
    pages = {f"page {inode.name} {n}": inode.versions[n] for inode in state.inodes.values() for n in inode.versions}
    facts = in_flight_writes(state)
    values = {fact.name: _values(fact, pages.get(fact.name, ())) for fact in facts}
    for centre in ({fact.name: 0 for fact in facts}, {fact.name: fact.alternatives - 1 for fact in facts}):
        for which in combinations(facts, min(bound, len(facts))):
            for chosen in product(*(values[fact.name] for fact in which)):
                yield {**centre, **{fact.name: value for fact, value in zip(which, chosen, strict=True)}}


def _values(fact: InFlightWrite, versions: Sequence[bytes]) -> list[Choice]:
    values: list[Choice] = list(range(fact.alternatives))
    sectors = max((-(-len(version) // SECTOR_BYTES) for version in versions), default=0)
    for first, second in permutations(range(fact.alternatives), 2):
        values += [(first, second, mask) for mask in range(1, (1 << sectors) - 1)]
    return values
