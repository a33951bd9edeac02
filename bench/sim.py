"""Measure the simulator's engines, and compare their traces.

The scenario is group commit at 20,000 messages/s of 1 KiB on syncs of 1 ms, as in docs/disks/presets.md: some 20
messages share a sync. No directory is used. A rate counts processor time, since there are no waits.
"""

from collections.abc import Callable
from time import process_time

from tornpage.bench.figures import Figure, figure, file_system_of
from tornpage.bench.sizes import FULL, Sizes
from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy
from tornpage.properties.contract import HarnessError
from tornpage.sim.device.device import PRESETS
from tornpage.sim.fast import run_fast
from tornpage.sim.results.trace import Trace
from tornpage.sim.run import run
from tornpage.sim.scenario import Scenario
from tornpage.sim.workload import ClosedLoop, OpenPoisson, Workload
from tornpage.sim.workload import Sizes as RecordSizes

__all__ = ["fast_messages_per_s", "reference_messages_per_s", "traces_equal"]


def reference_messages_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Messages/s of the SimPy reference."""
    return _rate("reference_messages_per_s", run, sizes.simulated_messages, directory, seconds)


def fast_messages_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Messages/s of the compiled engine, including random draws; the dropped round compiles."""
    return _rate("fast_messages_per_s", run_fast, 10 * sizes.simulated_messages, directory, seconds)


def traces_equal(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """1 if both engines give equal traces, bit for bit, over a grid of scenarios, else 0."""
    cases = _grid(sizes.simulated_messages // 100)
    equal = all(run(case, seed).digest() == run_fast(case, seed).digest() for seed, case in enumerate(cases))
    return Figure("traces_equal", float(equal), "0 or 1", (float(equal),), file_system_of(directory))


def _rate(name: str, engine: Callable[[Scenario, int], Trace], messages: int, directory: str, seconds: float) -> Figure:
    case = _scenario(
        FlushPolicy(FlushDiskType.SYNC_FLUSH), OpenPoisson(20_000.0, RecordSizes.of(1024)), "constant-1ms", messages
    )

    def one_round() -> float:
        started = process_time()
        trace = engine(case, 0)
        elapsed = process_time() - started
        if trace.messages != messages or int(trace.flushes["messages"].sum()) != messages:
            raise HarnessError(f"a simulation of {messages} messages lost some of them")
        return messages / elapsed

    return figure(name, "messages/s", one_round, directory=directory, seconds=seconds)


def _grid(messages: int) -> list[Scenario]:
    flushes = [FlushPolicy(FlushDiskType.SYNC_FLUSH)]
    flushes += [FlushPolicy(FlushDiskType.ASYNC_FLUSH, 20, 4, 100, timed) for timed in (True, False)]
    sizes = RecordSizes(100, 3_000)
    loads: list[Workload] = [OpenPoisson(20_000.0, sizes), ClosedLoop(16, sizes)]
    return [
        _scenario(flush, load, device, messages)
        for flush in flushes
        for load in loads
        for device in ("vm-ext4", "lognormal-1ms")
    ]


def _scenario(flush: FlushPolicy, load: Workload, device: str, messages: int) -> Scenario:
    return Scenario(
        flush=flush,
        allocation=AllocationPolicy(),
        device=PRESETS[device],
        workload=load,
        file_bytes=16 << 20,
        messages=messages,
    )
