"""The loss-latency frontier with real crashes: the same policies, simulated and real.

| crash | what crashes | latency of its row |
|---|---|---|
| simulated | a moment of the trace | the trace's, on the device of the simulation |
| power loss | `impl.store` on the crash lab's disk, in virtual time, at the same moments and arrivals | the trace's |
| process kill | `impl.store` on real files, its process ended by SIGKILL | measured on this machine until the kill |

Virtual time has no latency of its own, so real power losses are above or below their simulated twins.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tornpage.bench.crashes.power_losses import Loss, power_losses
from tornpage.bench.crashes.process_kills import kill_one
from tornpage.bench.figures import file_system_of
from tornpage.outcomes.doctor import MEMORY_FILE_SYSTEMS
from tornpage.properties.judge.rulings import counted
from tornpage.sim.experiments import frontier
from tornpage.sim.experiments.frontier import FAILURES, FRONTIER, loss_row, simulated_row
from tornpage.sim.experiments.policies import POLICIES, StorePolicy
from tornpage.sim.experiments.values import Experiment, Progress, Row, Setup
from tornpage.sim.experiments.words import listed, number, of, span_us
from tornpage.sim.results.crashes import crash_moments

__all__ = ["FILE_BYTES", "REAL", "crash_frontier"]

SECONDS = 3
FILE_BYTES = 700 << 10
"""Rolls are not in step with flushes every 500 ms."""
REAL = {failure: f"{name}, real store" for failure, name in FAILURES.items()}
SIMULATED = {failure: f"{name}, simulated" for failure, name in FAILURES.items()}


def crash_frontier(*, crashes: int = 24, kills: int = 2, directory: str | None = None) -> Experiment:
    """Return the experiment, with so many power losses and process kills for each policy.

    Files are below `directory`, or below the system's temporary one.
    """
    return replace(
        FRONTIER,
        name="crash-frontier",
        title="The loss-latency frontier, with real crashes",
        question="Does the real store lose what the simulator predicts?",
        setting=(
            "Open load of 1,000 messages/s of 1 KiB, files of 700 KiB. Real power losses: the store on the crash lab's "
            "disk in virtual time, at the simulated moments, drawn at the simulated latency. Real kills: processes "
            "ended by SIGKILL on real files, drawn at the latency of the Python store on this machine."
        ),
        measure=_measure(crashes, kills, directory),
        caption=caption,
        is_measured=True,
    )  # fmt: skip


def _measure(crashes: int, kills: int, directory: str | None) -> Callable[[Setup, Progress], Iterator[Row]]:
    def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
        for policy in POLICIES.values():
            progress(f"{policy.name}: power losses")
            duration_ns = max(round(SECONDS * setup.effort * 1e9), 10**8)
            scenario = policy.scenario(setup.device, frontier.RATE, duration_ns=duration_ns, file_bytes=FILE_BYTES)
            trace = setup.trace(scenario)
            moments = crash_moments(trace, crashes, seed=setup.seed)
            for failure in FAILURES if policy.pool else ("power",):
                row = simulated_row(policy, trace, moments, failure) | {"file_system": ""}
                yield row
            lost = power_losses(policy, trace.arrival_ns, moments.tolist(), FILE_BYTES)
            yield _row(policy.name, REAL["power"], of(row, "put_p99_us"), lost)
            if kills:
                progress(f"{policy.name}: kills")
                yield _killed(policy, kills, seed=setup.seed, directory=directory or tempfile.gettempdir())

    return measure


def _killed(policy: StorePolicy, kills: int, *, seed: int, directory: str) -> Row:
    """Kill so many processes; return their losses at the latency that they measured."""
    killed = [
        kill_one(policy, rate_per_s=frontier.RATE, file_bytes=FILE_BYTES, seed=seed * 1000 + kill, directory=directory)
        for kill in range(kills)
    ]
    p99_us = float(np.quantile([latency for one in killed for latency in one.latencies_ns], 0.99)) / 1000
    lost = [one.loss for one in killed]
    return _row(policy.name, REAL["kill"], p99_us, lost, file_system=file_system_of(directory))


def _row(policy: str, crash: str, put_p99_us: float, lost: Sequence[Loss], *, file_system: str = "") -> Row:
    """Return a row; the file system is that of the measured files."""
    row = loss_row(
        policy,
        crash,
        put_p99_us=put_p99_us,
        messages=[loss.messages for loss in lost],
        size_bytes=[loss.size_bytes for loss in lost],
        ages_ms=[loss.age_ms for loss in lost],
        answered=[loss.answered for loss in lost],
    )
    return row | {"file_system": file_system}


def caption(rows: Sequence[Row]) -> str:
    """Describe how simulated and real losses differ, broken promises, and losses by kills."""
    by = {(str(row["policy"]), str(row["crash"])): row for row in rows}
    policies = list(dict.fromkeys(policy for policy, _ in by))
    told = [_agreement([(by[name, SIMULATED["power"]], by[name, REAL["power"]]) for name in policies])]
    safe = [name for name in policies if not of(by[name, REAL["power"]], "lost_answered_max")]
    told.append(
        f"Of the real stores {listed(safe)} lost no acknowledged message."
        if safe
        else "Every real store lost acknowledged messages."
    )
    kills = [row for row in rows if row["crash"] == REAL["kill"]]
    if kills:
        takers = [row for row in kills if of(row, "lost_messages_max")]
        kept = [str(row["policy"]) for row in kills if not of(row, "lost_messages_max")]
        told += [
            f"Kills lost {number(of(row, 'lost_messages_mean'))} messages from {row['policy']} on average of "
            f"{row['crashes']}" + _simulated_kill(by, str(row["policy"])) + "."
            for row in takers
        ]
        if kept:
            count = sum(int(of(row, "crashes")) for row in kills if str(row["policy"]) in kept)
            told.append(f"{counted(count, 'kill')} of {listed(kept)} lost nothing.")
        latency = sorted(of(row, "put_p99_us") for row in kills)
        told.append(
            f"On this machine the put p99 of the Python store was {span_us(latency[0])} to {span_us(latency[-1])}, "
            "which the device of the simulation does not predict."
        )
        in_memory = sorted({str(row["file_system"]) for row in kills} & {*MEMORY_FILE_SYSTEMS})
        if in_memory:
            told.append(f"The killed stores lay on {listed(in_memory)}, in memory, where a sync costs nothing.")
    return " ".join(told)


def _agreement(pairs: Sequence[tuple[Row, Row]]) -> str:
    """Compare the mean losses of policies that lose at least ten messages.

    Smaller numbers depend on the draw.
    """
    far = [(of(real, "lost_messages_mean") / of(simulated, "lost_messages_mean") - 1, real)
           for simulated, real in pairs if of(simulated, "lost_messages_mean") >= 10]  # fmt: skip
    crashes = of(pairs[0][1], "crashes")
    if not far:
        return f"No policy lost enough in {crashes:g} power losses to compare."
    worst, row = max(far, key=lambda one: abs(one[0]))
    return (
        f"Over {crashes:g} power losses of each of {len(pairs)} policies, at the same moments: where at least "
        "ten messages were lost on average, the real store lost as many as the simulator within "
        f"{100 * abs(worst):.1f} % (furthest: {row['policy']}, {100 * worst:+.1f} %)."
    )


def _simulated_kill(by: dict[tuple[str, str], Row], policy: str) -> str:
    row = by.get((policy, SIMULATED["kill"]))
    return f" ({number(of(row, 'lost_messages_mean'))} simulated)" if row else ""
