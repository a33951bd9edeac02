"""The defects L1 to L20 of DLedger 0.2.3, and schedules that show them.

A defect without a schedule has a reason. A schedule drives Java members (raft_lab.py). It returns what it saw if the
defect is there, and None if it is not. `ours` carries out the same events on members of this project (raft_ours.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tornpage.peers.errors import PeerCrashed
from tornpage.peers.rocketmq.raft_lab import FILE_BYTES, RaftLab, RaftNode
from tornpage.peers.rocketmq.raft_ours import figure_8, power_cut_of_a_follower

__all__ = ["RAFT_HOLES", "RaftHole", "raft_holes_named"]

Schedule = Callable[[RaftLab], str | None]
_LOG_FOLDERS = ("/data/", "/index/")
_MAGIC = bytes(4)
_HEARTBEAT_S = 3.0


@dataclass(frozen=True, slots=True)
class RaftHole:
    """One defect.

    Without a `schedule` there is a `reason`. `instead` is what this project does. `ours` shows it, if it is given.
    """

    id: str
    sentence: str
    instead: str
    schedule: Schedule | None = None
    reason: str = ""
    ours: Callable[[], str] | None = None


# ---- what a quorum is worth ------------------------------------------------------------------------------------------


def _an_acknowledged_message_is_gone(lab: RaftLab) -> str | None:
    nodes = lab.group(3)
    a = lab.leader(*nodes)
    b, c = (node for node in nodes if node is not a)
    for body in ("first", "second"):
        a.put(body)
    end = a.state()["end"]
    b.close()
    b.start(is_traced=True)
    lab.until(f"{b.name} follows", lambda: b.state()["role"] == "FOLLOWER" and b.state()["end"] == end)
    c.stop()
    b.hold_syncs()
    acknowledged = a.put("X")
    index = a.state()["end"]
    before = f"{a.name} and {b.name} have {a.shown(index, ['X'])} at {index}"
    lab.note(before)
    lost = b.cut_power(_LOG_FOLDERS)
    c.kill()
    a.kill()
    lab.start(b, c)
    new = lab.leader(b, c)
    again = new.put("Y")
    a.start()
    lab.until(f"{a.name} has what {new.name} has", lambda: a.entry(index) == new.entry(index), seconds=60)
    now = [node.shown(index, ["X", "Y"]) for node in nodes]
    is_served = any(node.serves("X") for node in nodes)
    lab.note(f"entry {index} is now {', '.join(now)} on {', '.join(node.name for node in nodes)}")
    if acknowledged["status"] != "PUT_OK" or is_served or any(each.startswith("X") for each in now):
        return None
    return (
        f"message X was answered PUT_OK as entry {index}, queue offset {acknowledged['queue_offset']}, on {a.name} and "
        f"{b.name}; after a power cut of {b.name} ({len(lost)} unsynced pages lost) and a kill of {a.name} no member "
        f"has it: entry {index} is {now[0]}, queue offset {again['queue_offset']}"
    )


@dataclass(frozen=True, slots=True)
class _Replaced:
    """What a schedule of figure 8 of the Raft paper has shown.

    `winner` led last. `follower` has the entry `index` of the winner, and had another one that was committed.
    """

    winner: RaftNode
    follower: RaftNode
    index: int
    seen: str


def _figure_8(lab: RaftLab, topic: str) -> _Replaced | None:
    """Commit message E of topic T, and replace it by F of a topic.

    Two leaders append one of them each, alone. Then the first one leads again.
    """
    nodes = lab.group(3)
    a = lab.leader(*nodes)
    a.put("first")
    index = a.state()["end"] + 1
    others = _others(nodes, a)
    lab.until("all have the first entry", lambda: all(node.state()["end"] == index - 1 for node in others))
    for node in others:
        node.kill()
    a.put("E")
    is_alone = a.state()["end"] == index
    a.kill()
    lab.start(*others)
    b = lab.leader(*others)
    (c,) = _others(others, b)
    lab.wait(_HEARTBEAT_S)  # without an answered heartbeat a leader gives up at the first lost one
    c.kill()
    b.put("F", topic=topic)
    is_alone = is_alone and b.state()["end"] == index
    b.kill()
    if not is_alone:
        return None
    lab.start(a, c)
    lab.until(f"{a.name} counts E as committed", lambda: a.state()["committed"] == index and a.serves("E"))
    lab.until(f"{c.name} serves E", lambda: c.serves("E"))
    seen = f"{a.shown(index, ['E'])} was committed on {a.name} and {c.name} in term {a.state()['term']} and consumed"
    lab.note(f"entry {index}: {seen}")
    a.kill()
    b.start()
    lab.until(f"{c.name} has another entry {index}", lambda: c.shown(index, ["E", "F"]).startswith("F"))
    return _Replaced(b, c, index, seen)


def _a_committed_entry_is_replaced(lab: RaftLab) -> str | None:
    found = _figure_8(lab, "T")
    if found is None:
        return None
    now = found.follower.shown(found.index, ["E", "F"])
    return f"entry {found.index} {found.seen}; then {found.winner.name} led, and the entry is {now}"


def _a_queue_serves_another_topic(lab: RaftLab) -> str | None:
    found = _figure_8(lab, "U")
    if found is None:
        return None
    records = found.follower.messages()
    served = [record for record in records if b"<F>\x01U" in record]
    lab.note(f"{len(records)} messages in the queue of topic T on {found.follower.name}, {len(served)} of topic U")
    if not served:
        return None
    return (
        f"entry {found.index} {found.seen}; after its replacement by a message of topic U {found.follower.name} serves "
        "that in the queue of topic T"
    )


def _an_error_is_carried_out(lab: RaftLab) -> str | None:
    nodes = lab.group(3)
    a = lab.leader(*nodes)
    a.put("first")
    others = [node for node in nodes if node is not a]
    for node in others:
        node.stop()
    answer = a.put("X")
    for node in others:
        node.resume()
    lab.until("a consumer reads X", lambda: a.serves("X") or any(node.serves("X") for node in others), seconds=45)
    if answer["status"] == "PUT_OK":
        return None
    return f"a put was answered {answer['status']} after {answer['ms']} ms, and consumers read its message"


def _a_deposed_leader_answers(lab: RaftLab) -> str | None:
    nodes = lab.group(3)
    a = lab.leader(*nodes)
    a.put("first")
    others = [node for node in nodes if node is not a]
    a.stop()
    new = lab.leader(*others)
    answer = new.put("Y")
    lab.until("a consumer reads Y", lambda: new.serves("Y"))
    for node in others:
        node.stop()
    a.resume()
    state = a.state()
    is_stale = not a.serves("Y")
    lab.note(f"{a.name} is {state['role']} of term {state['term']}" + (", and a consumer does not read Y" * is_stale))
    for node in others:
        node.resume()
    if state["role"] != "LEADER" or not is_stale or answer["status"] != "PUT_OK":
        return None
    return (
        f"{new.name} answered a put PUT_OK in a later term; after that {a.name}, which had been stopped, says that it "
        f"leads term {state['term']} and serves its queue without the message"
    )


# ---- one member ------------------------------------------------------------------------------------------------------


def _a_changed_body_is_served(lab: RaftLab) -> str | None:
    (a,) = lab.group(1)
    lab.leader(a)
    for body in ("first", "changed", "third"):
        a.put(body)
    at = a.position(1) + a.ask("entries", begin=1, end=2)["entries"][0]["size"] - 6
    a.close()
    a.damage(at, b"X")
    a.start()
    lab.leader(a)
    lab.until("three messages are committed", lambda: a.state()["committed"] == 2 and a.state()["dispatched"])
    if len(a.messages()) != 3 or a.serves("changed"):
        return None
    return "a byte of a body was changed on the disk: the member starts, leads, and serves three messages, one changed"


def _cut_entries_come_back(lab: RaftLab) -> str | None:
    (a,) = lab.group(1)
    lab.leader(a)
    for number in range(10):
        a.put(f"old{number}")
    position = a.position(5)
    a.close()
    a.damage(position, _MAGIC)
    cut = a.start()["end"]
    lab.note(f"the recovery ends the log with entry {cut}")
    lab.leader(a)
    a.put("new5")
    a.close()
    end = a.start()["end"]
    shown = [a.shown(index, ["old5", "new5", "old6", "old9"]) for index in (5, 6, end)]
    lab.note(f"the log ends with entry {end}: entries 5, 6 and {end} are {', '.join(shown)}")
    if cut != 4 or end != 9:
        return None
    return (
        f"a recovery cut the log after entry {cut}; after one put and a restart it ends with {end}: {', '.join(shown)}"
    )


def _a_large_cut_ends_the_process(lab: RaftLab) -> str | None:
    (a,) = lab.group(1)
    lab.leader(a)
    a.fill(100)
    first = a.state()["written"] // FILE_BYTES * FILE_BYTES - 2 * FILE_BYTES  # where a recovery begins to read
    index = next(index for index in range(100) if a.position(index) > first)
    position = a.position(index)
    a.close()
    a.damage(position, _MAGIC)
    try:
        a.start()
    except PeerCrashed as error:
        return f"entry {index} at {position} is damaged, and the log has two more files: {error}"
    return None


def _queues_end_past_the_log(lab: RaftLab) -> str | None:
    (a,) = lab.group(1)
    lab.leader(a)
    for number in range(3):
        a.put(f"message {number}")
    lab.until("three messages are in the queue", lambda: a.state()["queue_end"] == 3)
    a.kill()
    state = a.start()
    lab.note(f"after the start: committed index {state['committed']}, max {state['max']}, queue {state['queue_end']}")
    if state["committed"] >= 2 or state["queue_end"] != 3:
        return None
    return (
        f"3 acknowledged messages; after a kill the member starts with committed index {state['committed']} and a log "
        f"up to {state['max']}, and its queue ends at {state['queue_end']}"
    )


def _another_status_hides_the_cause(lab: RaftLab) -> str | None:
    nodes = lab.group(3)
    leader = lab.leader(*nodes)
    answers = {node.name: node.put("X")["status"] for node in _others(nodes, leader)}
    if set(answers.values()) != {"OS_PAGECACHE_BUSY"}:
        return None
    return f"puts to members that do not lead are answered {', '.join(sorted(set(answers.values())))}"


def _others(nodes: Sequence[RaftNode], leader: RaftNode) -> list[RaftNode]:
    return [node for node in nodes if node is not leader]


_MODEL = "a schedule of `explore raft` (LB{}) shows it on our members; the Java member needs a crash in one step"
_LIVENESS = "it delays elections or answers; a schedule cannot tell that from a slow machine"

RAFT_HOLES = {
    hole.id: hole
    for hole in (
        RaftHole("L1", "a quorum acknowledges before any sync", "members count durable entries only",
                 _an_acknowledged_message_is_gone, ours=power_cut_of_a_follower),
        RaftHole("L2", "term and vote are not synced", "both are durable before a message", reason=_MODEL.format("02")),
        RaftHole("L3", "entries of earlier terms are counted as committed", "only entries of the leader's term are",
                 _a_committed_entry_is_replaced, ours=figure_8),
        RaftHole("L4", "an error is answered for an entry that may commit", "the status OUTCOME_UNKNOWN",
                 _an_error_is_carried_out),
        RaftHole("L5", "queue offsets advance at an append that is cut later", "queues have committed entries only",
                 reason="follows from L1: its schedule shows a queue offset that is given twice"),
        RaftHole("L6", "no entry has a checksum", "both fields are written and checked", _a_changed_body_is_served),
        RaftHole("L7", "a cut leaves its entries in the files", "they are erased", _cut_entries_come_back),
        RaftHole("L8", "a cut of more than a file ends the process", "an error names the entry",
                 _a_large_cut_ends_the_process),
        RaftHole("L9", "the committed index on the disk is up to 3 s old", "synced; queues above it are rebuilt",
                 _queues_end_past_the_log),
        RaftHole("L10", "queues are not cut with the log", "queues have committed entries only",
                 _a_queue_serves_another_topic),
        RaftHole("L11", "votes compare logs before terms", "terms first", reason=_LIVENESS),
        RaftHole("L12", "a failed batch append is not answered", "answered", reason=_LIVENESS),
        RaftHole("L13", "a batch is several entries", "kept, as the contract says", reason="it is no defect"),
        RaftHole("L14", "a repeated push is an error", "an append may be repeated", reason="it changes log lines only"),
        RaftHole("L15", "role changes run on another thread", "one step after the other",
                 reason="the code is in the broker, and the tests run its store alone"),
        RaftHole("L16", "timers use the wall clock", "time-outs are events",
                 reason="needs a step of the wall clock of a process"),
        RaftHole("L17", "a put to a follower hides the cause", "the status NOT_LEADER",
                 _another_status_hides_the_cause),
        RaftHole("L18", "old files are recovered as after a clean close", "they are not opened",
                 reason="needs a crash image of a plain log; `judge --peer` shows those"),
        RaftHole("L19", "a leader without a majority answers", "reads wait for a majority", _a_deposed_leader_answers),
        RaftHole("L20", "consumer offsets are outside of the log", "not built",
                 reason="the code is in the broker, and the tests run its store alone"),
    )
}  # fmt: skip
"""All defects by id."""


def raft_holes_named(ids: str) -> tuple[RaftHole, ...]:
    """Return the defects in a comma-separated list of ids, or all for an empty list.

    Raises KeyError.
    """
    wanted = [each.strip().upper() for each in ids.split(",") if each.strip()]
    return tuple(RAFT_HOLES[each] for each in wanted) or tuple(RAFT_HOLES.values())
