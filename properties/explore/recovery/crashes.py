"""Crash recovery at each of its file operations, for many sample layouts (contract 6).

Each layout is judged like any crash image, with all its crash points: a kill, a power loss that keeps nothing, and
drawn ones. What is left is recovered again and must come out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tornpage.impl.parts import Parts
from tornpage.properties.contract import Verdict
from tornpage.properties.decode.consumequeue import UNIT_BYTES
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.recovery.layouts import SAMPLE_LAYOUTS, SampleLayout
from tornpage.properties.judge.image import read_image, write_image
from tornpage.properties.judge.judgement import Judgement, judge_image
from tornpage.properties.judge.shape import SettingsOverride
from tornpage.properties.program.case import Disk, Settings
from tornpage.properties.scratch import scratch_directory

__all__ = ["LayoutReport", "RecoveryReport", "crash_recoveries"]


@dataclass(frozen=True, slots=True)
class LayoutReport:
    """Report one layout: how often its recovery was crashed, and the rulings."""

    shape: SampleLayout
    judgement: Judgement

    @property
    def is_right(self) -> bool:
        """Return whether nothing is broken and the store opens as it has to."""
        return not self.judgement.numbers("broken") and self.judgement.mode == self.shape.mode

    @property
    def is_vacuous(self) -> bool:
        """Return whether recovery had no operation at which to crash it."""
        return not self.judgement.crashes.kinds


@dataclass
class RecoveryReport:
    """Report all layouts of a run; `interrupted` if the user ended it early."""

    shapes: list[LayoutReport] = field(default_factory=list)
    interrupted: bool = False

    @property
    def verdict(self) -> Verdict:
        """Return the verdict. It is broken if one layout is, and vacuous if nothing was crashed."""
        if not all(shape.is_right for shape in self.shapes):
            return Verdict.BROKEN
        is_vacuous = not self.shapes or any(shape.is_vacuous for shape in self.shapes)
        return Verdict.VACUOUS if is_vacuous else Verdict.HOLDS


def crash_recoveries(
    shapes: Sequence[SampleLayout] = SAMPLE_LAYOUTS,
    *,
    components: Parts | None = None,
    disk: Disk = "posix-strict",
    losses: int = 2,
    samples: int | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda name: None,
) -> RecoveryReport:
    """Crash the recovery of each layout at all its file operations, or at `samples` of them."""
    report = RecoveryReport()
    try:
        for shape in shapes:
            progress(shape.name)
            judgement = _judged(shape, components, disk=disk, losses=losses, samples=samples, seed=seed)
            report.shapes.append(LayoutReport(shape, judgement))
    except KeyboardInterrupt:
        report.interrupted = True
    return report


def _judged(
    shape: SampleLayout, components: Parts | None, *, disk: Disk, losses: int, samples: int | None, seed: int
) -> Judgement:
    """Write the image of a layout into a directory and judge it.

    Settings that an image does not show are given.
    """
    with choose_tracker("auto") as tracker, scratch_directory("tornpage-recovery-") as directory:
        path = Path(directory) / "store"
        made = shape.make(tracker)
        write_image(made.image, path)
        return judge_image(
            read_image(path),
            override=_given(shape.settings),
            truth=made.truth,
            components=components,
            disk=disk,
            samples=samples,
            losses=losses,
            seed=seed,
        )


def _given(settings: Settings) -> SettingsOverride:
    levels = " ".join(f"{level}s" for level in range(1, settings.delay_levels + 1))
    return SettingsOverride(
        {
            "mappedFileSizeCommitLog": settings.file_bytes,
            "mappedFileSizeConsumeQueue": settings.queue_units * UNIT_BYTES,
            "maxHashSlotNum": settings.index_slots,
            "maxIndexNum": settings.index_entries,
        },
        {
            "enableConsumeQueueExt": settings.queue_ext,
            "enableMultiDispatch": settings.multi_dispatch,
            "enableLmq": settings.light_queues,
        },
        levels,
    )
