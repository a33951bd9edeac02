"""Judge what nodes send, when they send it, and why their links end (contracts 15 and 16).

(g) Bytes of the log wait as long as the protocol says, and no longer: until what was sent is acknowledged, half a frame
    is full, or `poll_interval` is over. A node that has more to send is due at once, and one at rest is not.
(h) Sound nodes accept each other's frames. A wrong frame, and a connection that does not begin with a sound greeting,
    end their link.
(i) A slave has one link. It tries to connect once in `reconnect_interval`.
(j) A master keeps the last 100 reasons for the end of a connection.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tornpage.model.replication.operations import CallNode, ForgeFrame
from tornpage.properties.cluster.forging import CALLER_NUMBER, CALLERS, Greeted, forged
from tornpage.properties.cluster.network import MASTER, REPLICA, LinkEnd, RecordedLink, RecordedNetwork
from tornpage.properties.cluster.nodes import ClusterClock, Node, address_of
from tornpage.properties.cluster.wire import FrameScan
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.program.cluster_case import ClusterSettings

__all__ = ["Traffic"]

POLL_MS, _RECONNECT_MS, _SILENCE_MS = 5, 1_000, 20_000
_FINDINGS_MAX = 100
_SMALL_BYTES = 16_000
"""Above 16 KiB under way, a master may wait for the next puts of the same callers."""
_FRAMES_MAX = 20
"""So many frames are certainly sent in one step."""
_ALL_FRAMES = 50
"""So many frames may be all that are sent in one step."""
_REFUSAL = 6
_WRONG = re.compile(
    "may not come here|is empty|checksum|no frame has the kind|frame states|too short|another size|states a log|"
    "has action|was sent$|an acknowledgement has|bytes for offset|and this log ends at|of the protocol"
)
"""Reasons that a sound peer never gives."""


@dataclass
class _Life:
    """One life of a node. `client` is the store of its last attempt to connect."""

    first_link: int
    findings: list[str] = field(default_factory=list)
    client: object = None
    attempt_ms: int = 0


@dataclass
class _Flow:
    """What a master has sent on a link.

    `whole` is the highest sent offset at which a record ends.
    """

    first: int
    sent_ms: int
    whole: int = 0
    scan: FrameScan = field(default_factory=FrameScan)


@dataclass(frozen=True, slots=True)
class _Visit:
    """A connection that is no replica.

    Its time begins with the step in which the node can accept it.
    """

    call: CallNode
    link: RecordedLink
    end: LinkEnd
    node: object
    since_ms: int
    was_seen: bool = False


@dataclass(frozen=True, slots=True)
class _Before:
    """A node before its step."""

    attempts: int
    rows: dict[int, dict[str, Any]]
    sent_bytes: dict[int, int]
    sendable: int
    ended: int


class Traffic:
    """The judge of a run."""

    def __init__(self, network: RecordedNetwork, clock: ClusterClock, settings: ClusterSettings) -> None:
        self._network = network
        self._clock = clock
        self._settings = settings
        self._lives: dict[int, _Life] = {}
        self._flows: dict[int, _Flow] = {}
        self._forged: list[tuple[RecordedLink, int, int, str]] = []
        self._visits: list[_Visit] = []
        self._is_disturbed = False

    # ---- what the run does ---------------------------------------------------------------------------------------

    def opened(self, node: Node) -> None:
        """Note a new life of a node."""
        self._lives[node.number] = _Life(len(self._network.links))
        self._visits = [each for each in self._visits if each.call.node != node.number]

    def first_link(self, node: Node) -> int:
        """Return the number of links before the present life of a node."""
        return self._lives[node.number].first_link

    def follows(self, node: Node) -> None:
        """Note that a node may connect to another master at once."""
        self._lives[node.number].client = None

    def disturb(self) -> None:
        """Note that bytes were changed under way."""
        self._is_disturbed = True

    def forge(self, link: RecordedLink, forgery: ForgeFrame, offset: int) -> None:
        """Send a forged frame on a link. `offset` is the end of the log of its receiver."""
        self._is_disturbed = True
        way = MASTER if forgery.to_master else REPLICA
        number = forgery.size_bytes % (1 << 32) if forgery.frame == "head" else offset
        is_first = link.forged[way] is None  # the first one may be half a frame
        link.forge(way, forged(forgery.frame, number))
        if is_first and forgery.frame != "head":
            self._forged.append((link, way, len(link.sent[way]), forgery.frame))

    @property
    def has_visits(self) -> bool:
        """Whether a wrong connection of a node that runs has not ended."""
        return bool(self._visits)

    @property
    def has_forged_bytes(self) -> bool:
        """Whether a link with forged bytes has not ended."""
        return any(each.forged != [None, None] and not each.is_closed for each in self._network.links)

    def call(self, node: Node, call: CallNode) -> bool:
        """Connect to a node as no replica does; return whether it listens."""
        end = self._network.connect(CALLER_NUMBER, address_of(node.number))
        if end is None:
            return False
        assert node.replicated is not None
        greeted = Greeted(bytes.fromhex(node.replicated.status()["node"]), self._settings.file_bytes)
        end.send(CALLERS[call.caller][1](greeted))
        visit = _Visit(call, self._network.links[-1], end, node.replicated, self._clock.now_ms)
        self._visits.append(visit)
        return True

    # ---- a step --------------------------------------------------------------------------------------------------

    def before(self, node: Node) -> _Before:
        """Return what has to be known of a node before its step."""
        life = self._lives[node.number]
        now_ms = self._clock.now_ms
        self._visits = [
            replace(each, since_ms=now_ms, was_seen=True)
            if each.node is node.replicated and not each.was_seen
            else each
            for each in self._visits
        ]
        mine = self._network.links[life.first_link :]
        ended = sum(
            link.is_closed and not link.waiting[MASTER] for link in mine if link.address == address_of(node.number)
        )
        return _Before(
            self._network.attempts[node.number],
            self._rows(node),
            {id(link): len(link.sent[REPLICA]) for link in self._links_to(node)},
            self._sendable(node),
            ended - self._waiting(node),
        )

    def after(self, node: Node, before: _Before) -> None:
        """Judge a node after its step."""
        self._judge_links(node, before)
        self._judge_forged()
        if node.role == "master":
            self._judge_findings(node, before)
            self._judge_flow(node, before)
            self._judge_visits(node)

    def _links_to(self, node: Node) -> list[RecordedLink]:
        first = self._lives[node.number].first_link
        return [each for each in self._network.links[first:] if each.address == address_of(node.number)]

    def _waiting(self, node: Node) -> int:
        """Return how many ended links a master has not accepted."""
        return self._network.ended_at(address_of(node.number))

    def _rows(self, node: Node) -> dict[int, dict[str, Any]]:
        """Return the rows of replicas with one connection, by replica."""
        if node.role != "master" or node.replicated is None:
            return {}
        found: dict[int, dict[str, Any]] = {}
        rows: Sequence[dict[str, Any]] = node.replicated.status()["replicas"]
        peers = [row["peer"] for row in rows]
        for row in rows:
            if peers.count(row["peer"]) == 1:
                found[int(row["peer"].partition(":")[0].removeprefix("replica-"))] = row
        return found

    def _sendable(self, node: Node) -> int:
        return node.store.flushed_offset if self._settings.send_flushed_only else node.store.committed_offset

    # ---- links of a slave ----------------------------------------------------------------------------------------

    def _judge_links(self, node: Node, before: _Before) -> None:
        life, now_ms = self._lives[node.number], self._clock.now_ms
        if self._network.attempts[node.number] > before.attempts:
            waited_ms = now_ms - life.attempt_ms
            if life.client is node.store and waited_ms < _RECONNECT_MS:
                raise GuaranteeBroken(16, f"node {node.number} connects again after {waited_ms} ms")
            life.client, life.attempt_ms = node.store, now_ms
        mine = [each for each in self._network.links[life.first_link :] if each.replica == node.number]
        count = sum(not each.is_closed for each in mine)
        if count > 1:
            raise GuaranteeBroken(15, f"node {node.number} has {count} links to masters", "one")
        if node.role == "slave" and node.replicated is not None:
            self._require_sound(node, [node.replicated.status()["finding"]])

    def _require_sound(self, node: Node, findings: Sequence[str]) -> None:
        for each in findings:
            if _WRONG.search(each) and not self._is_disturbed:
                raise GuaranteeBroken(15, f"node {node.number} ends the link of a sound peer: {each}")

    # ---- wrong frames and connections ----------------------------------------------------------------------------

    def _judge_forged(self) -> None:
        for each in tuple(self._forged):
            link, way, end, name = each
            if link.is_closed:
                self._forged.remove(each)
            elif len(link.arrived[way]) >= end:
                receiver = "master" if way == MASTER else "slave"
                raise GuaranteeBroken(15, f"a {receiver} keeps its link after a wrong frame ({name})")

    def _judge_visits(self, node: Node) -> None:
        for each in tuple(self._visits):
            if each.node is not node.replicated:
                continue
            expected, waited_ms = CALLERS[each.call.caller][0], self._clock.now_ms - each.since_ms
            if each.link.is_closed:
                self._visits.remove(each)
                is_refused = (each.end.receive(1 << 16) or b"")[:1] == bytes((_REFUSAL,))
                if is_refused is not (expected == "refused") or (expected == "silence" and waited_ms <= _SILENCE_MS):
                    how = "with" if is_refused else "without"
                    sentence = f"a master ends a connection ({each.call.caller}) after {waited_ms} ms, {how} a refusal"
                    raise GuaranteeBroken(15, sentence)
            elif each.call.caller == "slow" and waited_ms <= 2 * _SILENCE_MS:
                each.end.send(b"\0")
            elif expected != "silence" or waited_ms > 2 * _SILENCE_MS:
                raise GuaranteeBroken(15, f"a master keeps a connection ({each.call.caller}) for {waited_ms} ms")

    def _judge_findings(self, node: Node, before: _Before) -> None:
        assert node.replicated is not None
        life, found = self._lives[node.number], list(node.replicated.status()["findings"])
        known, life.findings = life.findings, found
        gone = (
            0
            if len(found) < _FINDINGS_MAX
            else next((at for at in range(len(known) + 1) if known[at:] == found[: len(known) - at]), 0)
        )
        if found[: len(known) - gone] != known[gone:] or len(found) > _FINDINGS_MAX:
            raise GuaranteeBroken(8, "a master forgets why a connection has ended", str(known), str(found))
        if len(found) < min(before.ended, _FINDINGS_MAX):
            raise GuaranteeBroken(8, f"a master has {len(found)} reasons for {before.ended} ended connections")
        self._require_sound(node, [each for each in found[len(known) - gone :] if f"-{CALLER_NUMBER}:" not in each])

    # ---- bytes of the log ----------------------------------------------------------------------------------------

    def _judge_flow(self, node: Node, before: _Before) -> None:
        rows, links = self._rows(node), {each.replica: each for each in self._links_to(node)}
        assert node.replicated is not None
        has_rest, judged = False, 0
        for replica, link in links.items():
            row, row_before, key = rows.get(replica), before.rows.get(replica), id(link)
            size_bytes = len(link.sent[REPLICA])
            has_sent = size_bytes > before.sent_bytes.get(key, 0)
            if link.is_closed or row is None or replica == CALLER_NUMBER:
                continue
            flow = self._flows.setdefault(key, _Flow(row["sent"], self._clock.now_ms))
            flow.scan.read(link.sent[REPLICA], link.forged[REPLICA])
            sendable = self._sendable(node)
            is_acknowledged = row["received"] >= flow.whole
            is_plain = sendable == before.sendable and sendable - flow.first <= _SMALL_BYTES
            is_plain = is_plain and link.forged[REPLICA] is None
            if is_plain and row_before is not None and row_before["counts"] and row["counts"]:
                self._judge_sent(replica, row_before["sent"], row, sendable, flow)
                rest_bytes, batch_bytes = sendable - row["sent"], self._settings.batch_bytes
                goes_on = rest_bytes > 0 and (is_acknowledged or rest_bytes >= batch_bytes // 2)
                has_rest = has_rest or goes_on
                judged += goes_on or row["sent"] - row_before["sent"] < _ALL_FRAMES * batch_bytes
            if has_sent:
                flow.sent_ms = self._clock.now_ms
            if row["sent"] >= sendable and flow.scan.data_end:
                flow.whole = sendable
        others = [row for row in node.replicated.status()["replicas"] if f"-{CALLER_NUMBER}:" not in row["peer"]]
        if judged == len(others):
            self._judge_due(node, has_rest=has_rest)

    def _judge_sent(self, replica: int, sent: int, row: dict[str, Any], sendable: int, flow: _Flow) -> None:
        rest_bytes, batch_bytes, now = sendable - sent, self._settings.batch_bytes, row["sent"]
        if rest_bytes <= 0:
            return
        waited_ms = self._clock.now_ms - flow.sent_ms
        is_acknowledged = row["received"] >= flow.whole
        may_wait = not is_acknowledged and rest_bytes < batch_bytes // 2 and waited_ms < POLL_MS
        least = sent if may_wait else sent + 1
        if is_acknowledged and rest_bytes <= _FRAMES_MAX * batch_bytes:
            least = sendable
        if now < least:
            raise GuaranteeBroken(
                15, f"a master does not send {rest_bytes} bytes to replica {replica} {waited_ms} ms after the last",
                f"up to {least}", f"up to {now}",
            )  # fmt: skip
        if may_wait and now > sent:
            sentence = f"a master sends {now - sent} bytes before the last ones are acknowledged, {waited_ms} ms later"
            raise GuaranteeBroken(16, sentence, f"half a frame of {batch_bytes}, or {POLL_MS} ms")

    def _judge_due(self, node: Node, *, has_rest: bool) -> None:
        wanted = self._clock.now_ms + (0 if has_rest else POLL_MS)
        if node.due_ms != wanted:
            what = "has more to send" if has_rest else "has nothing to send"
            raise GuaranteeBroken(
                16, f"a master {what}, and is due after {node.due_ms - self._clock.now_ms} ms",
                str(wanted - self._clock.now_ms), str(node.due_ms - self._clock.now_ms),
            )  # fmt: skip
