"""Shrink counterexamples of a peer, by the search that shrinks ours.

The search is in properties/campaign/shrink.py. A try records the operations of a case once more, crashes the last one,
and lets both stores recover the image. It counts if the peer breaks the same number. A recording is kept for the next
try, so that only other operations cost another one. The peer's timers run by the real clock: a case that fails at times
only may stay larger than needed.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tornpage.model.operations import Crash, Operation
from tornpage.peers.both_stores import BothStores, Compared
from tornpage.peers.errors import PeerError
from tornpage.peers.our_histories import OurHistory
from tornpage.peers.own_histories import OwnHistory
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Process
from tornpage.peers.rocketmq.store import Mode
from tornpage.peers.verdicts import Example
from tornpage.properties.campaign.shrink import Budget, Shrinking
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.program.case import Case, Settings
from tornpage.properties.scratch import memory_directory, scratch_directory

__all__ = ["SECONDS", "shrink_examples"]

SECONDS = 20.0
"""Seconds allowed to shrink one counterexample."""
_TRIES_MAX = 2_000


@dataclass(frozen=True, slots=True)
class _Found:
    """A failing case, and what an example of it tells."""

    case: Case
    losses: int
    example: Example


def shrink_examples(
    examples: dict[int, Example],
    release: Release,
    *,
    is_own: bool,
    mode: Mode = "light",
    seconds: float = SECONDS,
    progress: Callable[[int, int], None] = lambda number, tries: None,
) -> dict[int, Example]:
    """Return each example as small as `seconds` allow.

    `is_own` says that the histories are the peer's own. An interrupt ends the search with what it has. A peer that
    fails in between leaves the examples as they are.
    """
    made = dict(examples)
    if not seconds or not examples:
        return made
    with _replays(release, mode, is_own=is_own) as replays:
        for number, example in sorted(examples.items()):
            try:
                made[number] = _shrunk(example, replays, seconds, partial(progress, number))
            except PeerError:
                return made
            except KeyboardInterrupt:
                return made
    return made


def _shrunk(example: Example, replays: "_Replays", seconds: float, progress: Callable[[int], None]) -> Example:
    number = example.ruling.contract

    def failing(case: Case) -> _Found | None:
        return replays.failing(case, number, example.history)

    again = failing(example.case)
    if again is None:
        return replace(example, how="not shrunk: it does not show again when the history is recorded once more")
    budget = Budget(_TRIES_MAX, seconds)
    shrinking = Shrinking(again, failing, budget, watch=lambda tries, operations, losses: progress(tries))
    shrinking.run()
    small = shrinking.best.example
    if small.weight > example.weight:
        return example
    ended = {"tries": "the limit of tries", "time": "the time limit", "interrupt": "an interrupt"}
    how = "1-minimal" if shrinking.one_minimal else f"shrunk until {ended.get(budget.ended, 'the end')}"
    return replace(small, how=f"{how}, after {budget.tries} tries")


@contextmanager
def _replays(release: Release, mode: Mode, *, is_own: bool) -> Iterator["_Replays"]:
    with (
        choose_tracker("auto") as tracker,
        Process(release) as process,
        scratch_directory("tornpage-peer-images-", below=memory_directory()) as work,
        closing(_Replays(release, BothStores(process, Path(work) / "store", mode), tracker, is_own)) as replays,
    ):
        yield replays


class _Replays:
    """Runs cases in both stores.

    The last recording is kept until other operations are asked for.
    """

    def __init__(self, release: Release, stores: BothStores, tracker: DirtyTracker, is_own: bool) -> None:
        self._release, self._stores, self._tracker, self._is_own = release, stores, tracker, is_own
        self._key: tuple[Settings, tuple[Operation, ...]] | None = None
        self._ours: OurHistory | None = None
        self._own: OwnHistory | None = None
        self._open = ExitStack()

    def close(self) -> None:
        """End the recorded peer."""
        self._open.close()

    def failing(self, case: Case, number: int, history: int) -> _Found | None:
        """Return what a case shows if the peer breaks a number in it, and None otherwise."""
        operations, crash = case.operations[:-1], case.operations[-1] if case.operations else None
        if not operations or not isinstance(crash, Crash) or any(isinstance(each, Crash) for each in operations):
            return None
        try:
            self._record(case.settings, operations)
            made = self._compared(crash)
        except GuaranteeBroken:
            return None
        if made is None:
            return None
        compared, ran, losses, image = made
        examples = compared.examples(history, lambda: ran, losses, image)
        found = next((each for each in examples if each.ruling.contract == number), None)
        return None if found is None else _Found(ran, losses, found)

    def _record(self, settings: Settings, operations: tuple[Operation, ...]) -> None:
        if self._key == (settings, operations):
            return
        self._open.close()
        self._key = self._ours = self._own = None
        self._stores.begin_history()
        if self._is_own:
            self._own = OwnHistory(self._release, settings, operations=operations)
            self._open.callback(self._own.close)
        else:
            self._ours = OurHistory(settings, tracker=self._tracker, operations=operations)
        self._key = settings, operations

    def _compared(self, crash: Crash) -> tuple[Compared, Case, int, Image] | None:
        if self._own is not None:
            if self._own.ended_by:
                return None
            own, case = self._own.state_at(crash)
            self._stores.begin_history()
            return self._stores.compare_own(own, bug=""), case, own.losses, own.image
        assert self._ours is not None
        state, case = self._ours.state_at(crash)
        return self._stores.compare_ours(self._ours, state), case, state.losses, state.image
