"""Inject faults at the end of a run: corrupt files of the closed store, or fail its I/O.

One fault of each class is injected in turn. `end_fault_classes` lists the classes. A campaign in which one of them was
never hit is vacuous. Changes of single records are classes as well, but only rows of covering arrays have them, and no
campaign has to hit them.
"""

import random
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from tornpage.model.operations import (
    AimFault,
    ClaimChange,
    ClockStep,
    CommitOffset,
    Crash,
    Damage,
    DamageKind,
    DelayOffsetsAre,
    DeleteTopics,
    DerivedFile,
    DerivedHarm,
    DiskUsed,
    FieldName,
    Flush,
    HarmDerived,
    HarmField,
    HarmNumbers,
    HarmOpen,
    HarmProgress,
    Open,
    OpenTwice,
    Operation,
    ProgressHarm,
    Put,
    ReadBefore,
    Step,
    UnitsHarm,
    WrongClaim,
)
from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.disk.disk import DiskState
from tornpage.properties.disk.images import in_flight_writes
from tornpage.properties.disk.sampling import draw
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.program.case import Disk
from tornpage.properties.program.fault_effects import EFFECTS
from tornpage.properties.program.fault_stories import draw_fault_rule, story

__all__ = [
    "ANY_END",
    "FIELDS",
    "READS_BEFORE",
    "UNITS_HARMS",
    "EndChoices",
    "EndFaults",
    "count_fault_rules",
    "end_fault_classes",
]

DAMAGES: tuple[DamageKind, ...] = get_args(DamageKind)
HARMS: tuple[DerivedHarm, ...] = get_args(DerivedHarm)
HARMED: tuple[DerivedFile, ...] = get_args(DerivedFile)
PROGRESS_HARMS: tuple[ProgressHarm, ...] = get_args(ProgressHarm)
Beside = Literal["", "queue", "index"]
_BESIDE: tuple[Beside, ...] = ("", "", "queue", "index")
"""The file corrupted together with the log. If there is none, everything that verifies must be served."""
_DELAY_HARMS: tuple[Literal["lost", "garbage"], ...] = ("lost", "garbage")
_AIMED = {name: f"aimed_{name.replace('-', '_')}" for name in EFFECTS}
_CLOCKS_MS = {"clock_forward": 90_000, "clock_back": -90_000}
_TRIES = 3
_FAR_MS = 60_000
FIELDS: Mapping[str, tuple[FieldName, ...]] = {
    "place": ("queue_offset", "queue_id", "topic"),
    "content": ("body", "end", "queue_bytes"),
    "files": ("ahead", "swapped", "deleted_topics", "left_over"),
}
"""The changes of single records in a copy of the store, in groups."""
READS_BEFORE: Mapping[str, tuple[ReadBefore, ...]] = {
    "verified": ("verified", "other"),
    "failed": ("failed_check", "failed_append"),
}
"""What an open store did with a record before it is changed, in groups."""
UNITS_HARMS: tuple[UnitsHarm, ...] = get_args(UnitsHarm)
"""What happens to the queue files of a copy in which several records have wrong numbers."""
_CLAIM_CHANGES: tuple[ClaimChange, ...] = get_args(ClaimChange)
_SHIFTS = (-3, -2, -1, 1, 2, 3, 5, 20)
_COPIES = 10
_VALUES = (0, 1, 2, 3, 5, 17, 40, 1 << 20, 1 << 40, (1 << 63) - 1, -1, -(1 << 63))
"""Wrong numbers and queue ids: small ones, and those near the limits."""


def end_fault_classes(disk: Disk) -> tuple[str, ...]:
    """Return the fault classes that `EndFaults` counts on a disk.

    All apply to each disk (docs/faults.md).
    """
    return (
        *DAMAGES,
        *(f"derived_{harm}" for harm in HARMS),
        *(f"progress_file_{harm}" for harm in PROGRESS_HARMS),
        *(f"delay_offsets_{harm}" for harm in _DELAY_HARMS),
        *_AIMED.values(),
        *_CLOCKS_MS,
        "second_opener",
    )


def count_fault_rules(
    trial: Lockstep, before: Mapping[str, int], tally: Tally, *, fault_rules: Iterable[AimFault] = ()
) -> None:
    """Add the counts of I/O fault rules, by class and by rule, since `before` to a tally."""
    for name in (*_AIMED.values(), *(each.text for each in fault_rules)):
        for what, counter in (("armed", tally.enabled), ("fired", tally.hit), ("mattered", tally.effective)):
            if more := trial.coverage[f"{name}_{what}"] - before.get(f"{name}_{what}", 0):
                counter[name] += more


@dataclass(frozen=True, slots=True)
class EndChoices:
    """What the faults at the end of a run choose instead of drawing it.

    `fault_rule` is the I/O fault rule of its effect, `file` the derived file that is corrupted if the store has one,
    `beside` the file that is corrupted together with the log. A field that is None is drawn.
    """

    fault_rule: AimFault | None = None
    file: DerivedFile | None = None
    beside: Beside | None = None


ANY_END = EndChoices()
"""Everything is drawn."""


class EndFaults:
    """Inject one fault of each class that is `wanted`, in turn.

    `carry_out` runs an operation on the lockstep run and records it.
    """

    def __init__(
        self,
        trial: Lockstep,
        carry_out: Callable[[Operation], None],
        *,
        rng: random.Random,
        tally: Tally,
        wanted: Callable[[str], bool] = lambda name: True,
        choices: EndChoices = ANY_END,
    ) -> None:
        self._trial = trial
        self._carry_out = carry_out
        self._rng = rng
        self._tally = tally
        self._wanted = wanted
        self._choices = choices

    def everything(self) -> Iterator[None]:
        """Inject all of them; yield after each. Raises GuaranteeBroken."""
        for name, harm in self._fault_functions():
            if self._wanted(name):
                harm()
                yield

    def make_up(self, names: Container[str]) -> Iterator[None]:
        """Inject those of some classes once more on a log of several files; yield after each.

        Raises GuaranteeBroken.
        """
        for name, harm in self._fault_functions():
            if name in names:
                self._opened()
                room = self._trial.settings.file_bytes // 3
                puts = [Put(body_bytes=room, fill=number) for number in range(5)]
                operations: list[Operation] = [DiskUsed(percent=10), *puts, Flush()]
                for operation in operations:
                    self._carry_out(operation)
                harm()
                yield

    def _fault_functions(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield all fault classes in order, each with its function.

        Changes of copies come first. The opens after them are then those of a store that nothing has damaged.
        """
        for group in FIELDS:
            yield f"field_{group}", partial(self._change_fields, group)
        for units in UNITS_HARMS:
            yield f"numbers_{units}", partial(self._change_numbers, units)
        for effect in EFFECTS:
            yield _AIMED[effect], partial(self._fail_calls, effect)
        yield "second_opener", self._second_opener
        for harm in HARMS:
            yield f"derived_{harm}", partial(self._corrupt, harm)
        for lost in PROGRESS_HARMS:
            yield f"progress_file_{lost}", partial(self._corrupt_progress, lost)
        for delays in _DELAY_HARMS:
            yield f"delay_offsets_{delays}", partial(self._corrupt_delays, delays)
        for clock in _CLOCKS_MS:
            yield clock, partial(self._set_clock, clock)
        for kind in DAMAGES:
            yield kind, partial(self._damage, kind)
        for group in READS_BEFORE:
            yield f"open_record_{group}", partial(self._change_open_records, group)

    def _count(self, name: str, *, happened: bool) -> None:
        self._tally.enabled[name] += 1
        self._tally.hit[name] += happened
        self._tally.effective[name] += happened

    def _tried(self, operations: Iterable[Operation], effect: str) -> bool:
        """Carry out operations; return whether they hit a coverage point."""
        before = self._trial.coverage[effect]
        for operation in operations:
            self._carry_out(operation)
        return self._trial.coverage[effect] > before

    # ---- a failing disk, a changed clock, a second opener ------------------------------------------------------------

    def _fail_calls(self, effect: str) -> None:
        """Make drawn calls fail, or any call if the drawn ones do not occur."""
        chosen = self._choices.fault_rule
        for number in range(_TRIES):
            before = dict(self._trial.coverage)
            self._opened()
            rng, is_last = random.Random(self._rng.random()), number == _TRIES - 1
            rule = draw_fault_rule(effect, rng, anywhere=is_last)
            if chosen is not None and chosen.effect == effect and not is_last:
                rule = replace(chosen, seed=rule.seed)
            for operation in story(rule, rng, whole=is_last):
                self._carry_out(operation)
            self._carry_out(self._ending(effect))
            count_fault_rules(self._trial, before, self._tally)
            if self._trial.coverage[f"{_AIMED[effect]}_fired"] > before.get(f"{_AIMED[effect]}_fired", 0):
                break

    def _ending(self, effect: str) -> Operation:
        """Draw the end of a time under a fault. Read errors need an open."""
        drawn = self._rng.random()
        if drawn < 0.4 or effect == "read-error":
            return Open()
        if drawn < 0.6 or self._trial.settings.disk == "kill":
            return Crash(kill=True)
        return self._power_loss()

    def _power_loss(self) -> Crash:
        trial = self._trial
        state = DiskState(trial.files.base, disk=trial.settings.disk)
        state.apply_all(trial.files.journal)
        return Crash(survived=draw(in_flight_writes(state), self._rng))

    def _opened(self) -> None:
        if self._trial.closed or self._trial.log.poisoned:
            self._carry_out(Open())

    def _second_opener(self) -> None:
        self._opened()
        self._carry_out(OpenTwice())
        self._count("second_opener", happened=not self._trial.closed)

    def _set_clock(self, name: str) -> None:
        """Set the clock between an append and its checkpoint.

        Every message must be found afterwards.
        """
        self._opened()
        self._carry_out(Put(body_bytes=300))
        self._carry_out(ClockStep(by_ms=_CLOCKS_MS[name]))
        for operation in (Put(body_bytes=300), Flush(), Step("reput"), Step("flush-queues", _FAR_MS), Put()):
            self._carry_out(operation)
        self._carry_out(self._power_loss())
        self._count(name, happened=True)

    # ---- files of a closed store ---------------------------------------------------------------------------------

    def _corrupt(self, harm: DerivedHarm) -> None:
        """Corrupt files in turn until one has changed."""
        number, happened = self._rng.randrange(64), False
        order = self._rng.sample(HARMED, len(HARMED))
        if self._choices.file is not None:
            order.sort(key=lambda file: file != self._choices.file)
        for index, file in enumerate(order * 2):
            amount = self._rng.randrange(1 << 12) if index < len(HARMED) else 0
            operation = HarmDerived(file, harm, number=number, amount=amount)
            if self._tried([operation], f"{file}_{harm}"):
                happened = True
                self._count(f"harmed_{file}", happened=True)
                break
        self._count(f"derived_{harm}", happened=happened)

    def _corrupt_progress(self, harm: ProgressHarm) -> None:
        """Corrupt saved progress. Two versions are saved so that an older one exists."""
        self._opened()
        saved = (CommitOffset(queue=self._rng.randrange(8)), Step("progress", _FAR_MS))
        commits = (*saved, CommitOffset(queue=self._rng.randrange(8), behind=1)) if harm == "stale" else saved[:1]
        name = f"progress_file_{harm}"
        self._count(name, happened=self._tried((*commits, HarmProgress(harm)), name))

    def _corrupt_delays(self, kind: Literal["lost", "garbage"]) -> None:
        self._carry_out(DelayOffsetsAre(kind=kind))
        self._count(f"delay_offsets_{kind}", happened=True)

    def _damage(self, kind: DamageKind) -> None:
        """Damage the log until something has changed. The last try uses two equal new messages."""
        happened = False
        for number in range(_TRIES):
            record, amount = self._rng.randrange(1 << 10), self._rng.randrange(1 << 20)
            puts: tuple[Operation, ...] = ()
            if number or kind == "stale_page":
                record, puts = -1, (Open(), Put(body_bytes=700), Put(body_bytes=700))
            beside, harm = self._rng.choice(_BESIDE), self._rng.choice(HARMS)
            beside = beside if self._choices.beside is None else self._choices.beside
            damage = Damage(kind, record=record, amount=amount, beside=beside, beside_harm=harm)
            happened = self._tried((*puts, damage), f"damaged_{kind}")
            if happened:
                break
        self._count(kind, happened=happened)

    # ---- single records ----------------------------------------------------------------------------------------------

    def _put_some(self, *, later_ms: int = 1) -> None:
        """Put a few small messages and bring them into the queues.

        The last one comes `later_ms` after the others.
        """
        for number in range(self._rng.randrange(1, 5)):
            self._carry_out(Put(body_bytes=60 + number, fill=number, properties=self._rng.choice(("", "KEYS\x01k1"))))
        self._carry_out(Put(body_bytes=20, advance_ms=later_ms))
        self._carry_out(Step("reput"))

    def _change_fields(self, group: str) -> None:
        """Change fields of records in copies of the store.

        The last message comes long after the others, so that the checkpoint proves that the others were flushed.
        """
        happened = False
        for name in FIELDS[group]:
            self._opened()
            self._carry_out(DiskUsed(percent=10))
            self._put_some(later_ms=5_000)
            if name == "deleted_topics":
                self._carry_out(DeleteTopics())
                self._put_some()
            record, value = self._rng.randrange(-6, 1 << 10), self._rng.choice(_VALUES)
            happened |= self._tried([HarmField(name, record=record, value=value)], f"harmed_{name}")
        self._count(f"field_{group}", happened=happened)

    def _change_numbers(self, units: UnitsHarm) -> None:
        """Change the claims of several records, and the queue files, in copies of the store."""
        self._opened()
        self._carry_out(DiskUsed(percent=10))
        sizes = self._rng.choice(((10, 11, 60), (10, 1_200, 2_500)))
        for _ in range(self._rng.randrange(4, 16)):
            topic, queue_id = self._rng.choice("TTU"), self._rng.randrange(2)
            self._carry_out(Put(topic=topic, queue_id=queue_id, body_bytes=self._rng.choice(sizes)))
        self._carry_out(Step("reput"))
        harms = [self._wrong_numbers(units) for _ in range(_COPIES)]
        self._count(f"numbers_{units}", happened=self._tried(harms, f"harmed_numbers_{units}"))

    def _wrong_numbers(self, units: UnitsHarm) -> HarmNumbers:
        """Draw the changes of one copy. They are close to each other more often than not."""
        changes: list[WrongClaim] = []
        first = self._rng.choice((-4, -8, -20, -100))
        for _ in range(self._rng.randrange(1, 5)):
            change = self._rng.choice(_CLAIM_CHANGES)
            values = _SHIFTS if change in ("shift", "from_here") else _VALUES
            value = self._rng.randrange(first, 0) if change in ("other", "topic") else self._rng.choice(values)
            changes.append(WrongClaim(self._rng.randrange(first, 0), change, value))
        return HarmNumbers(tuple(changes), units, amount=self._rng.randrange(1 << 10))

    def _change_open_records(self, group: str) -> None:
        """Change records of the open store."""
        happened = False
        for before in READS_BEFORE[group]:
            self._opened()
            self._carry_out(DiskUsed(percent=10))
            self._put_some()
            effect = f"harmed_open_{before}_{self._trial.settings.verify_reads}"
            change = HarmOpen(before, record=self._rng.randrange(1 << 10), byte=self._rng.randrange(200))
            happened |= self._tried([change], effect)
        self._count(f"open_record_{group}", happened=happened)
