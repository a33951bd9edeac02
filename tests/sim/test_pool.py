"""Test the transient store pool: invariants of every trace, and the cost of an empty pool."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.drawn import scenarios
from tests.sim.support import ASYNC, MS, SYNC, scenario
from tornpage.impl.config.policy import AllocationPolicy, CommitPolicy, FlushDiskType, FlushPolicy
from tornpage.sim.device.device import PRESETS, DeviceTimes
from tornpage.sim.distributions import Constant
from tornpage.sim.results.tables import figures, summarise_pool
from tornpage.sim.results.trace import Trace
from tornpage.sim.run import run
from tornpage.sim.scenario import ImpossibleScenario, Pool, Scenario

POOLS = st.builds(
    Pool,
    st.integers(2, 4),
    st.builds(CommitPolicy, st.integers(1, 50), st.integers(0, 6), st.integers(0, 60)),
    st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(scenarios(), POOLS, st.integers(0, 500_000), st.integers(0, 1 << 40))
def test_every_pooled_trace_keeps_the_rules(case: Scenario, pool: Pool, per_kib_ns: int, seed: int) -> None:
    flush = replace(case.flush, flush_disk_type=FlushDiskType.ASYNC_FLUSH)
    device = replace(case.device, commit_ns=1_000, commit_ns_per_kib=per_kib_ns)
    trace = run(replace(case, flush=flush, device=device, pool=pool), seed)
    assert trace.messages == case.messages
    check_watermarks(trace)
    check_commits(trace)
    check_flushes(trace)
    check_refusals(trace)


def check_watermarks(trace: Trace) -> None:
    assert (trace.written_ns <= trace.committed_ns).all()
    assert (trace.committed_ns <= trace.durable_ns).all()
    for column in (trace.written_ns, trace.committed_ns, trace.durable_ns):
        assert (np.diff(column) >= 0).all()
    assert (trace.put_ns == trace.written_ns).all()


def check_commits(trace: Trace) -> None:
    """A buffer is written in order and whole at the end.

    A write covers what was in the buffer when the write began.
    """
    commits, file_bytes = trace.commits, trace.scenario.file_bytes
    assert trace.scenario.pool is not None
    buffers = trace.scenario.pool.buffers
    assert (commits["end_ns"][:-1] <= commits["start_ns"][1:]).all()
    assert ((commits["buffers_home"] >= 0) & (commits["buffers_home"] <= buffers)).all()
    assert (commits["from_offset"] < commits["to_offset"]).all()
    assert ((commits["to_offset"] - 1) // file_bytes == commits["file_index"]).all()
    for row in commits:
        stored = (trace.size > 0) & (trace.offset >= row["from_offset"]) & (trace.offset < row["to_offset"])
        assert (trace.offset + trace.size <= row["to_offset"])[stored].all()
        assert (trace.written_ns[stored] <= row["start_ns"]).all(), "committed before it was written"
        assert (trace.committed_ns[stored] == row["end_ns"]).all()
    for file_index in np.unique(commits["file_index"]):
        own = commits[commits["file_index"] == file_index]
        assert own["from_offset"][0] == file_index * file_bytes
        assert (own["from_offset"][1:] == own["to_offset"][:-1]).all()


def check_flushes(trace: Trace) -> None:
    """Nothing is flushed that is not in the page cache."""
    flushes = trace.flushes
    assert (flushes["from_offset"][1:] == flushes["to_offset"][:-1]).all()
    ends = trace.offset + trace.size
    for row in flushes:
        covered = (trace.size > 0) & (trace.offset >= row["from_offset"]) & (ends <= row["to_offset"])
        assert (trace.committed_ns[covered] <= row["start_ns"]).all(), "flushed before it was committed"
        assert (trace.durable_ns[covered] == row["end_ns"]).all()


def check_refusals(trace: Trace) -> None:
    """Only a pool that fails fast refuses puts; a refused put takes no room and no time."""
    assert trace.scenario.pool is not None
    refused = trace.size == 0
    if trace.scenario.pool.fast_fail:
        assert trace.files_without_buffer == 0
    else:
        assert not refused.any()
    assert (trace.written_ns[refused] == trace.start_ns[refused]).all()
    assert summarise_pool(trace).refused == refused.sum()


def slow_commits(pool: Pool, ahead: int = 1) -> Scenario:
    """20 MB/s are put, 10 MiB/s committed, in files of 1 MiB."""
    device = DeviceTimes(name="slow commits", sync=Constant(MS), put_ns=1_000, commit_ns_per_kib=100_000)
    case = scenario(
        flush=ASYNC,
        allocation=AllocationPolicy(ahead),
        device=device,
        workload=20_000.0,
        file_bytes=1 << 20,
        messages=30_000,
    )
    return replace(case, pool=pool)


@pytest.mark.parametrize("buffers", [3, 5, 8])
def test_a_pool_is_empty_after_its_bytes_over_what_puts_outrun_commits(buffers: int) -> None:
    """Check 14 of the anchors: P * F / (r - c), in the file in use and the one ahead."""
    case = slow_commits(Pool(buffers, CommitPolicy(10)))
    trace = run(case, 1)
    assert trace.files_without_buffer > 0
    per_s, committed_per_s = 20_000 * 1024, 1024 * 1e9 / 100_000
    file_s = case.file_bytes / per_s
    empty_s = buffers * case.file_bytes / (per_s - committed_per_s)
    without = np.setdiff1d(np.unique(trace.offset // case.file_bytes), trace.commits["file_index"])
    made = trace.allocations["start_ns"][trace.allocations["file_index"] == without[0]]
    assert made.item() / 1e9 == pytest.approx(empty_s, abs=2.5 * file_s * per_s / committed_per_s)


def test_more_buffers_last_longer_and_fast_commits_last_for_ever() -> None:
    without = [run(slow_commits(Pool(buffers, CommitPolicy(10))), 1).files_without_buffer for buffers in (2, 4, 8)]
    assert without == sorted(without, reverse=True)
    assert without[0] > without[-1]
    quick = scenario(flush=ASYNC, workload=20_000.0, file_bytes=1 << 20, messages=30_000)
    assert run(replace(quick, pool=Pool(5)), 1).files_without_buffer == 0


def test_failing_fast_refuses_puts_where_falling_back_makes_files_without_buffers() -> None:
    fallback, fast = (figures(run(slow_commits(Pool(3, CommitPolicy(10), fail)), 1)) for fail in (False, True))
    assert fallback["put_refused"] == 0 < fallback["files_without_buffer"]
    assert fast["put_refused"] > 1_000
    assert fast["files_without_buffer"] == 0
    assert fast["messages"] == 30_000 - fast["put_refused"]


def test_puts_into_a_buffer_touch_no_new_page() -> None:
    case = scenario(flush=ASYNC, device=PRESETS["vm-ext4"], messages=20_000)
    plain, pooled = run(case, 1), run(replace(case, pool=Pool()), 1)
    copy_ns = case.device.copy_ns(1024)
    assert ((pooled.written_ns - pooled.start_ns) == copy_ns).all()
    assert (plain.written_ns - plain.start_ns).max() >= 600_000


def test_a_kill_takes_a_commit_interval_and_no_more() -> None:
    """At 2 messages/s no page fills within the interval, so commits follow the clock."""
    pool = Pool(5, CommitPolicy(200, 4, 200))
    trace = run(replace(scenario(flush=ASYNC, device=Constant(MS), workload=2.0, messages=300), pool=pool), 1)
    waited = trace.committed_ns - trace.written_ns
    assert 190 * MS < waited.max() <= 200 * MS
    assert waited.mean() == pytest.approx(100 * MS, rel=0.1)


def test_a_woken_flusher_follows_the_commits() -> None:
    flush = FlushPolicy(FlushDiskType.ASYNC_FLUSH, flush_commit_log_timed=False)
    trace = run(replace(scenario(flush=flush, messages=5_000), pool=Pool()), 1)
    pages = trace.flushes["to_offset"] // 4096 - trace.flushes["from_offset"] // 4096
    assert pages[1:-1].min() >= 4
    starts = set((trace.commits["end_ns"] + PRESETS["vm-ext4"].wake_ns).tolist())
    assert len(starts & set(trace.flushes["start_ns"].tolist())) > len(trace.flushes) // 2


def test_impossible_pools_are_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="a pool of 0 buffers is impossible"):
        Pool(0)
    with pytest.raises(ValueError, match="needs 2 buffers"):
        Pool(1, fast_fail=True)
    with pytest.raises(ImpossibleScenario, match="SYNC_FLUSH leaves a transient store pool unused"):
        replace(scenario(flush=SYNC), pool=Pool())
