"""Draw the settings and operations of a run of a consumer group.

The bound of one run: up to `PUTS_MAX` messages, `CRASHES_MAX` crashes of the broker, `CHANGES_MAX` changes of members,
`NETWORK_MAX` faults of the network, and `OPERATIONS_MAX` operations in all, before all faults end.
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import get_args

from tornpage.model.consumers.operations import (
    AddQueue,
    Allocate,
    CommitProgress,
    CrashBroker,
    CrashLocal,
    DeleteFiles,
    DeliverAnswer,
    DeliverRequest,
    DropConnection,
    FailRequests,
    FinishBatch,
    FlushBroker,
    GroupOperation,
    HangMember,
    HealMember,
    HoldResults,
    Join,
    KillMember,
    Leave,
    LoseAnswer,
    LoseRequest,
    MemberPart,
    ParkRequests,
    PartitionMember,
    PassTime,
    Produce,
    ReadBroker,
    RepeatRequest,
    RequestKind,
    RestartBroker,
    ResumeMember,
    RunDirect,
    RunGroup,
    SlowService,
    StepBroker,
    StepMember,
    Subscribe,
    TakeBatch,
    TryConsumerSettings,
    UseBroker,
    UseCache,
    UseMemberPart,
    UseMembers,
    UseOwners,
    UseStateFiles,
    Verdict,
)
from tornpage.properties.consumers.trial import GroupTrial
from tornpage.properties.disk.images import InFlightWrite
from tornpage.properties.disk.sampling import CHANCES, draw
from tornpage.properties.program.group_case import GroupSettings

__all__ = [
    "CHANGES_MAX",
    "CRASHES_MAX",
    "NETWORK_MAX",
    "OPERATIONS_MAX",
    "PUTS_MAX",
    "draw_beginning",
    "draw_operations",
    "draw_settings",
]

PUTS_MAX, CRASHES_MAX, CHANGES_MAX, NETWORK_MAX, OPERATIONS_MAX = 10, 2, 6, 6, 30

_BACK_MAX = 30
_SAVED_SHARE = 0.4
_HELD_SHARE = 0.6
_OVERTAKEN_SHARE = 0.25
_LATER_FIRST_SHARE = 0.3
_KINDS = {
    "put": 14, "run": 22, "time": 8, "step": 5, "take": 5, "finish": 9, "hold": 5, "deliver": 10, "broker": 4,
    "flush": 3,
    "join": 8, "leave": 3, "kill": 3, "hang": 3, "resume": 4, "lose": 5, "repeat": 3, "park": 3, "partition": 2,
    "heal": 4,
    "commit": 8, "slow": 2, "fail": 7, "crash": 4, "delete": 8, "restart": 7, "queue": 1, "shares": 1, "local": 1,
    "read": 4, "drop": 2, "direct": 9, "settings": 1, "cache": 3, "owners": 3, "members": 3, "state": 6, "part": 22,
    "broker part": 5, "subscribe": 2,
}  # fmt: skip
_ALLOCATIONS = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY", "CONFIG")
_CHANGES = ("join", "leave", "kill_member", "hang_member")
_NETWORK = (
    "lose_request", "lose_answer", "repeat_request", "park_requests", "partition_member", "drop_connection",
    "fail_requests",
)  # fmt: skip
_SERVICES = ("flush", "group-commit", "progress", "reput", "schedule", "flush-queues")
_SLOW_SHARE = 0.35
_MANUAL_SHARE = 0.12
_SMALL_FILE_BYTES, _SMALL_FILES_SHARE = 1536, 0.2
"""Files of a few messages, of which retention can delete some."""
_COLD_SHARE, _POLLING_SHARE = 0.3, 0.85
_OTHER_RESULTS: tuple[Verdict, ...] = ("first", "soon", "dead")
_SEEDS = 1 << 20
_OFTEN: tuple[RequestKind, ...] = ("send_back", "send_back", "send_back", "update_offset", "query_offset", "pull")
_LARGE_PUTS, _LARGE_BYTES = 3, 600
"""Messages that fill a small file, so that an earlier one can be deleted."""
_FAILING: tuple[RequestKind, ...] = (*get_args(RequestKind), *_OFTEN)
"""The kinds of requests that fail. Those that carry messages and progress fail more often."""


def draw_settings(settings: GroupSettings, rng: Random) -> GroupSettings:
    """Return settings with what a run draws. Number of members, disk and bug stay.

    A group of a run with retention, or on a cold broker, begins at the first messages. At the last ones it may skip
    some, as a choice of its settings.
    """
    has_small_files = rng.random() < _SMALL_FILES_SHARE
    is_manual = rng.random() < _MANUAL_SHARE
    is_cold = rng.random() < _COLD_SHARE
    return replace(
        settings,
        queues=rng.randrange(1, 4),
        is_manual=is_manual,
        is_orderly=rng.random() < 0.4 and not is_manual,
        syncs=rng.random() < 0.5 or is_manual,
        strategy=rng.choice(("AVG", "AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")),
        begins=rng.choice(("first", "first" if has_small_files or is_cold else "last")),
        is_cold=is_cold,
        holds_pulls=rng.random() < _POLLING_SHARE,
        retries=rng.choice((16, 16, 1, 2, 0)),
        threshold=rng.choice((1000, 1000, 1, 2)),
        pull_batch=rng.choice((32, 2, 1)),
        batch=rng.choice((1, 1, 2)),
        log_file_bytes=_SMALL_FILE_BYTES if has_small_files else settings.log_file_bytes,
    )


def draw_beginning(settings: GroupSettings, rng: Random) -> tuple[GroupOperation, ...]:
    """Return the first operations of a run.

    Most runs begin with messages and a member that works. In a part of them its listeners run on. A broker waits for
    the life of a lock before it grants a queue to an orderly member. In a part of the runs one service of the broker
    gets no time.
    """
    puts = tuple(Produce(rng.randrange(settings.queues), rng.choice("AAABC")) for _ in range(rng.randrange(6)))
    waits = (PassTime(61_000),) if settings.is_orderly and rng.random() < 0.8 else ()
    holds = (HoldResults(),) if rng.random() < 0.45 else ()
    starts = (*holds, Join(), RunGroup(6, 500)) if rng.random() < 0.75 else ()
    both = (Join(1),) if rng.random() < 0.4 else ()
    begin: tuple[GroupOperation, ...] = (
        (*waits, *puts, *starts, *both) if rng.random() < 0.6 else (*waits, *starts, *both, *puts)
    )
    if rng.random() < _SLOW_SHARE:
        begin = (SlowService(rng.choice(_SERVICES)), *begin)
    return (FailRequests(rng.choice(_FAILING), rng.randrange(1, 3)), *begin) if rng.random() < 0.15 else begin


def draw_operations(trial: GroupTrial, rng: Random) -> Iterator[GroupOperation]:
    """Yield the next operations of a run, within its bound.

    Each operation has to be carried out before the next one is drawn. Some crashes of the broker follow the result of
    a listener and a save of progress. Other operations are drawn as a whole.
    """
    operation = _draw(trial, rng)
    has_room = trial.hit["produce"] <= PUTS_MAX - 3
    if isinstance(operation, CrashBroker) and not (has_room and rng.random() < _OVERTAKEN_SHARE):
        if rng.random() < _SAVED_SHARE:
            yield from _saved(trial, rng)
            operation = CrashBroker(others=rng.choice(("lost", "kept")))
        yield operation
        return
    yield from _surrounded(trial, rng, operation)


def _surrounded(trial: GroupTrial, rng: Random, operation: GroupOperation) -> tuple[GroupOperation, ...]:
    """Return an operation with those that it needs before or after it.

    A fault of the network follows a step of its member, so that something is under way. In some runs the second of two
    runs of a queue ends first.
    """
    if isinstance(operation, DeliverRequest | LoseRequest | RepeatRequest | ParkRequests):
        late = (PassTime(5_500),) if isinstance(operation, RepeatRequest | ParkRequests) else ()
        return *late, StepMember(operation.member), operation
    if isinstance(operation, RunDirect):
        puts = (Produce(rng.randrange(4), rng.choice("AAB")),) if trial.hit["produce"] < PUTS_MAX else ()
        both = () if operation.is_broadcasting else (RunDirect(1 - operation.member, is_broadcasting=False),)
        return *both, *puts, operation
    if isinstance(operation, DeleteFiles):
        count = min(_LARGE_PUTS, PUTS_MAX - trial.hit["produce"])
        put = Produce(rng.randrange(trial.settings.queues), body_bytes=_LARGE_BYTES)
        return *[put] * count, FlushBroker(), StepBroker(), PassTime(1_000), operation
    if isinstance(operation, CrashBroker):
        put, member = Produce(rng.randrange(trial.settings.queues)), rng.randrange(trial.settings.members)
        return _overtaken(put, member if rng.random() < _HELD_SHARE else None)
    if (
        isinstance(operation, FinishBatch)
        and trial.hit["produce"] <= PUTS_MAX - 2
        and rng.random() < _LATER_FIRST_SHARE
    ):
        return _second_first(operation.member, Produce(rng.randrange(trial.settings.queues)))
    if isinstance(operation, FailRequests) and operation.kind in ("send_back", "update_offset"):
        return _failing(trial, rng, operation)
    if isinstance(operation, LoseAnswer):
        return StepMember(operation.member), DeliverRequest(operation.member), operation
    return (operation,)


def _failing(trial: GroupTrial, rng: Random, fails: FailRequests) -> tuple[GroupOperation, ...]:
    """Return operations in which a member meets a refusal.

    It is of its returns, or of the progress of a hand-over.
    """
    puts = (Produce(rng.randrange(trial.settings.queues)),) if trial.hit["produce"] < PUTS_MAX else ()
    if fails.kind == "send_back":
        return *puts, fails, replace(fails, kind="send_to_retry"), RunGroup(3, 500, "later"), RunGroup(2, 500)
    member = rng.randrange(trial.settings.members)
    return *puts, RunGroup(2, 500), fails, Subscribe(member), RunGroup(3, 500), Subscribe(member, again=True)


def _second_first(member: int, put: Produce) -> tuple[GroupOperation, ...]:
    """Return operations that end the second of two runs of a queue first."""
    return HoldResults(), put, put, RunGroup(2, 500), FinishBatch(member, 1), RunGroup(2, 6_000)


def _overtaken(put: Produce, holder: int | None) -> tuple[GroupOperation, ...]:
    """Return operations after which members are ahead of a broker.

    The broker lost messages and gets new ones. A `holder` returns a lost message afterwards.
    """
    lost = put, put, RunGroup(3, 500), CrashBroker(), RestartBroker(), put
    if holder is None:
        return FlushBroker(), *lost
    return FlushBroker(), HoldResults(), *lost, FinishBatch(holder, 0, "later"), RunGroup(2, 500)


def _held(put: Produce) -> tuple[GroupOperation, ...]:
    """Return operations after which a listener holds a message."""
    return HoldResults(), put, RunGroup(2, 500)


def _saved(trial: GroupTrial, rng: Random) -> Iterator[GroupOperation]:
    """Yield operations after which the broker has saved, but not flushed, a new progress.

    A member that has a running listener returns the result. If no member has one, a new message is held first.
    """
    if not any(each.running for each in trial.members) and trial.hit["produce"] < PUTS_MAX:
        yield from _held(Produce(rng.randrange(trial.settings.queues)))
    holders = [each.number for each in trial.members if each.running] or range(trial.settings.members)
    member = rng.choice(holders)
    later: Verdict = "later" if rng.random() < 0.6 else "success"
    deliver = DeliverRequest(member)
    yield from (TakeBatch(member), FinishBatch(member, 0, later), deliver, DeliverAnswer(member), StepMember(member))
    yield from (PassTime(11_000), StepMember(member), deliver, deliver, deliver, StepBroker("progress"))


def _possible_kinds(trial: GroupTrial) -> dict[str, int]:
    """Return the weights of the kinds of operations that a run may draw now."""
    done = trial.hit
    kinds = dict(_KINDS)
    if done["produce"] >= PUTS_MAX:
        del kinds["put"]
    if done["crash_broker"] >= CRASHES_MAX or not trial.host.is_up:
        del kinds["crash"]
    if trial.host.is_up:
        del kinds["restart"]
    if sum(done[kind] for kind in _CHANGES) >= CHANGES_MAX:
        kinds = {name: weight for name, weight in kinds.items() if name not in ("leave", "kill", "hang")}
    if sum(done[kind] for kind in _NETWORK) >= NETWORK_MAX:
        kinds = {name: weight for name, weight in kinds.items()
                 if name not in ("lose", "repeat", "park", "partition", "drop", "fail")}  # fmt: skip
    if trial.settings.log_file_bytes > _SMALL_FILE_BYTES:
        del kinds["delete"]
    if not trial.settings.is_manual:
        del kinds["commit"]
    return kinds


def _draw(trial: GroupTrial, rng: Random) -> GroupOperation:
    kinds = _possible_kinds(trial)
    kind = rng.choices(tuple(kinds), tuple(kinds.values()))[0]
    member, number = rng.randrange(trial.settings.members), rng.choice((0, 0, 1, 1, 2, 3))
    match kind:
        case "put":
            sizes = (0, 600) if trial.settings.log_file_bytes == _SMALL_FILE_BYTES else (0, 0, 600)
            return Produce(rng.randrange(4), rng.choice("AAAABC"), rng.choice(sizes))
        case "run":
            return RunGroup(rng.choice((1, 2, 4, 8)), rng.choice((0, 50, 500, 1_000, 6_000)), _result(rng))
        case "time":
            return PassTime(rng.choice((50, 1_000, 5_500, 11_000, 21_000, 31_000, 61_000, 125_000)))
        case "subscribe":
            return Subscribe(member, again=rng.random() < 0.4)
        case "step":
            return StepMember(member)
        case "take":
            return TakeBatch(member)
        case "commit":
            return CommitProgress(member)
        case "finish":
            return FinishBatch(member, number, _result(rng))
        case "hold":
            return HoldResults(rng.random() < 0.6)
        case "deliver":
            return rng.choice((DeliverRequest, DeliverAnswer))(member, number)
        case "broker":
            return StepBroker(rng.choice(("", "", "progress", "reput", "schedule")))
        case "slow":
            return SlowService(rng.choice(("", *_SERVICES)))
        case "delete":
            return DeleteFiles()
        case "flush":
            return FlushBroker()
        case "join":
            return Join(member)
        case "leave":
            return Leave(member)
        case "kill":
            return KillMember(member, silent=rng.random() < 0.5)
        case "hang":
            return HangMember(member)
        case "resume":
            return ResumeMember(member)
        case "lose":
            return rng.choice((LoseRequest, LoseAnswer))(member, number)
        case "repeat":
            return RepeatRequest(member, number)
        case "park":
            return ParkRequests(member)
        case "partition":
            return PartitionMember(member)
        case "drop":
            return DropConnection(member)
        case "direct":
            return _direct(rng)
        case "heal":
            return HealMember(member)
        case "fail":
            return FailRequests(rng.choice(_FAILING), rng.randrange(1, 4))
        case "queue":
            return AddQueue()
        case "shares":
            strategy = rng.choice(_ALLOCATIONS)
            return Allocate(strategy, rng.randrange(1, 17), rng.randrange(1, 17))
        case "read":
            return ReadBroker(rng.randrange(4), rng.randrange(4), rng.choice((32, 1, 2)))
        case "restart":
            return RestartBroker()
        case "local":
            return CrashLocal(rng.random() < 0.2, rng.randrange(25), others=rng.choice(("lost", "kept")))
    return _crash(trial, rng) if kind == "crash" else _use_of(kind, rng)


def _use_of(kind: str, rng: Random) -> GroupOperation:
    """Draw the operation that uses a part alone."""
    match kind:
        case "settings":
            return TryConsumerSettings(rng.randrange(4))
        case "cache":
            return UseCache(rng.randrange(_SEEDS))
        case "broker part":
            return UseBroker(rng.randrange(_SEEDS))
        case "part":
            return UseMemberPart(rng.choice(get_args(MemberPart)), rng.randrange(_SEEDS))
        case "members":
            return UseMembers(rng.randrange(_SEEDS))
        case "state":
            return UseStateFiles(rng.randrange(_SEEDS))
        case "owners":
            return UseOwners(rng.randrange(_SEEDS))
    raise AssertionError(f"no operation is drawn for {kind}")


def _direct(rng: Random) -> RunDirect:
    return RunDirect(
        rng.randrange(2),
        is_broadcasting=rng.random() < 0.6,
        rounds=rng.choice((1, 2, 4, 8)),
        by_ms=rng.choice((0, 50, 500, 6_000)),
        result=_result(rng),
        begins=rng.choice(("first", "last", "time")),
        paused=rng.random() < 0.1,
        end=rng.choice(("", "", "", "leave", "close", "kill")),
    )


def _result(rng: Random) -> Verdict:
    """Draw a result: most are a success, and half of the others are the plain failure."""
    return rng.choice(("later", "later", "later", *_OTHER_RESULTS)) if rng.random() < 0.35 else "success"


def _crash(trial: GroupTrial, rng: Random) -> CrashBroker:
    back = rng.randrange(min(_BACK_MAX, trial.events_of_action()) + 1) if rng.random() < 0.5 else 0
    if rng.random() < 0.3:
        return CrashBroker(kill=True, back=back)
    writes: list[InFlightWrite] = trial.in_flight(back)
    return CrashBroker(back=back, survived=draw(writes, rng, CHANCES))
