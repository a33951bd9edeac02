"""Judge a cluster by contract 15, in six parts, and by the contracts of each store.

(a) A slave's log is a prefix of its master's, byte for byte, from the moment at which the master has accepted it.
(b) A put that waited and succeeded is on as many replicas as it waited for; durably, if that was asked for.
(c) With a healed network and all nodes up, all copies become equal within a bound, from the higher of their begins. A
    replica that needs bytes which its master has removed states that instead.
(d) Every copy keeps contracts 1 to 7: prefix, floor, no resurrection, queues, index, starts.
(e) Every put is answered, at its deadline at the latest.
(f) A replica acknowledges only what it has; the master counts only replicas that have acknowledged.

Expected bytes are those that the master had after each put.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from tornpage.impl.message.message import PutStatus
from tornpage.model.replication.operations import PutOn
from tornpage.model.replication.state import Copy, Entry, Replicated
from tornpage.properties.cluster.network import RecordedNetwork
from tornpage.properties.cluster.nodes import SLAVE_TIMEOUT_MS, TOPIC, Node, OpenPut, address_of
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.program.cluster_case import ClusterSettings
from tornpage.properties.program.log_places import LOG_DIRECTORY, log_files

__all__ = [
    "acknowledged_is_there",
    "all_puts_are_answered",
    "answer_is_due",
    "confirmed_put_is_answered",
    "confirmed_put_is_held",
    "content_differs",
    "copies_are_equal",
    "counted_is_acknowledged",
    "end_is_not_legal",
    "exit_is_clean",
    "gone_is_stated",
    "holds",
    "log_bytes",
    "no_put_is_overdue",
    "nothing_is_left",
    "nothing_past_the_end",
    "queues_and_keys_hold_the_log",
    "refusal_is_stated",
    "states_a_finding",
    "states_a_refusal",
]

_SLACK_MS = 100
_PULL_MAX = 32


# ---- logs ------------------------------------------------------------------------------------------------------------


def log_bytes(node: Node, begin: int, end: int, file_bytes: int) -> bytes:
    """Return what the process sees of a stretch of the log; short where a file is missing."""
    found = bytearray()
    present = node.files.paths()
    while begin < end:
        base = begin // file_bytes * file_bytes
        path, stop = f"{LOG_DIRECTORY}/{base:020d}", min(end, base + file_bytes)
        if path not in present:
            break
        found += node.files.peek(path, begin - base, stop - begin)
        begin = stop
    return bytes(found)


def _expected(copy: Copy, contents: Mapping[int, bytes]) -> bytes:
    return b"".join(contents[entry.identity] for entry in copy.kept)


def holds(node: Node, copy: Copy, contents: Mapping[int, bytes], settings: ClusterSettings) -> bool:
    """Return whether the log of a node has the bytes of these entries and no others."""
    return log_bytes(node, node.begin, node.end, settings.file_bytes) == _expected(copy, contents)


def content_differs(node: Node, copy: Copy, contents: Mapping[int, bytes], settings: ClusterSettings) -> None:
    """Contract 15 (a), or 1 on a master: the bytes of a log are those that were put."""
    found, expected = log_bytes(node, node.begin, node.end, settings.file_bytes), _expected(copy, contents)
    at = next(
        (n for n, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), min(len(found), len(expected))
    )
    number = 15 if node.role == "slave" else 1
    sentence = f"the log of node {node.number} differs from what was put at offset {node.begin + at}"
    raise GuaranteeBroken(number, sentence, expected[at : at + 16].hex(" "), found[at : at + 16].hex(" "))


def end_is_not_legal(node: Node, states: Sequence[Replicated], *, is_open: bool) -> None:
    """Contract 15 (a), or 2 after a recovery: a log ends, and begins (10), where it may."""
    copies = [state.copies[node.number] for state in states]
    number = 2 if is_open else 15 if node.role == "slave" else 1
    verb, legal, found = "ends", sorted({copy.end for copy in copies}), node.end
    if found in legal:
        number, verb, found = (15 if number == 15 else 10), "begins", node.begin
        legal = sorted({copy.begin for copy in copies if copy.end == node.end})
    what = "after its recovery " if is_open else ""
    sentence = f"the log of node {node.number} {what}{verb} where it may not"
    raise GuaranteeBroken(number, sentence, " or ".join(map(str, legal)) or "no legal log", str(found))


def nothing_past_the_end(node: Node, file_bytes: int) -> None:
    """Contract 3: every byte past the end of the log is zero."""
    for path in log_files(node.files.paths()):
        base = int(path.rpartition("/")[2])
        past = node.files.peek(path, max(0, node.end - base), file_bytes) if node.end < base + file_bytes else b""
        if any(past):
            raise GuaranteeBroken(3, f"bytes are left past the end {node.end} of the log of node {node.number}")


def copies_are_equal(master: Node, nodes: Iterable[Node], file_bytes: int) -> None:
    """Contract 15 (c): with time and a network, each replica gets all that its master has."""
    for node in nodes:
        if node.begin == node.end and master.begin == master.end:
            continue  # no byte on either side: the master has an empty file past what it has removed
        if node.end != master.end:
            assert node.replicated is not None
            why = node.replicated.status()["finding"]
            sentence = f"node {node.number} does not catch up with its master"
            raise GuaranteeBroken(15, sentence, f"a log up to {master.end}", f"up to {node.end}; {why}")
        begin = max(node.begin, master.begin)
        if log_bytes(node, begin, node.end, file_bytes) != log_bytes(master, begin, master.end, file_bytes):
            raise GuaranteeBroken(15, f"the log of node {node.number} differs from that of its master")


def gone_is_stated(nodes: Iterable[Node]) -> None:
    """Contract 15 (c): a replica whose next bytes were removed ends its link with a finding."""
    for node in nodes:
        if not states_a_finding(node):
            sentence = f"node {node.number} waits for bytes that its master has removed"
            raise GuaranteeBroken(15, sentence, "a finding and no link")


def states_a_finding(node: Node) -> bool:
    """Return whether a node is not joined to a master, and says why."""
    assert node.replicated is not None
    status = node.replicated.status()
    return not status["joined"] and bool(status["finding"])


# ---- puts and acknowledgements ---------------------------------------------------------------------------------------


def confirmed_put_is_held(held: Mapping[int, set[int]], identity: int, *, master: int, quorum: int) -> None:
    """Contract 15 (b): replicas have what was confirmed."""
    replicas = held.get(identity, set()) - {master}
    if len(replicas) < quorum:
        sentence = f"a put is answered PUT_OK, and {len(replicas)} replicas had its message"
        raise GuaranteeBroken(15, sentence, f"at least {quorum}", str(sorted(replicas)))


def no_put_is_overdue(puts: Iterable[OpenPut], now_ms: int) -> None:
    """Contract 15 (e): a put is answered in the first round after its deadline."""
    for put in puts:
        if not put.answer.done() and now_ms - put.made_ms > SLAVE_TIMEOUT_MS + _SLACK_MS:
            waited = f"{now_ms - put.made_ms} ms"
            raise GuaranteeBroken(16, "a put is not answered at its deadline", f"{SLAVE_TIMEOUT_MS} ms", waited)


def answer_is_due(put: OpenPut, status: PutStatus, node: Node, now_ms: int, *, is_over: bool) -> None:
    """Contract 8: a put asks the replicas if enough of them count.

    It waits for them until its deadline. It ends earlier if its bytes are removed, or if the node closes.
    """
    if (status is PutStatus.SLAVE_NOT_AVAILABLE and put.asks) or (
        status in (PutStatus.PUT_OK, PutStatus.FLUSH_SLAVE_TIMEOUT) and not put.asks
    ):
        how_many = "enough" if put.asks else "too few"
        raise GuaranteeBroken(8, f"a put is answered {status.name}, and {how_many} replicas were connected")
    if status is PutStatus.FLUSH_SLAVE_TIMEOUT and not is_over and put.end > node.begin:
        waited_ms = now_ms - put.made_ms
        if waited_ms < SLAVE_TIMEOUT_MS:
            raise GuaranteeBroken(16, f"a put is given up after {waited_ms} ms", f"{SLAVE_TIMEOUT_MS} ms")


def confirmed_put_is_answered(node: Node, acknowledged: int | None, *, syncs: bool) -> None:
    """Contract 16: a put is answered in the round that counts its acknowledgements."""
    for put in node.puts:
        is_durable = not syncs or node.store.flushed_offset >= put.end
        if put.asks and not put.answer.done() and is_durable and acknowledged is not None and acknowledged >= put.end:
            sentence = f"a put that ends at {put.end} has no answer, and {acknowledged} is acknowledged"
            raise GuaranteeBroken(16, sentence, "PUT_OK")


def refusal_is_stated(nodes: Iterable[Node]) -> None:
    """Contract 15 (c): a replica without a common generation says that its master refuses it."""
    for node in nodes:
        if not states_a_refusal(node):
            assert node.replicated is not None
            sentence = f"node {node.number} has no generation in common with its master, and is not refused"
            raise GuaranteeBroken(15, sentence, "a refusal", node.replicated.status()["finding"])


def states_a_refusal(node: Node) -> bool:
    """Return whether a node says that its master refuses it."""
    assert node.replicated is not None
    finding: str = node.replicated.status()["finding"]
    return finding.startswith("the master refuses: ")


def all_puts_are_answered(puts: Iterable[OpenPut]) -> None:
    """Contract 15 (e): a close answers every put."""
    left = sum(not put.answer.done() for put in puts)
    if left:
        raise GuaranteeBroken(16, "a close leaves puts without an answer", "0", str(left))


def exit_is_clean(node: Node) -> None:
    """Contract 2: a close of a sound store is recorded as a clean exit."""
    if any(path.endswith("/abort") for path in node.files.paths()):
        raise GuaranteeBroken(2, f"a clean close of node {node.number} leaves the abort marker")


def nothing_is_left(node: Node, network: RecordedNetwork, first_link: int) -> None:
    """Contract 8: a closed node has no file open, no link, and no address."""
    address = address_of(node.number)
    links = [link for link in network.links[first_link:] if link.replica == node.number and not link.is_closed]
    if node.files.leaks() or links or network.is_listening(address):
        raise GuaranteeBroken(
            8, f"node {node.number} is closed, and keeps {len(links)} links, its address or files",
            found=str(node.files.leaks()),
        )  # fmt: skip


def acknowledged_is_there(node: Node, received: int, durable: int) -> None:
    """Contract 15 (f): a replica acknowledges what it has, and as durable what it has synced."""
    end, flushed = node.end, node.store.flushed_offset
    if received > end:
        raise GuaranteeBroken(15, f"node {node.number} acknowledges more than it has", str(end), str(received))
    if durable > flushed:
        sentence = f"node {node.number} acknowledges more as durable than it has synced"
        raise GuaranteeBroken(15, sentence, str(flushed), str(durable))


def counted_is_acknowledged(acknowledged: int | None, replicas: int, quorum: int) -> None:
    """Contract 15 (f): a replica counts once it has acknowledged, and each one once."""
    if acknowledged is not None and replicas < quorum:
        sentence = f"the master counts a quorum, and {replicas} connected replicas have acknowledged anything"
        raise GuaranteeBroken(15, sentence, f"at least {quorum}", str(replicas))


# ---- queues and keys -------------------------------------------------------------------------------------------------


def queues_and_keys_hold_the_log(node: Node, records: Sequence[tuple[Entry, PutOn]]) -> None:
    """Contract 4 and 5: queues and index of every copy have the messages of the log, in order."""
    for queue_id in sorted({put.queue_id for _, put in records} | {0, 1}):
        expected = [
            entry.begin for entry, put in records if put.queue_id == queue_id and node.begin <= entry.begin < node.end
        ]
        found = observed("get_message", partial(_queue, node, queue_id))
        if found != expected:
            sentence = f"queue {queue_id} of node {node.number} does not hold its messages"
            raise GuaranteeBroken(4, sentence, str(expected), str(found))
    for key in sorted({put.key for _, put in records if put.key}):
        expected = [entry.begin for entry, put in records if put.key == key and node.begin <= entry.begin < node.end]
        found = observed("query_message", partial(_by_key, node, key))
        if found != expected:
            sentence = f"node {node.number} does not find the messages of a key"
            raise GuaranteeBroken(5, sentence, str(expected), str(found))


def _queue(node: Node, queue_id: int) -> list[int]:
    """Return the offsets of the messages of a queue."""
    found: list[int] = []
    first = node.store.min_offset_in_queue(TOPIC, queue_id)
    while first + len(found) < node.store.max_offset_in_queue(TOPIC, queue_id):
        with node.store.get_message(TOPIC, queue_id, first + len(found), max_msg_nums=_PULL_MAX) as pulled:
            if not pulled.messages:
                break
            found += [buffer.message().offset for buffer in pulled.messages]
    return found


def _by_key(node: Node, key: str) -> list[int]:
    with node.store.query_message(TOPIC, key) as found:
        return [buffer.message().offset for buffer in found.messages]
