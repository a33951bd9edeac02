"""Crash recovery at its own file operations: sample stores recover alike.

A broken recovery is found.
"""

import pytest

from tornpage.properties.contract import Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.recovery.crashes import crash_recoveries
from tornpage.properties.explore.recovery.layouts import SAMPLE_LAYOUTS, SampleLayout
from tornpage.properties.planted import parts_of

NAMES = [shape.name for shape in SAMPLE_LAYOUTS]


def shape_of(name: str) -> SampleLayout:
    return SAMPLE_LAYOUTS[NAMES.index(name)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SAMPLE_LAYOUTS, ids=NAMES)
def test_a_shape_opens_as_it_has_to(shape: SampleLayout) -> None:
    report = crash_recoveries([shape], samples=2, losses=0)
    assert report.verdict is Verdict.HOLDS
    (found,) = report.shapes
    assert found.judgement.mode == shape.mode
    assert found.judgement.figures["crashed_recoveries"] >= 2
    assert found.judgement.figures["numbers_holds"] >= (5 if shape.mode == "read-only" else 12)


@pytest.mark.deep
@pytest.mark.parametrize("shape", SAMPLE_LAYOUTS, ids=NAMES)
def test_recovery_may_be_crashed_at_each_operation(shape: SampleLayout) -> None:
    report = crash_recoveries([shape], losses=3)
    assert report.verdict is Verdict.HOLDS
    (found,) = report.shapes
    crashes = found.judgement.crashes
    assert crashes.tried == set(range(crashes.operations))
    assert crashes.kinds["a kill"] == crashes.operations


def test_shapes_differ(tracker: DirtyTracker) -> None:
    images = [shape.make(tracker).image for shape in SAMPLE_LAYOUTS]
    assert len({frozenset(image.files.items()) for image in images}) == len(SAMPLE_LAYOUTS) >= 20
    assert len(set(NAMES)) == len(NAMES)
    assert sum(shape.mode == "read-only" for shape in SAMPLE_LAYOUTS) == 1


@pytest.mark.parametrize(
    ("bug", "shape"),
    [
        ("no-erase-after-cut", "stale tail"),
        ("erase-not-synced", "stale tail"),
        ("unlink-not-synced", "files after a cut"),
        ("RMQ-B02", "files after a cut"),
        ("newest-index-file-dropped", "lost queue file"),
        ("RMQ-B08", "empty newest file"),
    ],
)
def test_a_bug_of_recovery_is_found(bug: str, shape: str) -> None:
    report = crash_recoveries([shape_of(shape)], components=parts_of(bug), samples=6)
    assert report.verdict is Verdict.BROKEN


def test_an_interrupted_run_says_what_it_has() -> None:
    def stop(name: str) -> None:
        if name == NAMES[1]:
            raise KeyboardInterrupt

    report = crash_recoveries(samples=1, losses=0, progress=stop)
    assert report.interrupted
    assert [found.shape.name for found in report.shapes] == NAMES[:1]


def test_a_run_that_crashes_nothing_is_vacuous() -> None:
    assert crash_recoveries([shape_of("one file")], samples=0).verdict is Verdict.VACUOUS
    assert crash_recoveries([]).verdict is Verdict.VACUOUS
