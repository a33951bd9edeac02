"""The committer of a transient store pool; it never returns."""

from functools import partial

from simpy import Environment
from simpy.events import ProcessGenerator

from tornpage.impl.config.policy import CommitPolicy
from tornpage.sim.device.device import Device
from tornpage.sim.events.bell import now_ns, until_due
from tornpage.sim.events.probe import Probe
from tornpage.sim.events.turns import COMMITTER, Turn
from tornpage.sim.log.pieces import Dirty
from tornpage.sim.log.pooled_log import PooledLog

__all__ = ["committer"]

NS_PER_MS = 1_000_000


def committer(
    env: Environment, log: PooledLog, device: Device, *, policy: CommitPolicy, probe: Probe
) -> ProcessGenerator:
    """Copy pieces that meet the page rule to the page cache, then sleep, in a loop.

    The sleep ends when a put has met the page rule or the interval is over. As in `woken_flusher`, the rounds of
    RocketMQ that would find too few pages are left out.
    """
    times = device.times
    committed_ns, first = 0, True
    yield Turn(env, 0, COMMITTER)
    while True:
        begin_ns = now_ns(env)
        since_commit_ms = (begin_ns - committed_ns) // NS_PER_MS
        least_pages = 0 if first else policy.least_pages(since_commit_ms=since_commit_ms)
        first = False
        if least_pages == 0:
            committed_ns = begin_ns
        last_file = log.file_index
        piece = log.uncommitted()
        while piece is not None and piece.file_index <= last_file and _is_due(piece, log, policy, least_pages):
            start_ns, first_row = now_ns(env), log.committed_rows
            took_ns = times.commit_ns + (piece.to_offset - piece.from_offset) * times.commit_ns_per_kib // 1024
            yield Turn(env, took_ns, COMMITTER)
            log.make_committed(piece)
            committed_ns = now_ns(env)
            probe.committed(
                (
                    start_ns,
                    committed_ns,
                    piece.file_index,
                    piece.from_offset,
                    piece.to_offset,
                    piece.rows_end - first_row,
                    log.buffers.free,
                )
            )
            if not piece.file_is_full:
                break
            piece = log.uncommitted()
        yield from until_due(
            env,
            log.planned,
            partial(log.commit_due_ns, policy.commit_commit_log_least_pages),
            until_ns=begin_ns + policy.commit_interval_commit_log * NS_PER_MS,
            wake_ns=device.wake_ns(0),
            rank=COMMITTER,
        )


def _is_due(piece: Dirty, log: PooledLog, policy: CommitPolicy, least_pages: int) -> bool:
    base_offset = piece.file_index * log.file_bytes
    return policy.is_due(
        written_position=piece.to_offset - base_offset,
        committed_position=piece.from_offset - base_offset,
        least_pages=least_pages,
        file_is_full=piece.file_is_full,
    )
