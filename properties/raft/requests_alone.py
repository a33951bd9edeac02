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
        """State the answer."""
        if self.stated is None:
            self.stated = Answered(status, place, term)


@dataclass
class _Member:
    """A scripted member.

    `calls` has what it was asked, and `failing` the name of a call that raises.
    """

    term: int = 1
    commit: int = 0
    transferee: int | None = None
    log: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(end=3))
    answered: list[int] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    sent: list[Envelope] = field(default_factory=list)
    failing: str = ""

    def event(self, name: str, *details: object) -> list[Envelope]:
        """Note a call, and return messages that no other call returns."""
        self.calls.append((name, *details))
        if self.failing == name:
            raise OSError(f"{name} fails")
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


def requests_alone_hold() -> None:
    """Judge some drawn programs. Raises GuaranteeBroken."""
    observed("a step of many appends", _many_appends_hold)
    observed("a store of a member", _store_of_member_holds)
    for seed in range(_PROGRAMS):
        request_programs_hold(seed)


def request_programs_hold(seed: int) -> None:
    """Judge one drawn program of entries and one of a store. Raises GuaranteeBroken."""
    observed("entries of a member", _Entries(random.Random(f"entries {seed}")).run)
    observed("reads of a store", _Reads(random.Random(f"reads {seed}")).run)


# ---- both programs ---------------------------------------------------------------------------------------------------


class _Program:
    """A drawn program of requests, steps and ends.

    A step begins requests or refuses them, lets the member change as drawn, and answers. `asked` has all requests.
    """

    application: Any

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now_ms = rng.choice((0, 5_000))
        self.asked: list[_Asked] = []
        self.member = _Member()
        self.is_stopped = False
        self.pace = rng.choice((0.1, 0.5))
        self._wakes: list[bool] = []
        self._in_wake: Callable[[], None] | None = None

    def run(self) -> None:
        """Draw requests and steps, then end the member."""
        for _ in range(_STEPS):
            self._ask_some()
            self._cancel()
            if self.rng.random() < 0.2:
                self._delegate()
            if self.is_stopped or not self._step():
                break
        self._ask_some()
        self._stop()
        for _ in range(2):
            self.ask()
            self.judge()
        self._stop()

    def _ask_some(self) -> None:
        for _ in range(self.rng.choice((0, 1, 1, 2, 6))):
            self.ask()

    def wake(self) -> None:
        """Note whether requests wait at the call. Another thread may end the member here."""
        self._wakes.append(bool(self.application.has_requests))
        if self._in_wake is not None:
            act, self._in_wake = self._in_wake, None
            act()

    def ask(self) -> None:
        """Let a client ask, perhaps while the member ends."""
        self._wakes.clear()
        is_last = self.rng.random() < 0.01 and not self.is_stopped
        if is_last:
            self._in_wake = self._stop_unjudged
        self.request()
        wakes = self._wakes[:1] if is_last else self._wakes  # clients ask again at the end
        _is("whether a node that is woken finds a request", wakes, [True])
        if self.is_stopped:
            self.refuse(RaftStatus.STOPPED)
        self.judge()

    def request(self) -> None:
        """Ask once."""
        raise NotImplementedError

    def _cancel(self) -> None:
        if self.asked and self.rng.random() < 0.15:
            self.rng.choice(self.asked).answer.cancel()

    def _delegate(self) -> None:
        """Let an event happen: the member gets it, and its messages are returned."""
        details: dict[str, Call] = {
            "election_timeout": (), "heartbeat": (), "sync": (), "receive": (2, VoteAnswer(3, True)), "transfer": (1,),
        }  # fmt: skip
        name = self.rng.choice(list(details))
        self.member.calls.clear()
        begin = len(self.member.sent)
        found = getattr(self.application, name)(*details[name])
        _is(f"what {name} returns", found, self.member.sent[begin:])
        _is(f"what {name} asks", self.member.calls, [(name, *details[name])])

    def _step(self) -> bool:
        """Do one step; return whether the member goes on."""
        rng = self.rng
        self.now_ms += rng.choice(_TIMES_MS) if rng.random() < self.pace else 1
        refusal = rng.choice((RaftStatus.NOT_LEADER, RaftStatus.NO_MAJORITY)) if rng.random() < self.pace else None
        self.member.failing = rng.choice(("propose", "read")) if rng.random() < _FAILS else ""
        self.member.calls.clear()
        begin = len(self.member.sent)
        wanted = self.state_begin(refusal)
        try:
            sent = self.application.begin_requests(self.now_ms, refusal)
        except OSError as error:
            _is("the failure of a step", str(error), f"{self.member.failing} fails" if self.member.failing else "none")
            _is("what a step that fails asks", self.member.calls, wanted)
            return False
        _is("what a step asks", self.member.calls, wanted)
        self.judge_sent(list(sent), self.member.sent[begin:])
        self.judge()
        self.change()
        if rng.random() < self.pace / 3:
            self.application.lose_role()
            self.state_lost_role()
            self.judge()
        return self.answer()

    def judge_sent(self, sent: list[Envelope], wanted: list[Envelope]) -> None:
        """Judge the messages of a step."""
        _is("the messages of a step", sent, wanted)

    def answer(self) -> bool:
        """Let the application answer; return whether the member goes on."""
        self.application.answer(self.now_ms)
        self.state_answers()
        self.judge()
        return True

    def _stop_unjudged(self) -> None:
        """End the member. Some clients ask again as soon as they are answered."""
        if not self.is_stopped:
            for each in [each for each in self.asked if each.stated is None and self.rng.random() < 0.3]:
                each.answer.add_done_callback(lambda _: self._ask_again())
        self.application.stop()
        self.state_stop()
        self.is_stopped = True

    def _ask_again(self) -> None:
        answer = self.application.read()
        self.asked.append(_Asked(answer, stated=Answered(RaftStatus.STOPPED)))

    def _stop(self) -> None:
        self._stop_unjudged()
        self.judge()
        _is("the requests that wait after the end", [each for each in self.asked if not each.answer.done()], [])

    def judge(self) -> None:
        """Judge each request: its answer, or that it waits."""
        for each in self.asked:
            if not each.answer.cancelled():
                found = each.answer.result(0) if each.answer.done() else None
                _is("the answer to a request", found, each.stated)
        waits = any(each.stated is None for each in self.unbegun())
        _is("whether requests wait", self.has_requests(), waits)

    def has_requests(self) -> bool:
        """Return what the application shows."""
        return bool(self.application.has_requests)

    # ---- the reference -------------------------------------------------------------------------------------------

    def unbegun(self) -> list[_Asked]:
        """Return the requests that no step has begun, in order."""
        raise NotImplementedError

    def refuse(self, status: RaftStatus) -> None:
        """State that all requests that were not begun are refused."""
        raise NotImplementedError

    def state_begin(self, refusal: RaftStatus | None) -> list[Call]:
        """State what a step begins or refuses, and return the calls of the member."""
        raise NotImplementedError

    def change(self) -> None:
        """Let the member change as drawn."""
        raise NotImplementedError

    def state_answers(self) -> None:
        """State which requests are answered at the end of a step."""
        raise NotImplementedError

    def state_lost_role(self) -> None:
        """State which requests a lost role answers."""
        raise NotImplementedError

    def state_stop(self) -> None:
        """State that the end of the member answers all requests."""
        raise NotImplementedError


# ---- entries ---------------------------------------------------------------------------------------------------------


class _Entries(_Program):
    """Appends and reads of entries."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._settings = _settings(
            body_bytes_max=_BODY_BYTES, batch_bytes_max=rng.choice((_BATCH_BYTES, 1_000)),
            pending_max=_PENDING, pending_bytes_max=rng.choice((_PENDING_BYTES, 1_000)),
        )  # fmt: skip
        self.application = RaftEntries(cast(Any, self.member), self._settings, self.wake)
        self._appends: list[_Asked] = []
        self._reads: list[_Asked] = []
        self._begun: list[_Asked] = []
        self._rounds: list[list[_Asked]] = []
        _is("an empty body", _raises(lambda: self.application.append(b"")), "ValueError")

    def request(self) -> None:
        """Ask for an entry, or for a read."""
        made = self._appends if self.rng.random() < 0.7 else self._reads
        if made is self._appends:
            body = bytes(self.rng.choice((1, 2, 4, 12, 12, _BODY_BYTES - 1, _BODY_BYTES, _BODY_BYTES + 1)))
            asked = _Asked(self.application.append(body), body)
        else:
            asked = _Asked(self.application.read())
        made.append(asked)
        self.asked.append(asked)

    def unbegun(self) -> list[_Asked]:
        """Return appends and reads that wait for a step."""
        return [*self._appends, *self._reads]

    def refuse(self, status: RaftStatus) -> None:
        """State that all requests that were not begun are refused."""
        for each in self.unbegun():
            each.decide(status)
        self._appends.clear()
        self._reads.clear()

    def judge(self) -> None:
        """Judge the number of entries that wait as well."""
        super().judge()
        _is("how many entries wait", self.application.waiting, len(self._begun))

    def state_begin(self, refusal: RaftStatus | None) -> list[Call]:
        """State which entries are appended as one batch, and that all reads are one round."""
        if refusal is not None:
            self.refuse(refusal)
            return []
        calls: list[Call] = []
        batch: list[_Asked] = []
        while self._appends and sum(len(each.body) for each in batch) < self._settings.batch_bytes_max:
            each = self._appends.pop(0)
            waiting = [*self._begun, *batch]
            waiting_bytes = sum(len(other.body) for other in waiting)
            if len(each.body) > _BODY_BYTES:
                each.decide(RaftStatus.TOO_LARGE)
            elif (
                self.member.transferee is not None
                or len(waiting) == _PENDING
                or waiting_bytes + len(each.body) > self._settings.pending_bytes_max
            ):
                each.decide(RaftStatus.BUSY)
            else:
                batch.append(each)
        for at, each in enumerate(batch):
            each.place, each.term = self.member.log.end + at, self.member.term
            each.until_ms = self.now_ms + _ANSWER_MS
        self._begun += batch
        if batch:
            calls.append(("propose", *(each.body for each in batch)))
            if self.member.failing == "propose":
                return calls
        if self._reads:
            calls.append(("read",))
            for each in self._reads:
                each.until_ms = self.now_ms + _ANSWER_MS
            self._rounds.append(self._reads)
            self._reads = []
        return calls

    def change(self) -> None:
        """Let the member commit entries, confirm rounds, transfer its role, or enter a term."""
        rng, member = self.rng, self.member
        if rng.random() < self.pace:
            member.commit = rng.randint(member.commit, member.log.end)
        if rng.random() < 0.4:
            count = rng.randint(0, len(self._rounds))
            member.answered += [rng.randint(0, member.log.end) for _ in range(count)]
        member.transferee = 1 if rng.random() < 0.15 else None

    def state_answers(self) -> None:
        """State the answers of committed entries, confirmed rounds, and late requests."""
        for each in self._begun:
            if each.place < self.member.commit:
                each.decide(RaftStatus.OK, each.place, each.term)
            elif each.until_ms <= self.now_ms:
                each.decide(RaftStatus.UNKNOWN)
        self._begun = [each for each in self._begun if each.stated is None]
        for end in self._confirmed:
            for each in self._rounds.pop(0):
                each.decide(RaftStatus.OK, end, self.member.term)
        for each in (each for round_ in self._rounds for each in round_):
            if each.until_ms <= self.now_ms:
                each.decide(RaftStatus.NO_MAJORITY)

    def answer(self) -> bool:
        """Note which rounds are confirmed before the application takes them."""
        self._confirmed = list(self.member.answered)
        return super().answer()

    def state_lost_role(self) -> None:
        """State that begun entries are unknown, and begun reads are refused."""
        for each in self._begun:
            each.decide(RaftStatus.UNKNOWN)
        for each in (each for round_ in self._rounds for each in round_):
            each.decide(RaftStatus.NOT_LEADER)
        self._begun.clear()
        self._rounds.clear()
        self.member.term += 1
        _is("the rounds that a lost role leaves", self.member.answered, [])

    def state_stop(self) -> None:
        """State that begun requests end as with a lost role, and that others are refused."""
        self.state_lost_role()
        self.refuse(RaftStatus.STOPPED)


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
        sent = self.event("read")
        if self.leads and not self.leads.pop(0):
            self.sent.pop()
            return None
        self.ends.append(Future())
        return self.ends[-1], sent

    def save_commit_end(self) -> None:
        """Note the call."""
        self.event("save")
        self.sent.pop()


class _Reads(_Program):
    """Reads of a store, and messages of its puts."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.application = _application(PartDisk(), self.wake, self)
        self.application.close()
        self._raft = self.member = _Raft()
        self.application._raft = self._raft  # the store is judged elsewhere; this one is scripted
        self._asked: list[_Asked] = []
        self._begun: list[tuple[_Asked, Future[int | None]]] = []
        self._waiting: list[_Asked] = []
        self._puts: list[Envelope] = []
        self._sent_puts: list[Envelope] = []
        self._save_ms = 0

    def request(self) -> None:
        """Ask for a read, or let a put send messages."""
        if self.rng.random() < 0.3 and not self.is_stopped:
            made = [Envelope(100 + len(self._puts) + at, LeadNow(9)) for at in range(self.rng.choice((1, 2)))]
            self.application._send(made)
            self._puts += made
            return
        asked = _Asked(self.application.read())
        self.asked.append(asked)
        self._asked.append(asked)

    def unbegun(self) -> list[_Asked]:
        """Return the reads that no step has begun."""
        return self._asked

    def has_requests(self) -> bool:
        """Return what the application shows, apart from the messages of puts."""
        _is("whether messages of puts wait", bool(self.application.has_requests), bool(self._puts or self._asked))
        return bool(self._asked)

    def refuse(self, status: RaftStatus) -> None:
        """State that all reads that were not begun are refused."""
        for each in self._asked:
            each.decide(status)
        self._asked.clear()

    def state_begin(self, refusal: RaftStatus | None) -> list[Call]:
        """State which reads are begun. A store that leads no more refuses the others."""
        self._sent_puts, self._puts = self._puts, []
        self._raft.leads = [self.rng.random() < 0.85 for _ in self._asked]
        if refusal is not None:
            self.refuse(refusal)
        calls: list[Call] = []
        for leads in [*self._raft.leads]:
            if not self._asked:
                break
            calls.append(("read",))
            if self.member.failing == "read":
                break
            if not leads:
                self.refuse(RaftStatus.NOT_LEADER)
                break
            each = self._asked.pop(0)
            each.until_ms = self.now_ms + _ANSWER_MS
            self._waiting.append(each)
        return calls

    def judge_sent(self, sent: list[Envelope], wanted: list[Envelope]) -> None:
        """Judge the messages of a step: those of puts come first."""
        super().judge_sent(sent, [*self._sent_puts, *wanted])

    def change(self) -> None:
        """Let the store confirm or refuse reads."""
        for each in self._raft.ends:
            if not each.done() and self.rng.random() < 0.4:
                each.set_result(self.rng.choice((None, 0, 1, 77)))

    def answer(self) -> bool:
        """Judge also when the end of the commits is saved. A save may fail."""
        rng = self.rng
        self.now_ms += rng.choice((0, 0, 0, _SAVE_MS - 60, _SAVE_MS, _SAVE_MS + 1))
        self.member.failing = "save" if rng.random() < _FAILS else ""
        self.member.calls.clear()
        is_due = self.now_ms >= self._save_ms
        if is_due:
            self._save_ms = self.now_ms + _SAVE_MS
        fails = is_due and self.member.failing == "save"
        found = _raises(lambda: self.application.answer(self.now_ms))
        _is("how answers end", found, "OSError" if fails else "")
        _is("what answers ask", self.member.calls, [("save",)] * is_due)
        self.state_answers()
        self.judge()
        return not fails

    def state_answers(self) -> None:
        """State the answers of confirmed and refused reads, and of reads whose time is over."""
        ends = dict(zip((id(each) for each in self._all_begun), self._raft.ends, strict=True))
        for each in self._waiting:
            future = ends[id(each)]
            if future.done():
                end = future.result(0)
                if end is None:
                    each.decide(RaftStatus.NOT_LEADER)
                else:
                    each.decide(RaftStatus.OK, end)
            elif each.until_ms <= self.now_ms:
                each.decide(RaftStatus.NO_MAJORITY)
        self._waiting = [each for each in self._waiting if each.stated is None]

    @property
    def _all_begun(self) -> list[_Asked]:
        """Return the reads that were begun, in order."""
        return [each for each in self.asked if each.until_ms]

    def state_lost_role(self) -> None:
        """State nothing: the store answers its reads itself."""

    def state_stop(self) -> None:
        """State that all reads end with the member."""
        for each in self._waiting:
            each.decide(RaftStatus.STOPPED)
        self._waiting.clear()
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
