"""Open crash images with our store and with a peer, and count broken promises.

The images are crash states of our store's histories, or of the peer's own writes (peers/own_histories.py).

Each history is one part of the run. Parts may be carried out by several processes, each with a JVM of its own. Results
are merged in the order of the histories, so that equal seeds give equal counts with any number of processes.

A history of our store puts 44 messages into log files of a few KiB, with flushes and steps of the services between the
puts. It is recorded once. At a sample of its crash points a crash state is drawn as in a crash campaign and composed
into an image. Half of the histories flush synchronously. Our store recovers the image in memory and is judged as in a
campaign. The peer recovers a copy of it in a directory, twice, and is judged by its answers. The model says which
records had to survive.
"""

import itertools
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Literal

from tornpage.model.operations import Flush, Member, Put, PutBatch, Step
from tornpage.model.state import CommitLog
from tornpage.peers.judging import Expectation, ask, judge_with_peer, rulings_on
from tornpage.peers.own_histories import OWN_OVERRIDE, OwnHistory, OwnState
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Process
from tornpage.peers.rocketmq.store import java_settings
from tornpage.properties.campaign.workers import Control, Died, PartProgress, Work
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.disk.certificate import assert_legal
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.images import compose, in_flight_writes
from tornpage.properties.disk.sampling import draw
from tornpage.properties.judge.image import read_image, write_image
from tornpage.properties.judge.judgement import evidence_of
from tornpage.properties.judge.judgement import rulings_on as rulings_on_image
from tornpage.properties.judge.rulings import Ruling, broken, counted
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted import parts_of
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.translation import store_config
from tornpage.properties.scratch import memory_directory, scratch_directory

__all__ = ["EVERY", "Example", "PeerExploration", "PeerPlan", "Writer", "explore_with_peer"]

Writer = Literal["ours", "peer"]
"""Whose writes are crashed."""

EVERY = 10
"""Every n-th crash point is taken by default."""

_PUTS = 44
_TOPICS = ("TopicA", "TopicB", "TopicC")
_KEYS_MAX = 60
_LEGALITY_EVERY = 8
_FILES_MIN, _RECORDS_MIN = 2, 10


@dataclass(frozen=True, slots=True)
class PeerPlan:
    """A run: settings of every history, first seed, and limits.

    Every `every`-th crash point is taken. `workers` is the number of processes. `writer` says whose histories are
    crashed: those of our store, or those of the peer.
    """

    settings: Settings
    seed: int = 0
    states: int | None = None
    seconds: float | None = None
    every: int = EVERY
    workers: int = 1
    writer: Writer = "ours"


@dataclass(frozen=True, slots=True)
class Example:
    """The first image in which a peer broke a number."""

    ruling: Ruling
    history: int
    sync_flush: bool
    image: Image


@dataclass(frozen=True, slots=True)
class StateVerdict:
    """The verdicts on one crash state.

    `own` is the number that our store breaks, and the sentence; None if it breaks none. `peer` are the numbers that
    the peer breaks.
    """

    own: tuple[int, str] | None
    peer: tuple[int, ...]


@dataclass
class HistoryVerdicts:
    """The verdicts on the states of one history, in order.

    `examples` has the first example of each number, with the index of its state. `is_cut` says that an interrupt ended
    the history early. `ended_by` is the promise that the peer broke while it was recorded, empty if none.
    """

    number: int
    sync_flush: bool
    states: list[StateVerdict] = field(default_factory=list)
    examples: dict[int, tuple[int, Example]] = field(default_factory=dict)
    proven_legal: int = 0
    starts: int = 0
    peer_seconds: float = 0.0
    is_cut: bool = False
    ended_by: str = ""


@dataclass
class PeerExploration:
    """Counts of a run.

    `peer_broken` and `own_broken` count the states in which a number is broken, `peer_states` and `own_states` those in
    which any number is. `by_flush` has the states and the broken states of the peer for each flush type. `lost` has a
    sentence for each history whose process died, or that the peer ended early.
    """

    peer: str
    states: int = 0
    histories: int = 0
    proven_legal: int = 0
    peer_states: int = 0
    own_states: int = 0
    peer_broken: Counter[int] = field(default_factory=Counter)
    own_broken: Counter[int] = field(default_factory=Counter)
    own_sentences: dict[int, str] = field(default_factory=dict)
    by_flush: dict[str, Counter[str]] = field(default_factory=dict)
    examples: dict[int, Example] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    starts: int = 0
    seconds: float = 0.0
    peer_seconds: float = 0.0
    interrupted: bool = False

    def add(self, made: HistoryVerdicts, states_max: int | None) -> None:
        """Add the verdicts on a history, up to a number of states in the whole run."""
        count = len(made.states) if states_max is None else min(len(made.states), states_max - self.states)
        self.histories += 1
        self.proven_legal += made.proven_legal
        self.starts += made.starts
        self.peer_seconds += made.peer_seconds
        if made.ended_by:
            self.lost.append(f"history {made.number}: the peer broke a promise while it was recorded: {made.ended_by}")
        flush = self.by_flush.setdefault("sync" if made.sync_flush else "async", Counter())
        for verdict in made.states[:count]:
            self.states += 1
            self.peer_states += bool(verdict.peer)
            self.peer_broken.update(verdict.peer)
            flush["states"] += 1
            flush["broken"] += bool(verdict.peer)
            if verdict.own is not None:
                number, sentence = verdict.own
                self.own_states += 1
                self.own_broken[number] += 1
                self.own_sentences.setdefault(number, sentence)
        for number, (index, example) in made.examples.items():
            if index < count:
                self.examples.setdefault(number, example)


def explore_with_peer(
    release: Release,
    plan: PeerPlan,
    *,
    progress: Callable[[int, float], None] = lambda states, seconds: None,
) -> PeerExploration:
    """Run histories until a limit of the plan is reached.

    An interrupt ends the run and keeps its results. A history whose process died is left out and named. Raises
    PeerUnavailable, HarnessError.
    """
    result = PeerExploration(f"rocketmq:{release.version}")
    started = perf_counter()

    def watch(told: PartProgress) -> None:
        progress(result.states + told.count, perf_counter() - started)

    work = Work(
        job=_Histories(release, plan), parts=itertools.count(), workers=plan.workers, seconds=plan.seconds,
        holds_interrupts=True, watch=watch,
    )  # fmt: skip
    with closing(work.results()) as results:
        for number, made in results:
            if isinstance(made, Died):
                result.lost.append(f"history {number}: its process {made.how}")
                continue
            result.add(made, plan.states)
            progress(result.states, perf_counter() - started)
            if plan.states is not None and result.states >= plan.states:
                break
    if result.lost and not result.states:
        raise HarnessError(result.lost[0])
    result.interrupted, result.seconds = work.interrupted, perf_counter() - started
    return result


@dataclass(frozen=True, slots=True)
class _Histories:
    """The job of a run: a part is the number of a history."""

    release: Release
    plan: PeerPlan

    @contextmanager
    def opened(self) -> Iterator[Callable[[int, Control], HistoryVerdicts]]:
        """Return the function that carries out one history.

        Its JVM lives as long as the context.
        """
        with (
            choose_tracker("auto") as tracker,
            Process(self.release) as process,
            scratch_directory("tornpage-peer-images-", below=memory_directory()) as work,
        ):

            def carry_out(number: int, control: Control) -> HistoryVerdicts:
                made, starts = HistoryVerdicts(number, sync_flush=number % 2 == 1), process.starts
                by_writer = self._of_ours if self.plan.writer == "ours" else self._of_the_peer
                for _ in by_writer(made, process, tracker, Path(work) / "store"):
                    control.tell(len(made.states), str(number))
                    if control.is_stopped() or control.is_over():
                        made.is_cut = True
                        break
                made.starts = process.starts - starts
                return made

            yield carry_out

    def _of_ours(
        self, made: HistoryVerdicts, process: Process, tracker: DirtyTracker, directory: Path
    ) -> Iterator[None]:
        """Judge the crash states of a history of our store, one at a time."""
        history = _History(self.plan, made.number, tracker)
        for state in history.states():
            _judge(process, history, state, directory, made)
            made.proven_legal = history.proven_legal
            yield

    def _of_the_peer(
        self, made: HistoryVerdicts, process: Process, tracker: DirtyTracker, directory: Path
    ) -> Iterator[None]:
        """Record a history of the peer and judge its crash states, one at a time."""
        plan = self.plan
        with closing(
            OwnHistory(self.release, plan.settings, seed=plan.seed, number=made.number, every=plan.every)
        ) as history:
            made.ended_by = history.ended_by
            for state in history.states():
                _judge_own(process, state, directory, made, bug=plan.settings.bug)
                made.proven_legal = history.proven_legal
                yield


# ---- histories -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _State:
    """One crash: its image, its place, and the log after the running operation."""

    image: Image
    after: CommitLog
    event: int
    at_rest: bool
    span: int


class _History:
    """One recorded run of our store, and its crash states."""

    def __init__(self, plan: PeerPlan, number: int, tracker: DirtyTracker) -> None:
        self.number = number
        self.proven_legal = 0
        self._rng = random.Random(f"peer {plan.seed} {number}")
        self._every = plan.every
        self.settings = replace(
            plan.settings, sync_flush=number % 2 == 1, trailer=number % 4 < 2, queue_units=64, index_slots=50,
            index_entries=400,
        )  # fmt: skip
        self.trial: Lockstep = lockstep_of(self.settings, tracker=tracker)
        self._run()

    def _run(self) -> None:
        rng, trial, puts = self._rng, self.trial, 0

        def properties() -> str:
            nonlocal puts
            puts += 1
            tags = rng.choice(("", "\x02TAGS\x01TagA", "\x02TAGS\x01TagB"))
            return f"UNIQ_KEY\x01{puts:032X}\x02KEYS\x01k{rng.randrange(12)} o{puts}{tags}"

        while puts < _PUTS:
            topic, fill = rng.choice(_TOPICS), rng.randrange(1 << 16)
            if rng.random() < 0.07:
                sizes = [rng.choice((400, 900)) for _ in range(rng.randrange(2, 5))]
                members = tuple(Member(body_bytes=size, fill=fill, properties=properties()) for size in sizes)
                trial.run(PutBatch(topic=topic, members=members))
            else:
                size = rng.choice((40, 400, 900, 900, 1400, 1900))
                trial.run(Put(topic=topic, body_bytes=size, fill=fill, properties=properties()))
            if rng.random() < 0.8:
                trial.run(Step(service="reput"))
            if rng.random() < 0.12:
                trial.run(Flush())
            if rng.random() < 0.25:
                service = rng.choice([name for name in trial.services if name != "reput"])
                trial.run(Step(service=service, after_ms=rng.choice((0, 200, 500, 1000, 10_000))))

    def states(self) -> Iterator[_State]:
        """Yield a crash state at every n-th crash point whose log has two files and ten records."""
        trial, rng = self.trial, self._rng
        base, journal, disk = trial.files.base, trial.files.journal, self.settings.disk
        state = DiskState(base, disk=disk)
        applied, point = 0, rng.randrange(self._every)
        for number, span in enumerate(trial.spans):
            is_counted = (
                span.after.committed_offset > self.settings.file_bytes * (_FILES_MIN - 1)
                and len(span.after.records) >= _RECORDS_MIN
            )
            for event in range(span.first, span.last + 1):
                position = trial.files.events[event] if event < span.last else applied
                state.apply_all(journal[applied:position])
                applied = max(applied, position)
                if not is_counted:
                    continue
                point += 1
                if point % self._every:
                    continue
                survived = {} if disk == "kill" else draw(in_flight_writes(state), rng)
                image = compose(state, survived)
                if point // self._every % _LEGALITY_EVERY == 0:
                    assert_legal(base, journal, applied, survived, image, disk=disk)
                    self.proven_legal += 1
                yield _State(image, span.after, event, event == span.last, number)


# ---- one state -------------------------------------------------------------------------------------------------------


def _judge(process: Process, history: _History, state: _State, directory: Path, made: HistoryVerdicts) -> None:
    """Let our store and the peer recover one image, and count what they break."""
    trial, settings = history.trial, history.settings
    legal = trial.recovery.legal_at(trial.spans[state.span], at_rest=state.at_rest, kill=settings.disk == "kill")
    own: tuple[int, str] | None = None
    try:
        found = trial.recovery.judged(trial.pair.last_disk(state.image), legal, trial.recovery.versions_at(state.event))
        trial.environment.give_up(found.store)
    except GuaranteeBroken as broken:
        own = broken.contract, str(broken)
    started = perf_counter()
    rulings = _peer_rulings(process, history, state, directory, floor=min(key[0] for key in legal))
    made.peer_seconds += perf_counter() - started
    broken_numbers = [ruling for ruling in rulings if ruling.verdict == "broken"]
    for ruling in broken_numbers:
        example = Example(ruling, history.number, settings.sync_flush, state.image)
        made.examples.setdefault(ruling.contract, (len(made.states), example))
    made.states.append(StateVerdict(own, tuple(ruling.contract for ruling in broken_numbers)))


def _judge_own(process: Process, state: OwnState, directory: Path, made: HistoryVerdicts, *, bug: str) -> None:
    """Judge our store and the peer on one image of the peer's own writes.

    Records that had to survive and are not in the image break number 2 of the peer, which did not make them durable.
    The judges of the recovery are those of `judge --peer`. Our recovery is not repeated, so number 6 is judged for the
    peer only. An image without any file of a store is not opened.
    """
    lost = state.lost()
    rulings = [broken(2, f"{counted(lost, 'flushed record')} not made durable")] if lost else []
    own: tuple[int, str] | None = None
    if not state.is_empty:
        own, found = _judged_images(process, state, directory, made, bug=bug)
        rulings += found
    for ruling in rulings:
        example = Example(ruling, made.number, made.sync_flush, state.image)
        made.examples.setdefault(ruling.contract, (len(made.states), example))
    made.states.append(StateVerdict(own, tuple(ruling.contract for ruling in rulings)))


def _judged_images(
    process: Process, state: OwnState, directory: Path, made: HistoryVerdicts, *, bug: str
) -> tuple[tuple[int, str] | None, list[Ruling]]:
    """Return the first number that our store breaks, and the broken rulings on the peer."""
    shutil.rmtree(directory, ignore_errors=True)
    write_image(state.image, directory)
    seen = read_image(directory)
    with evidence_of(seen, override=OWN_OVERRIDE, truth=state.truth, components=parts_of(bug)) as evidence:
        broken_rulings = [ruling for ruling in rulings_on_image(evidence) if ruling.verdict == "broken"]
    own = next(((each.contract, f"contract {each.contract}: {each.sentence}") for each in broken_rulings), None)
    started = perf_counter()
    judgement = judge_with_peer(process, seen, override=OWN_OVERRIDE, truth=state.truth)
    made.peer_seconds += perf_counter() - started
    return own, [ruling for ruling in judgement.rulings if ruling.verdict == "broken"]


def _peer_rulings(process: Process, history: _History, state: _State, directory: Path, *, floor: int) -> list[Ruling]:
    """Return the rulings on the peer; `floor` is the number of records that have to survive."""
    memory, records = history.trial.memory, state.after.records
    expected = Expectation(
        ledger=memory.ledger,
        derived=memory.derived,
        records=records,
        begin=0,
        due_end=records[floor - 1].end_offset if floor else 0,
        why_due="that had to survive",
        keys=memory.derived.keys_at(state.after.end_offset)[:_KEYS_MAX],
    )
    shutil.rmtree(directory, ignore_errors=True)
    write_image(state.image, directory)
    settings = java_settings(store_config(history.settings))
    first = ask(process, str(directory), settings, expected.keys)
    second = ask(process, str(directory), settings, expected.keys) if first.failed is None else None
    return rulings_on(expected, first, second, directory)[0]
