"""Run one interleaving and judge it.

The judges check that no task waits forever and dispatch has caught up (contract 16), and that no task ends in an
unexpected error (8, 11). Some order of the calls must explain every answer (17). Everything acknowledged as durable
must be on disk after any power loss (2). A close at the end must be clean, with every record in its queue (1, 4). The
store must recover from a power loss right after the tasks, and from one after the close (power_loss.py).
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from tornpage.impl.parts import Parts
from tornpage.properties.contract import GuaranteeBroken, HarnessError, Verdict, reading_store
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.interleavings import judges
from tornpage.properties.explore.interleavings.locks import controlled_locks
from tornpage.properties.explore.interleavings.power_loss import power_loss_is_survived
from tornpage.properties.explore.interleavings.programs.running import run_program
from tornpage.properties.explore.interleavings.scenario import Interleaving
from tornpage.properties.explore.interleavings.stage import Stage
from tornpage.properties.judge.linearizability.calls import Call, answer_text, request_text
from tornpage.properties.judge.linearizability.linearise import linearise
from tornpage.properties.judge.linearizability.specification import points_of, shared_at
from tornpage.properties.judge.rulings import require
from tornpage.properties.planted import parts_of
from tornpage.properties.scheduler import Chooser, Priorities, SleepSets, StepTrace, run_stepped

__all__ = ["Ran", "run_interleaving"]

POINTS_MAX = 60_000
_TURNS_KEPT_MAX = 4_000


@dataclass
class Ran:
    """Hold the result of an interleaving: verdict, broken promise, `trace` and `calls`.

    `result` has what the callers of a part program observe. `effects` counts what happened in it. `key` identifies it
    by the yield points at which each task was interrupted.
    """

    verdict: Verdict
    broken: GuaranteeBroken | None
    trace: StepTrace
    calls: Sequence[Call]
    effects: Counter[str] = field(default_factory=Counter)
    key: bytes = b""

    result: tuple[str, ...] = ()

    @property
    def outcome(self) -> tuple[str, ...]:
        """Return the answers in the order of the calls, which is all that callers can observe."""
        return self.result or tuple(
            f"{call.task} {request_text(call.request)} {answer_text(call.answer)}" for call in self.calls
        )


def run_interleaving(interleaving: Interleaving, *, tracker: DirtyTracker, parts: Parts | None = None) -> Ran:
    """Run an interleaving on a new disk, or on a new part of the store.

    `parts` replace those of the bug that the settings name.
    """
    scenario = interleaving.scenario
    if scenario.part:
        return _run_part(interleaving)
    with controlled_locks():
        return _run_scenario(interleaving, tracker, parts)


def _run_scenario(interleaving: Interleaving, tracker: DirtyTracker, parts: Parts | None) -> Ran:
    scenario = interleaving.scenario
    parts = parts or parts_of(scenario.settings.bug)
    tick_ms = 0 if isinstance(interleaving.chooser, SleepSets) else 1  # which takes the order of two reads as equal
    stage = Stage(scenario.settings, tracker=tracker, parts=parts, tick_ms=tick_ms)
    trace = _trace(interleaving)
    ran = Ran(Verdict.HOLDS, None, trace, stage.history.calls)
    try:
        with reading_store():
            for operation in scenario.before:
                stage.do(-1, operation)  # type: ignore[arg-type]
            stage.use_disk(scenario.percent)
            _run(interleaving, stage, trace, _schedule(interleaving))
            ran.key = _key(interleaving, trace)
            ran.verdict = _judge(stage, ran.effects, parts, ran.key)
    except GuaranteeBroken as broken:
        ran.verdict, ran.broken = Verdict.BROKEN, broken
    ran.key = _key(interleaving, trace)
    return ran


def _trace(interleaving: Interleaving) -> StepTrace:
    return StepTrace(turns_max=_TURNS_KEPT_MAX, records_accesses=isinstance(interleaving.chooser, SleepSets))


def _schedule(interleaving: Interleaving) -> "Sequence[int] | Chooser":
    if interleaving.chooser is not None:
        return interleaving.chooser
    return interleaving.schedule if interleaving.changes is None else Priorities(interleaving.changes)


def _run_part(interleaving: Interleaving) -> Ran:
    """Run an interleaving of a part program. A planted bug replaces no part there."""
    trace = _trace(interleaving)
    broken, result = run_program(interleaving, _schedule(interleaving), trace)
    verdict = Verdict.HOLDS if broken is None else Verdict.BROKEN
    effects = Counter({"part_programs": 1})
    lines = (*(" ".join(answers) for answers in result.answers), result.state)
    return Ran(verdict, broken, trace, (), effects, _key(interleaving, trace), lines)


def _run(interleaving: Interleaving, stage: Stage, trace: StepTrace, schedule: "Sequence[int] | Chooser") -> None:
    """Run the tasks as the schedule says. Raises the error in which one of them ended."""
    scenario = interleaving.scenario
    left = [len(scenario.tasks)]
    clients = [partial(_client, stage, number, operations, left) for number, operations in enumerate(scenario.tasks)]
    services = [
        partial(_serve, stage, len(clients) + number, name, lambda: not left[0])
        for number, name in enumerate(scenario.services)
    ]
    tasks: list[Callable[[], None]] = [*clients, *services]
    outcomes = run_stepped(
        [tasks[number] for number in interleaving.order],
        schedule,
        modules=interleaving.modules,
        granularity=interleaving.granularity,
        points_max=POINTS_MAX,
        trace=trace,
    )
    for outcome in outcomes:
        if outcome.error is not None:
            require(judges.escaped(outcome.error))


def _client(stage: Stage, number: int, operations: Sequence[object], left: list[int]) -> None:
    try:
        for operation in operations:
            stage.do(number, operation)  # type: ignore[arg-type]
    finally:
        left[0] -= 1


def _serve(stage: Stage, number: int, name: str, is_over: Callable[[], bool]) -> None:
    """Run as the thread of a service until no task is left that could wake it."""
    runner = stage.services.get(name)
    if runner is None:
        raise HarnessError(f"the store has no service {name!r}")
    while runner.wait_for_work(is_over):
        stage.step(number, name)


def _judge(stage: Stage, effects: Counter[str], parts: Parts, seed: bytes) -> Verdict:
    judges.count_effects(stage, effects)
    require(judges.dispatch_has_caught_up(stage))
    moments = points_of(stage.history.calls, stage.layout, clock_moves=True)
    found = linearise(moments, shared_at(stage.wall_ms))
    order = judges.an_order_explains(stage.history.calls, moments, found)
    require(order)
    require(judges.promises_are_kept(stage))
    if order.verdict == "unknown":
        return Verdict.UNKNOWN
    state, rng = found.state.state, random.Random(seed)
    places = [(stage.files.look(), stage.is_closed)]
    require(judges.ends_as_explained(stage, state))
    if not stage.is_closed:
        places.append((stage.files.look(), True))
    for position, is_closed in places:
        power_loss_is_survived(stage, position, state, is_closed=is_closed, parts=parts, rng=rng)
        effects["power_losses"] += 1
    return Verdict.HOLDS


def _key(interleaving: Interleaving, trace: StepTrace) -> bytes:
    """Return the identity of an interleaving.

    Two of a scenario are equal if each task was interrupted at the same places.
    """
    places = [(interleaving.task_of(t.task), t.points, t.left_at) for t in trace.turns]
    text = repr((interleaving.scenario, interleaving.granularity, places))
    return blake2b(text.encode(), digest_size=16).digest()
