"""Run the store of a Raft member alone, whose puts and reads follow a scripted member.

Member 0 of three is scripted: each event changes its role, its commit end and its rounds as drawn, or raises. The Raft
log, the queues and the disk are real parts on a small disk, on which a chosen call may fail. The reference is a list of
the entries of the log, and of the puts and reads that wait:

| contract | what is judged |
|---|---|
| 8 | a put is answered PUT_OK once its entries are visible, in the event that makes them visible, else it waits |
| 8, 16 | an event that fails answers all puts and reads, and so do a lost role and a close; their outcome is unknown |
| 8 | an event asks the member once, returns its messages, and raises its error; after one that failed none is taken |
| 8 | a member that does not lead, has failed or is closed refuses puts, reads and saves |
| 16 | a put whose time is over is answered |
| 4 | a put gets the number after those of its queue in the log, also after a cut |
| 1, 15 | queues have the visible messages: at once for an answered read, else after a step of their service |
| 2, 15 | a close saves the visible end, unless the member has failed; a restart shows at least these messages |
| 8, 14 | a close leaves no file open and releases the directory; a second store in the directory is refused |

Source: the heads of impl/raft/raft_store.py and of impl/raft/raft_commit_log.py.
"""

import random
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.errors import StoreError, StoreInUse
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.message import BatchMember, Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.messages import Carried, Envelope, LeadNow
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.impl.raft.raft_store import Membership, RaftStore
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.lockstep.parts.part_disk import PartDisk
from tornpage.properties.program.hand_driven import HandDriven

__all__ = ["store_alone_holds", "store_program_holds"]

_PROGRAMS = 12
_EVENTS = 30
_DIRECTORY = "/part/s"
_TOPIC, _QUEUES = "T", 2
_TIMEOUT_MS = 50
_FAILING = 0.06
_NUMBER_AT = 20
"""Where a record has the number of its message in the queue, in docs/format.md."""
_CALLS_MAX = 8
_SERVICE_STEPS = 8
_CONFIG = MessageStoreConfig(
    mapped_file_size_commit_log=1_024, mapped_file_size_consume_queue=400, max_hash_slot_num=16, max_index_num=64,
    slave_timeout=_TIMEOUT_MS, time_zone="UTC",
)  # fmt: skip

Change = Literal["nothing", "lead", "lose", "commit", "confirm", "raise"]
_CHANGES: tuple[Change, ...] = ("nothing", "commit", "commit", "confirm", "confirm", "lose")
_CHANGES_OF_OTHERS: tuple[Change, ...] = ("nothing", "lead", "lead", "commit")
_ERRORS: tuple[type[Exception], ...] = (OSError, StoreError, ValueError)


class _Member:
    """A scripted member on the Raft log of its store.

    `script` is called once in each event. `rounds` counts the reads that were begun and not answered.
    """

    def __init__(self, me: int, members: int, log: RaftLog, hard_state: object, **_: object) -> None:
        self.me, self.members, self.log, self.hard_state = me, members, log, hard_state
        self.role, self.leader = "follower", None
        self.term = log.term_at(log.end - 1) if log.end else 1
        self.commit = self.rounds = 0
        self.calls: list[tuple[object, ...]] = []
        self.script: Callable[[], None] = lambda: None
        self._answered: list[int] = []

    @property
    def visible(self) -> int:
        """The end of the entries that readers may see."""
        return min(self.commit, self.log.synced)

    def propose(self, bodies: Iterable[bytes]) -> list[Envelope] | None:
        """Append entries of a leader."""
        if self.role != "leader":
            return None
        self.log.append([Carried(self.term, body) for body in bodies])
        return [Envelope(1, LeadNow(self.log.end))]

    def _event(self, name: str, *details: object) -> list[Envelope]:
        self.calls.append((name, *details))
        self.script()
        return [Envelope(len(self.calls), LeadNow(7))]

    def election_timeout(self) -> list[Envelope]:
        """Carry out the script."""
        return self._event("election_timeout")

    def heartbeat(self) -> list[Envelope]:
        """Carry out the script."""
        return self._event("heartbeat")

    def sync(self) -> list[Envelope]:
        """Carry out the script."""
        return self._event("sync")

    def receive(self, source: int, message: object) -> list[Envelope]:
        """Carry out the script."""
        return self._event("receive", source, message)

    def transfer(self, to: int) -> list[Envelope]:
        """Carry out the script."""
        return self._event("transfer", to)

    def read(self) -> list[Envelope] | None:
        """Begin a round of a leader."""
        self.calls.append(("read",))
        self.script()
        if self.role != "leader":
            return None
        self.rounds += 1
        return [Envelope(len(self.calls), LeadNow(7))]

    def confirm(self, count: int) -> None:
        """Answer the oldest rounds."""
        self._answered += [self.visible] * count
        self.rounds -= count

    def take_answered(self) -> list[int]:
        """Return the ends that the answered rounds may see."""
        answered, self._answered = self._answered, []
        return answered


@dataclass(slots=True)
class _Put:
    """A put: its answer, the place after its entries, and its number.

    `stated` is None as long as it waits.
    """

    answer: "Future[PutResult]"
    end: int
    number: int
    until_ms: int
    stated: PutStatus | None = None


def store_alone_holds() -> None:
    """Judge some drawn programs. Raises GuaranteeBroken."""
    for seed in range(_PROGRAMS):
        store_program_holds(seed)


def store_program_holds(seed: int) -> None:
    """Judge one drawn program. Raises GuaranteeBroken."""
    observed("the store of a member", _Program(random.Random(f"store {seed}")).run)


class _Program:
    """A drawn program of puts, reads, events, saves and restarts beside the reference.

    `_entries` has the queue and the body of each message in the log, and None for an entry without one. `_lost` are the
    reads that were given up, `_confirmed` counts those that the current event answers, and `_saved` is the saved end.
    `_kept` is the end of the last cut, which may have failed, until the next opening. `_tried`
    are ends whose save has failed, so that a restart may have them.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._now_ms = 5_000
        self._disk = PartDisk()
        self._entries: list[tuple[int, bytes] | None] = []
        self._puts: list[_Put] = []
        self._reads: list[Future[int | None]] = []
        self._lost: list[Future[int | None]] = []
        self._confirmed = 0
        self._kept: int | None = None
        self._saved = 0
        self._tried: list[int] = []
        self._leading: int | None = None
        self._has_failed = False
        self._count = 0
        self._services: list[HandDriven] = []
        self._sent: list[Envelope] = []
        self._members: list[_Member] = []
        self._raft: RaftStore

    def run(self) -> None:
        """Draw operations, and judge the store after each."""
        self._open()
        operations = (
            self._put, self._put, self._put, self._put_batch, self._read, self._read, *([self._event] * 6), self._save,
            self._pass_time, self._step, self._close,
        )  # fmt: skip
        for _ in range(_EVENTS):
            self._rng.choice(operations)()
            self._judge()
        self._close()
        self._step()
        self._judge_queues()
        self._raft.close()

    # ---- openings and ends ---------------------------------------------------------------------------------------

    def _runner(self, service: Service) -> HandDriven:
        self._services.append(HandDriven(service, lambda: self._now_ms))
        return self._services[-1]

    def _member_of(self, *arguments: Any, **options: Any) -> _Member:
        self._members.append(_Member(*arguments, **options))
        return self._members[-1]

    def _opened(self) -> RaftStore:
        return RaftStore.open(
            _DIRECTORY, _CONFIG, Membership(0, 3, index_file_bytes=1_024), files=self._disk,
            clock=lambda: self._now_ms, send=self._sent.extend,
            parts=Parts({ThreadRunner: self._runner, RaftMember: self._member_of}),
        )  # fmt: skip

    @property
    def _member(self) -> _Member:
        return self._members[-1]

    def _open(self) -> None:
        self._services.clear()
        self._raft = self._opened()
        self._leading, self._has_failed = None, False
        log = self._member.log
        found, kept = log.end, len(self._entries) if self._kept is None else self._kept
        _is("whether a log opens with its entries", kept <= found <= len(self._entries), True)
        del self._entries[found:]
        self._kept = None
        ends = {min(each, log.end) for each in (self._saved, *self._tried)}
        _is("whether an opening has a saved commit end", self._member.commit in ends, True)
        self._saved, self._tried = self._member.commit, []
        try:
            self._opened()
        except StoreInUse:
            return
        raise GuaranteeBroken(14, "a second store in the directory is opened", "StoreInUse")

    def _close(self) -> None:
        """Close the store twice, and open it again."""
        visible = self._member.visible
        self._state_given_up()
        self._raft.close()
        self._judge_answers()
        if not self._has_failed:
            self._saved, self._tried = max(self._saved, visible), []
        for call in (self._raft.sync, self._raft.begin_read, self._raft.save_commit_end):
            _is(
                "whether a closed member takes an event", _raised(call).partition(":")[0], "this member takes no events"
            )
        self._raft.close()
        _is("the open and mapped files of a closed store", self._disk.held, (0, 0))
        self._open()

    # ---- operations ----------------------------------------------------------------------------------------------

    def _may_fail(self) -> bool:
        """Let a call of the disk fail, rarely."""
        fails = self._rng.random() < _FAILING
        self._disk.failing_in = 1 + self._rng.randrange(_CALLS_MAX) if fails else 0
        return fails

    def _put(self) -> None:
        queue, size = self._rng.randrange(_QUEUES), self._rng.choice((1, 40, 200, 700))
        self._count += 1
        body = self._count.to_bytes(4, "big") + bytes(size)
        self._append(queue, [body], Message(_TOPIC, body, queue_id=queue, born_timestamp=1))

    def _put_batch(self) -> None:
        queue, bodies = self._rng.randrange(_QUEUES), list[bytes]()
        for _ in range(self._rng.randint(2, 4)):
            self._count += 1
            bodies.append(self._count.to_bytes(4, "big") + bytes(self._rng.choice((1, 100))))
        data = encode_batch_body([BatchMember(each) for each in bodies])
        self._append(queue, bodies, MessageBatch(_TOPIC, data, queue_id=queue, born_timestamp=1))

    def _append(self, queue: int, bodies: list[bytes], message: Message | MessageBatch) -> None:
        log, failed = self._member.log, self._disk.failed
        begin, number = log.end, sum(each is not None and each[0] == queue for each in self._entries)
        self._may_fail()
        self._sent.clear()
        answer = self._raft.store.put_async(message)
        self._disk.failing_in = 0
        appended = log.end - begin
        self._entries += [(queue, each) for each in bodies[:appended]]
        if self._has_failed or self._member.role != "leader":
            wanted = PutStatus.SERVICE_NOT_AVAILABLE if self._has_failed else PutStatus.NOT_LEADER
            _is("how a put is refused", (answer.result(0).status, appended), (wanted, 0))
            return
        if self._disk.failed != failed:
            status = answer.result(0).status
            _is("whether a put that failed is unknown", status is PutStatus.OUTCOME_UNKNOWN, appended > 0)
            _is("whether a put that failed is taken", status is PutStatus.PUT_OK, False)
            self._has_failed = appended > 0
            return
        _is("how many entries a put appends", appended, len(bodies))
        at, written = _NUMBER_AT, [log.body_at(place) for place in range(begin, log.end)]
        numbers = [int.from_bytes(each[at : at + 8], "big") for each in written]
        _is("the numbers of a put", numbers, list(range(number, number + appended)))
        _is("what a put sends", self._sent, [Envelope(1, LeadNow(log.end))])
        self._puts.append(_Put(answer, log.end, number, self._now_ms + _TIMEOUT_MS))

    def _read(self) -> None:
        """Begin a read, during which the member may lose its role or fail."""
        begun = self._carried_out(self._raft.begin_read, ("read",))
        if begun is None:
            return
        (found,) = begun
        if self._member.role != "leader":
            _is("a read of a member that does not lead", found, None)
            return
        _is("the messages of a read", found is not None and found[1], [Envelope(len(self._member.calls), LeadNow(7))])
        self._reads.append(found[0])

    def _event(self) -> None:
        calls: dict[str, tuple[Any, ...]] = {
            "election_timeout": (), "heartbeat": (), "sync": (), "receive": (2, LeadNow(3)), "transfer": (1,),
        }  # fmt: skip
        name = self._rng.choice(list(calls))
        begun = self._carried_out(lambda: getattr(self._raft, name)(*calls[name]), (name, *calls[name]))
        if begun is not None:
            _is(f"the messages of {name}", begun[0], [Envelope(len(self._member.calls), LeadNow(7))])

    def _carried_out(self, call: Callable[[], Any], asked: tuple[object, ...]) -> tuple[Any] | None:
        """Carry out an event, and state what it decides. Return its result, or None if it raises."""
        member, failed = self._member, self._disk.failed
        changes = _CHANGES if member.role == "leader" else _CHANGES_OF_OTHERS
        change = "raise" if self._rng.random() < _FAILING else self._rng.choice(changes)
        error = self._rng.choice(_ERRORS)("the script fails")
        if asked == ("read",) and change in ("lead", "lose", "confirm"):
            change = "nothing"  # a read changes no role
        member.script = lambda: self._change(change, error)
        calls, before = len(member.calls), self._has_failed
        self._may_fail()
        try:
            found = call()
        except Exception as raised:
            self._disk.failing_in = 0
            if before:
                _is("an event of a member that has failed", type(raised), OSError)
                _is("what a member that has failed is asked", member.calls[calls:], [])
                return None
            _is("what an event asks", member.calls[calls:], [asked])
            if raised is not error and self._disk.failed == failed:
                raise
            self._has_failed = True
            self._state_failed(is_certain=raised is error)
            return None
        self._disk.failing_in = 0
        _is("an event that fails and raises nothing", before or change == "raise", False)
        _is("what an event asks", member.calls[calls:], [asked])
        self._state_followed()
        return (found,)

    def _change(self, change: Change, error: Exception) -> None:
        """Change the member inside of an event."""
        member, rng = self._member, self._rng
        match change:
            case "lead" if member.role != "leader":
                member.role, member.term = "leader", member.term + 1
                member.log.append([Carried(member.term, b"")])
                self._entries.append(None)
            case "lose" if member.role == "leader":
                member.role, member.term, member.rounds = "follower", member.term + 1, 0
                if rng.random() < 0.5:
                    self._kept = end = rng.randint(member.commit, member.log.end)
                    member.log.cut(end)
                    del self._entries[end:]
                    self._kept = None
            case "commit":
                if rng.random() < 0.8:
                    member.log.sync()
                member.commit = rng.randint(member.commit, member.log.end)
            case "confirm" if member.rounds:
                member.log.sync()
                self._confirmed = rng.randint(1, member.rounds)
                member.confirm(self._confirmed)
            case "raise":
                if rng.random() < 0.3:
                    member.log.sync()
                    member.commit = rng.randint(member.commit, member.log.end)
                raise error

    def _save(self) -> None:
        """Save the visible end, which may fail."""
        failed, visible = self._disk.failed, self._member.visible
        self._may_fail()
        raised = _raised(self._raft.save_commit_end)
        self._disk.failing_in = 0
        _is("whether a save fails", bool(raised), self._has_failed or self._disk.failed != failed)
        if not raised:
            self._saved, self._tried = max(self._saved, visible), []
        elif not self._has_failed:
            self._tried.append(max(self._saved, visible))  # the file may be there already

    def _pass_time(self) -> None:
        self._now_ms += self._rng.choice((1, _TIMEOUT_MS - 1, _TIMEOUT_MS, _TIMEOUT_MS + 1))
        self._step()
        for each in self._puts:
            if each.until_ms <= self._now_ms and each.stated is None:
                each.stated = PutStatus.OUTCOME_UNKNOWN

    def _step(self) -> None:
        """Step each service that a thread would step."""
        for _ in range(_SERVICE_STEPS):
            for service in tuple(self._services):
                if not service.is_stopped and service.will_step(self._now_ms):
                    service.step()

    # ---- the reference -------------------------------------------------------------------------------------------

    def _state_followed(self) -> None:
        """State what the puts and reads follow after an event."""
        member = self._member
        leading = member.term if member.role == "leader" else None
        if self._leading not in (None, leading):
            self._state_given_up()
        self._leading = leading
        for each in self._puts:
            if each.end <= member.visible and each.stated is None:
                each.stated = PutStatus.PUT_OK
        for answer in self._reads[: self._confirmed]:
            _is("the answer to a read", answer.done() and answer.result(0), member.visible)
        if self._confirmed:
            self._reads = self._reads[self._confirmed :]
            self._judge_queue_ends()
        self._confirmed = 0

    def _state_given_up(self) -> None:
        """State that the outcome of all puts and reads that wait is unknown."""
        for each in self._puts:
            if each.stated is None:
                each.stated = PutStatus.OUTCOME_UNKNOWN
        self._lost += self._reads
        self._reads.clear()

    def _state_failed(self, *, is_certain: bool) -> None:
        """State that an event that fails answers all puts and reads.

        An event that fails after the member has committed entries may have answered their puts.
        """
        for each in self._puts:
            if each.stated is None:
                may_be_ok = not is_certain and each.end <= self._member.visible
                _is("whether a put is answered after an event that failed", each.answer.done(), True)
                is_ok = each.answer.result(0).status is PutStatus.PUT_OK
                each.stated = PutStatus.PUT_OK if may_be_ok and is_ok else PutStatus.OUTCOME_UNKNOWN
        for answer in self._reads:
            _is("whether a read is answered after an event that failed", answer.done(), True)
            _is("the answer to a read of an event that failed", answer.result(0), None)
        self._reads.clear()
        self._confirmed = 0

    # ---- judges --------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Judge answers and queues."""
        self._judge_answers()
        if not self._has_failed and self._rng.random() < 0.3:
            self._step()
            self._judge_queues()

    def _judge_answers(self) -> None:
        for each in self._puts:
            found = each.answer.result(0) if each.answer.done() else None
            _is("the answer to a put", found and found.status, each.stated)
            if found is not None and each.stated is PutStatus.PUT_OK:
                _is("the number of a put", found.queue_offset, each.number)
        self._puts = [each for each in self._puts if each.stated is None]
        given_up = [each.done() and each.result(0) for each in self._lost]
        _is("the answers to reads that were given up", given_up, [None] * len(given_up))
        self._lost.clear()
        _is("the reads that wait", [each.done() for each in self._reads], [False] * len(self._reads))

    def _visible(self, queue: int) -> list[bytes]:
        visible = self._entries[: self._member.visible]
        return [each[1] for each in visible if each is not None and each[0] == queue]

    def _judge_queue_ends(self) -> None:
        for queue in range(_QUEUES):
            found = self._raft.store.max_offset_in_queue(_TOPIC, queue)
            _is("the end of a queue", found, len(self._visible(queue)))

    def _judge_queues(self) -> None:
        """Judge the messages of each queue."""
        self._judge_queue_ends()
        for queue in range(_QUEUES):
            with self._raft.store.get_message(_TOPIC, queue, 0, max_msg_nums=1_000) as found:
                bodies = [bytes(each.message().body) for each in found.messages]
            wanted = self._visible(queue)
            _is("the messages of a queue", bodies, wanted[: len(bodies)] if bodies else wanted)


def _raised(call: Callable[[], object]) -> str:
    """Return the text of the OSError that a call raises, or an empty text."""
    try:
        call()
    except OSError as error:
        return str(error) or "an OSError without a text"
    return ""


def _is(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise GuaranteeBroken(8, f"{what} is another one", str(wanted)[:300], str(found)[:300])
