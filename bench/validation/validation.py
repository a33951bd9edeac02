"""Validate the simulator against the real store: calibrate, predict, compare.

A round has every slice once, in an order of its own. Each held-out slice is simulated with the same policies, the same
arrivals, and the device and puts of the calibrating slices in its own round, since a shared machine changes within
minutes and no model predicts that. Then all measured slices of a case are compared with all predicted ones.

A case passes when p50 is within 5 %, p90 and p99 within 15 %, or within the floor. The floor is the difference that two
random halves of the same measurement exceed in one of ten splits. It counts for the predicted slices and for the
calibrating slices of their kind, since a prediction varies as much as its inputs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tornpage.bench.calibration.driven import Driven
from tornpage.bench.validation.predicting import Inputs, calibrated_inputs, measured_in, predicted_of
from tornpage.bench.validation.rounds import Round
from tornpage.bench.validation.scores import Observed, Scores, floor_of, kendall_tau, largest, score
from tornpage.properties.contract import HarnessError

__all__ = ["BOUNDS", "ROUNDS_MIN", "Case", "Validation", "validate"]

BOUNDS = {"p50": 0.05, "p90": 0.15, "p99": 0.15}
"""The largest errors of a case that passes, unless its floor is higher."""
ENOUGH_PASS = 0.9
"""The share of held-out cases that must pass: 12 of 13."""
NOISY_P50 = 0.25
"""A floor above this means that rounds differ by more than policies do."""
ROUNDS_MIN = 2


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One held-out case: its measurement, its prediction, and their differences."""

    name: str
    messages: int
    measured: Observed
    predicted: Observed
    rounds: tuple[Observed, ...]
    error: Scores
    floor: Scores

    @property
    def missed(self) -> tuple[str, ...]:
        """The quantiles whose error is above its bound and above the floor."""
        return tuple(
            name for name, bound in BOUNDS.items() if self._error(name) > max(bound, getattr(self.floor, name))
        )

    @property
    def passes(self) -> bool:
        """Whether no quantile is missed."""
        return not self.missed

    @property
    def passes_without_floor(self) -> bool:
        """Whether the errors are within the bounds without the floor."""
        return all(self._error(name) <= bound for name, bound in BOUNDS.items())

    def _error(self, name: str) -> float:
        error: float = getattr(self.error, name)
        return abs(error)

    def half(self, place: int) -> Observed:
        """Return what the even rounds (0) or the odd rounds (1) measured."""
        return Observed.joined(self.rounds[place::2])


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """All held-out cases, and the agreement of ranks: predicted, and even against odd rounds."""

    cases: tuple[Case, ...]
    rounds: int
    calibrating_floors: dict[str, Scores]
    tau_p50: float
    tau_p50_floor: float
    tau_at_risk: float
    tau_at_risk_floor: float

    @property
    def passed(self) -> int:
        """The number of cases that pass."""
        return sum(case.passes for case in self.cases)

    @property
    def is_noisy(self) -> bool:
        """Whether more than a third of the calibrating loads have a useless noise floor."""
        loud = sum(floor.p50 > NOISY_P50 for floor in self.calibrating_floors.values())
        return 3 * loud > len(self.calibrating_floors)

    @property
    def verdict(self) -> str:
        """`holds`, `broken`, or `unknown` if the calibration was too noisy."""
        if self.is_noisy:
            return "unknown"
        return "holds" if self.passed >= ENOUGH_PASS * len(self.cases) else "broken"


def validate(rounds: Sequence[Round], snapshot: dict[str, str | int | float]) -> Validation:
    """Predict every held-out slice from the calibrating slices of its round, and score.

    At least two rounds are needed.
    """
    if len(rounds) < ROUNDS_MIN:
        raise HarnessError(f"{len(rounds)} rounds have no floor; at least {ROUNDS_MIN} are needed")
    inputs = calibrated_inputs(rounds, snapshot)
    floors = {name: floor_of([measured_in(one.calibrating[name]) for one in rounds]) for name in rounds[0].calibrating}
    cases = tuple(_case(name, rounds, inputs, floors) for name in rounds[0].held_out)
    sides = [(case.measured, case.predicted) for case in cases]
    halves = [(case.half(0), case.half(1)) for case in cases]
    return Validation(
        cases,
        len(rounds),
        floors,
        tau_p50=_tau(sides, _p50),
        tau_p50_floor=_tau(halves, _p50),
        tau_at_risk=_tau(sides, _at_risk),
        tau_at_risk_floor=_tau(halves, _at_risk),
    )


def _case(
    name: str, rounds: Sequence[Round], inputs: Sequence[Mapping[str, Inputs]], floors: Mapping[str, Scores]
) -> Case:
    """Return one case; `floors` are those of the calibrating slices, by name."""
    slices = [one.held_out[name] for one in rounds]
    parts = tuple(measured_in(driven) for driven in slices)
    measured, foretold = Observed.joined(parts), predicted_of(slices, [one[name] for one in inputs])
    kin = [floors[other] for other, each in rounds[0].calibrating.items() if _kind(each) == _kind(slices[0])]
    floor = largest([floor_of(parts), *kin])
    return Case(name, len(measured.latency_ns), measured, foretold, parts, score(measured, foretold), floor)


def _kind(one: Driven) -> tuple[bool, bool]:
    """Return what decides from which calibrating slices a slice is predicted."""
    waits = one.scenario.answers_after_flush
    return waits, waits and one.scenario.is_forced


def _p50(seen: Observed) -> float:
    return float(np.median(seen.latency_ns))


def _at_risk(seen: Observed) -> float:
    return seen.at_risk


def _tau(pairs: Sequence[tuple[Observed, Observed]], figure: Callable[[Observed], float]) -> float:
    return kendall_tau([figure(one) for one, _ in pairs], [figure(two) for _, two in pairs])
