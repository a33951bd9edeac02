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
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Literal

from tornpage.peers.both_stores import BothStores
from tornpage.peers.our_histories import OurHistory
from tornpage.peers.own_histories import OwnHistory
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Process
from tornpage.peers.rocketmq.store import Mode
from tornpage.peers.verdicts import Example, HistoryVerdicts
from tornpage.properties.campaign.workers import Control, Died, PartProgress, Work
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.program.case import Settings
from tornpage.properties.scratch import memory_directory, scratch_directory

__all__ = ["EVERY", "Histories", "PeerExploration", "PeerPlan", "Writer", "explore_with_peer"]

Writer = Literal["ours", "peer"]
"""Whose writes are crashed."""

EVERY = 10
"""Every n-th crash point is taken by default."""


@dataclass(frozen=True, slots=True)
class PeerPlan:
    """A run: settings of every history, first seed, and limits.

    Every `every`-th crash point is taken. `workers` is the number of processes. `writer` says whose histories are
    crashed: those of our store, or those of the peer. `mode` is how the peer opens and closes.
    """

    settings: Settings
    seed: int = 0
    states: int | None = None
    seconds: float | None = None
    every: int = EVERY
    workers: int = 1
    writer: Writer = "ours"
    mode: Mode = "light"


@dataclass
class PeerExploration:
    """Counts of a run.

    `peer_broken` and `own_broken` count the states in which a number is broken, `peer_states` and `own_states` those in
    which any number is. `by_flush` has the states and the broken states of the peer for each flush type. `lost` has a
    sentence for each history whose process died, or that the peer ended early. `distinct` counts the images that both
    stores opened. The other states have an image that an earlier state of their history has.
    """

    peer: str
    states: int = 0
    histories: int = 0
    distinct: int = 0
    proven_legal: int = 0
    peer_states: int = 0
    own_states: int = 0
    peer_broken: Counter[int] = field(default_factory=Counter)
    own_broken: Counter[int] = field(default_factory=Counter)
    own_sentences: dict[int, str] = field(default_factory=dict)
    by_flush: dict[str, Counter[str]] = field(default_factory=dict)
    numbers_by_flush: dict[str, Counter[int]] = field(default_factory=dict)
    examples: dict[int, Example] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    starts: int = 0
    seconds: float = 0.0
    peer_seconds: float = 0.0
    interrupted: bool = False

    def add(self, made: HistoryVerdicts, states_max: int | None) -> None:
        """Add the verdicts on a history, up to a number of states in the whole run."""
        if states_max is not None:
            made = made.first(states_max - self.states)
        self.histories += 1
        self.distinct += made.distinct
        self.proven_legal += made.proven_legal
        self.starts += made.starts
        self.peer_seconds += made.peer_seconds
        if made.ended_by:
            self.ended_early(made.number, made.ended_by)
        name = "sync" if made.sync_flush else "async"
        flush, numbers = self.by_flush.setdefault(name, Counter()), self.numbers_by_flush.setdefault(name, Counter())
        for verdict in made.states:
            self.states += 1
            self.peer_states += bool(verdict.peer)
            self.peer_broken.update(verdict.peer)
            numbers.update(verdict.peer)
            flush["states"] += 1
            flush["broken"] += bool(verdict.peer)
            if verdict.own is not None:
                number, sentence = verdict.own
                self.own_states += 1
                self.own_broken[number] += 1
                self.own_sentences.setdefault(number, sentence)
        for number, (_, example) in made.examples.items():
            known = self.examples.get(number)
            if known is None or example.weight < known.weight:
                self.examples[number] = example

    def ended_early(self, history: int, promise: str) -> None:
        """Note a history that the peer ended with a broken promise."""
        self.lost.append(f"history {history}: the peer broke a promise while it was recorded: {promise}")


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
        job=Histories(release, plan), parts=itertools.count(), workers=plan.workers, seconds=plan.seconds,
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
class Histories:
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
            stores = BothStores(process, Path(work) / "store", self.plan.mode)

            def carry_out(number: int, control: Control) -> HistoryVerdicts:
                made = HistoryVerdicts(number, sync_flush=number % 2 == 1)
                starts, seconds = process.starts, stores.seconds
                stores.begin_history()
                by_writer = self._of_ours if self.plan.writer == "ours" else self._of_the_peer
                for _ in by_writer(made, stores, tracker):
                    control.tell(len(made.states), str(number))
                    if control.is_stopped() or control.is_over():
                        made.is_cut = True
                        break
                made.starts, made.peer_seconds = process.starts - starts, stores.seconds - seconds
                return made

            yield carry_out

    def _of_ours(self, made: HistoryVerdicts, stores: BothStores, tracker: DirtyTracker) -> Iterator[None]:
        """Judge the crash states of a history of our store, one at a time."""
        plan = self.plan
        history = OurHistory(plan.settings, seed=plan.seed, number=made.number, every=plan.every, tracker=tracker)
        for state in history.states():
            compared = stores.compare_ours(history, state)
            case = partial(history.case_of, state)
            made.add(compared.verdict, compared.examples(made.number, case, state.losses, state.image))
            made.proven_legal = history.proven_legal
            yield

    def _of_the_peer(self, made: HistoryVerdicts, stores: BothStores, tracker: DirtyTracker) -> Iterator[None]:
        """Record a history of the peer and judge its crash states, one at a time."""
        plan = self.plan
        with closing(
            OwnHistory(self.release, plan.settings, seed=plan.seed, number=made.number, every=plan.every)
        ) as history:
            made.ended_by = history.ended_by
            for state in history.states():
                compared = stores.compare_own(state, bug=plan.settings.bug)
                case = partial(history.case_of, state)
                made.add(compared.verdict, compared.examples(made.number, case, state.losses, state.image))
                made.proven_legal = history.proven_legal
                yield
