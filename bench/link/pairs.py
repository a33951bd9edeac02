"""Run a real master and a real slave over TCP on loopback, under an open load.

Each has a process of its own. Puts are futures of a SYNC_MASTER. Times of appends come from the slave.
"""

import multiprocessing
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole, FlushDiskType
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.replication.tcp import TcpNetwork
from tornpage.sim.distributions import Int64s

__all__ = ["FILE_BYTES", "DrivenPair", "PairCase", "drive_pair"]

FILE_BYTES = 64 << 20
BODY_BYTES = 900
_JOIN_S = 20.0
_ANSWERS_S = 10.0
_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class PairCase:
    """A load and what its puts wait for. `calibrates` is whether predictions may use it."""

    name: str
    rate_per_s: float
    acknowledge: str = "received"
    calibrates: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class DrivenPair:
    """What a slice measured, in ns of one clock.

    `stored_ns` and `answered_ns` have a row per put. `appends_ns` are durations of rounds of the replica in which its
    log grew.
    """

    case: PairCase
    stored_ns: Int64s
    answered_ns: Int64s
    size: Int64s
    appends_ns: Int64s


class _TimedNode(ReplicatedStore):
    """A node that keeps begin and end of its rounds, and whether the log grew."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.rounds: list[tuple[int, int, bool]] = []
        super().__init__(*arguments, **options)

    def step(self, now_ms: int) -> int:
        begun_ns, end = perf_counter_ns(), self.store.max_offset
        due_ms = super().step(now_ms)
        self.rounds.append((begun_ns, perf_counter_ns(), self.store.max_offset > end))
        return due_ms

    def growths_ns(self) -> Int64s:
        """Return the durations of rounds in which the log grew."""
        return np.array([ended - begun for begun, ended, grew in self.rounds if grew], np.int64)


def _open(directory: str, role: BrokerRole, case: PairCase, address: str) -> _TimedNode:
    is_slave = role is BrokerRole.SLAVE
    syncs = is_slave and case.acknowledge == "durable"
    config = MessageStoreConfig(
        mapped_file_size_commit_log=FILE_BYTES,
        broker_role=role,
        flush_disk_type=FlushDiskType.SYNC_FLUSH if syncs else FlushDiskType.ASYNC_FLUSH,
        slave_timeout=_TIMEOUT_MS,
    )
    named: dict[str, Any] = {"ha_master_address": address} if is_slave else {"ha_listen_address": address}
    node = ReplicatedStore.open(
        directory,
        config,
        ReplicationSettings(reconnect_interval=10, acknowledge=case.acknowledge, **named),
        files=OsFiles(),
        clock=lambda: time.time_ns() // 1_000_000,
        network=TcpNetwork(),
        parts=Parts({ReplicatedStore: _TimedNode}),
    )
    assert isinstance(node, _TimedNode)
    node.start()
    return node


def _slave(directory: str, case: PairCase, address: str, pipe: Connection) -> None:
    """Run a slave until a message arrives in the pipe, then send what it measured.

    A closed pipe ends it too. A terminal sends Ctrl-C to parent and child; the parent takes it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    node = _open(directory, BrokerRole.SLAVE, case, address)
    try:
        pipe.recv()
    except EOFError:
        return
    finally:
        node.close()
    pipe.send(node.growths_ns())


def drive_pair(place: Path, case: PairCase, *, address: str, seconds: float, seed: int) -> DrivenPair:
    """Run a pair under one load in new directories below `place`.

    Raises TimeoutError if the slave does not join, or a put has no answer.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    master = _open(str(place / "master"), BrokerRole.SYNC_MASTER, case, address)
    process = context.Process(target=_slave, args=(str(place / "slave"), case, address, theirs))
    process.start()
    theirs.close()
    try:
        _wait(lambda: any(each["counts"] for each in master.status()["replicas"]), _JOIN_S, "the slave does not join")
        stored, answered, size = _load(master, case, seconds, seed)
        ours.send("end")
        appends = ours.recv()
    finally:
        ours.close()
        process.join(_JOIN_S)
        if process.is_alive():
            process.terminate()
        master.close()
    return DrivenPair(case, stored, answered, size, appends)


def _wait(holds: Callable[[], bool], seconds: float, why: str) -> None:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError(why)
        time.sleep(0.01)


def _load(master: ReplicatedStore, case: PairCase, seconds: float, seed: int) -> tuple[Int64s, Int64s, Int64s]:
    """Put at random times; return when each message was stored and answered, and its size."""
    rng = np.random.default_rng(seed)
    due_s = np.cumsum(rng.exponential(1 / case.rate_per_s, max(20, round(case.rate_per_s * seconds))))
    message = Message("T", bytes(BODY_BYTES), queue_id=0)
    stored, size = np.zeros(len(due_s), np.int64), np.zeros(len(due_s), np.int64)
    answered, statuses = np.zeros(len(due_s), np.int64), []
    begun = time.monotonic()
    futures = []
    for number, due in enumerate(due_s.tolist()):
        if (rest := begun + due - time.monotonic()) > 0:
            time.sleep(rest)
        before = master.store.max_offset
        future = master.store.put_async(message)
        stored[number] = perf_counter_ns()
        size[number] = master.store.max_offset - before

        def note(_: object, number: int = number) -> None:
            answered[number] = perf_counter_ns()

        future.add_done_callback(note)
        futures.append(future)
    _wait(lambda: all(future.done() for future in futures), _ANSWERS_S, "a put has no answer")
    statuses = [future.result().status for future in futures]
    if any(status is not PutStatus.PUT_OK for status in statuses):
        raise TimeoutError(f"a put was answered {next(s for s in statuses if s is not PutStatus.PUT_OK).name}")
    return stored, answered, size
