"""Run workloads on a file system and compare what is left with the crash model."""

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tornpage.properties.contract import Verdict
from tornpage.properties.explore.real_faults.children import Page, in_child
from tornpage.properties.explore.real_faults.file_systems.block_log import copied, power_losses
from tornpage.properties.explore.real_faults.file_systems.comparing import PLANTED, Comparison
from tornpage.properties.explore.real_faults.file_systems.file_system import FILE_SYSTEMS, Kind, why_not
from tornpage.properties.explore.real_faults.file_systems.outcomes import Outcome, OutcomeFile
from tornpage.properties.explore.real_faults.file_systems.record import prepare, recorded
from tornpage.properties.explore.real_faults.file_systems.tree import read_image
from tornpage.properties.explore.real_faults.file_systems.workload import draw_workload
from tornpage.properties.explore.real_faults.mounts import Unavailable, enter_private_mounts
from tornpage.properties.scratch import scratch_directory

__all__ = ["Measured", "measure", "outcomes"]

OPERATIONS_MIN, OPERATIONS_MAX = 6, 14


@dataclass
class Measured:
    """What a run found out.

    `comparison` is with the disk of the file system, `common` with `journal`, `planted` with a wrong rule.
    """

    kind: Kind
    seed: int
    comparison: Comparison
    common: Comparison
    planted: Comparison
    workloads: int = 0
    skipped: str = ""
    interrupted: bool = False
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def caught(self) -> bool:
        """Whether the planted wrong rule was found out.

        It made a tree illegal, or it permits a loss that never happens.
        """
        return bool(self.planted.illegal) or self.planted.forgets_a_sync

    @property
    def verdict(self) -> Verdict:
        """Return vacuous without any state, or if the planted rule was not found out."""
        if self.comparison.refused or self.common.refused:
            return Verdict.HARNESS
        if self.comparison.illegal or self.common.illegal or self.comparison.unreadable:
            return Verdict.BROKEN
        return Verdict.HOLDS if self.comparison.states and self.caught else Verdict.VACUOUS

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each rule, with the number of states that made use of it."""
        rules = dict.fromkeys([*self.comparison.seen, *self.comparison.never_seen])
        return [{"rule": rule, "seen": self.comparison.seen[rule]} for rule in rules]


def measure(
    kind: Kind, *, workloads: int, states: int, seed: int = 0, progress: Callable[[str], None] = lambda _: None
) -> Measured:
    """Run `workloads` workloads with `states` power losses each.

    An interrupt ends the run and keeps the results. The mounts are in the namespace of a child process and disappear
    with it.
    """
    measured = Measured(
        kind,
        seed,
        Comparison(kind, kind),
        Comparison(kind, "journal"),
        Comparison(kind, kind, rules=PLANTED[kind]),
    )
    if (reason := why_not(kind)) is not None:
        measured.skipped = reason
        return measured
    try:
        with scratch_directory("tornpage-disk-") as base, OutcomeFile() as file:
            page = Page()

            def stage(_: Page) -> None:
                enter_private_mounts(base)
                for outcome in outcomes(kind, base, workloads=workloads, states=states, seed=seed):
                    file.write(outcome)

            try:
                in_child(page, stage, hang_seconds=0)
            except Unavailable as missing:
                measured.skipped = str(missing)
            finally:
                for outcome in file.read():
                    measured.workloads += 1
                    _compare(measured, outcome)
                    progress(f"workload {measured.workloads}")
    except KeyboardInterrupt:
        measured.interrupted = True
    return measured


def _compare(measured: Measured, outcome: Outcome) -> None:
    measured.outcomes.append(outcome)
    for mark, found in outcome.found:
        for comparison in (measured.comparison, measured.common, measured.planted):
            comparison.add(outcome.seed, outcome.operations, mark, found)


def outcomes(kind: Kind, directory: str, *, workloads: int, states: int, seed: int) -> Iterator[Outcome]:
    """Yield what each workload left.

    Only for a process with its own mounts. Raises Unavailable.
    """
    prepared = FILE_SYSTEMS[kind].formatted()
    try:
        prepare(kind, prepared, directory)
        for number in range(workloads):
            rng = random.Random(f"file systems {seed} {number}")
            operations = draw_workload(rng, length=rng.randrange(OPERATIONS_MIN, OPERATIONS_MAX + 1))
            image = copied(prepared)
            try:
                log = recorded(kind, image, directory, operations)
            finally:
                os.close(image)
            losses = power_losses(prepared, log, states, rng, whole=FILE_SYSTEMS[kind].superblock)
            found = [(loss.mark, read_image(kind, loss.image, directory)) for loss in losses]
            yield Outcome(number, tuple(operations), tuple(found))
    finally:
        os.close(prepared)
