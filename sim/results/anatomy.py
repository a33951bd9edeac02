"""Split the time of puts by cause, from arrival to the release of the lock.

The causes in the trace add up to the time exactly. Two more causes are not simulated, since they depend on when flushes
fall. They are counted from the trace and would come on top:

* re-protection: a sync leaves pages write-protected, and the first store into each grain of them faults again.
* flush lock: `mmap.flush` holds CPython's interpreter lock for most of the sync, so that no put runs meanwhile
  (`os.fdatasync` does not).

Time slices of other processes and the kernel's throttle of writers are not included.
"""

from dataclasses import dataclass

import numpy as np

from tornpage.impl.config.policy import PAGE_BYTES
from tornpage.sim.distributions import Int64s
from tornpage.sim.results.trace import Trace

__all__ = ["REPROTECT_GRAIN_BYTES", "REPROTECT_NS", "Anatomy", "anatomy", "held_up_ns", "reprotect_faults"]

REPROTECT_NS = 2_900
"""One fault on a page that a sync has write-protected.

Source: docs/disks/presets.md, "First touches of a page".
"""
REPROTECT_GRAIN_BYTES = 256 * (1 << 20) // 10_442
"""Bytes that one such fault makes writable again.

Source: docs/disks/presets.md: 10,442 faults in 256 MiB.
"""


@dataclass(frozen=True, slots=True)
class Anatomy:
    """Sums over all puts, ns.

    The first five add up to `total_ns`, the whole time from arrival to the release of the lock. A cause includes the
    time that it holds the lock and the time that it makes other puts wait. `queue_ns` is the wait without any of the
    causes, and each cause adds to those above it.
    """

    put_ns: int
    """Encoding and copying: the put itself."""
    queue_ns: int
    touch_ns: int
    """First stores into pages."""
    read_ahead_ns: int
    """First stores into windows of read-ahead."""
    allocation_ns: int
    """Waiting for the next file under the lock."""
    total_ns: int
    reprotect_ns: int
    """Counted, not in the total."""
    flush_lock_ns: int
    """Counted, not in the total: the extra wait of puts."""


def anatomy(trace: Trace, *, flush_lock_share: float = 0.0) -> Anatomy:
    """Split the time of the puts of a trace.

    `flush_lock_share` is the share of each sync that holds the interpreter lock.
    """
    times, file_bytes = trace.scenario.device, trace.scenario.file_bytes
    begin = trace.offset % file_bytes
    pages = -(-(begin + trace.size) // PAGE_BYTES) + (-begin // PAGE_BYTES)
    copy = np.where(trace.size > 0, times.put_ns + trace.size * times.copy_ns_per_kib // 1024, 0)
    touch = np.where(_touches(trace), pages * times.touch_page_ns, 0)
    waited = np.zeros(trace.messages, np.int64)
    waited[trace.rolls["row"]] = trace.rolls["ready_ns"] - trace.rolls["asked_ns"]
    read_ahead = trace.written_ns - trace.start_ns - copy - touch - waited
    totals, service = [], np.zeros(trace.messages, np.int64)
    for part in (copy, touch, read_ahead, waited):
        service = service + part
        totals.append(int((_served(trace.arrival_ns, service) - trace.arrival_ns).sum()))
    put_ns = int(copy.sum())
    queue, touched, read, allocated = np.diff([put_ns, *totals]).tolist()
    return Anatomy(
        put_ns=put_ns,
        queue_ns=queue,
        touch_ns=touched,
        read_ahead_ns=read,
        allocation_ns=allocated,
        total_ns=totals[-1],
        reprotect_ns=reprotect_faults(trace) * REPROTECT_NS,
        flush_lock_ns=held_up_ns(trace, flush_lock_share),
    )


def reprotect_faults(trace: Trace) -> int:
    """Count the stores into pages that a sync has write-protected.

    In a file that was forced before use all grains count. In a touched file those count that are written after its
    first sync. In any other file the tail counts, once for each sync that is followed by a store. Buffers of a pool
    have none.
    """
    if trace.scenario.pool is not None:
        return 0
    file_bytes, flushes = trace.scenario.file_bytes, trace.flushes
    offsets = trace.offset[trace.size > 0]
    used = int(offsets[-1]) + int(trace.size[-1]) if len(offsets) else 0
    if trace.scenario.is_forced:
        return -(-used // REPROTECT_GRAIN_BYTES)
    if not trace.scenario.is_warmed:
        return int(np.count_nonzero(flushes["to_offset"] < used))
    faults = 0
    for file_index in np.unique(flushes["file_index"]):
        base = int(file_index) * file_bytes
        own = flushes[flushes["file_index"] == file_index]
        cleaned = int(own["to_offset"][0])  # the whole file was written, and stores after this fault
        faults += -(-max(min(used, base + file_bytes) - cleaned, 0) // REPROTECT_GRAIN_BYTES)
    return faults


def held_up_ns(trace: Trace, share: float) -> int:
    """Return how much longer puts would take if syncs held the interpreter lock.

    The first `share` of each sync holds it. Each sync takes its turn among the puts, in order of arrival. The effect of
    later puts on the syncs is left out.
    """
    if not share or not len(trace.flushes):
        return 0
    service = trace.written_ns - np.maximum(trace.arrival_ns, np.concatenate(([0], trace.written_ns[:-1])))
    flushes = trace.flushes
    held = np.rint((flushes["end_ns"] - flushes["start_ns"]) * share).astype(np.int64)
    arrivals = np.concatenate((trace.arrival_ns, flushes["start_ns"]))
    services = np.concatenate((service, held))
    is_put = np.concatenate((np.ones(len(service), bool), np.zeros(len(held), bool)))
    order = np.argsort(arrivals, kind="stable")
    ends = _served(arrivals[order], services[order])
    return int(ends[is_put[order]].sum()) - int(trace.written_ns.sum())


def _served(arrivals: Int64s, services: Int64s) -> Int64s:
    """Return when each customer leaves a queue of one server.

    The recursion is in `sim.log.log.Log`.
    """
    done = np.cumsum(services)
    before = np.concatenate(([0], done[:-1]))
    left: Int64s = done + np.maximum.accumulate(arrivals - before)
    return left


def _touches(trace: Trace) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Return for each put whether its pages were new to the process."""
    if trace.scenario.is_warmed:
        return np.zeros(trace.messages, np.bool_)
    if trace.scenario.pool is None:
        return np.ones(trace.messages, np.bool_)
    return ~np.isin(trace.offset // trace.scenario.file_bytes, trace.commits["file_index"])
