"""Judge a pair that speaks the protocol of 4.9.3, once in a process.

A drawn program puts, steps both nodes, moves the clock, limits and resets the link, and opens the slave again. The
bytes on the link are read by the table of docs/replication/design.md and not by the store:

| contract | what is judged |
|---|---|
| 15 | data frames are the bytes of the master's log, in order and without a gap, from the reported offset on |
| 15 | the slave's log is a prefix of the master's, and it reports what it has, never less than before |
| 15 | a frame or a report that no sound peer sends ends its link |
| 16 | a healed pair becomes equal, and the master confirms its puts |
"""

import random
import re
import struct
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.model.replication.operations import PutOn
from tornpage.properties.cluster.judge import log_bytes
from tornpage.properties.cluster.network import MASTER, REPLICA, RecordedLink, RecordedNetwork
from tornpage.properties.cluster.nodes import ClusterClock, Node, message_of
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.program.cluster_case import ClusterSettings

__all__ = ["classic_pairs_hold"]

_PROGRAMS, _EVENTS, _HEALING_ROUNDS = 3, 70, 40
_HEAD, _OFFSET = struct.Struct(">qi"), struct.Struct(">q")
_BODY_BYTES_MAX = 4 << 20
_SILENT_MS = 6_000
_WRONG = re.compile("is acknowledged|has a log up to|the replica needs|frame states|cannot begin at|is next here")
"""Reasons for the end of a link that a sound peer never gives."""


class _ClassicNode(Node):
    """A node that speaks the protocol of 4.9.3."""

    def replication(self) -> ReplicationSettings:
        """Return its settings."""
        return replace(super().replication(), protocol="4.9.3")


def classic_pairs_hold() -> None:
    """Judge drawn programs. Raises GuaranteeBroken."""
    for seed in range(_PROGRAMS):
        with CompareTracker() as tracker:
            _Pair(random.Random(f"classic {seed}"), tracker, is_sound=seed != 1).run()


class _Pair:
    """One drawn program of a master and a slave."""

    def __init__(self, rng: random.Random, tracker: CompareTracker, *, is_sound: bool) -> None:
        self._rng = rng
        self._is_sound = is_sound
        self._settings = ClusterSettings(nodes=2)
        self._network, self._clock = RecordedNetwork(), ClusterClock()
        self._nodes = [
            _ClassicNode(
                number, self._settings, network=self._network, clock=self._clock, parts=Parts(), tracker=tracker
            )
            for number in range(2)
        ]
        self._puts: list[Future[PutResult]] = []
        self._forged: set[int] = set()
        for node in self._nodes:
            observed("open", node.open)

    def run(self) -> None:
        """Draw events, then heal the pair."""
        events: tuple[Callable[[], object], ...] = (
            self._put, self._put, self._put, self._step, self._step, self._step, self._step, self._wait, self._limit,
            self._heal, self._reset, self._reopen, self._step if self._is_sound else self._forge,
        )  # fmt: skip
        for _ in range(_EVENTS):
            self._rng.choice(events)()
        self._heal()
        self._clock.now_ms += _SILENT_MS
        for _ in range(_HEALING_ROUNDS):
            self._step()
            self._clock.now_ms += 300
        put = self._put()
        for _ in range(10):
            self._step()
        master, slave = self._nodes
        if slave.end != master.end:
            raise GuaranteeBroken(16, "a healed pair of 4.9.3 does not become equal", str(master.end), str(slave.end))
        if not put.done() or put.result().status is not PutStatus.PUT_OK:
            raise GuaranteeBroken(16, "a healed pair of 4.9.3 does not confirm a put", "PUT_OK", str(put))
        for node in self._nodes:
            assert node.replicated is not None
            observed("close", node.replicated.close)
        if any(not link.is_closed for link in self._network.links):
            raise GuaranteeBroken(8, "a closed pair of 4.9.3 keeps a link")

    def _put(self) -> "Future[PutResult]":
        put = PutOn(body_bytes=self._rng.choice((1, 40, 300)), fill=self._rng.randrange(99))
        node = self._nodes[0]
        answer = observed("put", partial(node.store.put_async, message_of(put)))
        self._puts.append(answer)
        return answer

    def _step(self) -> None:
        for node in self._nodes:
            observed("step", node.step)
            self._judge()
        self._clock.now_ms += 1

    def _wait(self) -> None:
        self._clock.now_ms += self._rng.choice((5, 1_000, _SILENT_MS))

    @property
    def _link(self) -> RecordedLink | None:
        return next((link for link in reversed(self._network.links) if not link.is_closed), None)

    def _limit(self) -> None:
        if self._link is not None:
            self._link.room[self._rng.choice((MASTER, REPLICA))] = self._rng.choice((0, 3, 13, 100))

    def _heal(self) -> None:
        for link in self._network.links:
            link.room[:] = [None, None]

    def _reset(self) -> None:
        if self._link is not None:
            kept = self._rng.choice((0, 5, 40))
            self._link.reset(to_master_bytes=kept, to_replica_bytes=kept)

    def _reopen(self) -> None:
        """Close the slave and open it again."""
        slave = self._nodes[1]
        assert slave.replicated is not None
        end = slave.end
        observed("close", slave.replicated.close)
        observed("open", slave.open)
        if slave.end != end:
            raise GuaranteeBroken(2, "a slave of 4.9.3 loses records by a clean exit", str(end), str(slave.end))

    def _forge(self) -> None:
        """Send what no sound peer sends, and let its receiver end the link."""
        self._heal()
        self._step()
        self._step()
        link, end = self._link, self._nodes[0].end
        if link is None or not link.arrived[MASTER]:
            return
        way, data = self._rng.choice((
            (REPLICA, _HEAD.pack(self._nodes[1].end, -1)), (REPLICA, _HEAD.pack(0, _BODY_BYTES_MAX + 1)),
            (REPLICA, _HEAD.pack(self._nodes[1].end + 8, 0)), (REPLICA, _HEAD.pack(end + 8, 4) + b"\7" * 4),
            (MASTER, _OFFSET.pack(0) + _OFFSET.pack(-8)),
            (MASTER, _OFFSET.pack(-1)), (MASTER, _OFFSET.pack(end + 1)),
        ))  # fmt: skip
        self._forged.add(id(link))
        link.forge(way, data)
        self._step()
        self._step()
        if not link.is_closed:
            raise GuaranteeBroken(15, "a node of 4.9.3 keeps its link after wrong bytes", found=data[:20].hex())

    # ---- judges --------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        master, slave = self._nodes
        end, file_bytes = master.end, self._settings.file_bytes
        log = log_bytes(master, 0, end, file_bytes)
        if slave.end > end or log_bytes(slave, 0, slave.end, file_bytes) != log[: slave.end]:
            raise GuaranteeBroken(15, "the log of a slave of 4.9.3 is no prefix of its master's")
        for link in self._network.links:
            if id(link) not in self._forged:
                self._judge_reports(link, slave.end)
                self._judge_data(link, log)
        self._judge_findings()
        self._judge_acknowledged()
        for answer in self._puts:
            if answer.done() and answer.result().status is PutStatus.PUT_OK:
                result = answer.result()
                if result.offset + result.size_bytes > slave.end:
                    raise GuaranteeBroken(15, "a put is confirmed that the slave of 4.9.3 does not have")

    def _judge_findings(self) -> None:
        """Contract 15: without wrong bytes no link ends because of its bytes."""
        master, slave = (node.replicated for node in self._nodes)
        assert master is not None
        assert slave is not None
        found = [*master.status()["findings"], slave.status()["finding"]]
        wrong = [each for each in found if _WRONG.search(each)]
        if wrong and self._is_sound:
            raise GuaranteeBroken(15, f"a node of 4.9.3 ends the link of a sound peer: {wrong[0]}")

    def _judge_acknowledged(self) -> None:
        """Contract 15: a master counts what its connected replicas have reported."""
        master = self._nodes[0].replicated
        assert master is not None
        status = master.status()
        reported = [row["received"] for row in status["replicas"] if row["counts"]]
        if status["acknowledged_offset"] != max(reported, default=None):
            raise GuaranteeBroken(
                15, "a master of 4.9.3 counts another offset than its replicas have reported", str(reported),
                str(status["acknowledged_offset"]),
            )  # fmt: skip
        if len({row["node"] for row in status["replicas"] if row["counts"]} - {""}) != len(reported):
            raise GuaranteeBroken(15, "a replica of 4.9.3 counts twice, or has no name", found=str(status["replicas"]))

    @staticmethod
    def _judge_reports(link: RecordedLink, end: int) -> None:
        sent = bytes(link.sent[MASTER])
        reports = [offset for (offset,) in _OFFSET.iter_unpack(sent[: len(sent) - len(sent) % _OFFSET.size])]
        if len(sent) % _OFFSET.size or reports != sorted(reports) or (reports and reports[-1] > end):
            raise GuaranteeBroken(15, "a slave of 4.9.3 reports other offsets than it has", str(end), str(reports))

    @staticmethod
    def _judge_data(link: RecordedLink, log: bytes) -> None:
        sent, at = bytes(link.sent[REPLICA]), 0
        asked = bytes(link.arrived[MASTER][: _OFFSET.size])
        following = _OFFSET.unpack(asked)[0] if len(asked) == _OFFSET.size else None
        while at < len(sent):
            if following is None or len(sent) - at < _HEAD.size:
                raise GuaranteeBroken(15, "a master of 4.9.3 sends bytes that are no frame")
            offset, size_bytes = _HEAD.unpack_from(sent, at)
            body = sent[at + _HEAD.size : at + _HEAD.size + size_bytes]
            if offset != following or not 0 <= size_bytes <= _BODY_BYTES_MAX or body != log[offset:][:size_bytes]:
                raise GuaranteeBroken(
                    15, "a frame of 4.9.3 has other bytes than the log of the master", str(following), str(offset)
                )
            following, at = offset + size_bytes, at + _HEAD.size + size_bytes
