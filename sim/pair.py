"""A replica over a link: when it has each message, and when its master knows that.

All times follow from the times at which messages are in the page cache of the master, so that both engines share this
(ADR 31). Rules of a pair, as in `impl/replication`:

1. A node waits for its links, and a put that waits for a replica wakes the master. Otherwise the master looks for new
   bytes in rounds.
2. A round of the master sends everything that is in its page cache then (group transfer).
3. The link keeps the order of bytes. They need the latency, and their size by the bandwidth. A lost segment delays
   itself and all bytes after it by the time to retransmit.
4. A round of the replica appends what has arrived, and begins when the one before it has ended. A replica that
   acknowledges what is durable syncs each round before that; another one syncs on a clock.
5. An acknowledgement covers everything before it, and answers the waiting puts.

The wake-ups of the three threads that take part are one time, `turn`, before the send. Left out are reconnects, time-
outs of puts, and frames. Source: `HAConnection`, `HAClient`, `GroupTransferService`.
"""

from dataclasses import dataclass
from math import isfinite
from typing import Literal

import numpy as np

from tornpage.sim.device.device import Device, DeviceTimes
from tornpage.sim.distributions import Constant, Distribution, Int64s
from tornpage.sim.streams import Draws, stream

__all__ = ["LINKS", "Link", "Pair", "Port", "Replication", "Way", "replicate"]

NS_PER_MS = 1_000_000
SEGMENT_BYTES = 1448
"""Bytes of one TCP segment on Ethernet."""
ACKNOWLEDGEMENT_BYTES = 32
HEADER_BYTES = 24
"""The head and the offset of a frame of data."""
_ROUND = Constant(5 * NS_PER_MS)
"""`poll_interval` of a node."""
_TURN = Constant(150_000)
_APPEND = Constant(20_000)


@dataclass(frozen=True, slots=True)
class Link:
    """One connection. Both directions have the same values."""

    name: str
    latency: Distribution
    """From a send to the arrival of the first byte."""
    bytes_per_s: float
    loss: float = 0.0
    """The share of segments that are lost."""
    retransmit_ns: int = 200 * NS_PER_MS
    """The least time-out of TCP on Linux."""

    def __post_init__(self) -> None:
        if not (isfinite(self.bytes_per_s) and self.bytes_per_s > 0):
            raise ValueError(f"a link of {self.bytes_per_s} bytes/s is impossible")
        if not 0 <= self.loss < 1 or self.retransmit_ns < 0:
            raise ValueError(f"a link that loses {self.loss} of its segments is impossible")


@dataclass(frozen=True, slots=True)
class Pair:
    """A slave behind a link, and how its master waits for it.

    With `waits` a put is answered after the acknowledgement (SYNC_MASTER), else at once (ASYNC_MASTER).
    """

    link: Link
    waits: bool = True
    acknowledge: Literal["received", "durable"] = "received"
    turn: Distribution = _TURN
    """Time in which the threads of a put, of the replica and of the acknowledgement wake up."""
    master_round: Distribution = _ROUND
    """From a round of the master to its next one, if no put waits."""
    append: Distribution = _APPEND
    """Time in which a round of the replica appends what has arrived. With a measured durable append it has the sync."""
    device: DeviceTimes | None = None
    """The disk of the replica; needed for durable acknowledgements."""
    flush_ns: int = 500 * NS_PER_MS
    """The time between two syncs of a replica that acknowledges what it has received."""

    def __post_init__(self) -> None:
        if self.acknowledge == "durable" and self.device is None:
            raise ValueError("a replica that acknowledges what is durable needs a disk")
        if self.master_round.mean_ns < 1:
            raise ValueError("rounds take time")

    @property
    def mean_ns(self) -> float:
        """The mean time from a put to its acknowledgement on an idle pair without loss."""
        pause_ns = self.turn.mean_ns + (0.0 if self.waits else self.master_round.mean_ns / 2)
        sync_ns = self.device.sync.mean_ns if self.acknowledge == "durable" and self.device is not None else 0.0
        return pause_ns + 2 * self.link.latency.mean_ns + self.append.mean_ns + sync_ns


@dataclass(frozen=True, slots=True)
class Replication:
    """One row per message.

    `received_ns` is when it is in the page cache of the replica, `durable_ns` when it is on the replica's disk (the
    greatest time without a disk), `known_ns` when the master has its acknowledgement.
    """

    received_ns: Int64s
    durable_ns: Int64s
    known_ns: Int64s
    transfers: int
    """Rounds of the master that sent anything."""
    retransmits: int


NEVER = np.iinfo(np.int64).max


class _Rounds:
    """The rounds of one thread: their times, drawn one after the other."""

    def __init__(self, law: Distribution, seed: int, name: str) -> None:
        self._draws = Draws(law, stream(seed, name))
        self._step_ns = max(1, law.value_ns) if isinstance(law, Constant) else 0
        self._at_ns = int(stream(seed, f"{name} begins").random() * law.mean_ns)

    def next(self, since_ns: int) -> int:
        """Return the first round at or after a time."""
        if self._step_ns and self._at_ns < since_ns:
            self._at_ns += -(-(since_ns - self._at_ns) // self._step_ns) * self._step_ns
        while self._at_ns < since_ns:
            self._at_ns += max(1, self._draws.next())
        return self._at_ns


@dataclass(slots=True)
class Port:
    """The outgoing bytes of one machine: ways that share it send one after the other."""

    free_ns: int = 0


class Way:
    """One direction of a link. Ways of one machine may share its `port`."""

    def __init__(self, link: Link, seed: int, name: str, port: Port | None = None) -> None:
        self.retransmits = 0
        self._link = link
        self._latency = Draws(link.latency, stream(seed, f"{name} latency"))
        self._losses = stream(seed, f"{name} loss")
        self._port = Port() if port is None else port
        self._arrived_ns = 0

    def send(self, at_ns: int, size_bytes: int) -> int:
        """Send bytes; return when the last one arrives."""
        link = self._link
        self._port.free_ns = max(at_ns, self._port.free_ns) + round(size_bytes / link.bytes_per_s * 1e9)
        lost = int(self._losses.binomial(-(-size_bytes // SEGMENT_BYTES), link.loss)) if link.loss else 0
        self.retransmits += lost
        arrives_ns = self._port.free_ns + self._latency.next() + (link.retransmit_ns if lost else 0)
        self._arrived_ns = max(self._arrived_ns, arrives_ns)
        return self._arrived_ns


def replicate(pair: Pair, seed: int, committed_ns: Int64s, size: Int64s) -> Replication:
    """Return the times of each message at a replica.

    `committed_ns` are the times at which messages are in the page cache of the master, in order. `size` is in bytes.
    """
    sent_at, ends = _transfers(pair, seed, committed_ns)
    begins = np.concatenate(([0], ends[:-1])).astype(np.int64)
    totals = np.concatenate(([0], np.cumsum(size)))
    to_replica, to_master = Way(pair.link, seed, "to replica"), Way(pair.link, seed, "to master")
    arrived = [
        to_replica.send(at_ns, int(totals[end] - totals[begin]) + HEADER_BYTES)
        for at_ns, begin, end in zip(sent_at.tolist(), begins.tolist(), ends.tolist(), strict=True)
    ]
    received, durable, told = _rounds_of_replica(pair, seed, arrived, ends, totals, to_master)
    known = np.array(told, np.int64)
    of = np.repeat(np.arange(len(ends)), ends - begins)
    return Replication(received[of], durable[of], known[of], len(ends), to_replica.retransmits + to_master.retransmits)


def _transfers(pair: Pair, seed: int, committed_ns: Int64s) -> tuple[Int64s, Int64s]:
    """Return when each round of the master sends, and the number of messages sent after it."""
    rounds, turns = _Rounds(pair.master_round, seed, "master"), Draws(pair.turn, stream(seed, "turns"))
    times: list[int] = []
    ends: list[int] = []
    done = 0
    while done < len(committed_ns):
        at_ns = int(committed_ns[done])
        at_ns = (at_ns if pair.waits else rounds.next(at_ns)) + turns.next()
        done = int(committed_ns.searchsorted(at_ns, side="right"))
        times.append(at_ns)
        ends.append(done)
    return np.array(times, np.int64), np.array(ends, np.int64)


def _rounds_of_replica(
    pair: Pair, seed: int, arrived: list[int], ends: Int64s, totals: Int64s, to_master: Way
) -> tuple[Int64s, Int64s, list[int]]:
    """Return, by transfer, when it is received, durable, and when its acknowledgement arrives."""
    syncs = None if pair.device is None else Device(pair.device, stream(seed, "replica disk"))
    appends = Draws(pair.append, stream(seed, "replica appends"))
    count, done, last_sync_ns, synced, free_ns = len(arrived), 0, 0, 0, 0
    received, durable = np.zeros(count, np.int64), np.full(count, NEVER, np.int64)
    told = [0] * count
    while done < count:
        at_ns = max(arrived[done], free_ns)
        end = done
        while end < count and arrived[end] <= at_ns:
            end += 1
        after_ns = at_ns + appends.next()
        received[done:end] = after_ns
        if syncs is not None and pair.acknowledge == "durable":
            size_bytes = int(totals[ends[end - 1]]) - synced
            took_ns = syncs.sync_ns(size_bytes, gap_ns=after_ns - last_sync_ns, reserved_only=True)
            durable[done:end] = after_ns = last_sync_ns = after_ns + took_ns
            synced = int(totals[ends[end - 1]])
        told[done:end] = [to_master.send(after_ns, ACKNOWLEDGEMENT_BYTES)] * (end - done)
        done, free_ns = end, after_ns
    if syncs is not None and pair.acknowledge == "received":
        durable = _flushed_on_a_clock(pair, seed, syncs, received, ends, totals)
    return received, durable, told


def _flushed_on_a_clock(pair: Pair, seed: int, syncs: Device, received: Int64s, ends: Int64s, totals: Int64s) -> Int64s:
    """Return when each transfer is durable on a replica that syncs at equal intervals."""
    first_ns = int(stream(seed, "replica flush").random() * pair.flush_ns)
    places = np.maximum(-(-(received - first_ns) // pair.flush_ns), 0)
    durable, synced, last_ns = np.zeros(len(received), np.int64), 0, 0
    for place in np.unique(places).tolist():
        of = np.flatnonzero(places == place)
        at_ns, end = max(first_ns + place * pair.flush_ns, last_ns), int(totals[ends[of[-1]]])
        last_ns = at_ns + syncs.sync_ns(end - synced, gap_ns=at_ns - last_ns, reserved_only=True)
        durable[of], synced = last_ns, end
    return durable


LINKS = {
    "loopback": Link("loopback", Constant(30_000), 1e9),
    "same rack": Link("same rack", Constant(60_000), 1.25e9),
    "other zone": Link("other zone", Constant(500_000), 1.25e8),
    "other region": Link("other region", Constant(15_000_000), 1.25e7),
}
"""Links of experiments.

Values are general knowledge, not measurements: half a round trip, and 8, 10, 1 and 0.1 Gbit/s. `tornpage sim link`
measures loopback.
"""
