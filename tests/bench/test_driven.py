"""Test a driven slice: simulated arrivals, ordered times, and flushes that cover the log."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tornpage.bench.calibration.driven import RECORD_BYTES, Driven, _Producer, drive, real_time
from tornpage.impl.config.policy import AllocationPolicy, CommitPolicy, FlushDiskType, FlushPolicy, WarmUp
from tornpage.impl.message.message import Message, PutResult, PutStatus
from tornpage.properties.contract import HarnessError
from tornpage.sim.device.device import PRESETS
from tornpage.sim.run import run
from tornpage.sim.scenario import Pool, Scenario
from tornpage.sim.workload import ClosedLoop, OpenPoisson, Sizes

GROUP = Scenario(
    flush=FlushPolicy(FlushDiskType.SYNC_FLUSH),
    allocation=AllocationPolicy(files_ahead=0),
    device=PRESETS["vm-ext4"],
    workload=OpenPoisson(4_000.0, Sizes.of(RECORD_BYTES)),
    file_bytes=1 << 20,
    messages=200,
)
TIMED = replace(GROUP, flush=FlushPolicy(FlushDiskType.ASYNC_FLUSH, 10, 1))
POOLED = replace(TIMED, pool=Pool(2, CommitPolicy(5, 1)))
WARMED = replace(GROUP, allocation=AllocationPolicy(0, WarmUp.TOUCH_AND_FORCE))


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Driven:
    return drive(str(tmp_path_factory.mktemp("group")), GROUP, 7)


def test_the_store_is_asked_for_the_puts_of_the_simulator(group: Driven) -> None:
    assert np.array_equal(group.due_ns, run(GROUP, 7).arrival_ns)
    assert (np.diff(group.end_offset) == RECORD_BYTES).all()


def test_records_have_the_size_of_the_scenario(tmp_path: Path) -> None:
    small = drive(str(tmp_path), replace(TIMED, workload=OpenPoisson(4_000.0, Sizes.of(422)), messages=20), 7)
    assert (np.diff(small.end_offset) == 422).all()
    assert small.end_offset[0] == 422 * 11  # the first page is full


def test_no_put_begins_before_it_is_due_and_none_while_another_runs(group: Driven) -> None:
    assert (group.began_ns >= group.due_ns).all()
    assert (group.written_ns >= group.began_ns).all()
    assert (group.began_ns[1:] >= group.written_ns[:-1]).all()


def test_a_group_commit_is_answered_behind_a_flush_that_covers_its_record(group: Driven) -> None:
    covering = np.searchsorted(group.flushes["to_offset"], group.end_offset)
    assert covering.max() < len(group.flushes)
    assert (group.answered_ns > group.flushes["end_ns"][covering]).all()
    assert (group.flushes["start_ns"][covering] < group.answered_ns).all()


def test_latency_counts_from_the_moment_a_message_was_due(group: Driven) -> None:
    assert np.array_equal(group.latency_ns, group.answered_ns - group.due_ns)
    assert (group.latency_ns >= group.answered_ns - group.began_ns).all()


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [TIMED, POOLED, WARMED], ids=["timed", "pool", "warmed"])
def test_a_store_follows_the_policies_of_the_scenario(scenario: Scenario, tmp_path: Path) -> None:
    driven = drive(str(tmp_path), scenario, 3)
    assert len(driven.due_ns) == scenario.messages
    assert len(driven.flushes) >= 2
    assert bool(len(driven.commits)) == (scenario.pool is not None)
    if not scenario.answers_after_flush:
        assert np.array_equal(driven.answered_ns, driven.written_ns)
        assert np.diff(driven.flushes["start_ns"]).min() > 8_000_000, "rounds of the timer are 10 ms apart"
    assert list(tmp_path.iterdir()) == []


def test_closed_producers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="open load"):
        drive(str(tmp_path), replace(GROUP, workload=ClosedLoop(2, Sizes.of(RECORD_BYTES))), 1)


def test_a_put_that_is_refused_is_told() -> None:
    producer = _Producer(_Refusing(), Message("T", b"x"), is_synchronous=False)  # type: ignore[arg-type]
    producer.produce([0, 0])
    with pytest.raises(HarnessError, match="2 puts were refused, the first with SERVICE_NOT_AVAILABLE"):
        producer.wait()


class _Refusing:
    def put(self, _: Message) -> PutResult:
        return PutResult(PutStatus.SERVICE_NOT_AVAILABLE)


def test_real_time_gives_the_priority_back() -> None:
    import os

    before = os.sched_getscheduler(0)
    with real_time() as is_first:
        assert is_first == (os.sched_getscheduler(0) == os.SCHED_FIFO)
    assert os.sched_getscheduler(0) == before
