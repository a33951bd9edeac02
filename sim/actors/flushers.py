"""The flushers, one generator each; none returns."""

from functools import partial

from simpy import Environment
from simpy.events import ProcessGenerator

from tornpage.impl.config.policy import FlushPolicy
from tornpage.sim.device.device import Device
from tornpage.sim.events.bell import now_ns, until_due
from tornpage.sim.events.probe import Probe
from tornpage.sim.events.turns import FLUSHER, Turn
from tornpage.sim.log.log import Log
from tornpage.sim.log.pieces import Dirty

__all__ = ["group_commit_flusher", "timed_flusher", "woken_flusher"]

NS_PER_MS = 1_000_000


def group_commit_flusher(
    env: Environment, log: Log, device: Device, *, policy: FlushPolicy, probe: Probe
) -> ProcessGenerator:
    """Flush whenever a put waits; one flush serves all puts written before it.

    RocketMQ keeps a list that producers write to and a list that the flusher reads, and swaps them before each round. A
    round begins immediately after the swap and covers everything written by then. So the two lists correspond to the
    rows below and above the written watermark. The 10 ms poll is left out: it matters only to records for which no put
    waits.
    """
    round_number = 0
    yield Turn(env, 0, FLUSHER)
    while True:
        nobody_waits = log.planned_rows == log.durable_rows
        while log.planned_rows == log.durable_rows:
            yield log.planned.wait()
        first_ns = log.written_ns.item(log.durable_rows)
        asleep_ns = first_ns - now_ns(env)
        if nobody_waits or asleep_ns > 0:
            yield Turn(env, asleep_ns + device.wake_ns(first_ns - log.synced_ns), FLUSHER)
        round_number += 1
        log.round_row = log.durable_rows
        yield from _flush_round(env, log, device, policy=policy, least_pages=0, number=round_number, probe=probe)
        turn_ns = device.turn_ns(log.durable_rows - log.round_row)
        if turn_ns:
            yield Turn(env, turn_ns, FLUSHER)


def timed_flusher(env: Environment, log: Log, device: Device, *, policy: FlushPolicy, probe: Probe) -> ProcessGenerator:
    """Sleep one interval, flush what is due, in a loop (`flushCommitLogTimed`).

    Puts do not wake this flusher.
    """
    round_number = 0
    since_thorough_ms = policy.flush_commit_log_thorough_interval  # the first round is thorough
    thorough_ns = now_ns(env)
    while True:
        least_pages = policy.least_pages(since_thorough_ms=since_thorough_ms)
        if least_pages == 0:
            thorough_ns = now_ns(env)
        yield Turn(env, policy.flush_interval_commit_log * NS_PER_MS, FLUSHER)
        round_number += 1
        yield from _flush_round(
            env, log, device, policy=policy, least_pages=least_pages, number=round_number, probe=probe
        )
        since_thorough_ms = (now_ns(env) - thorough_ns) // NS_PER_MS


def woken_flusher(env: Environment, log: Log, device: Device, *, policy: FlushPolicy, probe: Probe) -> ProcessGenerator:
    """Flush as soon as a put has met the page rule, and after one interval at the latest.

    In RocketMQ each put wakes a round, and most rounds find too few pages. Those rounds are left out. Whether a round
    is thorough is decided before the wait for it, so a thorough flush may come one interval late. With a pool the
    commits wake the flusher.
    """
    round_number = 0
    since_thorough_ms = policy.flush_commit_log_thorough_interval  # the first round is thorough
    thorough_ns = now_ns(env)
    yield Turn(env, 0, FLUSHER)
    while True:
        begin_ns = now_ns(env)
        least_pages = policy.least_pages(since_thorough_ms=since_thorough_ms)
        if least_pages == 0:
            thorough_ns = begin_ns
        yield from until_due(
            env,
            log.planned,
            partial(log.due_ns, least_pages),
            until_ns=begin_ns + policy.flush_interval_commit_log * NS_PER_MS,
            wake_ns=device.wake_ns(begin_ns - log.synced_ns),
            rank=FLUSHER,
        )
        round_number += 1
        yield from _flush_round(
            env, log, device, policy=policy, least_pages=least_pages, number=round_number, probe=probe
        )
        since_thorough_ms = (now_ns(env) - thorough_ns) // NS_PER_MS


def _flush_round(
    env: Environment, log: Log, device: Device, *, policy: FlushPolicy, least_pages: int, number: int, probe: Probe
) -> ProcessGenerator:
    """Sync each file that is due, oldest first, up to the one being written at the begin.

    RocketMQ's round ends after one file. The store of this project continues, and so does this round.
    """
    last_file = log.file_index
    piece = log.dirty()
    while piece is not None and piece.file_index <= last_file and _is_due(piece, log, policy, least_pages):
        start_ns, first_row = now_ns(env), log.durable_rows
        log.clean(piece.to_offset)
        gap_ns = start_ns - log.synced_ns
        took_ns = device.sync_ns(piece.device_bytes, gap_ns=gap_ns, reserved_only=piece.reserved_only)
        yield Turn(env, device.held_up_ns(start_ns, took_ns), FLUSHER)
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
