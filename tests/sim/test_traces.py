"""Test the invariants of every trace over drawn scenarios, small files and odd sizes.

They hold for all policies.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.drawn import scenarios
from tornpage.impl.config.policy import PAGE_BYTES, FlushDiskType
from tornpage.sim.distributions import Constant
from tornpage.sim.log.log import BLANK_BYTES
from tornpage.sim.results.trace import Trace
from tornpage.sim.run import run
from tornpage.sim.scenario import Scenario
from tornpage.sim.workload import ClosedLoop


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(scenarios(), st.integers(0, 1 << 40))
def test_every_trace_keeps_the_rules(scenario: Scenario, seed: int) -> None:
    trace = run(scenario, seed)
    assert trace.messages == scenario.messages
    check_puts(trace)
    check_places(trace)
    check_flushes(trace)
    check_rolls(trace)
    if isinstance(scenario.workload, ClosedLoop):
        check_producers_wait(trace)


def check_puts(trace: Trace) -> None:
    """Arrival, lock, write and answer follow each other.

    The lock serves one put after another, and a sync waits for the disk.
    """
    sync = trace.scenario.flush.flush_disk_type is FlushDiskType.SYNC_FLUSH
    assert (np.diff(trace.arrival_ns) >= 0).all()
    assert (trace.arrival_ns <= trace.start_ns).all()
    assert (trace.start_ns <= trace.written_ns).all()
    assert (trace.written_ns[:-1] <= trace.start_ns[1:]).all()
    assert (trace.start_ns[1:] == np.maximum(trace.arrival_ns[1:], trace.written_ns[:-1])).all()
    assert (trace.written_ns <= trace.durable_ns).all()
    assert trace.put_ns.tolist() == (answers(trace) if sync else trace.written_ns.tolist())
    assert (np.diff(trace.durable_ns) >= 0).all()


def answers(trace: Trace) -> list[int]:
    """Return the time of each answer of group commit.

    It is after the sync of the message, and after the earlier answers of the round.
    """
    found, answered, number, device = [], 0, 0, trace.scenario.device
    for row in trace.flushes:
        if row["round"] != number:
            number, answered = row["round"], 0
        for _ in range(row["messages"]):
            found.append(int(row["end_ns"]) + device.answering_ns + answered * device.answer_ns)
            answered += 1
    return found


def check_places(trace: Trace) -> None:
    """Records follow each other without a gap, except where no room for a blank would be left."""
    file_bytes = trace.scenario.file_bytes
    ends = trace.offset + trace.size
    assert trace.offset[0] == 0
    files, positions = trace.offset // file_bytes, trace.offset % file_bytes
    assert (positions + trace.size + BLANK_BYTES <= file_bytes).all()
    follows = trace.offset[1:] == ends[:-1]
    rolls = (positions[1:] == 0) & (files[1:] == files[:-1] + 1)
    assert (follows ^ rolls).all()
    did_not_fit = ends[:-1] % file_bytes + trace.size[1:] + BLANK_BYTES > file_bytes
    assert (did_not_fit == rolls).all()
    assert (np.flatnonzero(rolls) + 1).tolist() == trace.rolls["row"].tolist()


def check_flushes(trace: Trace) -> None:
    """Syncs follow each other, cover the log without a gap and take all written bytes.

    They cost what they wrote.
    """
    flushes, file_bytes = trace.flushes, trace.scenario.file_bytes
    assert flushes["from_offset"][0] == 0
    assert (flushes["from_offset"][1:] == flushes["to_offset"][:-1]).all()
    assert (flushes["from_offset"] < flushes["to_offset"]).all()
    assert (flushes["end_ns"][:-1] <= flushes["start_ns"][1:]).all()
    assert flushes["messages"].sum() == trace.messages
    assert (flushes["from_offset"] // file_bytes == flushes["file_index"]).all()
    assert ((flushes["to_offset"] - 1) // file_bytes == flushes["file_index"]).all()
    blanks = flushes["to_offset"][-1] - trace.size.sum()
    waste = file_bytes - (trace.offset + trace.size)[trace.rolls["row"] - 1] % file_bytes
    assert blanks == waste.sum(), "bytes are records and the blanks at the ends of files, nothing else"
    first = np.concatenate(([0], np.cumsum(flushes["messages"])[:-1]))
    for row, begin in zip(flushes, first, strict=True):
        covered = slice(begin, begin + row["messages"])
        assert (trace.durable_ns[covered] == row["end_ns"]).all()
        assert (trace.written_ns[covered] <= row["start_ns"]).all(), "durable before it was written"
        left = slice(begin + row["messages"], None)
        in_file = trace.offset[left] // file_bytes == row["file_index"]
        assert (trace.written_ns[left][in_file] > row["start_ns"]).all(), "written, and left out"
        touched = row["to_offset"] - 1 - row["from_offset"]
        assert row["device_bytes"] % PAGE_BYTES == 0 or row["device_bytes"] == file_bytes
        assert row["device_bytes"] <= max(touched + 2 * PAGE_BYTES, file_bytes)


def check_rolls(trace: Trace) -> None:
    """A roll waits for its file and for nothing else.

    Files are made in order, each requested as the policy says.
    """
    rolls, made = trace.rolls, trace.allocations
    assert (rolls["file_index"] == np.arange(1, len(rolls) + 1)).all()
    assert (rolls["asked_ns"] == trace.start_ns[rolls["row"]]).all()
    ready = dict(zip(made["file_index"].tolist(), made["ready_ns"].tolist(), strict=True))
    requested = dict(zip(made["file_index"].tolist(), made["requested_ns"].tolist(), strict=True))
    turned = [0, *rolls["ready_ns"].tolist()]
    asked = [0, *rolls["asked_ns"].tolist()]
    ahead = trace.scenario.allocation.files_ahead
    for file_index, asked_ns, ready_ns in rolls[["file_index", "asked_ns", "ready_ns"]].tolist():
        assert ready_ns == max(asked_ns, ready[file_index])
        assert requested[file_index] == asked[max(file_index - ahead, 0)]
        assert turned[file_index] == ready_ns
    assert (made["start_ns"][1:] >= made["ready_ns"][:-1]).all()
    assert (made["file_index"] == np.arange(1, len(made) + 1)).all()


def check_producers_wait(trace: Trace) -> None:
    for number in np.unique(trace.producer):
        own = trace.producer == number
        assert (trace.arrival_ns[own][1:] >= trace.put_ns[own][:-1]).all()


@settings(max_examples=60, deadline=None)
@given(scenarios(), st.integers(0, 1 << 40))
def test_nobody_waits_for_a_flush_without_need(scenario: Scenario, seed: int) -> None:
    """Group commit is never idle while a put waits, longer than to answer, turn and wake."""
    if scenario.flush.flush_disk_type is FlushDiskType.ASYNC_FLUSH:
        return
    device = replace(scenario.device, wake=None, turn=Constant(3_000))
    trace = run(replace(scenario, device=device), seed)
    starts, ends = trace.flushes["start_ns"], trace.flushes["end_ns"]
    first = np.concatenate(([0], np.cumsum(trace.flushes["messages"])[:-1]))
    for number in range(len(starts)):
        waited_for = trace.written_ns[first[number]]
        free = 0 if number == 0 else ends[number - 1]
        if trace.flushes["messages"][number]:
            rounds, sizes = trace.flushes["round"], trace.flushes["messages"]
            answered = 0 if number == 0 else sizes[rounds == rounds[number - 1]].sum()
            free += 3_000 + answered * device.answer_ns
            assert starts[number] <= max(free, waited_for + device.wake_ns)
