"""Predict measured slices by simulating them with the results of calibrating slices."""

from collections.abc import Iterable, Iterator, Sequence
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
from tornpage.bench.validation.scores import Observed
from tornpage.properties.contract import HarnessError
from tornpage.sim.device.calibration import Calibration
from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.device.put_table import PutTable
from tornpage.sim.device.samples import Samples
from tornpage.sim.device.stalls import StallLaw
from tornpage.sim.distributions import Int64s
from tornpage.sim.results.trace import Trace
from tornpage.sim.run import run
from tornpage.sim.scenario import Scenario

__all__ = ["Inputs", "Snapshot", "calibrated_inputs", "inputs_of_the_case", "measured_in", "predicted_of"]

REPEATS = 3
"""How often each slice is simulated, with other draws. The stalls of one simulation are too few for a p99."""
SEED_STEP = 7919

Snapshot = dict[str, str | int | float]


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The measured inputs of one simulation."""

    device: DeviceTimes
    puts: PutTable
    stalls: StallLaw


def calibrated_inputs(rounds: Sequence[Round], snapshot: Snapshot) -> list[dict[str, Inputs]]:
    """Return the inputs for each held-out case of each round, from calibrating slices.

    Sweeps and stalls are those of all rounds: one round has too few to show how a sync grows with its pages, and how
    often disk and thread stall. Raises TooFewSamples.
    """
    sweeps = without_stalls(Samples.joined(one.sweeps for one in rounds))
    waiting, going_on = _parted(driven for one in rounds for driven in one.calibrating.values())
    disk = {
        forced: disk_stalls_of([driven for driven in waiting if driven.scenario.is_forced is forced])
        for forced in (True, False)
    }
    thread = {True: thread_stalls_of(waiting), False: thread_stalls_of(going_on)}
    found = []
    for one in rounds:
        device = _device(sweeps, one.loads, snapshot)
        waiting, going_on = _parted(one.calibrating.values())
        puts = {
            True: puts_of(waiting, thread[True]),
            False: puts_of(going_on, thread[False], tells_flushes=True),
        }
        scenarios = {name: driven.scenario for name, driven in one.held_out.items()}
        found.append(
            {
                name: Inputs(device, puts[scenario.answers_after_flush], disk[scenario.is_forced])
                for name, scenario in scenarios.items()
            }
        )
    return found


def inputs_of_the_case(
    name: str, rounds: Sequence[Round], calibrated: Sequence[Inputs], snapshot: Snapshot
) -> Iterator[tuple[str, list[Inputs]]]:
    """Yield the inputs of a case with one part after another replaced by its own measurement.

    First the puts of each slice, then the stalls of the case too, then the syncs of each slice too. Raises
    TooFewSamples.
    """
    slices = [one.held_out[name] for one in rounds]
    thread, disk = thread_stalls_of(slices), disk_stalls_of(slices)
    waits = slices[0].scenario.answers_after_flush
    yield (
        "puts",
        [
            replace(inputs, puts=puts_of([driven], inputs.puts.stalls))
            for driven, inputs in zip(slices, calibrated, strict=True)
        ],
    )
    stalled = [
        replace(inputs, puts=puts_of([driven], thread), stalls=disk if waits else inputs.stalls)
        for driven, inputs in zip(slices, calibrated, strict=True)
    ]
    yield "stalls", stalled
    sweeps = without_stalls(Samples.joined(one.sweeps for one in rounds))
    devices = []
    for one, driven in zip(rounds, slices, strict=True):
        others = [each for each in one.calibrating.values() if each.scenario.answers_after_flush is not waits]
        loads = Samples.joined(samples_of(each, one.number) for each in (driven, *others))
        devices.append(_device(sweeps, loads, snapshot))
    yield "syncs", [replace(inputs, device=device) for inputs, device in zip(stalled, devices, strict=True)]


def predicted_of(slices: Sequence[Driven], inputs: Sequence[Inputs]) -> Observed:
    """Simulate each slice with its inputs; return the results of all together."""
    return Observed.joined(
        [
            _observed_in(trace)
            for driven, given in zip(slices, inputs, strict=True)
            for trace in _simulated(driven, given)
        ]
    )


def measured_in(one: Driven) -> Observed:
    """Return the results of a measured slice."""
    seen = _Seen(one.due_ns, one.written_ns, one.answered_ns, durable_ns(one), one.flushes)
    return _observed(seen, one.scenario.duration_ns)


def _device(sweeps: Samples, loads: Samples, snapshot: Snapshot) -> DeviceTimes:
    return Calibration.from_samples(Samples.joined((sweeps, without_stalls(loads))), snapshot).device("mmap")


def _parted(slices: Iterable[Driven]) -> tuple[list[Driven], list[Driven]]:
    """Return the slices whose puts wait for the disk, and the others."""
    found = list(slices)
    waiting = [driven for driven in found if driven.scenario.answers_after_flush]
    return waiting, [driven for driven in found if not driven.scenario.answers_after_flush]


def _simulated(driven: Driven, inputs: Inputs) -> list[Trace]:
    """Simulate a slice REPEATS times.

    Only the first run has the arrivals of the measured slice.
    """
    scenario = replace(driven.scenario, device=inputs.device, puts=inputs.puts, stalls=inputs.stalls)
    traces = [_run(scenario, driven.seed + repeat * SEED_STEP) for repeat in range(REPEATS)]
    if not np.array_equal(traces[0].arrival_ns, driven.due_ns):
        raise HarnessError("store and simulator were not asked for the same puts")
    return traces


def _run(scenario: Scenario, seed: int) -> Trace:
    """Simulate once, or twice if the table of puts needs the times of the flushes."""
    trace = run(scenario, seed)
    if scenario.puts is None or scenario.puts.beside is None:
        return trace
    puts = scenario.puts.with_flushes(trace.flushes["start_ns"], trace.flushes["end_ns"])
    return run(replace(scenario, puts=puts), seed)


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


def _observed_in(one: Trace) -> Observed:
    seen = _Seen(one.arrival_ns, one.written_ns, one.put_ns, one.durable_ns, one.flushes)
    return _observed(seen, one.scenario.duration_ns)


def _observed(seen: _Seen, duration_ns: int | None) -> Observed:
    assert duration_ns is not None  # every case has one
    return Observed(seen.answered_ns - seen.due_ns, 1e9 * seen.flushes_of_load / duration_ns, seen.at_risk)
