"""The actors: one generator each, which reads as the story of that actor.

Their waits are their only effects beside the log and the files they are handed; what happened at a wait is told to the
probe. Flushers and the lock never return; a run ends when everything sent is durable.
"""

from dataclasses import dataclass

import numpy as np
from simpy import Environment, Event, Store
from simpy.events import ProcessGenerator

from impl.policy import PAGE_BYTES, AllocationPolicy, FlushPolicy, WarmUp
from sim.device import Device
from sim.distributions import Int64s
from sim.log import Dirty, Log, now_ns
from sim.probe import Probe
from sim.streams import Draws
from sim.workload import ClosedLoop, OpenPoisson

__all__ = [
    "Files",
    "Turnstile",
    "allocator",
    "closed_producer",
    "group_commit_flusher",
    "open_producers",
    "put_lock",
    "timed_flusher",
]

NS_PER_MS = 1_000_000
ARRIVALS_AT_ONCE = 1 << 16


class Files:
    """The log files that were asked for, each with the event of its being ready. The first file is there."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self.requests: Store = Store(env)
        self._ready: dict[int, Event] = {0: env.event().succeed()}

    def ask(self, file_index: int) -> None:
        """Ask for a file, unless that was done before."""
        if file_index not in self._ready:
            self._ready[file_index] = self._env.event()
            self.requests.put((file_index, now_ns(self._env)))

    def ready(self, file_index: int) -> Event:
        """Return the event of a file that was asked for."""
        return self._ready[file_index]


@dataclass(slots=True)
class Turnstile:
    """How many messages closed producers may still send, and how many of them are still there."""

    messages: int | None
    producers: int

    def admits(self) -> bool:
        """Count one message in, unless the last one was sent."""
        if self.messages is None:
            return True
        self.messages -= 1
        return self.messages >= 0


def open_producers(
    env: Environment,
    log: Log,
    *,
    workload: OpenPoisson,
    messages: int | None,
    duration_ns: int | None,
    arrival_rng: np.random.Generator,
    size_rng: np.random.Generator,
) -> ProcessGenerator:
    """Send messages at random until `messages` were sent or `duration_ns` has passed.

    Arrivals are handed over in blocks, each when the last message of the block before arrives.
    """
    last_ns, sent = 0, 0
    while messages is None or sent < messages:
        count = ARRIVALS_AT_ONCE if messages is None else min(ARRIVALS_AT_ONCE, messages - sent)
        arrivals: Int64s = last_ns + np.cumsum(workload.draw_gaps(arrival_rng, count))
        sizes = workload.sizes.draw(size_rng, count)
        if duration_ns is not None:
            count = int(arrivals.searchsorted(duration_ns, side="right"))
        if count:
            log.arrive_many(arrivals[:count], sizes[:count])
            last_ns, sent = int(arrivals[count - 1]), sent + count
        if count < len(arrivals):
            break
        yield env.timeout(last_ns - now_ns(env))
    log.close()


def closed_producer(
    env: Environment,
    log: Log,
    turnstile: Turnstile,
    *,
    number: int,
    workload: ClosedLoop,
    policy: FlushPolicy,
    duration_ns: int | None,
    think: Draws,
    size_rng: np.random.Generator,
) -> ProcessGenerator:
    """Think, put, wait for the answer, again, until the turnstile closes or `duration_ns` has passed."""
    while turnstile.admits():
        yield env.timeout(think.next_ns())
        if duration_ns is not None and now_ns(env) > duration_ns:
            break
        row = log.arrive(now_ns(env), int(workload.sizes.draw(size_rng, 1)[0]), number)
        if policy.answers_after_flush(wait_store_msg_ok=True):
            while log.durable_rows <= row:
                yield log.made_durable.wait()
        else:
            while log.planned_rows <= row:
                yield log.planned.wait()
            yield env.timeout(log.written_ns.item(row) - now_ns(env))
    turnstile.producers -= 1
    if turnstile.producers == 0:
        log.close()


def put_lock(env: Environment, log: Log, files: Files, *, policy: AllocationPolicy, probe: Probe) -> ProcessGenerator:
    """Serve one put after another; when a record does not fit, wait in the lock until the next file is ready."""
    for file_index in policy.wanted(file_index=0):
        files.ask(file_index)
    while True:
        while log.planned_rows == log.arrived_rows:
            yield log.arrived.wait()
        while not log.plan():
            row = log.planned_rows
            asked_ns = max(log.arrival_ns.item(row), log.lock_free_ns)
            yield env.timeout(asked_ns - now_ns(env))
            for file_index in policy.wanted(file_index=log.file_index + 1):
                files.ask(file_index)
            yield files.ready(log.file_index + 1)
            log.roll(asked_ns=asked_ns)
            probe.rolled((log.file_index, row, asked_ns, now_ns(env)))


def allocator(
    env: Environment,
    files: Files,
    device: Device,
    *,
    policy: AllocationPolicy,
    flush: FlushPolicy,
    file_bytes: int,
    probe: Probe,
) -> ProcessGenerator:
    """Make the files that are asked for, one at a time, in the order of asking."""
    pages = -(-file_bytes // PAGE_BYTES)
    while True:
        file_index, requested_ns = yield files.requests.get()
        start_ns = now_ns(env)
        yield env.timeout(device.times.allocation_ns(file_bytes))
        if policy.warm_up is not WarmUp.NONE:
            yield env.timeout(device.warm_up_ns(file_bytes))
            for synced in policy.warm_up_syncs(file_pages=pages, flush_disk_type=flush.flush_disk_type):
                yield env.timeout(device.sync_ns(synced * PAGE_BYTES, reserved_only=True))
        files.ready(file_index).succeed()
        probe.allocated((file_index, requested_ns, start_ns, now_ns(env)))


def group_commit_flusher(
    env: Environment, log: Log, device: Device, *, policy: FlushPolicy, probe: Probe
) -> ProcessGenerator:
    """Flush whenever someone waits; one flush serves all whose records were written when it began.

    RocketMQ keeps a list that producers write to and a list that the flusher reads, and swaps them before each round.
    A round begins at once after the swap and covers all that is written by then, so the lists are the rows below and
    above the written watermark. The 10 ms poll is left out: it matters only to records that nobody waits for.
    """
    round_number = 0
    while True:
        nobody_waits = log.planned_rows == log.durable_rows
        while log.planned_rows == log.durable_rows:
            yield log.planned.wait()
        asleep_ns = log.written_ns.item(log.durable_rows) - now_ns(env)
        if nobody_waits or asleep_ns > 0:
            yield env.timeout(asleep_ns + device.times.wake_ns)
        round_number += 1
        yield from _flush_round(env, log, device, policy=policy, least_pages=0, number=round_number, probe=probe)


def timed_flusher(env: Environment, log: Log, device: Device, *, policy: FlushPolicy, probe: Probe) -> ProcessGenerator:
    """Sleep one interval, flush what is due, again. Puts wake nobody (`flushCommitLogTimed`)."""
    round_number = 0
    since_thorough_ms = policy.flush_commit_log_thorough_interval  # the first round is thorough
    thorough_ns = now_ns(env)
    while True:
        least_pages = policy.least_pages(since_thorough_ms=since_thorough_ms)
        if least_pages == 0:
            thorough_ns = now_ns(env)
        yield env.timeout(policy.flush_interval_commit_log * NS_PER_MS)
        round_number += 1
        yield from _flush_round(
            env, log, device, policy=policy, least_pages=least_pages, number=round_number, probe=probe
        )
        since_thorough_ms = (now_ns(env) - thorough_ns) // NS_PER_MS


def _flush_round(
    env: Environment, log: Log, device: Device, *, policy: FlushPolicy, least_pages: int, number: int, probe: Probe
) -> ProcessGenerator:
    """Sync each file that is due, oldest first, up to the one that is written when the round begins.

    RocketMQ's round ends after one file; the store of this project goes on, and so does this one.
    """
    last_file = log.file_index
    piece = log.dirty()
    while piece is not None and piece.file_index <= last_file and _is_due(piece, log, policy, least_pages):
        start_ns, first_row = now_ns(env), log.durable_rows
        yield env.timeout(device.sync_ns(piece.device_bytes, reserved_only=piece.reserved_only))
        log.make_durable(piece)
        probe.flushed(
            (
                number,
                start_ns,
                now_ns(env),
                piece.file_index,
                piece.from_offset,
                piece.to_offset,
                piece.rows_end - first_row,
                piece.device_bytes,
            )
        )
        if not piece.file_is_full:
            break
        piece = log.dirty()


def _is_due(piece: Dirty, log: Log, policy: FlushPolicy, least_pages: int) -> bool:
    base_offset = piece.file_index * log.file_bytes
    return policy.is_due(
        written_position=piece.to_offset - base_offset,
        flushed_position=piece.from_offset - base_offset,
        least_pages=least_pages,
        file_is_full=piece.file_is_full,
    )
