"""Validate the simulator against the real store: calibrate, predict, compare.

A round has every slice once, in an order of its own. Each held-out slice is simulated with the same policies, the same
arrivals, and the device and puts of the calibrating slices in its own round, since a shared machine changes within
minutes and no model predicts that. Then all measured slices of a case are compared with all predicted ones.

A case passes when p50 is within 10 % and p90 within 15 %, or within 1.5 times the floor: the difference between even
and odd rounds of the same measurement. p99 is reported and does not count: on a shared machine its floor is far above
any bound.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tornpage.bench.calibration.driven import Driven
from tornpage.bench.calibration.load_slices import samples_of
from tornpage.bench.validation.costs import (
    at_risk_mean,
    disk_stalls_of,
    durable_ns,
    puts_of,
    thread_stalls_of,
    without_stalls,
)
from tornpage.bench.validation.rounds import Round
from tornpage.bench.validation.scores import Observed, Scores, floor_of, kendall_tau, score
from tornpage.properties.contract import HarnessError
from tornpage.sim.device.calibration import Calibration
from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.device.put_table import PutTable
from tornpage.sim.device.samples import Samples
from tornpage.sim.device.stalls import StallLaw
from tornpage.sim.distributions import Int64s
from tornpage.sim.results.trace import Trace
from tornpage.sim.run import run

__all__ = ["P50_MAX", "P90_MAX", "ROUNDS_MIN", "Case", "Validation", "validate"]

P50_MAX, P90_MAX = 0.10, 0.15
FLOORS = 1.5
ENOUGH_PASS = 0.8
"""The share of held-out cases that must pass: 8 of 10."""
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
    even: Observed
    odd: Observed
    error: Scores
    floor: Scores

    @property
    def passes(self) -> bool:
        """Whether p50 and p90 are within the bounds."""
        return _near(self.error.p50, self.floor.p50, P50_MAX) and _near(self.error.p90, self.floor.p90, P90_MAX)

    @property
    def passes_without_floor(self) -> bool:
        """Whether they are within the bounds without the floor."""
        return abs(self.error.p50) <= P50_MAX and abs(self.error.p90) <= P90_MAX


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
        loud = sum(abs(floor.p50) > NOISY_P50 for floor in self.calibrating_floors.values())
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
    sweeps = without_stalls(Samples.joined(one.sweeps for one in rounds))
    stalls = _Stalls.of(rounds)
    predicted = [_predicted(one, sweeps, stalls, snapshot) for one in rounds]
    cases = tuple(_case(name, rounds, predicted) for name in rounds[0].held_out)
    floors = {name: floor_of(*_halves([one.calibrating[name] for one in rounds])) for name in rounds[0].calibrating}
    return Validation(
        cases,
        len(rounds),
        floors,
        tau_p50=_tau(cases, "measured", "predicted", _p50),
        tau_p50_floor=_tau(cases, "even", "odd", _p50),
        tau_at_risk=_tau(cases, "measured", "predicted", _at_risk),
        tau_at_risk_floor=_tau(cases, "even", "odd", _at_risk),
    )


@dataclass(frozen=True, slots=True)
class _Stalls:
    """Stalls of the disk, by state of the blocks, and of the putting thread, by kind of put."""

    disk: Mapping[bool, StallLaw]
    thread: Mapping[bool, StallLaw]

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> "_Stalls":
        """Return the stalls of all calibrating slices."""
        slices_ = [driven for one in rounds for driven in one.calibrating.values()]
        waiting, going_on = _parted(slices_)
        disk = {
            forced: disk_stalls_of(Samples.joined(samples_of(driven, 0) for driven in found), found)
            for forced in (True, False)
            for found in [[driven for driven in waiting if driven.scenario.is_forced is forced]]
        }
        return cls(disk, {True: thread_stalls_of(waiting), False: thread_stalls_of(going_on)})


def _parted(slices_: Iterable[Driven]) -> tuple[list[Driven], list[Driven]]:
    """Return the slices whose puts wait for the disk, and the others."""
    found = list(slices_)
    waiting = [driven for driven in found if driven.scenario.answers_after_flush]
    return waiting, [driven for driven in found if not driven.scenario.answers_after_flush]


def _predicted(
    one: Round, sweeps: Samples, stalls: _Stalls, snapshot: dict[str, str | int | float]
) -> dict[str, Trace]:
    """Simulate the held-out slices of a round with the results of its calibrating slices.

    Sweeps and stalls are those of all rounds: one round has too few to show how a sync grows with its pages, and how
    often disk and thread stall.
    """
    samples = Samples.joined((sweeps, without_stalls(one.loads)))
    device = Calibration.from_samples(samples, snapshot).device("mmap")
    waiting, going_on = _parted(one.calibrating.values())
    puts = {True: puts_of(waiting, stalls.thread[True]), False: puts_of(going_on, stalls.thread[False])}
    return {
        name: _simulated(
            driven, device, puts[driven.scenario.answers_after_flush], stalls.disk[driven.scenario.is_forced]
        )
        for name, driven in one.held_out.items()
    }


def _simulated(driven: Driven, device: DeviceTimes, puts: PutTable, stalls: StallLaw) -> Trace:
    trace = run(replace(driven.scenario, device=device, puts=puts, stalls=stalls), driven.seed)
    if not np.array_equal(trace.arrival_ns, driven.due_ns):
        raise HarnessError("store and simulator were not asked for the same puts")
    return trace


def _case(name: str, rounds: Sequence[Round], predicted: Sequence[dict[str, Trace]]) -> Case:
    slices_ = [one.held_out[name] for one in rounds]
    measured, foretold = _measured(slices_), _foretold([traces[name] for traces in predicted])
    even, odd = _halves(slices_)
    error, floor = score(measured, foretold), floor_of(even, odd)
    return Case(name, len(measured.latency_ns), measured, foretold, even, odd, error, floor)


def _halves(slices_: Sequence[Driven]) -> tuple[Observed, Observed]:
    return _measured(slices_[::2]), _measured(slices_[1::2])


def _measured(slices_: Sequence[Driven]) -> Observed:
    return _observed(
        [_Seen(one.due_ns, one.written_ns, one.answered_ns, durable_ns(one), one.flushes) for one in slices_],
        sum(one.scenario.duration_ns or 0 for one in slices_),
    )


def _foretold(traces: Sequence[Trace]) -> Observed:
    return _observed(
        [_Seen(one.arrival_ns, one.written_ns, one.put_ns, one.durable_ns, one.flushes) for one in traces],
        sum(one.scenario.duration_ns or 0 for one in traces),
    )


class _Seen(NamedTuple):
    """The compared values of one slice, measured or simulated.

    Times are ns since the load began.
    """

    due_ns: Int64s
    written_ns: Int64s
    answered_ns: Int64s
    durable_ns: Int64s
    flushes: NDArray[np.void]

    @property
    def flushes_of_load(self) -> int:
        """The number of flushes that began before the last message was written."""
        return int(np.count_nonzero(self.flushes["start_ns"] <= self.written_ns.max(initial=0)))

    @property
    def at_risk(self) -> float:
        """The mean number of messages over the load that were written and not durable."""
        if not len(self.due_ns):
            return 0.0
        return at_risk_mean(int(self.due_ns[0]), int(self.written_ns[-1]), self.written_ns, self.durable_ns)


def _observed(seen: Sequence[_Seen], duration_ns: int) -> Observed:
    return Observed(
        np.concatenate([one.answered_ns - one.due_ns for one in seen]),
        1e9 * sum(one.flushes_of_load for one in seen) / duration_ns,
        float(np.mean([one.at_risk for one in seen])),
    )


def _near(error: float, floor: float, bound: float) -> bool:
    return abs(error) <= max(bound, FLOORS * abs(floor))


def _p50(seen: Observed) -> float:
    return float(np.median(seen.latency_ns))


def _at_risk(seen: Observed) -> float:
    return seen.at_risk


def _tau(cases: Sequence[Case], one: str, two: str, figure: Callable[[Observed], float]) -> float:
    return kendall_tau([figure(getattr(case, one)) for case in cases], [figure(getattr(case, two)) for case in cases])
