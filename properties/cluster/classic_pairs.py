"""Judge a pair that speaks the protocol of 4.9.3, once in a process.

A drawn program puts, steps both nodes, moves the clock, limits and resets the link, and closes or kills nodes and opens
them again. In some programs the master has deleted its first log files before the slave connects. The bytes on the link
are read by the table of docs/replication/design.md and not by the store:

| contract | what is judged |
|---|---|
| 15 | data frames are the bytes of the master's log, in order and without a gap, from the reported offset on |
| 15 | the slave's log is a prefix of the master's, and it reports what it has, never less than before |
| 15 | a frame or a report that no sound peer sends ends its link |
| 15 | an empty slave gets the log from its begin on; one that needs deleted bytes is refused, and keeps its log |
| 16 | a pair at rest sends heartbeats in both directions, and keeps its link |
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
from tornpage.properties.cluster.nodes import ClusterClock, ClusterDisk, Node, address_of, message_of
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.crashing import killed_journal
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.program.cluster_case import ClusterSettings

__all__ = ["classic_pairs_hold"]

_PROGRAMS, _EVENTS, _HEALING_ROUNDS = 4, 70, 40
_FILES_BEFORE, _HEALING_MS = 3, 700
_REST_S, _HEARTBEAT_S = 60, 5
"""Seconds of a rest, and those after which a node without anything to send sends a heartbeat."""
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
            pair = _Pair(random.Random(f"classic {seed}"), tracker, is_sound=seed != 1)
            pair.open(begins_later=seed > 1)
            pair.run()
    with CompareTracker() as tracker:
        _Pair(random.Random(0), tracker, is_sound=False).lag()


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
        self._tracker = tracker
        self._log = bytearray()
        self._begin = 0
        self._begins: dict[int, int] = {}
        self._left: list[RecordedLink] = []

    def open(self, *, begins_later: bool) -> None:
        """Open both nodes. The log of the master may begin with a later file."""
        master, slave = self._nodes
        observed("open", master.open)
        if begins_later:
            self._delete_first_files()
        observed("open", slave.open)

    def _delete_first_files(self) -> None:
        """Let the master put more files, flush and clean: only its last file stays."""
        master = self._nodes[0]
        end = master.end + _FILES_BEFORE * self._settings.file_bytes
        while master.end < end:
            self._put()
            master.step_services()
        observed("flush", master.store.flush)
        self._learn()
        observed("clean", master.clean)
        self._begin = master.begin
        if not self._begin:
            raise GuaranteeBroken(15, "a master of 4.9.3 deletes no log file on a full disk")

    def run(self) -> None:
        """Draw events, then heal the pair."""
        events: tuple[Callable[[], object], ...] = (
            self._put, self._put, self._put, self._step, self._step, self._step, self._step, self._wait, self._limit,
            self._heal, self._reset, self._reopen, self._kill_one, self._step if self._is_sound else self._forge,
        )  # fmt: skip
        for _ in range(_EVENTS):
            self._rng.choice(events)()
        self._heal()
        self._clock.now_ms += _SILENT_MS
        for _ in range(_HEALING_ROUNDS // 4):
            self._step()
            self._clock.now_ms += _HEALING_MS
        self._kill(self._nodes[1], silently=True)  # the master has two links of it for a while
        for _ in range(_HEALING_ROUNDS):
            self._step()
            self._clock.now_ms += _HEALING_MS
        put = self._put()
        for _ in range(10):
            self._step()
        master, slave = self._nodes
        if slave.end != master.end:
            raise GuaranteeBroken(16, "a healed pair of 4.9.3 does not become equal", str(master.end), str(slave.end))
        if not put.done() or put.result().status is not PutStatus.PUT_OK:
            raise GuaranteeBroken(16, "a healed pair of 4.9.3 does not confirm a put", "PUT_OK", str(put))
        self._judge_rest()
        self._close()

    def _close(self) -> None:
        for node in self._nodes:
            assert node.replicated is not None
            observed("close", node.replicated.close)
        if any(not link.is_closed and link not in self._left for link in self._network.links):
            raise GuaranteeBroken(8, "a closed pair of 4.9.3 keeps a link")

    def lag(self) -> None:
        """Let the master delete what its slave still needs."""
        self.open(begins_later=False)
        self._put()
        for _ in range(6):
            self._step()
        master, slave = self._nodes
        end = slave.end
        assert slave.replicated is not None
        observed("close", slave.replicated.close)
        self._delete_first_files()
        observed("open", slave.open)
        for _ in range(10):
            self._step()
            self._clock.now_ms += 1_000
        status, put = master.replicated, self._put()
        assert status is not None
        reasons = [each for each in status.status()["findings"] if f"needs {end}" in each]
        if self._link is not None or slave.end != end or not reasons or master.acknowledged is not None:
            raise GuaranteeBroken(
                15, "a slave of 4.9.3 that needs deleted bytes is not refused", str(end), str(slave.end)
            )
        if not put.done() or put.result().status is PutStatus.PUT_OK:
            raise GuaranteeBroken(15, "a put is confirmed by a slave of 4.9.3 that was refused", found=str(put))
        self._close()

    def _judge_rest(self) -> None:
        """Contract 16: let a healed pair rest.

        It keeps its link by heartbeats, and sends nothing else.
        """
        link = self._link
        assert link is not None
        begun = [len(each) for each in link.sent]
        for _ in range(_REST_S):
            self._clock.now_ms += 1_000
            self._step()
        beats = [
            (len(link.sent[way]) - begun[way]) / size for way, size in ((MASTER, _OFFSET.size), (REPLICA, _HEAD.size))
        ]
        most = _REST_S // _HEARTBEAT_S + 1  # one may be due at the begin
        if self._link is not link or not all(most // 2 <= each <= most for each in beats):
            raise GuaranteeBroken(
                16,
                f"a pair of 4.9.3 at rest sends other heartbeats in {_REST_S} s, or ends its link",
                str(most),
                str(beats),
            )

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
        links = [link for link in self._network.links if not link.is_closed and link not in self._left]
        return links[-1] if links else None

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

    def _kill_one(self) -> None:
        self._kill(self._rng.choice(self._nodes), silently=self._rng.random() < 0.5)

    def _kill(self, node: Node, *, silently: bool) -> None:
        """Kill a node, and open it again. A kill loses nothing."""
        end = node.end
        self._left += [each for each in self._network.links if silently and not each.is_closed]
        self._network.drop(node.number, address_of(node.number), silently=silently)
        node.die()
        node.use_disk(
            ClusterDisk(
                node.files.base, tracker=self._tracker, journal=killed_journal(node.files, len(node.files.journal))
            )
        )
        if node is self._nodes[0]:
            self._puts.clear()
        observed("open", node.open)
        if node.end != end:
            raise GuaranteeBroken(2, "a node of 4.9.3 loses records by a kill", str(end), str(node.end))

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

    def _learn(self) -> None:
        """Learn the new bytes of the master's log."""
        master, known = self._nodes[0], len(self._log)
        self._log += log_bytes(master, known, master.end, self._settings.file_bytes)

    # ---- judges --------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        master, slave = self._nodes
        self._learn()
        found = log_bytes(slave, slave.begin, slave.end, self._settings.file_bytes)
        if slave.end > master.end or found != self._log[slave.begin : slave.end]:
            raise GuaranteeBroken(15, "the log of a slave of 4.9.3 is no prefix of its master's")
        for link in self._network.links:
            self._begins.setdefault(id(link), self._begin)
            if id(link) not in self._forged:
                self._judge_reports(link, slave.end)
                self._judge_data(link, bytes(self._log))
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
        if any(row["node"] and not row["counts"] for row in status["replicas"]):
            raise GuaranteeBroken(15, "a replica of 4.9.3 does not count after its first report")
        if len({row["node"] for row in status["replicas"] if row["counts"]} - {""}) != len(reported):
            raise GuaranteeBroken(15, "a replica of 4.9.3 counts twice, or has no name", found=str(status["replicas"]))

    @staticmethod
    def _judge_reports(link: RecordedLink, end: int) -> None:
        sent = bytes(link.sent[MASTER])
        reports = [offset for (offset,) in _OFFSET.iter_unpack(sent[: len(sent) - len(sent) % _OFFSET.size])]
        if len(sent) % _OFFSET.size or reports != sorted(reports) or (reports and reports[-1] > end):
            raise GuaranteeBroken(15, "a slave of 4.9.3 reports other offsets than it has", str(end), str(reports))

    def _judge_data(self, link: RecordedLink, log: bytes) -> None:
        sent, at = bytes(link.sent[REPLICA]), 0
        asked = bytes(link.arrived[MASTER][: _OFFSET.size])
        following = _OFFSET.unpack(asked)[0] or self._begins[id(link)] if len(asked) == _OFFSET.size else None
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
