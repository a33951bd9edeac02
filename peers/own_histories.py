"""Crash states of a peer's own writes.

A live peer is recorded once, and its crash states are composed many times. It runs as a store under test
(properties/foreign): its system calls are traced and its files are compared at each call. A history puts 44 messages,
with flushes between them. Half of the histories flush synchronously. What had to survive a crash state is what the peer
had acknowledged and flushed by then; the image itself says what its log is.
"""

import random
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from tornpage.model.operations import Choice, Crash, Flush, Operation, Put
from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.our_histories import FILES_MIN, RECORDS_MIN, crash_of
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import OPENED
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.decode.record import Record
from tornpage.properties.disk.certificate import assert_legal
from tornpage.properties.disk.choosing import chosen, exceptions
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.images import InFlightWrite, compose, in_flight_writes
from tornpage.properties.disk.sampling import draw
from tornpage.properties.foreign.process import StoreFailed
from tornpage.properties.foreign.protocol import TargetUnusable
from tornpage.properties.foreign.trial import TargetSpan, TargetTrial
from tornpage.properties.judge.image import AcknowledgedRecord, Truth
from tornpage.properties.judge.shape import SettingsOverride
from tornpage.properties.program.case import Case, Disk, Settings
from tornpage.properties.program.log_places import ROOT

__all__ = ["OWN_OVERRIDE", "OwnHistory", "OwnState"]

_PUTS = 44
_TOPICS = ("TopicA", "TopicB", "TopicC")
_FILE_BYTES = 16384
_NUMBERS = {
    "mappedFileSizeCommitLog": _FILE_BYTES,
    "mappedFileSizeConsumeQueue": 1280,
    "maxHashSlotNum": 50,
    "maxIndexNum": 400,
}
_TIMES = {"maxMessageSize": 8192, "diskMaxUsedSpaceRatio": 95}
_ANSWER_S = 120.0
_LEGALITY_EVERY = 8
_SIGNS = ("commitlog", "checkpoint", "abort", "lock", "consumequeue")
_DRAWS = 8
"""How many states of a power loss are drawn at one crash point, since a recording costs more than an image."""

_INDEX = re.compile(r"/index/[0-9]{17}")

OWN_OVERRIDE = SettingsOverride(numbers=_NUMBERS)
"""The settings of the recorded peer, for the judges of its images."""


@dataclass(frozen=True, slots=True)
class OwnState:
    """One crash state of a peer's own writes.

    `truth` is what had been put, and what had to survive. It is the same for equal `puts` and an equal `floor`.
    `operations` counts the operations before the crash, of which `losses` in-flight writes did not survive.
    """

    image: Image
    truth: Truth
    puts: int = 0
    floor: int = 0
    operations: int = 0
    crash: Crash = field(default_factory=Crash)
    losses: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing of a store survived, since no directory was ever synced."""
        there = {*self.image.directories, *self.image.files}
        return there.isdisjoint(f"{ROOT}/{name}" for name in _SIGNS)

    def lost(self, readable: Iterable[Record]) -> int:
        """Return how many records that had to survive are not readable in the image.

        The readable records are those of its valid log. A record past a hole is lost too: no recovery may keep it,
        since the log has to stay a prefix of what was appended. The peer did not make these records durable.
        """
        held = {record.offset: record for record in readable}
        return sum(each.offset not in held or not each.is_record(held[each.offset]) for each in self.truth.due)


class OwnHistory:
    """One recorded run of a peer. Close it at the end.

    A promise that the peer breaks while it runs ends the history early; `ended_by` names it. Raises PeerUnavailable if
    the peer cannot be recorded on this machine. `operations` replaces the drawn ones, and the settings then say the
    flush type.
    """

    def __init__(
        self,
        release: Release,
        settings: Settings,
        *,
        seed: int = 0,
        number: int = 0,
        every: int = 1,
        operations: Sequence[Operation] | None = None,
    ) -> None:
        self.number = number
        self.sync_flush = settings.sync_flush if operations is not None else number % 2 == 1
        self.proven_legal = 0
        self.ended_by = ""
        self._settings, self._disk, self._every = settings, settings.disk, every
        self._rng = random.Random(f"own {seed} {number}")
        command = _command(release, sync_flush=self.sync_flush)
        traced = replace(settings, target=f"cmd:{shlex.join(command)}", answer_seconds=_ANSWER_S, bug="")
        try:
            self._trial = TargetTrial(traced)
        except (TargetUnusable, StoreFailed) as error:
            raise PeerUnavailable(f"the peer cannot be recorded here: {error}") from error
        try:
            if self._trial.why_no_power_loss:
                raise PeerUnavailable(f"the peer cannot be recorded here: {self._trial.why_no_power_loss}")
            try:
                if operations is None:
                    self._run()
                for operation in operations or ():
                    self._trial.run(operation)
            except GuaranteeBroken as broken:
                self.ended_by = str(broken)
            self._records = self._acknowledged()
        except BaseException:
            self._trial.end()
            raise

    def close(self) -> None:
        """Kill the recorded peer and remove its directory."""
        self._trial.end()

    def disk(self, model: Disk) -> DiskState:
        """Return the recorded disk after all operations, with the rules of a model."""
        state = DiskState(self._trial.files.base, disk=model)
        state.apply_all(self._trial.files.journal)
        return state

    def _run(self) -> None:
        rng = self._rng
        for number in range(_PUTS):
            self._trial.run(
                Put(
                    topic=rng.choice(_TOPICS), body_bytes=rng.choice((40, 400, 900, 900, 1400, 1900)),
                    body_kind="random", fill=rng.randrange(1 << 16),
                    properties=f"KEYS\x01k{rng.randrange(12)} o{number}",
                )
            )  # fmt: skip
            if rng.random() < 0.12:
                self._trial.run(Flush())

    def _acknowledged(self) -> list[tuple[int, AcknowledgedRecord]]:
        """Return each record with its end in the reference, as the files of the peer have it."""
        trial = self._trial
        disk = self.disk("kill")
        names, _ = disk.visible()
        files = {path: bytes(disk.inodes[number].latest()) for path, number in names.items()}
        found = []
        state = trial.book.state
        for record in state.log.records:
            offset = state.offsets[record.offset]
            base = offset // _FILE_BYTES * _FILE_BYTES
            content = files[f"/commitlog/{base:020d}"][offset - base :]
            size = int.from_bytes(content[:4], "big")
            digest = sha256(content[:size]).hexdigest()
            found.append((record.end_offset, AcknowledgedRecord(offset, size, digest, flushed=False)))
        return found

    def states(self) -> Iterator[OwnState]:
        """Yield a crash state at every n-th crash point whose log has two files and ten records."""
        trial, rng = self._trial, self._rng
        base, journal = trial.files.base, trial.files.journal
        state, applied, point = DiskState(base, disk=self._disk), 0, rng.randrange(self._every)
        for span in trial.spans:
            for event in range(span.first, span.last):
                position = trial.files.events[event]
                state.apply_all(journal[applied:position])
                applied = max(applied, position)
                if not self._is_counted(span):
                    continue
                point += 1
                if point % self._every:
                    continue
                is_kill = self._disk == "kill"
                writes = [] if is_kill else in_flight_writes(state)
                for drawn in range(1 if is_kill else _DRAWS):
                    survived = draw(writes, rng) if writes else {}
                    image = compose(state, survived)
                    if (point // self._every + drawn) % _LEGALITY_EVERY == 0:
                        assert_legal(base, journal, applied, survived, image, disk=self._disk)
                        self.proven_legal += 1
                    crash, losses = crash_of(writes, survived, back=span.last - event, kill=is_kill)
                    yield OwnState(
                        _below_root(image), self._truth(span), len(span.after.log.records), self._floor(span),
                        span.operations, crash, losses,
                    )  # fmt: skip

    def _is_counted(self, span: TargetSpan) -> bool:
        count = len(span.before.log.records)
        return count >= RECORDS_MIN and self._records[count - 1][1].offset >= _FILE_BYTES * (FILES_MIN - 1)

    def case_of(self, state: OwnState) -> Case:
        """Return the operations up to a crash, and the crash. The store of the case is the peer."""
        settings = replace(self._settings, sync_flush=self.sync_flush)
        return Case(settings, (*self._trial.performed[: state.operations], state.crash))

    def state_at(self, crash: Crash) -> tuple[OwnState, Case]:
        """Return the state of a crash in the last operation.

        The case names the lost writes as exceptions from a disk that kept all of them.
        """
        trial, is_kill = self._trial, self._disk == "kill"
        span = trial.spans[-1]
        back = min(max(crash.back, 1), span.last - span.first)
        state = DiskState(trial.files.base, disk=self._disk)
        state.apply_all(trial.files.journal[: trial.position(back)])
        writes = [] if is_kill else in_flight_writes(state)
        choices = chosen(writes, _index_names_of(writes, crash.survived), crash.others)
        _, losses = crash_of(writes, choices, back=back, kill=is_kill)
        made = replace(crash, kill=is_kill, back=back, survived=exceptions(writes, choices, "kept"), others="kept")
        found = OwnState(
            _below_root(compose(state, choices)), self._truth(span), len(span.after.log.records), self._floor(span),
            span.operations, made, losses,
        )  # fmt: skip
        return found, self.case_of(found)

    def _floor(self, span: TargetSpan) -> int:
        """Return the end of the records that had to survive, in the reference."""
        return int(span.before.reference.floor("kill" if self._disk == "kill" else "power"))

    def _truth(self, span: TargetSpan) -> Truth:
        """Return what was put up to an operation, its own record included.

        `flushed` marks the records that had to survive: after a kill those that were acknowledged before the operation.
        """
        floor = self._floor(span)
        put = self._records[: len(span.after.log.records)]
        records = {each.offset: replace(each, flushed=end <= floor) for end, each in put}
        return Truth(records, power_loss=True, has_copies=False)


def _index_names_of(writes: Sequence[InFlightWrite], survived: Mapping[str, Choice]) -> dict[str, Choice]:
    """Return the choices with the names that index files have in this recording.

    The name of an index file is the time at which it was made. The files keep their order.
    """
    there = sorted({found[0] for write in writes if (found := _INDEX.search(write.name))})
    before = sorted({found[0] for name in survived if (found := _INDEX.search(name))})
    names = dict(zip(before, there, strict=False))
    return {_INDEX.sub(lambda found: names.get(found[0], found[0]), name): each for name, each in survived.items()}


def _below_root(image: Image) -> Image:
    directories = {ROOT if path == "/" else f"{ROOT}{path}" for path in image.directories}
    return Image(frozenset({"/", *directories}), {f"{ROOT}{path}": content for path, content in image.files.items()})


def _command(release: Release, *, sync_flush: bool) -> list[str]:
    settings = [text for name, number in (_NUMBERS | _TIMES).items() for text in (name, str(number))]
    return [
        release.java,
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
        "-Xmx128m",
        "-XX:-UsePerfData",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        release.classpath,
        "peer.Target",
        "{dir}",
        "sync" if sync_flush else "async",
        *settings,
    ]
