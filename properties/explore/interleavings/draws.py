"""Draw interleavings: yield points, the order of tasks, and the switches between them.

There are three ways, chosen in turns. With few switches a task runs on except at one to five points, drawn uniformly.
In a random walk each yield point is a switch with some chance. With priorities the runnable task with the highest
random priority runs, and one to three drawn yield points lower the priority of the running task (probabilistic
concurrency testing). A bug of depth d is then found by one run with a probability of at least 1/(n k^(d-1)), with n
tasks and k yield points. Mostly only some of the watched modules have yield points. Then there are fewer points, and
each is hit more often.
"""

from random import Random

from tornpage.properties.explore.interleavings.parts import watched_modules
from tornpage.properties.explore.interleavings.scenario import Interleaving, Scenario
from tornpage.properties.scheduler import Granularity

__all__ = ["draw_interleaving", "draw_modules", "draw_priorities", "sequential"]

_ALL_SHARE = 0.2
_WALK_SHARE = 0.25
_SWITCH_CHANCES = (0.02, 0.08, 0.3)
_SWITCHES_MAX = 5
_CHANGES_MAX = 3
_ALWAYS = "tornpage.properties.planted.races"


def sequential(scenario: Scenario, modules: tuple[str, ...] | None = None) -> Interleaving:
    """Return the interleaving that runs one task after the other.

    The default is all watched modules.
    """
    modules = watched_modules() if modules is None else modules
    return Interleaving(scenario, tuple(range(scenario.task_count)), (), modules)


def draw_modules(rng: Random) -> tuple[str, ...]:
    """Return the modules whose lines are yield points for some interleavings."""
    if rng.random() < _ALL_SHARE:
        return watched_modules()
    return tuple(sorted({*rng.sample(watched_modules()[:-1], rng.randint(2, 6)), _ALWAYS}))


def draw_interleaving(scenario: Scenario, rng: Random, *, modules: tuple[str, ...], points: int) -> Interleaving:
    """Return an interleaving.

    `points` is the approximate number of yield points at which a switch is possible.
    """
    others = scenario.task_count - 1
    if not others:
        return sequential(scenario, modules)
    order = list(range(scenario.task_count))
    rng.shuffle(order)
    schedule = bytearray(max(8, points))
    if rng.random() < _WALK_SHARE:
        chance = rng.choice(_SWITCH_CHANCES)
        for at in range(len(schedule)):
            if rng.random() < chance:
                schedule[at] = rng.randint(1, others)
    else:
        for _ in range(rng.randint(1, _SWITCHES_MAX)):
            schedule[rng.randrange(len(schedule))] = rng.randint(1, others)
    return Interleaving(scenario, tuple(order), tuple(schedule), modules)


def draw_priorities(
    scenario: Scenario,
    rng: Random,
    *,
    modules: tuple[str, ...],
    steps: int,
    depth: int | None = None,
    granularity: Granularity = "line",
) -> Interleaving:
    """Return an interleaving by priorities. `steps` is the approximate number of yield points.

    Its depth, the number of change points and one more, is drawn if it is not given.
    """
    order = list(range(scenario.task_count))
    rng.shuffle(order)
    count = rng.randint(1, _CHANGES_MAX) if depth is None else depth - 1
    changes = tuple(rng.randint(1, max(1, steps)) for _ in range(count))
    return Interleaving(scenario, tuple(order), (), modules, granularity, changes)
