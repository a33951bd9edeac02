"""Test the judges of an open after a clean exit, with stores without a proof."""

from collections.abc import Iterator

import pytest

from tornpage.impl.dispatch.derived_floor import DerivedFloor, DerivedProof
from tornpage.impl.parts import Parts
from tornpage.impl.recovery.derived_proof import checksums_hold
from tornpage.model.operations import Close, Open, Operation, Put, Step
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

PROGRAM: tuple[Operation, ...] = (Put(), Put(), Step("reput"), Close(), Open())


class _NeverWritten(DerivedFloor):
    def write(self, proof: DerivedProof) -> None:
        pass


@pytest.fixture(scope="module")
def tracker() -> Iterator[DirtyTracker]:
    with choose_tracker("auto") as chosen:
        yield chosen


def run_program(parts: Parts, tracker: DirtyTracker) -> Lockstep:
    """Run the program on a store with other parts. Raises GuaranteeBroken."""
    trial = lockstep_of(Settings(), tracker=tracker, parts=parts)
    for operation in PROGRAM:
        trial.run(operation)
    return trial


def broken_by(parts: Parts, tracker: DirtyTracker) -> tuple[int, str]:
    """Return the contract and the sentence that a store with other parts breaks."""
    with pytest.raises(GuaranteeBroken) as broken:
        run_program(parts, tracker)
    return broken.value.contract, broken.value.sentence


def test_the_store_itself_holds(tracker: DirtyTracker) -> None:
    trial = run_program(Parts(), tracker)
    assert trial.coverage["left_a_proof"] == trial.coverage["used_a_proof"] == 1


def test_a_floor_that_is_never_written(tracker: DirtyTracker) -> None:
    assert broken_by(Parts({DerivedFloor: _NeverWritten}), tracker) == (
        16,
        "a clean exit has not written the derived floor",
    )


def test_a_floor_that_is_never_believed(tracker: DirtyTracker) -> None:
    assert broken_by(Parts({checksums_hold: lambda *_, **__: False}), tracker) == (
        16,
        "an open after a clean exit does not use the derived floor",
    )
