"""Let our store and a peer recover the same image, and judge both.

The peer recovers in its own process while our store recovers in this one.
"""

import shutil
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

from tornpage.model.state import CommitLog
from tornpage.peers.judging import Asked, Expectation, expectation_of, rulings_on
from tornpage.peers.our_histories import OurHistory, OurState
from tornpage.peers.own_histories import OWN_OVERRIDE, OwnState
from tornpage.peers.rocketmq.process import Process
from tornpage.peers.rocketmq.store import Mode, java_settings
from tornpage.peers.verdicts import Example, StateVerdict
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.decode.opening import open_view
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.fingerprint import fingerprint
from tornpage.properties.judge.image import SeenImage, write_image
from tornpage.properties.judge.judgement import evidence_of
from tornpage.properties.judge.judgement import rulings_on as rulings_on_image
from tornpage.properties.judge.rulings import Ruling, broken, counted
from tornpage.properties.judge.shape import look_at
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted import parts_of
from tornpage.properties.program.case import Case, Settings
from tornpage.properties.program.translation import store_config

__all__ = ["BothStores", "Compared", "expected_of"]

_KEYS_MAX = 60
_ALL_NUMBERS_EVERY = 8
_SELDOM = (14, 18)
"""Numbers of our store whose judges open it once more. They are judged in one of eight images."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The verdict on one image, and what an example of it has to tell."""

    verdict: StateVerdict
    rulings: tuple[Ruling, ...]
    due: int = 0
    peer_kept: int | None = None
    own_kept: int | None = None

    def examples(self, history: int, case: Callable[[], Case], losses: int, image: Image) -> list[Example]:
        """Return an example of each number that the peer breaks."""
        if not self.rulings:
            return []
        own = "" if self.verdict.own is None else self.verdict.own[1]
        made = case()
        return [
            Example(ruling, history, made, losses, image, self.due, self.peer_kept, self.own_kept, own)
            for ruling in self.rulings
        ]


@dataclass
class BothStores:
    """Our store, and a peer in a process. `seconds` is the time spent waiting for the peer.

    The peer recovers images in `directory`, which is removed and written for each of them.
    """

    process: Process
    directory: Path
    mode: Mode = "light"
    seconds: float = 0.0
    _known: dict[Hashable, Compared] = field(default_factory=dict)
    _count: int = 0

    def begin_history(self) -> None:
        """Forget the images of the history before."""
        self._known.clear()

    def compare_ours(self, history: OurHistory, state: OurState) -> Compared:
        """Judge both on an image of a history of our store."""
        trial, settings = history.trial, history.settings
        recovery = trial.recovery
        legal = recovery.legal_at(trial.spans[state.span], at_rest=state.at_rest, kill=settings.disk == "kill")
        floor = min(key[0] for key in legal)
        expected = expected_of(trial, state.after, floor)
        asked = self.ask(state.image, settings, expected)
        own: tuple[int, str] | None = None
        own_kept: int | None = None
        try:
            found = recovery.judged(trial.pair.last_disk(state.image), legal, recovery.versions_at(state.event))
            own_kept = found.key[0]
            trial.environment.give_up(found.store)
        except GuaranteeBroken as error:
            own = error.contract, str(error)
        rulings, kept = self.rulings(asked, expected)
        return _compared(own, rulings, due=floor, peer_kept=kept, own_kept=own_kept)

    def compare_own(self, state: OwnState, *, bug: str) -> Compared:
        """Judge both on an image of the peer's own writes.

        Records that had to survive and are not in the valid log of the image break number 2 of the peer, which did not
        make them durable. The judges of the recovery are those of `judge --peer`. Our recovery is not repeated, so
        number 6 is judged for the peer only. An image without any file of a store is not opened.
        """
        key = fingerprint(state.image.files, state.image.directories), state.puts, state.floor
        known = self._known.get(key)
        if known is not None:
            return known
        due = len(state.truth.due)
        if state.is_empty:
            compared = _compared(None, _not_durable(state.lost(())), due=due, peer_kept=None, own_kept=None)
        else:
            compared = self._compared_own(state, due, bug=bug)
        self._known[key] = _seen_before(compared)
        return compared

    def _compared_own(self, state: OwnState, due: int, *, bug: str) -> Compared:
        self._write(state.image)
        seen = SeenImage(self.directory, state.image, open_view(self.directory), ())
        look = look_at(seen, OWN_OVERRIDE)
        expected, settings = expectation_of(seen, look, state.truth)
        asked = Asked(self.process, str(self.directory), settings, expected.keys, mode=self.mode)
        self._count += 1
        without = () if self._count % _ALL_NUMBERS_EVERY == 1 else _SELDOM
        with evidence_of(
            seen, override=OWN_OVERRIDE, truth=state.truth, components=parts_of(bug), look=look
        ) as evidence:
            broken_rulings = [each for each in rulings_on_image(evidence, without=without) if each.verdict == "broken"]
            own_kept = len(evidence.after.records) if evidence.did_open else None
        own = next(((each.contract, f"contract {each.contract}: {each.sentence}") for each in broken_rulings), None)
        found, kept = self.rulings(asked, expected)
        rulings = [*_not_durable(state.lost(look.log.records)), *found]
        return _compared(own, rulings, due=due, peer_kept=kept, own_kept=own_kept)

    def ask(self, image: Image, settings: Settings, expected: Expectation) -> Asked:
        """Begin the recoveries of an image of our store's writes by the peer."""
        self._write(image)
        java = java_settings(store_config(settings))
        return Asked(self.process, str(self.directory), java, expected.keys, mode=self.mode)

    def rulings(self, asked: Asked, expected: Expectation) -> tuple[list[Ruling], int | None]:
        """Return the rulings on the peer, and how many records it kept."""
        started = perf_counter()
        first, second = asked.answers()
        self.seconds += perf_counter() - started
        return rulings_on(expected, first, second, self.directory)

    def _write(self, image: Image) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        write_image(image, self.directory)


def expected_of(trial: Lockstep, after: CommitLog, floor: int) -> Expectation:
    """Return what a peer has to keep of our log; `floor` records have to survive."""
    memory, records = trial.memory, after.records
    return Expectation(
        ledger=memory.ledger,
        derived=memory.derived,
        records=records,
        begin=0,
        due_end=records[floor - 1].end_offset if floor else 0,
        why_due="that had to survive",
        keys=memory.derived.keys_at(after.end_offset)[:_KEYS_MAX],
    )


def _compared(
    own: tuple[int, str] | None,
    rulings: Iterable[Ruling],
    *,
    due: int,
    peer_kept: int | None,
    own_kept: int | None,
) -> Compared:
    """Return the verdict of these rulings. Each number counts once."""
    first = {ruling.contract: ruling for ruling in reversed([each for each in rulings if each.verdict == "broken"])}
    numbers = tuple(sorted(first))
    return Compared(StateVerdict(own, numbers), tuple(first[each] for each in numbers), due, peer_kept, own_kept)


def _not_durable(lost: int) -> list[Ruling]:
    return [broken(2, f"{counted(lost, 'flushed record')} not made durable")] if lost else []


def _seen_before(compared: Compared) -> Compared:
    return Compared(replace(compared.verdict, is_new=False), ())
