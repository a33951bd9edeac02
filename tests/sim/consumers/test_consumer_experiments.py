"""Test the experiments with consumers: their rows show what their captions say."""

import pytest

from tornpage.sim.device.device import PRESETS
from tornpage.sim.experiments.consumer_window import CONSUMER_WINDOW, WINDOWS, capacity, rate_limit
from tornpage.sim.experiments.rebalance import PERIODS_S, REBALANCE
from tornpage.sim.experiments.values import Row, Setup, run_experiment
from tornpage.sim.experiments.words import grouped, of

SMALL = Setup(PRESETS["vm-ext4"], seed=1, effort=0.1)


@pytest.fixture(scope="module")
def windows() -> tuple[Row, ...]:
    return run_experiment(CONSUMER_WINDOW, SMALL, lambda step: None).rows


@pytest.fixture(scope="module")
def changes() -> tuple[Row, ...]:
    return run_experiment(REBALANCE, SMALL, lambda step: None).rows


def test_a_small_window_leaves_threads_idle(windows: tuple[Row, ...]) -> None:
    for own in grouped(windows, "member").values():
        idle = [of(row, "idle_percent") for row in own]
        assert idle[0] > 10 > idle[-1]
        assert idle == sorted(idle, reverse=True) or idle[0] == max(idle)
        for row in own:
            limit = rate_limit(int(of(row, "window")), of(row, "pull_ms"))
            assert of(row, "messages_per_s") <= 1.15 * min(limit, capacity(int(of(row, "threads"))))


def test_a_window_bounds_what_is_repeated(windows: tuple[Row, ...]) -> None:
    for row in windows:
        assert of(row, "repeated_max") <= 4 * of(row, "window") + of(row, "threads")
    least = [row for row in windows if row["window"] == WINDOWS[0]]
    most = [row for row in windows if row["window"] == WINDOWS[-1]]
    assert sum(of(row, "repeated_mean") for row in least) <= sum(of(row, "repeated_mean") for row in most)


def test_a_hand_over_repeats_nothing(changes: tuple[Row, ...]) -> None:
    ways = grouped(changes, "way")
    assert {of(row, "repeated_mean") for row in ways["hand-over"]} == {0}
    dropped = [row for row in ways["drop"] if row["period_s"] == PERIODS_S[-1]]
    assert all(of(row, "repeated_mean") > 50 for row in dropped)


def test_waits_grow_with_the_period(changes: tuple[Row, ...]) -> None:
    for own in grouped(changes, "series").values():
        assert of(own[-1], "longest_wait_s") > 3 * of(own[0], "longest_wait_s")
