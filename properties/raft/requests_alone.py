"""Run the requests of clients alone: entries of a member, and reads of a store on its log.

The member, or the store, is scripted: it notes each call, and commits, confirms, refuses or fails as drawn. Clients ask
at any time. Some cancel, and some requests come while another thread steps or ends the member. The reference is written
from the head of impl/raft/entries.py, of impl/raft/store_application.py and of impl/raft/application.py:

| contract | what is judged |
|---|---|
| 8 | what the member is asked, in which order, and that each event returns the messages of the member |
| 8 | each request has one answer: its status, place and term, in the step in which it is decided |
| 8 | a request is refused for a long body, a full leader, a transfer, a lost role, or the end of the member |
| 16 | no request waits forever: its time ends, and neither a lost role nor the end of the member leaves one |
| 16 | each request wakes the node, and a request that waits is shown by `has_requests` |
"""

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.message import Message
from tornpage.impl.parts import Parts
from tornpage.impl.raft.answers import Answered, RaftStatus
from tornpage.impl.raft.entries import RaftEntries
from tornpage.impl.raft.messages import AppendAnswer, Envelope, LeadNow, VoteAnswer
from tornpage.impl.raft.settings import RaftSettings
from tornpage.impl.raft.store_application import StoreApplication
from tornpage.impl.service.runner import ThreadRunner
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.lockstep.parts.part_disk import PartDisk
from tornpage.properties.program.hand_driven import HandDriven

__all__ = ["request_programs_hold", "requests_alone_hold"]

_PROGRAMS = 24
_STEPS = 40
_PEERS = tuple(f"10.0.0.{each}:9000" for each in (1, 2, 3))
_ANSWER_MS = 50
_TIMES_MS = (0, 1, 9, 25, 49, 50, 51)
_BATCH_BYTES, _BODY_BYTES, _PENDING, _PENDING_BYTES = 24, 20, 5, 60
_PER_STEP = 1_024
_INDEX_BYTES = 157 * 32
_SAVE_MS = 3_000
_FAILS = 0.03

Call = tuple[object, ...]


@dataclass(slots=True)
class _Asked:
    """A request of a client, and what the reference states about it.

    `stated` is its answer, None as long as it waits. A cancelled request gets none.
    """

    answer: "Future[Answered]"
    body: bytes = b""
    place: int = -1
    term: int = -1
    until_ms: int = 0
    stated: Answered | None = None

    def decide(self, status: RaftStatus, place: int = -1, term: int = -1) -> None:
        """State the answer, unless it is stated already."""
        if self.stated is None:
            self.stated = Answered(status, place, term)


@dataclass
class _Member:
    """A scripted member.

    `calls` has what it was asked, `sent` what it has returned, and `failing` the name of a call that raises.
    """

    term: int = 1
    commit: int = 0
    transferee: int | None = None
    log: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(end=3))
    answered: list[int] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    sent: list[Envelope] = field(default_factory=list)
    failing: str = ""

    def note(self, name: str, *details: object) -> None:
        """Note a call, or let it fail."""
        self.calls.append((name, *details))
        if self.failing == name:
            raise OSError(f"{name} fails")

    def event(self, name: str, *details: object) -> list[Envelope]:
        """Note a call, and return a message that no other call returns."""
        self.note(name, *details)
        found = [Envelope(len(self.sent), LeadNow(7))]
        self.sent += found
        return found

    def propose(self, bodies: Sequence[bytes]) -> list[Envelope]:
        """Append entries."""
        found = self.event("propose", *bodies)
        self.log.end += len(bodies)
        return found

    def read(self) -> list[Envelope]:
        """Begin a round."""
        return self.event("read")

    def take_answered(self) -> list[int]:
        """Return the ends of confirmed rounds."""
        answered, self.answered = self.answered, []
        return answered

    def election_timeout(self) -> list[Envelope]:
        """Note the call."""
        return self.event("election_timeout")

    def heartbeat(self) -> list[Envelope]:
        """Note the call."""
        return self.event("heartbeat")

    def sync(self) -> list[Envelope]:
        """Note the call."""
        return self.event("sync")

    def receive(self, source: int, message: object) -> list[Envelope]:
        """Note the call."""
        return self.event("receive", source, message)

    def transfer(self, to: int) -> list[Envelope]:
        """Note the call."""
        return self.event("transfer", to)


@dataclass
class _Course:
    """What a program and its reference share.

    `pace` is the probability of a change in a step, and `asked` has all requests.
    """

    rng: random.Random
    now_ms: int
    pace: float
    asked: list[_Asked] = field(default_factory=list)

    def happens(self, share: float) -> bool:
        """Draw whether something happens."""
        return self.rng.random() < share


def requests_alone_hold() -> None:
    """Judge some drawn programs. Raises GuaranteeBroken."""
    observed("a step of many appends", _many_appends_hold)
    observed("a store of a member", _store_of_member_holds)
    for seed in range(_PROGRAMS):
        request_programs_hold(seed)


def request_programs_hold(seed: int) -> None:
    """Judge one drawn program of entries and one of a store. Raises GuaranteeBroken."""
    observed("entries of a member", _Program(random.Random(f"entries {seed}"), _Entries).run)
    observed("reads of a store", _Program(random.Random(f"reads {seed}"), _Reads).run)


# ---- a program -------------------------------------------------------------------------------------------------------


class _Program:
    """A drawn program of requests, steps and ends.

    A step begins requests or refuses them, lets the member change as drawn, and answers. `_subject` has the application
    with its scripted member, and states what each call has to do.
    """

    def __init__(self, rng: random.Random, subject_of: "type[_Entries] | type[_Reads]") -> None:
        self._course = _Course(rng, now_ms=rng.choice((0, 5_000)), pace=rng.choice((0.1, 0.5)))
        self._subject = subject_of(self._course, self._wake)
        self._is_stopped = False
        self._wakes: list[bool] = []
        self._in_wake: Callable[[], None] | None = None

    def run(self) -> None:
        """Draw requests and steps, then end the member."""
        for _ in range(_STEPS):
            self._ask_some()
            self._cancel()
            if self._course.happens(0.2):
                self._delegate()
            if self._is_stopped or not self._step():
                break
        self._ask_some()
        self._stop()
        for _ in range(2):
            self._ask()
        self._stop()

    def _ask_some(self) -> None:
        for _ in range(self._course.rng.choice((0, 1, 1, 2, 6))):
            self._ask()

    def _wake(self) -> None:
        """Note whether requests wait at the call. Another thread may end the member here."""
        self._wakes.append(bool(self._subject.application.has_requests))
        if self._in_wake is not None:
            act, self._in_wake = self._in_wake, None
            act()

    def _ask(self) -> None:
        """Let a client ask, perhaps while the member ends."""
        self._wakes.clear()
        is_last = self._course.happens(0.01) and not self._is_stopped
        if is_last:
            self._in_wake = self._stop_unjudged
        self._subject.request()
        wakes = self._wakes[:1] if is_last else self._wakes  # clients ask again at the end
        _is("whether a node that is woken finds a request", wakes, [True])
        if self._is_stopped:
            self._subject.refuse(RaftStatus.STOPPED)
        self._judge()

    def _cancel(self) -> None:
        if self._course.asked and self._course.happens(0.15):
            self._course.rng.choice(self._course.asked).answer.cancel()

    def _delegate(self) -> None:
        """Let an event happen: the member gets it, and its messages are returned."""
        details: dict[str, Call] = {
            "election_timeout": (), "heartbeat": (), "sync": (), "receive": (2, VoteAnswer(3, True)), "transfer": (1,),
        }  # fmt: skip
        name = self._course.rng.choice(list(details))
        member = self._subject.member
        member.calls.clear()
        begin = len(member.sent)
        found = getattr(self._subject.application, name)(*details[name])
        _is(f"what {name} returns", found, member.sent[begin:])
        _is(f"what {name} asks", member.calls, [(name, *details[name])])

    def _step(self) -> bool:
        """Do one step; return whether the member goes on."""
        course, subject, member = self._course, self._subject, self._subject.member
        course.now_ms += course.rng.choice(_TIMES_MS) if course.happens(course.pace) else 1
        statuses = (RaftStatus.NOT_LEADER, RaftStatus.NO_MAJORITY)
        refusal = course.rng.choice(statuses) if course.happens(course.pace) else None
        member.failing = course.rng.choice(("propose", "read")) if course.happens(_FAILS) else ""
        member.calls.clear()
        begin = len(member.sent)
        wanted = subject.state_begin(refusal)
        try:
            sent = subject.application.begin_requests(course.now_ms, refusal)
        except OSError as error:
            _is("the failure of a step", str(error), f"{member.failing} fails")
            _is("what a step that fails asks", member.calls, wanted)
            return False
        _is("what a step asks", member.calls, wanted)
        _is("the messages of a step", list(sent), [*subject.sent_by_puts, *member.sent[begin:]])
        self._judge()
        subject.change()
        if course.happens(course.pace / 3):
            subject.application.lose_role()
            subject.state_lost_role()
            self._judge()
        goes_on = subject.answer()
        self._judge()
        return goes_on

    def _stop_unjudged(self) -> None:
        """End the member. Some clients ask again as soon as they are answered."""
        if not self._is_stopped:
            for each in self._course.asked:
                if each.stated is None and self._course.happens(0.3):
                    each.answer.add_done_callback(lambda _: self._ask_again())
        self._subject.application.stop()
        self._subject.state_stop()
        self._is_stopped = True

    def _ask_again(self) -> None:
        answer = self._subject.application.read()
        self._course.asked.append(_Asked(answer, stated=Answered(RaftStatus.STOPPED)))

    def _stop(self) -> None:
        self._stop_unjudged()
        self._judge()
        _is("the requests that wait after the end", [each for each in self._course.asked if not each.answer.done()], [])

    def _judge(self) -> None:
        """Judge each request: its answer, or that it waits. Judge also what the application shows."""
        for each in self._course.asked:
            if not each.answer.cancelled():
                found = each.answer.result(0) if each.answer.done() else None
                _is("the answer to a request", found, each.stated)
        self._subject.judge()


# ---- entries ---------------------------------------------------------------------------------------------------------


class _Entries:
    """Appends and reads of entries beside their reference.

    `_appends` and `_reads` wait for a step. `_begun` are the appended entries without an answer, and `_rounds` the
    reads of each round that is not confirmed.
    """

    sent_by_puts: Sequence[Envelope] = ()

    def __init__(self, course: _Course, wake: Callable[[], None]) -> None:
        self.member = _Member()
        self._course = course
        self._settings = _settings(
            body_bytes_max=_BODY_BYTES, batch_bytes_max=course.rng.choice((_BATCH_BYTES, 1_000)),
            pending_max=_PENDING, pending_bytes_max=course.rng.choice((_PENDING_BYTES, 1_000)),
        )  # fmt: skip
        self.application = RaftEntries(cast(Any, self.member), self._settings, wake)
        self._appends: list[_Asked] = []
        self._reads: list[_Asked] = []
        self._begun: list[_Asked] = []
        self._rounds: list[list[_Asked]] = []
        _is("an empty body", _raises(lambda: self.application.append(b"")), "ValueError")

    def request(self) -> None:
        """Ask for an entry, or for a read."""
        if self._course.happens(0.7):
            body = bytes(self._course.rng.choice(self._sizes()))
            asked = _Asked(self.application.append(body), body)
            self._appends.append(asked)
        else:
            asked = _Asked(self.application.read())
            self._reads.append(asked)
        self._course.asked.append(asked)

    def _sizes(self) -> list[int]:
        """Return sizes of bodies.

        Some reach a limit of a batch or of the leader exactly, or pass it by one byte.
        """
        waiting = _bytes_of(self._appends)
        rests = self._settings.batch_bytes_max - waiting, self._settings.pending_bytes_max - _bytes_of(self._begun)
        exact = [size for rest in (*rests, rests[1] - waiting) for size in (rest, rest + 1)]
        fixed = [1, 2, 4, 12, 12, _BODY_BYTES - 1, _BODY_BYTES, _BODY_BYTES + 1]
        return [*fixed, *(each for each in exact if 0 < each <= _BODY_BYTES)]

    def refuse(self, status: RaftStatus) -> None:
        """State that all requests that were not begun are refused."""
        for each in (*self._appends, *self._reads):
            each.decide(status)
        self._appends.clear()
        self._reads.clear()

    def judge(self) -> None:
        """Judge which requests are shown to wait for a step, and how many entries for an answer."""
        waits = any(each.stated is None for each in (*self._appends, *self._reads))
        _is("whether requests wait", bool(self.application.has_requests), waits)
        _is("how many entries wait", self.application.waiting, len(self._begun))

    def state_begin(self, refusal: RaftStatus | None) -> list[Call]:
        """State which entries are appended as one batch, and that all reads are one round.

        Return the calls of the member.
        """
        if refusal is not None:
            self.refuse(refusal)
            return []
        calls: list[Call] = []
        batch: list[_Asked] = []
        while self._appends and _bytes_of(batch) < self._settings.batch_bytes_max:
            each = self._appends.pop(0)
            waiting = [*self._begun, *batch]
            if len(each.body) > _BODY_BYTES:
                each.decide(RaftStatus.TOO_LARGE)
            elif (
                self.member.transferee is not None
                or len(waiting) == _PENDING
                or _bytes_of(waiting) + len(each.body) > self._settings.pending_bytes_max
            ):
                each.decide(RaftStatus.BUSY)
            else:
                batch.append(each)
        for at, each in enumerate(batch):
            each.place, each.term = self.member.log.end + at, self.member.term
            each.until_ms = self._course.now_ms + _ANSWER_MS
        self._begun += batch
        if batch:
            calls.append(("propose", *(each.body for each in batch)))
            if self.member.failing == "propose":
                return calls
        if self._reads:
            calls.append(("read",))
            for each in self._reads:
                each.until_ms = self._course.now_ms + _ANSWER_MS
            self._rounds.append(self._reads)
            self._reads = []
        return calls

    def change(self) -> None:
        """Let the member commit entries, confirm rounds, or transfer its role."""
        course, member = self._course, self.member
        if course.happens(course.pace):
            member.commit = course.rng.randint(member.commit, member.log.end)
        if course.happens(0.4):
            count = course.rng.randint(0, len(self._rounds))
            member.answered += [course.rng.randint(0, member.log.end) for _ in range(count)]
        member.transferee = 1 if course.happens(0.15) else None

    def answer(self) -> bool:
        """Let the application answer, and state the answers; return whether the member goes on.

        Committed entries, confirmed rounds and late requests are answered.
        """
        confirmed = list(self.member.answered)
        self.application.answer(self._course.now_ms)
        for each in self._begun:
            if each.place < self.member.commit:
                each.decide(RaftStatus.OK, each.place, each.term)
            elif each.until_ms <= self._course.now_ms:
                each.decide(RaftStatus.UNKNOWN)
        self._begun = [each for each in self._begun if each.stated is None]
        for end in confirmed:
            for each in self._rounds.pop(0):
                each.decide(RaftStatus.OK, end, self.member.term)
        for each in (each for round_ in self._rounds for each in round_):
            if each.until_ms <= self._course.now_ms:
                each.decide(RaftStatus.NO_MAJORITY)
        return True

    def state_lost_role(self) -> None:
        """State that begun entries are unknown, and begun reads are refused.

        The next role has another term.
        """
        for each in self._begun:
            each.decide(RaftStatus.UNKNOWN)
        for each in (each for round_ in self._rounds for each in round_):
            each.decide(RaftStatus.NOT_LEADER)
        self._begun.clear()
        self._rounds.clear()
        _is("the rounds that a lost role leaves", self.member.answered, [])
        self.member.term += 1

    def state_stop(self) -> None:
        """State that begun requests end as with a lost role, and that others are refused."""
        self.state_lost_role()
        self.refuse(RaftStatus.STOPPED)


def _bytes_of(asked: Sequence[_Asked]) -> int:
    return sum(len(each.body) for each in asked)


def _many_appends_hold() -> None:
    """Contract 8: let a step begin as many entries as it takes, and the next one the others."""
    member = _Member()
    entries = RaftEntries(cast(Any, member), _settings(), lambda: None)
    asked = [entries.append(b"x") for _ in range(_PER_STEP + 6)]
    for wanted in (_PER_STEP, 6):
        member.calls.clear()
        entries.begin_requests(0, None)
        _is("how many entries a step begins", len(member.calls[0]) - 1, wanted)
    member.commit = member.log.end
    entries.answer(1)
    _is("the places of many entries", [each.result(0).place for each in asked], list(range(3, 3 + len(asked))))


# ---- reads of a store ------------------------------------------------------------------------------------------------


class _Raft(_Member):
    """A scripted store of a member. `leads` says of each next read whether it is begun."""

    def __init__(self) -> None:
        super().__init__()
        self.leads: list[bool] = []
        self.ends: list[Future[int | None]] = []

    def begin_read(self) -> "tuple[Future[int | None], list[Envelope]] | None":
        """Begin a read, or refuse it."""
        if self.leads and not self.leads.pop(0):
            self.note("read")
            return None
        sent = self.event("read")
        self.ends.append(Future())
        return self.ends[-1], sent

    def save_commit_end(self) -> None:
        """Note the call, or fail."""
        self.note("save")


class _Reads:
    """Reads of a store, and messages of its puts, beside their reference.

    `_asked` wait for a step. `_begun` are the reads that were begun, in the order of the ends of `member`.
    """

    def __init__(self, course: _Course, wake: Callable[[], None]) -> None:
        self.member = _Raft()
        self.sent_by_puts: Sequence[Envelope] = ()
        self._course = course
        self.application = _application(PartDisk(), wake, course)
        self.application.close()
        self.application._raft = self.member  # the store is judged elsewhere; this one is scripted
        self._asked: list[_Asked] = []
        self._begun: list[_Asked] = []
        self._puts: list[Envelope] = []
        self._save_ms = 0
        self._is_over = False

    def request(self) -> None:
        """Ask for a read, or let a put send messages."""
        if not self._is_over and self._course.happens(0.3):
            count = self._course.rng.choice((1, 2))
            made = [Envelope(100 + len(self._puts) + at, LeadNow(9)) for at in range(count)]
            self._puts += made
            self.application._send(made)
            return
        asked = _Asked(self.application.read())
        self._course.asked.append(asked)
        self._asked.append(asked)

    def judge(self) -> None:
        """Judge whether messages of puts, or reads, are shown as long as they wait for a step."""
        waits = bool(self._puts) or any(each.stated is None for each in self._asked)
        _is("whether messages of puts or reads wait", bool(self.application.has_requests), waits)

    def refuse(self, status: RaftStatus) -> None:
        """State that all reads that were not begun are refused."""
        for each in self._asked:
            each.decide(status)
        self._asked.clear()

    def state_begin(self, refusal: RaftStatus | None) -> list[Call]:
        """State which reads are begun, and that the messages of puts come first.

        A store that leads no more refuses the others. Return its calls.
        """
        self.sent_by_puts, self._puts = self._puts, []
        leads = self.member.leads = [not self._course.happens(0.15) for _ in self._asked]
        if refusal is not None:
            self.refuse(refusal)
        calls: list[Call] = []
        for is_begun in tuple(leads):
            if not self._asked:
                break
            calls.append(("read",))
            if self.member.failing == "read":
                break
            if not is_begun:
                self.refuse(RaftStatus.NOT_LEADER)
                break
            each = self._asked.pop(0)
            each.until_ms = self._course.now_ms + _ANSWER_MS
            self._begun.append(each)
        return calls

    def change(self) -> None:
        """Let the store confirm or refuse reads."""
        for each in self.member.ends:
            if not each.done() and self._course.happens(0.4):
                each.set_result(self._course.rng.choice((None, 0, 1, 77)))

    def answer(self) -> bool:
        """Let the application answer, and state the answers; return whether the member goes on.

        Confirmed, refused and late reads are answered. The end of the commits is saved when it is due, which may fail.
        """
        course = self._course
        course.now_ms += course.rng.choice((0, 0, 0, _SAVE_MS - 60, _SAVE_MS, _SAVE_MS + 1))
        self.member.failing = "save" if course.happens(_FAILS) else ""
        self.member.calls.clear()
        is_due = course.now_ms >= self._save_ms
        if is_due:
            self._save_ms = course.now_ms + _SAVE_MS
        fails = is_due and self.member.failing == "save"
        found = _raises(lambda: self.application.answer(course.now_ms))
        _is("how answers end", found, "OSError" if fails else "")
        _is("what answers ask", self.member.calls, [("save",)] * is_due)
        for each, end in zip(self._begun, self.member.ends, strict=True):
            if end.done():
                confirmed = end.result(0)
                if confirmed is None:
                    each.decide(RaftStatus.NOT_LEADER)
                else:
                    each.decide(RaftStatus.OK, confirmed)
            elif each.until_ms <= course.now_ms:
                each.decide(RaftStatus.NO_MAJORITY)
        return not fails

    def state_lost_role(self) -> None:
        """State nothing: the store answers its reads itself."""

    def state_stop(self) -> None:
        """State that all reads end with the member, and that its store sends no more puts."""
        self._is_over = True
        for each in self._begun:
            each.decide(RaftStatus.STOPPED)
        self.refuse(RaftStatus.STOPPED)


def _application(disk: PartDisk, wake: Callable[[], None], time: Any) -> Any:
    """Return the application of member 1 of three, whose services do nothing by themselves."""
    config = MessageStoreConfig(
        mapped_file_size_commit_log=4_096, mapped_file_size_consume_queue=400, max_hash_slot_num=16, max_index_num=64
    )  # fmt: skip
    return StoreApplication(
        "/s", 1, config, _settings(batch_bytes_max=1_400, index_file_bytes=_INDEX_BYTES), files=disk,
        clock=lambda: int(time.now_ms), parts=Parts({ThreadRunner: lambda service: HandDriven(service, lambda: 0)}),
        wake=wake,
    )  # fmt: skip


def _store_of_member_holds() -> None:
    """Contracts 8 and 15: judge how the store of a member is made, and that its close ends it."""
    disk = PartDisk()
    wakes: list[int] = []
    made = _application(disk, lambda: wakes.append(1), SimpleNamespace(now_ms=0))
    member = made.member
    _is("the place of a member", (member.me, member.members, member.term), (1, 3, 0))
    made.election_timeout()
    made.receive(0, VoteAnswer(1, True))
    _is("the role of a member with two votes", (member.role, made.has_requests), ("leader", False))
    for other in (0, 2):
        made.receive(other, AppendAnswer(1, True, 1, 0))
    entries = []
    for at, size in enumerate((3_000, 3_000, 500, 500, 500)):
        pending = made.store.put_async(Message("T", bytes([at]) * size))
        _is("how often puts wake the node", (len(wakes), made.has_requests, pending.done()), (at + 1, True, False))
        entries.append(member.log.entries(1 + at, 1 << 20)[0])
    member.take_answered()
    sent = made.begin_requests(0, None)
    _is("the receivers of puts", [each.to for each in sent], [0, 2] * len(entries))
    begins = [(each.message.begin, list(each.message.entries)) for each in sent[-2:]]
    _is("the entries that a leader sends at once", begins, [(1, entries[:1])] * 2)
    made.receive(0, AppendAnswer(1, True, 3, 0))
    (sent_on,) = made.heartbeat()[:1]
    _is("the entries of one message", list(sent_on.message.entries), entries[2:4])
    made.sync()
    units = sorted(len(data) for path, data in disk.content.items() if "/index/" in path)
    _is("the index files of a member", units, [_INDEX_BYTES])
    read = made.read()
    made.begin_requests(0, None)
    made.stop()
    _is("the answer to a read at the end", (read.done() and read.result(0).status), RaftStatus.STOPPED)
    made.close()
    made.close()
    _is("the open files of a closed store", disk.held[0], 0)
    _application(disk, lambda: None, SimpleNamespace(now_ms=0)).close()


def _settings(**changes: Any) -> RaftSettings:
    return RaftSettings(_PEERS, answer_timeout=_ANSWER_MS, **changes)


def _raises(call: Callable[[], object]) -> str:
    """Return the name of the error that a call raises, or an empty text."""
    try:
        call()
    except (ValueError, OSError) as error:
        return type(error).__name__
    return ""


def _is(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise GuaranteeBroken(8, f"{what} is another one", str(wanted)[:300], str(found)[:300])
