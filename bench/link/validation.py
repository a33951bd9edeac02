"""Predict a real pair, and score the prediction.

It is predicted from the link, the appends and the turns. The calibrating loads give durations of appends, durable ones
with their syncs, and turns at a low and at a high rate. A turn is what is left of the time of a put of these loads. The
predicted loads are other ones. A predicted slice has the measured times at which its messages were stored, so that only
the pair is predicted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tornpage.bench.link.pairs import DrivenPair, PairCase, drive_pair
from tornpage.bench.link.probes import bytes_per_s, echo, free_address, latencies_ns
from tornpage.bench.validation.scores import Observed, Scores, floor_of, score
from tornpage.sim.device.empirical import Empirical
from tornpage.sim.distributions import Constant, Int64s
from tornpage.sim.pair import Link, Pair, replicate

__all__ = ["CASES", "LinkRound", "LinkValidation", "PairScore", "measure_round", "validate_link"]

CASES = (
    PairCase("received 50/s", 50, calibrates=True),
    PairCase("received 400/s", 400, calibrates=True),
    PairCase("durable 50/s", 50, "durable", calibrates=True),
    PairCase("durable 400/s", 400, "durable", calibrates=True),
    PairCase("received 100/s", 100),
    PairCase("received 800/s", 800),
    PairCase("durable 100/s", 100, "durable"),
    PairCase("durable 800/s", 800, "durable"),
)
ROUNDS_MIN = 2
P50_BOUND, P90_BOUND = 0.10, 0.15
SHARE_TO_HOLD = 0.75
NOISY, NOISY_SHARE = 0.25, 1 / 3
"""A load is noisy if the floor of its p50 is above this."""
_PINGS = 1_000
_QUANTILES = 401
_DRAWS = 4
"""How often a slice is simulated."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkRound:
    """Everything that one round measured."""

    latencies_ns: Int64s
    bytes_per_s: float
    slices: tuple[DrivenPair, ...]


@dataclass(frozen=True, slots=True)
class PairScore:
    """One predicted load: its measured quantiles in us, its errors, and its floor."""

    name: str
    messages: int
    p50_us: float
    p90_us: float
    p99_us: float
    error: Scores
    floor: Scores
    is_near: bool


@dataclass(frozen=True, slots=True)
class LinkValidation:
    """The calibrated pair, and the scores of all predicted loads."""

    latency_p50_us: float
    bytes_per_s: float
    slow_turn_p50_us: float
    fast_turn_p50_us: float
    append_p50_us: float
    durable_append_p50_us: float
    scores: tuple[PairScore, ...]

    @property
    def verdict(self) -> str:
        """Whether enough predictions are near; unknown if rounds differ too much."""
        noisy = sum(each.floor.p50 > NOISY for each in self.scores)
        if noisy > NOISY_SHARE * len(self.scores):
            return "unknown"
        near = sum(each.is_near for each in self.scores)
        return "holds" if near >= SHARE_TO_HOLD * len(self.scores) else "broken"


def measure_round(place: Path, *, number: int, seconds: float, seed: int) -> LinkRound:
    """Measure the link, and every load for `seconds`, in a drawn order.

    Raises OSError and TimeoutError.
    """
    rng = np.random.default_rng([seed, number])
    with echo() as connection:
        latencies_ns(connection, _PINGS // 10)
        found = latencies_ns(connection, _PINGS)
        bandwidth = bytes_per_s(connection)
    slices = []
    for place_in_order in rng.permutation(len(CASES)).tolist():
        case = CASES[place_in_order]
        directory = place / f"{number}-{place_in_order}"
        directory.mkdir()
        slices.append(drive_pair(directory, case, address=free_address(), seconds=seconds, seed=seed + number))
    return LinkRound(found, bandwidth, tuple(slices))


def validate_link(rounds: Sequence[LinkRound], *, seed: int) -> LinkValidation:
    """Predict the loads that do not calibrate, and score them.

    Raises ValueError for fewer than two rounds.
    """
    if len(rounds) < ROUNDS_MIN:
        raise ValueError(f"{len(rounds)} whole rounds were measured; a floor needs {ROUNDS_MIN}")
    latency = np.concatenate([each.latencies_ns for each in rounds])
    bandwidth = float(np.median([each.bytes_per_s for each in rounds]))
    calibrating = [each for round_ in rounds for each in round_.slices if each.case.calibrates]
    measured_turns = {
        kind: _Turns.of([each for each in calibrating if each.case.acknowledge == kind], int(np.median(latency)))
        for kind in ("received", "durable")
    }
    link = Link("loopback", Empirical.of(latency), bandwidth)

    def predicted(one: DrivenPair) -> Int64s:
        pair = Pair(
            link,
            turn=Empirical.of(measured_turns[one.case.acknowledge].at(one.case.rate_per_s)),
            append=Constant(measured_turns[one.case.acknowledge].append_ns),
        )
        begin = int(one.stored_ns[0])
        found = [
            replicate(pair, seed + draw, one.stored_ns - begin, one.size).known_ns - (one.stored_ns - begin)
            for draw in range(_DRAWS)
        ]
        return np.concatenate(found)

    scores = []
    for case in (each for each in CASES if not each.calibrates):
        own = [[one for one in round_.slices if one.case == case] for round_ in rounds]
        measured = [np.concatenate([one.answered_ns - one.stored_ns for one in each]) for each in own]
        told = np.concatenate([predicted(one) for each in own for one in each])
        everything = np.concatenate(measured)
        error = score(_observed(everything), _observed(told))
        floor = floor_of([_observed(part) for part in measured])
        p50, p90, p99 = (float(np.quantile(everything, share)) / 1000 for share in (0.5, 0.9, 0.99))
        is_near = _near(error.p50, floor.p50, P50_BOUND) and _near(error.p90, floor.p90, P90_BOUND)
        scores.append(PairScore(case.name, len(everything), p50, p90, p99, error, floor, is_near))
    return LinkValidation(
        float(np.median(latency)) / 1000,
        bandwidth,
        float(np.median(measured_turns["received"].slow_ns)) / 1000,
        float(np.median(measured_turns["received"].fast_ns)) / 1000,
        measured_turns["received"].append_ns / 1000,
        measured_turns["durable"].append_ns / 1000,
        tuple(scores),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Turns:
    """Hold turns at the least and at the greatest calibrating rate, as quantiles.

    Threads of a busy processor wake up sooner, so a turn depends on the rate. Quantiles are interpolated and continued
    by the logarithm of the rate. `append_ns` is the median time of an append.
    """

    rates: tuple[float, float]
    slow_ns: Int64s
    fast_ns: Int64s
    append_ns: int

    @classmethod
    def of(cls, slices: Sequence[DrivenPair], latency_ns: int) -> "_Turns":
        """Take what is left of each put's time without the link and the append."""
        append_ns = int(np.median(np.concatenate([each.appends_ns for each in slices])))
        rates = min(each.case.rate_per_s for each in slices), max(each.case.rate_per_s for each in slices)
        slow, fast = (
            np.concatenate([each.answered_ns - each.stored_ns for each in slices if each.case.rate_per_s == rate])
            for rate in rates
        )
        shares = np.linspace(0, 1, _QUANTILES)
        left = (np.maximum(np.quantile(each - 2 * latency_ns - append_ns, shares), 1) for each in (slow, fast))
        slow_ns, fast_ns = (each.astype(np.int64) for each in left)
        return cls(rates, slow_ns, fast_ns, append_ns)

    def at(self, rate: float) -> Int64s:
        """Return the quantiles of turns at a rate."""
        low, high = np.log(self.rates)
        weight = float((np.log(rate) - low) / (high - low))
        return np.maximum((1 - weight) * self.slow_ns + weight * self.fast_ns, 1).astype(np.int64)


def _observed(latency_ns: Int64s) -> Observed:
    return Observed(latency_ns, 0.0, 0.0)


def _near(error: float, floor: float, bound: float) -> bool:
    return abs(error) <= max(bound, floor)
