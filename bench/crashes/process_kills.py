"""Losses of the real store by process kills, on real files, with the latency of its puts.

A process puts (`bench.crashes.killed_producer`). This one kills it with SIGKILL at a drawn moment, opens its store and
counts. The kernel lives on: the page cache survives, and the buffers of a pool do not. Latencies are those of this
machine at that time, and belong to no preset.
"""

import os
import random
import signal
import struct
import subprocess
import sys
from dataclasses import dataclass
from time import perf_counter_ns, sleep

import numpy as np

from tornpage.bench.crashes.killed_producer import ANSWERED, BEGAN_NS, CANNOT_PUT, HEADER_BYTES, PAGE_BYTES, PUT
from tornpage.bench.crashes.policies import store_config
from tornpage.bench.crashes.power_losses import Loss
from tornpage.bench.figures import scratch
from tornpage.front import MessageStore
from tornpage.properties.contract import HarnessError
from tornpage.properties.interrupts import held_interrupts
from tornpage.sim.experiments.policies import RECORD_BYTES, StorePolicy

__all__ = ["Killed", "kill_one"]

LIVES_S = (0.6, 1.6)
"""How long a warm process puts before it is killed, drawn evenly between these."""
WARMING_PUTS = 50
"""Puts left out of the latencies: a process is warm after one answer more."""
PATIENCE_S = 60.0
LOOK_S = 0.002


@dataclass(frozen=True, slots=True)
class Killed:
    """One process and its end: its losses, and the latency (ns) of its answered puts."""

    loss: Loss
    puts: int
    latencies_ns: tuple[int, ...]


def kill_one(policy: StorePolicy, *, rate_per_s: float, file_bytes: int, seed: int, directory: str) -> Killed:
    """Run a process with a store below `directory`, kill it, and count.

    Raises OSError or StoreError when the directory cannot hold a store, HarnessError for losses that a kill does not
    explain.
    """
    lives_s = random.Random(seed).uniform(*LIVES_S)
    with scratch(directory) as place:
        page = f"{place}/page"
        with open(page, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, PAGE_BYTES)  # a store into a hole of a full disk is a SIGBUS
        what = [f"{place}/store", policy.name, str(file_bytes), str(rate_per_s), str(seed), page, str(os.getpid())]
        with held_interrupts():
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "tornpage.bench.crashes.killed_producer", *what],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        try:
            _wait_until_warm(child, page)
            sleep(lives_s)
            child.kill()
            killed_ns = perf_counter_ns()
        finally:
            child.kill()
            _, said = child.communicate()
        if child.returncode == CANNOT_PUT:
            raise OSError(said.decode(errors="replace").splitlines()[-1])
        if child.returncode != -signal.SIGKILL:
            raise HarnessError(f"a process that was to be killed ended by itself: {said.decode()[-300:]!r}")
        return _count(policy, place, file_bytes, rate_per_s, seed, killed_ns)


def _wait_until_warm(child: "subprocess.Popen[bytes]", page: str) -> None:
    """Wait for the first answer whose latency counts, so that there is one on any disk."""
    for _ in range(round(PATIENCE_S / LOOK_S)):
        if _read(page, ANSWERED) > WARMING_PUTS or child.poll() is not None:
            return
        sleep(LOOK_S)
    raise HarnessError(f"a process did not have {WARMING_PUTS} puts answered within {PATIENCE_S:g} s")


def _read(page: str, place: int) -> int:
    with open(page, "rb") as file:
        number: int = struct.unpack("<q", os.pread(file.fileno(), 8, place))[0]
        return number


def _count(policy: StorePolicy, place: str, file_bytes: int, rate_per_s: float, seed: int, killed_ns: int) -> Killed:
    page = f"{place}/page"
    put, answered, began_ns = (_read(page, where) for where in (PUT, ANSWERED, BEGAN_NS))
    with open(page, "rb") as file:
        latencies = np.frombuffer(os.pread(file.fileno(), 8 * put, HEADER_BYTES), np.int64)
    with MessageStore.open(f"{place}/store", store_config(policy, file_bytes=file_bytes)) as store:
        if store.read_only_reason is not None:
            raise HarnessError(f"a store is read-only after a kill: {store.read_only_reason}")
        kept = sum(1 for _ in store.messages())
    if kept > put + 1:
        raise HarnessError(f"{put} messages were put, and {kept} are there after a kill")
    lost = max(put - kept, 0)
    age_ms = (killed_ns - _meant_ns(kept, began_ns, rate_per_s, seed)) / 1e6 if lost else 0.0
    loss = Loss(lost, lost * RECORD_BYTES, age_ms, max(answered - kept, 0))
    return Killed(loss, put, tuple(latencies[WARMING_PUTS:answered].tolist()))


def _meant_ns(number: int, began_ns: int, rate_per_s: float, seed: int) -> int:
    """Return the moment at which a message of the producer was due."""
    rng = random.Random(seed)
    for _ in range(number + 1):
        began_ns += round(rng.expovariate(rate_per_s) * 1e9)
    return began_ns
