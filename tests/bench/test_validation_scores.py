"""Test that scores identify planted errors, and find none where there is none."""

import math
from dataclasses import asdict

import numpy as np
import pytest

from tornpage.bench.validation.scores import Observed, demerit, floor_of, kendall_tau, relative_error, score
from tornpage.sim.device.calibration import ks_distance

RNG = np.random.default_rng(7)
LATENCY = np.rint(RNG.lognormal(11.0, 0.6, 20_000)).astype(np.int64)


def observed(latency: np.ndarray, *, flushes: float = 100.0, at_risk: float = 5.0) -> Observed:
    return Observed(latency, flushes, at_risk)


def test_a_prediction_that_is_the_measurement_has_no_error() -> None:
    assert set(asdict(score(observed(LATENCY), observed(LATENCY))).values()) == {0.0}


def test_the_floor_of_equal_rounds_is_0() -> None:
    assert set(asdict(floor_of([observed(LATENCY)] * 4)).values()) == {0.0}


def test_the_floor_sees_a_slow_round_in_every_place() -> None:
    """The floor of even against odd rounds was 0 if two slow rounds were one of each."""
    usual, slow = observed(LATENCY[:2_000]), observed(LATENCY[:2_000] * 2)
    for places in ((0, 1), (0, 2), (2, 5)):
        found = floor_of([slow if place in places else usual for place in range(6)])
        assert found.p50 > 0.2
        assert found.p99 > 0.2


def test_the_floor_of_one_round_is_refused() -> None:
    with pytest.raises(ValueError, match="two rounds"):
        floor_of([observed(LATENCY)])


def test_a_scaled_prediction_is_off_by_the_scale_at_every_quantile() -> None:
    found = score(observed(LATENCY), observed(LATENCY * 3 // 2))
    assert [found.p50, found.p90, found.p99] == pytest.approx([0.5, 0.5, 0.5], abs=1e-4)


def test_a_shifted_prediction_is_shifted_with_its_sign_and_its_demerit_is_the_shift_over_the_mean() -> None:
    shift = 20_000
    late, early = (
        score(observed(LATENCY), observed(LATENCY + shift)),
        score(observed(LATENCY + shift), observed(LATENCY)),
    )
    p50 = np.sort(LATENCY)[len(LATENCY) // 2 - 1]
    assert late.p50 == pytest.approx(shift / p50)
    assert early.p50 == pytest.approx(-shift / (p50 + shift))
    assert late.demerit == pytest.approx(shift / LATENCY.mean())
    assert late.p99 < late.p50, "a shift weighs less the longer a latency is"


def test_a_tail_that_is_not_foretold_shows_at_p99_and_not_at_p50() -> None:
    stalled = LATENCY.copy()
    stalled[RNG.permutation(len(stalled))[: len(stalled) // 50]] = 40_000_000
    found = score(observed(stalled), observed(LATENCY))
    assert found.p99 < -0.9
    assert abs(found.p50) < 0.02
    assert found.ks == pytest.approx(0.02, abs=0.002)


def test_flushes_and_risk_have_errors_of_their_own() -> None:
    found = score(observed(LATENCY), observed(LATENCY, flushes=110.0, at_risk=4.0))
    assert (found.flushes, found.at_risk, found.p50) == pytest.approx((0.1, -0.2, 0.0))


def test_ks_is_1_for_samples_that_do_not_overlap_and_counts_shares_not_messages() -> None:
    low, high = np.arange(10), np.arange(100, 1000)
    assert ks_distance(low, high) == 1.0
    assert ks_distance(np.arange(10), np.repeat(np.arange(10), 7)) == 0.0
    assert ks_distance(np.array([1, 2, 3, 4]), np.array([1, 2, 9, 9])) == 0.5


def test_demerit_is_the_same_for_a_sample_and_the_sample_twice() -> None:
    assert demerit(np.sort(LATENCY), np.sort(np.tile(LATENCY, 2))) == pytest.approx(0.0, abs=1e-3)


def test_relative_error_of_nothing_is_0_and_of_something_where_nothing_was_has_no_bound() -> None:
    assert relative_error(0, 0) == 0
    assert relative_error(0, 3) == math.inf
    assert relative_error(4, 3) == -0.25


def test_tau_is_1_for_the_same_order_minus_1_for_the_reverse_and_a_swap_costs_one_pair() -> None:
    assert kendall_tau([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert kendall_tau([1, 2, 3, 4], [4, 3, 2, 1]) == -1
    assert kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(4 / 6)


def test_pairs_that_the_measurement_cannot_tell_apart_count_for_nobody() -> None:
    assert kendall_tau([1, 1, 2], [5, 3, 9]) == 1
    assert math.isnan(kendall_tau([1, 1], [1, 2]))


def test_a_score_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="needs messages"):
        score(observed(LATENCY), observed(LATENCY[:0]))
