"""Test the measured loss of the real store, and power cuts of the recorded disk."""

from typing import Any

import numpy as np
import pytest

from tornpage.bench.calibration.driven import FLUSH_DTYPE, Driven
from tornpage.bench.validation import policy_check
from tornpage.bench.validation.policy_check import check_policy, measured_loss
from tornpage.impl.config.policy import AllocationPolicy, CommitPolicy, FlushDiskType, FlushPolicy
from tornpage.sim.device.device import PRESETS
from tornpage.sim.experiments.policies import SYNC, StorePolicy
from tornpage.sim.scenario import Pool, Scenario
from tornpage.sim.workload import OpenPoisson, Sizes

TIMED = StorePolicy("async 100 ms", FlushPolicy(FlushDiskType.ASYNC_FLUSH, 100, 0))
MS = 1_000_000


def driven(scenario: Scenario, answered_ms: list[int], flushes: list[tuple[int, int]], commits: Any = ()) -> Driven:
    """Return a run of records of 100 bytes.

    Flushes and commits are pairs of end (ms) and records covered.
    """

    def table(rows: Any) -> Any:
        return np.array([(end * MS, end * MS, 0, 100 * covered) for end, covered in rows], FLUSH_DTYPE)

    at = np.array(answered_ms, np.int64) * MS
    ends = 100 * np.arange(1, len(at) + 1)
    return Driven(
        scenario,
        0,
        due_ns=at,
        began_ns=at,
        written_ns=at,
        answered_ns=at,
        end_offset=ends,
        flushes=table(flushes),
        commits=table(commits),
    )


def scenario(policy: StorePolicy) -> Scenario:
    return Scenario(
        flush=policy.flush,
        allocation=AllocationPolicy(),
        pool=policy.pool,
        device=PRESETS["vm-ext4"],
        workload=OpenPoisson(1_000.0, Sizes.of(100)),
        duration_ns=10**9,
    )


def test_the_loss_is_what_was_answered_and_not_flushed_at_the_worst_moment() -> None:
    run = driven(scenario(TIMED), [1, 2, 3, 10, 20], [(6, 2), (9, 3), (30, 5)])
    # at 6 ms: messages 1 to 3, the oldest 5 ms old; from 10 to 20 ms, the end of the load: 4 and 5
    assert measured_loss(run, "power") == (10 * MS, 3)
    assert measured_loss(run, "kill") == (0, 0)
    age_ns, lost = measured_loss(run, "power", 0.5)  # of 1 to 20 ms: the median of 0 to 5, 0 to 3, and 0 to 10 ms
    assert 2.9 * MS < age_ns < 4.1 * MS
    assert lost == 1


def test_what_no_flush_covered_is_lost_at_the_end_of_the_load() -> None:
    assert measured_loss(driven(scenario(TIMED), [1, 2, 5], []), "power") == (4 * MS, 2)
    assert measured_loss(driven(scenario(TIMED), [], []), "power") == (0, 0)


def test_a_kill_takes_what_a_pool_has_not_committed() -> None:
    pooled = StorePolicy("pool", TIMED.flush, Pool(2, CommitPolicy(10, 0, 10)))
    run = driven(scenario(pooled), [1, 2, 9], [], commits=[(4, 2), (9, 3)])
    assert measured_loss(run, "kill") == (3 * MS, 2)


@pytest.mark.parametrize(("policy", "is_lossy"), [(TIMED, True), (StorePolicy("sync", SYNC), False)])
def test_power_cuts_of_the_recorded_disk_take_what_the_policy_left(
    policy: StorePolicy, *, is_lossy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = list(range(1, 400, 2))
    monkeypatch.setattr(policy_check, "drive", lambda directory, scenario, seed: driven(scenario, answered, []))
    found = check_policy(
        "/nowhere", policy, rate_per_s=500.0, record_bytes=422, seconds=0.4, cuts=20, crash="power", share=1.0, seed=1
    )
    assert (found.messages, found.cuts, found.put_p99_us) == (200, 20, 0.0)
    assert (found.cut_loss_messages > 0) == (found.cut_loss_ms > 0) == is_lossy
    assert found.cut_loss_ms <= 101
    assert found.loss_messages == 199
