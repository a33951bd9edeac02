"""Test planning puts in bulk and one by one against a plain loop written from the rules."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simpy import Environment

from tornpage.sim.device.device import PRESETS, Device
from tornpage.sim.distributions import Exponential, Int64s
from tornpage.sim.log import log as log_module
from tornpage.sim.log.log import BLANK_BYTES, Log
from tornpage.sim.streams import stream

DEVICE = replace(PRESETS["vm-ext4"], read_ahead_bytes=3 * 4096, read_ahead_stall=Exponential(20_000.0))


def planned(gaps: list[int], sizes: list[int], *, few_rows: int, warmed: bool) -> list[Int64s]:
    """Return start, written and offset of all rows; rolls cost nothing."""
    env = Environment()
    device = Device(DEVICE, stream(3, "put lock"))
    log = Log(env, device, file_bytes=20_000, smallest_bytes=1, rows=len(gaps), warmed=warmed, forced=warmed)
    log.arrive_many(np.cumsum(gaps), np.array(sizes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_module, "FEW_ROWS", few_rows)
        while not log.plan():
            asked_ns = max(log.arrival_ns.item(log.planned_rows), log.lock_free_ns)
            env.run(until=env.timeout(asked_ns - int(env.now)))
            log.roll(asked_ns=asked_ns)
    return [log.start_ns, log.written_ns, log.offset]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 15_000)), min_size=1, max_size=60),
    st.booleans(),
)
def test_many_at_once_are_as_one_by_one(rows: list[tuple[int, int]], warmed: bool) -> None:
    gaps, sizes = map(list, zip(*rows, strict=True))
    one_by_one = planned(gaps, sizes, few_rows=1 << 30, warmed=warmed)
    together = planned(gaps, sizes, few_rows=0, warmed=warmed)
    for single, many in zip(one_by_one, together, strict=True):
        assert single.tolist() == many.tolist()


def test_pages_and_windows_are_touched_once_each() -> None:
    """A sequential writer stalls once per read-ahead window, and never in a warmed file.

    This is check 13 of the anchors.
    """
    window, records, size = 8 << 20, 1 << 16, 4096
    device = replace(PRESETS["vm-ext4"], touch_page_ns=0)
    assert device.read_ahead_bytes == window
    for warmed, stalls in ((False, records * size // window), (True, 0)):
        log = Log(
            Environment(),
            Device(device, stream(3, "put lock")),
            file_bytes=records * size + BLANK_BYTES,
            smallest_bytes=size,
            rows=records,
            warmed=warmed,
            forced=warmed,
        )
        log.arrive_many(np.zeros(records, dtype=np.int64), np.full(records, size))
        assert log.plan()
        took = log.written_ns - log.start_ns
        assert np.count_nonzero(took > device.copy_ns(size)) == stalls
        assert (took - device.copy_ns(size)).sum() == stalls * 600_000
    assert records * size // window == 32


def test_an_arrival_in_the_middle_of_nothing_is_served_at_once() -> None:
    device = Device(replace(DEVICE, touch_page_ns=0, read_ahead_bytes=0), stream(0, "x"))
    log = Log(Environment(), device, file_bytes=1 << 20, smallest_bytes=1, rows=1, warmed=False, forced=False)
    for number in range(3):
        log.arrive(1000 * number, 1024, 0)
    assert log.plan()
    service = DEVICE.copy_ns(1024)
    assert service < 1000
    assert log.start_ns[:3].tolist() == [0, 1000, 2000]
    assert log.written_ns[:3].tolist() == [service, 1000 + service, 2000 + service]


def test_what_is_written_this_very_moment_is_taken_however_many() -> None:
    rows = 3 * log_module.FEW_ROWS
    free = Device(replace(DEVICE, put_ns=0, copy_ns_per_kib=0, touch_page_ns=0, read_ahead_bytes=0), stream(0, "x"))
    log = Log(Environment(), free, file_bytes=1 << 20, smallest_bytes=1, rows=rows, warmed=False, forced=False)
    log.arrive_many(np.zeros(rows, dtype=np.int64), np.full(rows, 10))
    assert log.plan()
    piece = log.dirty()
    assert piece is not None
    assert piece.rows_end == rows


def test_the_blank_of_a_full_file_is_written_too() -> None:
    """A record of one page leaves the blank on the second one.

    The rest of the file was never touched.
    """
    device = Device(DEVICE, stream(0, "x"))
    log = Log(Environment(), device, file_bytes=4 * 4096, smallest_bytes=1, rows=2, warmed=False, forced=False)
    log.arrive_many(np.zeros(2, dtype=np.int64), np.array([4096, 3 * 4096]))
    assert not log.plan()
    log.roll(asked_ns=0)
    piece = log.dirty()
    assert piece is not None
    assert (piece.from_offset, piece.to_offset, piece.rows_end) == (0, 4 * 4096, 1)
    assert piece.device_bytes == 2 * 4096
