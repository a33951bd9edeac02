"""Formulas that a run must meet, and the error of a run of finite length.

Times are ns, rates are per ns. The law of group commit is that of "group clearance" (docs/disks/presets.md, formula 2).
Arrivals are Poisson. A flush takes all puts that wait when it begins. It begins as soon as the
one before has ended and a put waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log, sqrt

import numpy as np

from tornpage.impl.config.policy import FlushDiskType, FlushPolicy
from tornpage.sim.distributions import Constant, Distribution, Floats, Int64s
from tornpage.sim.log.log import BLANK_BYTES
from tornpage.sim.scenario import Scenario
from tornpage.sim.workload import OpenPoisson

__all__ = [
    "Estimate",
    "GroupCommitLaw",
    "PutLaw",
    "batch_means",
    "cdf_distance",
    "cdf_tolerance",
    "closed_loop_bounds",
    "md1_mean_wait_ns",
    "mg1_mean_wait_ns",
    "put_law",
    "replications",
    "timer_at_risk",
]

NODES = 4096
"""The number of points for a mean over the law of a sync.

Its error is about 1/NODES of the largest value.
"""
BATCHES = 32
"""The number of batches of a run.

They are few enough to be independent, and enough to know their spread.
"""


def md1_mean_wait_ns(*, rate_per_ns: float, service_ns: float) -> float:
    """Return the mean wait for the put lock with random arrivals and a constant service time.

    The load is below 1.
    """
    return mg1_mean_wait_ns(rate_per_ns=rate_per_ns, service=Constant(round(service_ns)))


def mg1_mean_wait_ns(*, rate_per_ns: float, service: Distribution) -> float:
    """Return the mean wait of a queue with Poisson arrivals (Pollaczek and Khinchine).

    Raises ValueError at load 1.
    """
    load = rate_per_ns * service.mean_ns
    if load >= 1:
        raise ValueError(f"a load of {load:.3g} has no mean wait: the queue grows forever")
    return rate_per_ns * service.second_moment_ns2 / (2 * (1 - load))


@dataclass(frozen=True, slots=True)
class GroupCommitLaw:
    """The time T from a put to its answer: T = S + B * S_e, all independent.

    S is the law of a sync, S_e the rest of a sync that is met at random, and B is 1 with probability `busy_share`.
    """

    rate_per_ns: float
    sync: Distribution

    @property
    def busy_share(self) -> float:
        """Share of time in which a sync runs.

        A sync is followed by an idle time unless a put arrived during it.
        """
        idle_ns = self.sync.laplace(self.rate_per_ns) / self.rate_per_ns
        return self.sync.mean_ns / (self.sync.mean_ns + idle_ns)

    @property
    def mean_ns(self) -> float:
        """Mean of T."""
        return self.sync.mean_ns + self.busy_share * self.sync.second_moment_ns2 / (2 * self.sync.mean_ns)

    @property
    def mean_batch(self) -> float:
        """Messages per sync."""
        return self.rate_per_ns * self.sync.mean_ns + self.sync.laplace(self.rate_per_ns)

    def cdf(self, at_ns: Floats) -> Floats:
        """Return the share of answers within `at_ns`.

        It is that of S, or the mean of P(S_e <= at_ns - S) over S.
        """
        shares = (np.arange(NODES) + 0.5) / NODES
        if isinstance(self.sync, Constant):
            shares = shares[:1]
        syncs = self.sync.quantile(shares)
        late = np.array([float(np.mean(self.sync.residual_cdf(t - syncs) * (t >= syncs))) for t in at_ns])
        return (1 - self.busy_share) * self.sync.cdf(at_ns) + self.busy_share * late


@dataclass(frozen=True, slots=True)
class PutLaw:
    """An exact mean of the time from arrival to answer."""

    name: str
    mean_ns: float


def put_law(scenario: Scenario) -> PutLaw | None:
    """Return the exact formula for the put time of this scenario, or None without one.

    Rolls are not in the formulas, so the load must fit the first log file.
    """
    times, workload = scenario.device, scenario.workload
    if any(part is not None for part in (scenario.pool, scenario.replica, scenario.puts, scenario.stalls)):
        return None
    if not isinstance(workload, OpenPoisson) or not times.puts_cost_the_same or _rolls(scenario, workload):
        return None
    rate_per_ns = workload.rate_per_s / 1e9
    sizes = workload.sizes
    service_ns = scenario.put_times.copy_ns(sizes.smallest_bytes)
    one_service = service_ns == scenario.put_times.copy_ns(sizes.largest_bytes)
    if scenario.flush.flush_disk_type is FlushDiskType.SYNC_FLUSH:
        if one_service and service_ns == 0 and times.syncs_cost_the_same and times.sync.mean_ns > 0:
            return PutLaw("group commit", GroupCommitLaw(rate_per_ns, times.sync).mean_ns)
    elif one_service and rate_per_ns * service_ns < 1:
        wait_ns = md1_mean_wait_ns(rate_per_ns=rate_per_ns, service_ns=service_ns)
        return PutLaw("M/D/1", wait_ns + service_ns)
    return None


def _rolls(scenario: Scenario, workload: OpenPoisson) -> bool:
    expected = scenario.expected_messages
    messages = expected if scenario.messages is not None else expected + 10 * sqrt(expected) + 10
    return messages * workload.sizes.largest_bytes + BLANK_BYTES > scenario.file_bytes


def timer_at_risk(policy: FlushPolicy, *, rate_per_ns: float, sync_ns: float) -> float:
    """Return the mean number of messages at risk with a timed flush of constant syncs.

    Each sync takes `sync_ns`. From the start of one flush to the start of the next is C = interval + sync. A message
    waits C/2 for its flush and then the sync. The page rule must never delay a flush (docs/disks/presets.md,
    formulas 3 and 4).
    """
    cycle_ns = policy.flush_interval_commit_log * 1e6 + sync_ns
    return rate_per_ns * (cycle_ns / 2 + sync_ns)


def closed_loop_bounds(*, producers: int, sync_ns: float, think_ns: float) -> tuple[float, float]:
    """Return the least and greatest throughput, per ns, of a loop with group commit."""
    return producers / (2 * sync_ns + think_ns), producers / (sync_ns + think_ns)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its standard error, both from the same independent parts."""

    mean: float
    error: float

    def errors_from(self, expected: float) -> float:
        """Return by how many standard errors the mean exceeds `expected`."""
        off = self.mean - expected
        if self.error == 0:
            return 0.0 if off == 0 else inf if off > 0 else -inf
        return off / self.error


def replications(means: Sequence[float]) -> Estimate:
    """Return the estimate from the means of runs that differ only in the seed."""
    values = np.asarray(means, dtype=np.float64)
    return Estimate(float(values.mean()), float(values.std(ddof=1) / sqrt(len(values))))


def batch_means(values: Int64s) -> Estimate:
    """Return the mean of a run and its standard error, from BATCHES equal stretches of it.

    Neighbours in a queue are correlated, so the spread of single values would give too small an error. With fewer than
    two values per batch the error is infinite.
    """
    if len(values) < 2 * BATCHES:
        return Estimate(float(values.mean()) if len(values) else 0.0, inf)
    usable = values[: len(values) // BATCHES * BATCHES].reshape(BATCHES, -1)
    return Estimate(float(values.mean()), replications(usable.mean(axis=1).tolist()).error)


def cdf_distance(values: Int64s, law: GroupCommitLaw, *, points: int = 512) -> float:
    """Return the largest distance between a run's shares and the law.

    The distance is taken at `points` quantiles of the run. At each point both one-sided limits count, so that the atoms
    of a constant sync are compared too.
    """
    ordered = np.sort(values)
    chosen = np.unique(ordered[np.linspace(0, len(ordered) - 1, points).astype(np.int64)])
    at = ordered.searchsorted(chosen, side="right") / len(ordered)
    below = ordered.searchsorted(chosen, side="left") / len(ordered)
    exact = law.cdf(chosen.astype(np.float64))
    exact_below = law.cdf(np.nextafter(chosen.astype(np.float64), 0.0))
    return float(max(np.abs(at - exact).max(), np.abs(below - exact_below).max()))


def cdf_tolerance(batches: Int64s, *, chance: float) -> float:
    """Return the distance that a correct run with these batch sizes rarely exceeds.

    It does so with a probability below `chance`. Messages of one batch share a sync, so a run is worth (sum of sizes)^2
    / (sum of squares) independent messages. Half of them count, because a batch also shares the sync before it with its
    neighbour, which at most doubles a variance. The bound of Dvoretzky, Kiefer, Wolfowitz and Massart is taken for
    them, plus one part in NODES for the law itself.
    """
    sizes = batches.astype(np.float64)
    independent = float(sizes.sum() ** 2 / (sizes**2).sum()) / 2
    return sqrt(log(2 / chance) / (2 * independent)) + 1 / NODES
