"""Measure the crash lab: crash states, steps without a crash, kills, page comparisons.

Steps are the standard workload of campaigns (properties/program/workload.py) without closing, reopening and failing
syncs.
"""

import multiprocessing
import random
from functools import reduce
from time import perf_counter

from tornpage.bench.figures import Figure, Skipped, figure, file_system_of, scratch
from tornpage.bench.sizes import FULL, Sizes
from tornpage.model import commitlog
from tornpage.model.operations import Close, Flush, Get, Operation, Put
from tornpage.model.payloads import BORN_TIMESTAMP, message_of
from tornpage.model.state import CommitLog, Layout
from tornpage.properties.contract import HarnessError, Verdict
from tornpage.properties.disk.dirty import PAGE_BYTES, CompareTracker, DirtyTracker, WriteProtectTracker, choose_tracker
from tornpage.properties.disk.dirty import write_protect_available as why_not_write_protect
from tornpage.properties.explore.crashes.campaign import Plan, run_campaign
from tornpage.properties.explore.kills.run import run_kills
from tornpage.properties.interrupts import born_deaf
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.workload import draw_operation

__all__ = [
    "compare_look_us_16k",
    "kill_cycles_per_s",
    "model_steps_per_s",
    "states_per_s",
    "trial_steps_per_s",
    "write_protect_look_us_1m",
]

_WITHOUT_A_CRASH = (Put, Get, Flush)


def states_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Counted crash states/s of a campaign: chosen, composed, recovered, and judged.

    One worker, files of 16 KiB, seed 0. The disk is in memory, so the directory does not matter. One round. May raise
    Skipped.
    """
    states = sizes.campaign_states
    limit = seconds if states is None else None
    with choose_tracker("auto") as tracker:
        plan = Plan(Settings(), seed=0, states=states, seconds=limit)
        result = run_campaign(plan, tracker=tracker, progress=lambda states, spent: None)
    if result.interrupted:
        raise KeyboardInterrupt
    if result.verdict is Verdict.BROKEN:
        raise HarnessError(f"the campaign that was timed found a broken promise: {result.failure}")
    if not result.tally.states:
        raise Skipped(f"no crash state was counted in {seconds} s: give it more")
    rate = result.tally.states / result.seconds
    return Figure("states_per_s", rate, "states/s", (rate,), file_system_of(directory))


def model_steps_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Steps/s of the model alone: the cost of the comparison without a store."""
    histories = _histories(sizes)
    settings = Settings()
    layout = Layout(
        file_bytes=settings.file_bytes,
        record_bytes_max=settings.record_bytes_max,
        trailer=settings.trailer,
        sync_flush=settings.sync_flush,
        files_max=settings.files_max,
    )

    def one_round() -> float:
        started = perf_counter()
        logs = [reduce(lambda log, step: _step(log, step, layout), steps, CommitLog()) for steps in histories]
        elapsed = perf_counter() - started
        if not all(log.records for log in logs):
            raise HarnessError("a history of the model holds no record")
        return _count(histories) / elapsed

    return figure("model_steps_per_s", "steps/s", one_round, directory=directory, seconds=seconds)


def trial_steps_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Steps/s of store and model side by side, with every answer and byte compared, no crash."""
    histories = _histories(sizes)
    with choose_tracker("auto") as tracker:

        def one_round() -> float:
            trials = [lockstep_of(Settings(), tracker=tracker) for _ in histories]
            started = perf_counter()
            for trial, steps in zip(trials, histories, strict=True):
                for step in steps:
                    trial.run(step)
            elapsed = perf_counter() - started
            for trial in trials:
                trial.run(Close())
            return _count(histories) / elapsed

        return figure("trial_steps_per_s", "steps/s", one_round, directory=directory, seconds=seconds)


def kill_cycles_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Cycles/s of fork, program, SIGKILL, recovery and judgement.

    They run in a fresh process, since NumPy has threads.
    """
    with born_deaf():
        pool = multiprocessing.get_context("spawn").Pool(1)
    with pool as fresh:

        def one_round() -> float:
            with scratch(directory) as path:
                try:
                    result = fresh.apply(run_kills, (sizes.kills,), {"seed": 0, "directory": path})
                except KeyboardInterrupt:
                    fresh.terminate()  # before its directory is removed
                    raise
            if result.interrupted:
                raise KeyboardInterrupt
            if result.found:
                raise HarnessError(f"the kills that were timed found a broken promise: {result.failure}")
            return result.tally.cycles / result.seconds

        return figure("kill_cycles_per_s", "cycles/s", one_round, directory=directory, seconds=seconds)


def compare_look_us_16k(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Microseconds per comparison of 16 KiB with one page written since the last one."""
    with CompareTracker() as tracker:
        return _looks("compare_look_us_16k", tracker, 16 << 10, directory, seconds, sizes)


def write_protect_look_us_1m(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Microseconds per check of 1 MiB by write-protection, with one page written.

    The fault of the page is included. May raise Skipped.
    """
    reason = why_not_write_protect()
    if reason is not None:
        raise Skipped(reason)
    with WriteProtectTracker() as tracker:
        return _looks("write_protect_look_us_1m", tracker, 1 << 20, directory, seconds, sizes)


def _looks(name: str, tracker: DirtyTracker, size_bytes: int, directory: str, seconds: float, sizes: Sizes) -> Figure:
    tracked = tracker.watch(bytes(size_bytes))
    pages = size_bytes // PAGE_BYTES

    def one_round() -> float:
        seen = 0
        started = perf_counter()
        for number in range(sizes.looks):
            position = number * 7 % pages * PAGE_BYTES
            tracked.buffer[position] = (tracked.buffer[position] + 1) % 256
            seen += len(tracked.changed())
        elapsed = perf_counter() - started
        if seen != sizes.looks:
            raise HarnessError(f"{sizes.looks} pages were written and {seen} seen")
        return elapsed / sizes.looks * 1e6

    try:
        return figure(name, "us", one_round, directory=directory, seconds=seconds)
    finally:
        tracked.close()


def _histories(sizes: Sizes) -> list[list[Operation]]:
    histories: list[list[Operation]] = []
    for number in range(sizes.histories):
        rng = random.Random(f"bench {number}")
        drawn = (draw_operation(rng, closed=False) for _ in range(10 * sizes.history_steps))
        steps: list[Operation] = [step for step in drawn if isinstance(step, _WITHOUT_A_CRASH)]
        histories.append(steps[: sizes.history_steps])
    return histories


def _count(histories: list[list[Operation]]) -> int:
    return sum(map(len, histories))


def _step(log: CommitLog, step: Operation, layout: Layout) -> CommitLog:
    match step:
        case Put():
            return commitlog.put(log, message_of(step), layout=layout, store_timestamp=BORN_TIMESTAMP)[0]
        case Flush():
            return commitlog.flush(log)[0]
        case Get(record, shift):
            base = log.records[record % len(log.records)].offset if log.records else 0
            commitlog.get(log, base + shift)
    return log
