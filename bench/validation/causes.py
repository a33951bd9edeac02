"""Attribute the error of a prediction to its inputs.

A prediction has three measured inputs: the puts, the stalls of disk and thread, and the syncs with the wakes and
answers around them. One after another they are replaced by what was measured in the predicted slices themselves. The
change of the error is the part that this input caused. The error that is left comes from the simulator itself: from its
rules, from draws that are independent where the machine's are not, and from chance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tornpage.bench.validation.predicting import Inputs, Snapshot, calibrated_inputs, inputs_of_the_case, predicted_of
from tornpage.bench.validation.rounds import Round
from tornpage.bench.validation.scores import Scores, score
from tornpage.bench.validation.validation import Case, Validation
from tornpage.sim.device.sync_table import TooFewSamples

__all__ = ["INPUTS", "Causes", "causes_of"]

INPUTS = ("puts", "stalls", "syncs")
"""In the order of their replacement."""


@dataclass(frozen=True, slots=True)
class Causes:
    """The error of one case, and its error after the replacement of each input.

    `replaced` ends before the first input that has too few samples.
    """

    case: str
    error: Scores
    replaced: dict[str, Scores]

    def part(self, cause: str, figure: str) -> float | None:
        """Return the part of a figure's error that a cause explains; None without enough samples.

        `cause` is one of INPUTS, or "rest". All parts add up to the error.
        """
        steps = {"": self.error, **self.replaced}
        if cause == "rest":
            return getattr(steps[INPUTS[-1]], figure) if INPUTS[-1] in steps else None
        if cause not in steps:
            return None
        before = INPUTS[INPUTS.index(cause) - 1] if cause != INPUTS[0] else ""
        difference: float = getattr(steps[before], figure) - getattr(steps[cause], figure)
        return difference


def causes_of(validation: Validation, rounds: Sequence[Round], snapshot: Snapshot) -> Iterator[Causes]:
    """Yield the causes of each case of a validation of these rounds.

    Cost: three more predictions of each case.
    """
    inputs = calibrated_inputs(rounds, snapshot)
    for case in validation.cases:
        yield Causes(case.name, case.error, dict(_replaced(case, rounds, [one[case.name] for one in inputs], snapshot)))


def _replaced(
    case: Case, rounds: Sequence[Round], calibrated: Sequence[Inputs], snapshot: Snapshot
) -> Iterator[tuple[str, Scores]]:
    slices = [one.held_out[case.name] for one in rounds]
    try:
        for cause, inputs in inputs_of_the_case(case.name, rounds, calibrated, snapshot):
            yield cause, score(case.measured, predicted_of(slices, inputs))
    except TooFewSamples:
        return
