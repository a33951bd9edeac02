"""Crash states of histories of our store, for a peer to open too.

A history puts 44 messages into log files of a few KiB, with flushes and steps of the services between the puts. Half of
the histories flush synchronously. It is recorded once, and its crash states are composed into images.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tornpage.model.operations import Choice, Crash, Flush, Member, Operation, Put, PutBatch, Step
from tornpage.model.state import CommitLog
from tornpage.properties.disk.certificate import assert_legal
from tornpage.properties.disk.choosing import chosen, exceptions, fewest_exceptions, lost_writes
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.images import InFlightWrite, compose, in_flight_writes
from tornpage.properties.disk.sampling import draw
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Case, Settings

__all__ = ["FILES_MIN", "RECORDS_MIN", "OurHistory", "OurState", "crash_of", "settings_of_history"]

_PUTS = 44
_TOPICS = ("TopicA", "TopicB", "TopicC")
_LEGALITY_EVERY = 8
FILES_MIN, RECORDS_MIN = 2, 10
"""How many files and records the log has at least at a crash point."""


def settings_of_history(settings: Settings, number: int) -> Settings:
    """Return the settings of a history.

    One in two flushes synchronously, and one in two has checksums of all bytes.
    """
    return replace(
        settings, sync_flush=number % 2 == 1, trailer=number % 4 < 2, queue_units=64, index_slots=50, index_entries=400
    )


@dataclass(frozen=True, slots=True)
class OurState:
    """One crash: its image, its place, and the log after the running operation.

    `losses` in-flight writes did not survive `crash`.
    """

    image: Image
    after: CommitLog
    event: int
    at_rest: bool
    span: int
    crash: Crash
    losses: int


def crash_of(
    writes: list[InFlightWrite], survived: Mapping[str, Choice], *, back: int, kill: bool
) -> tuple[Crash, int]:
    """Return the crash of a case, and the number of writes that it loses."""
    if kill:
        return Crash(kill=True, back=back), 0
    named, others = fewest_exceptions(writes, survived)
    return Crash(back=back, survived=named, others=others), len(lost_writes(writes, survived))


class OurHistory:
    """One recorded run of our store, and its crash states.

    `operations` replaces the drawn ones, and `settings` are then taken as they are.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        seed: int = 0,
        number: int = 0,
        every: int = 1,
        tracker: DirtyTracker,
        operations: Sequence[Operation] | None = None,
    ) -> None:
        self.number = number
        self.proven_legal = 0
        self._rng = random.Random(f"peer {seed} {number}")
        self._every = every
        self.settings = settings if operations is not None else settings_of_history(settings, number)
        self.trial: Lockstep = lockstep_of(self.settings, tracker=tracker)
        if operations is None:
            self._run()
        for operation in operations or ():
            self.trial.run(operation)

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

    def states(self) -> Iterator[OurState]:
        """Yield a crash state at every n-th crash point whose log has two files and ten records."""
        trial, rng = self.trial, self._rng
        base, journal, disk = trial.files.base, trial.files.journal, self.settings.disk
        state = DiskState(base, disk=disk)
        applied, point = 0, rng.randrange(self._every)
        for number, span in enumerate(trial.spans):
            is_counted = (
                span.after.committed_offset > self.settings.file_bytes * (FILES_MIN - 1)
                and len(span.after.records) >= RECORDS_MIN
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
                writes = [] if disk == "kill" else in_flight_writes(state)
                survived = draw(writes, rng) if writes else {}
                image = compose(state, survived)
                if point // self._every % _LEGALITY_EVERY == 0:
                    assert_legal(base, journal, applied, survived, image, disk=disk)
                    self.proven_legal += 1
                crash, losses = crash_of(writes, survived, back=span.last - event, kill=disk == "kill")
                yield OurState(image, span.after, event, event == span.last, number, crash, losses)

    def case_of(self, state: OurState) -> Case:
        """Return the operations up to a crash, and the crash."""
        return Case(self.settings, (*self.trial.performed[: state.span], state.crash))

    def state_at(self, crash: Crash) -> tuple[OurState, Case]:
        """Return the state of a crash in the last operation.

        The case names the lost writes as exceptions from a disk that kept all of them.
        """
        trial, disk = self.trial, self.settings.disk
        span = trial.spans[-1]
        back = min(crash.back, span.last - span.first)
        state = DiskState(trial.files.base, disk=disk)
        state.apply_all(trial.files.journal[: trial.position(back)])
        writes = [] if disk == "kill" else in_flight_writes(state)
        choices = chosen(writes, crash.survived, crash.others)
        _, losses = crash_of(writes, choices, back=back, kill=disk == "kill")
        made = replace(
            crash, kill=disk == "kill", back=back, survived=exceptions(writes, choices, "kept"), others="kept"
        )
        found = OurState(
            compose(state, choices), span.after, span.last - back, back == 0, len(trial.spans) - 1, made, losses
        )
        return found, self.case_of(found)
