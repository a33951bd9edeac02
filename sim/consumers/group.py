"""Run the consumers of a group, and return what they did.

Not simulated are failed messages, orderly consumption, expressions, and the store: a message is in its queue when it
arrives.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from simpy import Environment

from tornpage.sim.consumers.broker import Broker
from tornpage.sim.consumers.member import Client
from tornpage.sim.consumers.scenario import GroupScenario, Load, draw_load
from tornpage.sim.distributions import Floats, Int64s

__all__ = ["RUN_DTYPE", "Consumption", "lag_of", "run_group"]

RUN_DTYPE = np.dtype(
    [("queue", "i4"), ("offset", "i8"), ("pulled_ns", "i8"), ("begun_ns", "i8"), ("ended_ns", "i8"), ("member", "i4")]
)
"""One run of a listener. `ended_ns` is -1 if the member crashed."""


@dataclass(frozen=True, slots=True)
class Consumption:
    """What happened in a run."""

    scenario: GroupScenario
    load: Load
    runs: NDArray[np.void]
    """Of `RUN_DTYPE`, in the order of their ends. Runs that go on at the end of the simulation are left out."""
    stored: tuple[tuple[tuple[int, int], ...], ...]
    """Each change of the stored progress, by queue: time and offset."""
    busy_ns: tuple[int, ...]
    """The time of listeners, by member."""
    moved: int
    """Queues that were taken, those at the begin included."""

    @property
    def duplicates(self) -> int:
        """Runs of messages that had run before."""
        return len(self.runs) - len(np.unique(self.runs[["queue", "offset"]]))

    @property
    def idle_share(self) -> float:
        """The share of the time of all threads in which they ran no listener."""
        scenario = self.scenario
        thread_ns = sum(
            member.threads * ((member.ends_ns or scenario.duration_ns) - member.joins_ns) for member in scenario.members
        )
        return 1.0 - sum(self.busy_ns) / thread_ns

    def lag(self, at_ns: Int64s) -> Int64s:
        """Return the lag at some times: the ends of the queues minus the stored progress."""
        return lag_of(self.load, self.stored, at_ns)

    def mean_lag(self, begin_ns: int = 0) -> float:
        """Return the mean of the lag over the run, sampled 10 times a second."""
        return float(self.lag(np.arange(begin_ns, self.scenario.duration_ns, 100_000_000, dtype=np.int64)).mean())

    def waits_ms(self) -> Floats:
        """Return the time from arrival to the first run, in ms, of each message that ran."""
        order = np.argsort(self.runs["begun_ns"], kind="stable")
        runs = self.runs[order]
        _, first = np.unique(runs[["queue", "offset"]], return_index=True)
        runs = runs[first]
        waits = np.empty(len(runs))
        for queue, arrivals in enumerate(self.load.arrivals_ns):
            of = runs["queue"] == queue
            waits[of] = (runs["begun_ns"][of] - arrivals[runs["offset"][of]]) / 1e6
        return waits


def lag_of(load: Load, stored: tuple[tuple[tuple[int, int], ...], ...], at_ns: Int64s) -> Int64s:
    """Return the lag at some times, from the changes of the stored progress of each queue."""
    lag = np.zeros(len(at_ns), np.int64)
    for arrivals, changes in zip(load.arrivals_ns, stored, strict=True):
        times = np.array([at for at, _ in changes], np.int64)
        offsets = np.array([0, *(offset for _, offset in changes)], np.int64)
        lag += arrivals.searchsorted(at_ns, side="right") - offsets[times.searchsorted(at_ns, side="right")]
    return lag


def run_group(scenario: GroupScenario, seed: int, *, load: Load | None = None) -> Consumption:
    """Simulate a group. A `load` replaces the drawn one."""
    env = Environment()
    load = draw_load(scenario, seed) if load is None else load
    broker = Broker(env, scenario, load, seed)
    runs: list[tuple[int, int, int, int, int, int]] = []
    numbers = {member.name: number for number, member in enumerate(scenario.members)}

    def observe(queue: int, offset: int, pulled_ns: int, begun_ns: int, ended_ns: int, name: str) -> None:
        runs.append((queue, offset, pulled_ns, begun_ns, ended_ns, numbers[name]))

    clients = [Client(env, broker, scenario, member, seed, observe) for member in scenario.members]
    env.run(until=scenario.duration_ns)
    return Consumption(
        scenario,
        load,
        np.array(runs, RUN_DTYPE),
        tuple(tuple(queue.stored) for queue in broker.queues),
        tuple(client.busy_ns for client in clients),
        sum(client.moved for client in clients),
    )
