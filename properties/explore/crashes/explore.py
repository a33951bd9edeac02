"""Explore seeded random programs without Hypothesis.

Record a run, then crash it at every event. One seed is one run of a few sessions. After each session its events are
revisited, and crash states are drawn there (properties/explore/crashes/crash_states.py). A run has about
`STATES_PER_RUN` crash states, because many short runs find more than one long run. A short last session, the rule
epilogue, carries out rules that no session has drawn (properties/explore/crashes/scheduling.py). Then files are
corrupted (properties/explore/crashes/end_faults.py).
"""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from tornpage.model.operations import (
    AimFault,
    ClockStep,
    CommitOffset,
    Crash,
    DiskUsed,
    Flush,
    Open,
    OpenTwice,
    Operation,
    PullHeld,
    Put,
    ReplicaIs,
    Step,
)
from tornpage.properties.campaign.coverage import RuleCounts, Tally, judge_counter
from tornpage.properties.campaign.replay import Failure
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import DiskState
from tornpage.properties.disk.images import in_flight_writes
from tornpage.properties.disk.sampling import draw
from tornpage.properties.explore.crashes.crash_states import CrashStates, StateBroken
from tornpage.properties.explore.crashes.end_faults import EndFaults, count_fault_rules
from tornpage.properties.explore.crashes.factors import Happened, levels_of, text_of_levels
from tornpage.properties.explore.crashes.scheduling import (
    DEFAULT_STRATEGY,
    RunConfiguration,
    Strategy,
    configuration_of,
    rule_epilogue,
)
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Case, Settings
from tornpage.properties.program.drawing import WORDS, fitted
from tornpage.properties.program.workload import RULES, WEIGHTS, Rule, draw_rule, possible

__all__ = ["STATES_PER_RUN", "explore_seed"]

_PROGRESS_EFFECTS = {
    "progress_recovered": "progress_saved",
    "progress_crashed_in_save": "progress_being_saved",
    "progress_corrected": "progress_corrected",
}
"""Coverage points of a crash fault in a lockstep run, and their fault classes in a campaign."""

STATES_PER_RUN = 160
"""Crash states of one run, about. Its sessions and the epilogue have equal shares."""

_TO_THE_END = 0.4
"""The share of puts that are fitted to the end of a log file, in runs with such puts."""
_SESSIONS_DRAWN = (40, 10, 10)
"""Operations of each session of a run that draws the number of its sessions."""

_RESTS_MS = (60_000, 0, 1_000, 60_000)
"""The pauses before the rounds of all services with which a run of a covering array ends."""

_OF_SAVES = frozenset(_PROGRESS_EFFECTS.values())
_MAKE_UP_SESSIONS = 3
_MAKE_UP_SHARE = 0.5
"""The share of events of a make-up session at which crash states are drawn."""

_MAKE_UP: tuple[Operation, ...] = (
    Open(),
    DiskUsed(percent=10),
    Put(body_bytes=300, properties="KEYS\x01k1"),
    Put(body_bytes=300, properties="KEYS\x01k2\x02DELAY\x011"),
    Flush(),
    Step(service="group-commit"),
    Step(service="reput"),
    CommitOffset(),
    Step(service="progress", after_ms=10_000),
    Step(service="flush-queues", after_ms=60_000),
    Put(body_bytes=300, properties="KEYS\x01k3\x02WAIT\x01false"),
    Put(body_bytes=300, properties="KEYS\x01k4\x02WAIT\x01false"),
    Step(service="commit", after_ms=10_000),
    Step(service="reput"),
    Flush(),
    Step(service="flush-queues", after_ms=60_000),
)
"""A session after which every kind of file has durable and un-synced content: messages with keys, one of them delayed,
progress of a group, and a checkpoint that covers queues and index."""


def explore_seed(
    seed: str,
    base: Settings,
    *,
    tracker: DirtyTracker,
    tally: Tally,
    strategy: Strategy = DEFAULT_STRATEGY,
    fixed: Mapping[str, Any] | None = None,
    clock_back_ms: int = 0,
    fault_rules: Sequence[AimFault] = (),
    is_over: Callable[[], bool] = lambda: False,
    owed: Callable[[], Collection[str]] = tuple,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Failure | None]:
    """Run one seed and its crash states; yield None after each state, or the final failure.

    Settings in `fixed` are not drawn. In each session one of the `fault_rules` is enabled at some point, and the clock
    is set back once by `clock_back_ms` if that is not 0. Once `is_over` is true no more crash states follow, only the
    crash faults that end each run. Short last sessions try to hit what is still `owed` then; their crash states are not
    counted. Once `is_stopped` is true (an interrupt), the run ends before its next operation.
    """
    rng = random.Random(f"explore {seed}")
    mix = configuration_of(strategy, seed)
    settings = replace(mix.settings(base, rng), **(fixed or {}))
    history = _Run(
        settings,
        mix,
        rng,
        tracker=tracker,
        tally=tally,
        clock_back_ms=clock_back_ms,
        fault_rules=fault_rules,
        is_stopped=is_stopped,
    )
    tally.histories += 1
    yield from history.run(is_over, owed)


class _Stopped(Exception):
    """End a run before its next operation."""


class _Run:
    """Run one seed."""

    def __init__(
        self,
        settings: Settings,
        mix: RunConfiguration,
        rng: random.Random,
        *,
        tracker: DirtyTracker,
        tally: Tally,
        clock_back_ms: int,
        fault_rules: Sequence[AimFault],
        is_stopped: Callable[[], bool],
    ) -> None:
        self._is_stopped = is_stopped
        self._settings = settings
        self._mix = mix
        self._clock_back_ms = clock_back_ms
        self._fault_rules = fault_rules
        self._rng = rng
        self._tally = tally
        self._tracker = tracker
        self._done: list[Operation] = []
        self._session_start = 0
        self._session = 0
        self._sessions_ended: list[int] = []
        self._steps: set[str] = set()
        self._fault_in_session = False
        self._moved_clock = False

    def run(self, is_over: Callable[[], bool], owed: Callable[[], Collection[str]]) -> Iterator[Failure | None]:
        before = self._tally.hit.copy()
        try:
            observer = judge_counter(self._tally)
            self._trial = lockstep_of(self._settings, tracker=self._tracker, observer=observer)
            self._rules = RuleCounts(self._tally, self._trial)
            for rule in self._possible_rules():
                self._rules.arm(rule)
            sessions = self._mix.sessions or _SESSIONS_DRAWN[: 1 + self._rng.randrange(3)]
            states = STATES_PER_RUN // (len(sessions) + 1)
            for self._session, operations in enumerate(sessions):
                is_last = self._session == len(sessions) - 1
                coverage = self._trial.coverage.copy()
                self._run_session(operations, self._fault_rules_of_session(is_last=is_last))
                yield from self._crash_everywhere(is_over, states)
                self._end_in_a_save(coverage)
                self._sessions_ended.append(operations)
                if is_over():
                    break
            self._run_epilogue()
            yield from self._crash_everywhere(is_over, states)
            self._end_in_a_power_loss()
            wanted = self._mix.damages.__contains__
            harms = EndFaults(
                self._trial,
                self._carry_out,
                rng=self._rng,
                tally=self._tally,
                wanted=wanted,
                choices=self._mix.choices,
            )
            yield from harms.everything()
            yield from self._make_up(harms, owed)
        except _Stopped:
            return
        except GuaranteeBroken as broken:
            yield Failure(Case(self._settings, tuple(self._done)), broken)
        except StateBroken as failed:
            yield failed.failure
        finally:
            self._tally.levels.append(text_of_levels(levels_of(self._happened(before))))

    def _happened(self, before: Counter[str]) -> Happened:
        """Return what happened since the counts `before`."""
        rules = [each for each in self._done if isinstance(each, AimFault)]
        return Happened(
            settings=self._settings,
            words=replace(self._mix.words, services=WORDS.services),
            operations=self._done,
            hit=self._tally.hit - before,
            steps=self._steps,
            fault_rules=[each for each in rules if self._trial.coverage[f"{each.text}_fired"]],
            fault_in_session=self._fault_in_session,
            sessions=tuple(self._sessions_ended),
            clock_ms=self._mix.clock_ms if self._moved_clock else 0,
        )

    def _crash_everywhere(self, is_over: Callable[[], bool], states_max: int) -> Iterator[Failure | None]:
        """Crash at events of the session so far, until the time is over."""
        if is_over():
            return
        states = CrashStates(
            self._trial,
            self._done,
            self._session_start,
            rng=self._rng,
            tally=self._tally,
            chances=self._mix.chances,
        )
        for failure in states.everywhere(states_max=states_max):
            yield failure
            if is_over():
                return

    def _carry_out(self, operation: Operation) -> None:
        if self._is_stopped():
            raise _Stopped
        self._done.append(operation)
        started = perf_counter()
        self._trial.run(operation)
        self._tally.seconds["history"] += perf_counter() - started
        if isinstance(operation, Open):
            self._session_start = len(self._done)  # an open starts a new sequence of spans

    def _fault_rules_of_session(self, *, is_last: bool) -> Sequence[AimFault]:
        """Return the fault rules of which a session enables one."""
        chosen = self._mix.choices.fault_rule
        if self._fault_rules or chosen is None:
            return self._fault_rules
        return (chosen,) if self._mix.fault_in_session and is_last else ()

    def _run_session(self, operations: int, fault_rules: Sequence[AimFault]) -> None:
        self._session_start = len(self._done)
        enabled_at = self._rng.randrange(operations) if fault_rules else -1
        clock_at = self._rng.randrange(operations) if self._mix.clock_ms else -1
        for number in range(operations + self._rng.randrange(operations // 2)):
            trial = self._trial
            if number == enabled_at:
                self._carry_out(replace(self._rng.choice(fault_rules), seed=self._rng.randrange(1 << 16)))
            if number == clock_at:
                self._carry_out(ClockStep(by_ms=self._mix.clock_ms))
                self._moved_clock |= not trial.files.rules  # under a fault rule the step is left out
            if number == operations // 3 and self._clock_back_ms and not trial.closed:
                self._set_clock_back()
            if trial.closed:
                self._carry_out(Open())
            else:
                self._draw(draw_rule(self._rng, services=trial.services, weights=self._mix.weights))
        if not self._trial.closed and not self._trial.log.poisoned:
            self._save_progress()
        self._carry_out(OpenTwice())

    def _draw(self, rule: Rule) -> None:
        """Draw an operation by a rule and carry it out."""
        words = self._mix.words.in_session(self._session)
        services = [name for name in self._trial.services if name in words.services]
        operation = rule.draw(self._rng, replace(words, services=services or self._trial.services))
        if rule.name == "step" and isinstance(operation, Step):
            self._steps.add(operation.service)
        if words.to_the_end and isinstance(operation, Put) and self._rng.random() < _TO_THE_END:
            file_bytes, end_offset = self._settings.file_bytes, self._trial.log.end_offset
            room_bytes = file_bytes - end_offset % file_bytes
            operation = fitted(operation, room_bytes, self._rng, trailer=self._settings.trailer)
        self._rules.carry_out(rule, operation, self._carry_out)

    def _possible_rules(self) -> list[Rule]:
        return possible(RULES.values(), services=self._trial.services, weights=self._mix.weights)

    def _run_epilogue(self) -> None:
        """Run one more session, so that no rule of the configuration is left out."""
        self._session_start = len(self._done)
        self._carry_out_rules(self._possible_rules())

    def _carry_out_rules(self, rules: Sequence[Rule]) -> None:
        for rule, operation in rule_epilogue(rules, self._rules.done):
            if self._trial.closed or self._trial.log.poisoned:
                self._carry_out(Open())
            if operation is None:
                self._draw(rule)
            else:
                self._rules.follow(operation, self._carry_out)

    def _make_up(self, harms: EndFaults, owed: Callable[[], Collection[str]]) -> Iterator[Failure | None]:
        """Run short sessions that are likely to hit what is owed, up to a limit."""
        for _ in range(_MAKE_UP_SESSIONS):
            names = self._reachable(owed())
            if not names:
                return
            self._carry_out_rules(self._rules_named(names))
            yield from harms.make_up(names)
            if not _OF_SAVES.isdisjoint(names):
                self._end_in_a_save(self._trial.coverage.copy())
            if not self._reachable(owed()):
                return
            for operation in _MAKE_UP:
                self._carry_out(operation)
            states = CrashStates(self._trial, self._done, self._session_start, rng=self._rng, tally=self._tally)
            for failure in states.everywhere(share=_MAKE_UP_SHARE):
                yield failure
                if not self._reachable(owed()):
                    return

    def _reachable(self, names: Collection[str]) -> list[str]:
        """Return the names that a make-up session can hit.

        Rules of the configuration had their epilogue.
        """
        rules = {f"rule_{rule.name}" for rule in self._rules_named(names)}
        return [name for name in names if name in rules or not name.startswith("rule_")]

    def _rules_named(self, names: Collection[str]) -> list[Rule]:
        """Return the rules that the configuration has switched off and the store can do."""
        off = [rule for name, rule in RULES.items() if f"rule_{name}" in names and not self._mix.weights[name]]
        return possible(off, services=self._trial.services, weights=WEIGHTS)

    def _save_progress(self) -> None:
        """Let a group consume the latest messages, durable or not, and save its progress durably."""
        self._carry_out(Step(service="reput"))
        self._carry_out(CommitOffset(queue=self._rng.randrange(8)))
        self._carry_out(Step(service="progress", after_ms=5_000))

    def _set_clock_back(self) -> None:
        """Flush everything including the checkpoint, then step the clock back."""
        self._carry_out(Flush())
        self._carry_out(Step(service="reput"))
        self._carry_out(Step(service="flush-queues", after_ms=60_000))
        self._carry_out(Put(advance_ms=-self._clock_back_ms))

    # ---- ends of a session -------------------------------------------------------------------------------------------

    def _end_in_a_save(self, session: Counter[str]) -> None:
        """End a session with a crash fault, at rest or inside a save of progress.

        `session` has the coverage points from before the session.
        """
        if self._trial.closed or self._trial.log.poisoned:
            self._carry_out(Open())
        self._save_progress()
        before = self._trial.coverage.copy()
        self._carry_out(self._closing_crash())
        chosen = self._mix.choices.fault_rule
        count_fault_rules(self._trial, session, self._tally, fault_rules=self._fault_rules)
        self._fault_in_session |= chosen is not None and self._trial.coverage[f"{chosen.text}_fired"] > 0
        happened = self._trial.coverage - before
        for effect, fault in _PROGRESS_EFFECTS.items():
            if happened[effect]:
                for counter in (self._tally.enabled, self._tally.hit, self._tally.effective):
                    counter[fault] += happened[effect]

    def _end_in_a_power_loss(self) -> None:
        """End the last session with a checkpoint that covers queues and index."""
        if self._trial.closed or self._trial.log.poisoned:
            self._carry_out(Open())
        flush_queues = Step(service="flush-queues", after_ms=60_000)
        with_room = (DiskUsed(percent=10), Put(), Flush(), Step(service="reput"), flush_queues)
        for operation in with_room:
            self._carry_out(operation)
        if self._mix.row is not None:
            self._rest()
        self._carry_out(Crash())

    def _rest(self) -> None:
        """Run all services until no client waits and nothing is left to do.

        Then run them twice at rest, where their costs are bounded.
        """
        waiting: tuple[Operation, ...] = (Put(later=True), PullHeld())
        if self._settings.role == "SYNC_MASTER":
            waiting = (ReplicaIs(state="hangs"), *waiting)
        for operation in waiting:
            self._carry_out(operation)
        for after_ms in _RESTS_MS:
            for number, service in enumerate(self._trial.services):
                self._carry_out(Step(service=service, after_ms=0 if number else after_ms))

    def _closing_crash(self) -> Operation:
        """Draw the crash fault before the next session: at rest or inside the last operation."""
        trial = self._trial
        span = trial.spans[-1]
        back = self._rng.randrange(span.last - span.first + 1)
        position = trial.files.events[span.last - back] if back else len(trial.files.journal)
        if self._rng.random() < 0.3:
            return Crash(kill=True, back=back)
        state = DiskState(trial.files.base, disk=self._settings.disk)
        state.apply_all(trial.files.journal[:position])
        return Crash(back=back, survived=draw(in_flight_writes(state), self._rng, self._mix.chances))
