"""Test the survival curve against a worked example, and quantiles of censored times."""

import math

import pytest

from tornpage.properties.score.survival import Observed, bootstrap_quantile, product_limit, quantile

REMISSION = "6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+"
"""Weeks of remission of 21 patients with 6-MP, + censored (Freireich et al.

1963), a textbook example.
"""

SURVIVAL = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}


def test_the_curve_is_that_of_the_textbooks() -> None:
    observed = [Observed(float(word.rstrip("+")), not word.endswith("+")) for word in REMISSION.split()]
    curve = product_limit(observed)
    assert {time: round(alive, 3) for time, alive in curve} == SURVIVAL


def test_without_censoring_it_is_the_share_that_is_left() -> None:
    assert product_limit([Observed(time, killed=True) for time in (1.0, 2.0, 2.0, 4.0)]) == [
        (1.0, 0.75), (2.0, 0.25), (4.0, 0.0),
    ]  # fmt: skip


def test_with_nobody_killed_there_is_no_step() -> None:
    assert product_limit([Observed(60.0, killed=False)] * 3) == []
    assert product_limit([]) == []


def test_a_quantile_beyond_the_kills_is_beyond_the_budget() -> None:
    times = [3.0, 1.0, math.inf, 2.0]
    assert quantile(times, 0.5) == 2.0
    assert quantile(times, 0.75) == 3.0
    assert quantile(times, 0.95) == math.inf


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_the_interval_holds_the_quantile_and_is_the_same_again(share: float) -> None:
    times = [float(number) for number in range(1, 28)] + [math.inf] * 3
    found = bootstrap_quantile(times, share, seed=0)
    assert found.low <= found.value <= found.high
    assert found.low < found.high
    assert found == bootstrap_quantile(times, share, seed=0)


def test_the_interval_of_equal_times_is_a_point() -> None:
    found = bootstrap_quantile([2.0] * 30, 0.5, seed=0)
    assert (found.low, found.value, found.high) == (2.0, 2.0, 2.0)
