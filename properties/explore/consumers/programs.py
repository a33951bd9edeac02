"""List all small programs of a consumer group: two members, three queues, six messages.

The bound: up to K operations of `ALPHABET`, after each beginning of `BEGINNINGS`. A program has at most two changes of
members and one crash of the broker. At its end all faults end, and the group gets time. Power losses keep nothing or
everything, at rest.

Two kinds of programs are left out. In the first an operation does nothing (`does_something`). In the second two
neighbours are independent (`is_independent`), and the program with both in the order of the alphabet is in the list.
`unequal_words` runs every word up to a smaller length and compares: the state before and after an operation that does
nothing, and the states after both orders of independent neighbours. Nothing is sampled and nothing else is left out.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from tornpage.model.consumers.operations import (
    CrashBroker,
    FailRequests,
    FinishBatch,
    GroupOperation,
    HangMember,
    HealMember,
    HoldResults,
    Join,
    KillMember,
    Leave,
    LoseRequest,
    ParkRequests,
    PassTime,
    Produce,
    RestartBroker,
    ResumeMember,
    RunGroup,
)
from tornpage.properties.consumers.trial import GroupTrial
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.consumers.whole_state import whole_state
from tornpage.properties.program.group_case import GroupSettings

__all__ = [
    "ALPHABET",
    "BEGINNINGS",
    "all_programs",
    "does_something",
    "is_independent",
    "settings_of_programs",
    "unequal_words",
]

ALPHABET: tuple[GroupOperation, ...] = (
    HoldResults(hold=False),
    FailRequests("send_back"),
    PassTime(61_000),
    HangMember(0),
    ResumeMember(0),
    FinishBatch(0, 1),
    FinishBatch(0, 0, "later"),
    ParkRequests(0),
    LoseRequest(0),
    HealMember(0),
    Join(0),
    Join(1),
    Leave(0),
    KillMember(0),
    KillMember(1, silent=True),
    CrashBroker(),
    CrashBroker(others="kept"),
    CrashBroker(kill=True),
    RestartBroker(),
    RunGroup(3, 1_000),
    RunGroup(2, 500, "later"),
)
_PUTS: tuple[GroupOperation, ...] = tuple(Produce(number % 3, "B" if number == 4 else "A") for number in range(6))
_HELD: tuple[GroupOperation, ...] = (HoldResults(), *_PUTS, Join(0), RunGroup(4, 1_000))
BEGINNINGS: tuple[tuple[tuple[GroupOperation, ...], int], ...] = (
    (_HELD, 0),
    ((*_HELD, Join(1), RunGroup(2, 1_000)), 1),
)
"""The first operations of programs, and by how much the bound is shorter. Listeners of member 0 run in both."""

_CHANGES_MAX, _CRASHES_MAX = 2, 1
_CHANGES = (Join, Leave, KillMember, HangMember)


def settings_of_programs(settings: GroupSettings) -> GroupSettings:
    """Return the settings of all programs. Order, disk and bug stay."""
    return replace(settings, members=2, queues=3)


def all_programs(length: int) -> Iterator[tuple[GroupOperation, ...]]:
    """Yield every listed program of up to `length` operations.

    Shorter ones come first for each beginning.
    """
    for begin, shorter in BEGINNINGS:
        words: list[tuple[GroupOperation, ...]] = [()]
        yield begin
        for _ in range(length - shorter):
            words = [(*word, each) for word in words for each in ALPHABET if _is_listed(begin, word, each)]
            for word in words:
                yield (*begin, *word)


def _is_listed(begin: tuple[GroupOperation, ...], word: tuple[GroupOperation, ...], last: GroupOperation) -> bool:
    if not _is_within(word, last) or not does_something((*begin, *word), last):
        return False
    return not (word and is_independent(word[-1], last) and ALPHABET.index(word[-1]) > ALPHABET.index(last))


def _is_within(word: tuple[GroupOperation, ...], last: GroupOperation) -> bool:
    """Return whether a word with one more operation is within the bound."""
    whole = (*word, last)
    changes = sum(isinstance(each, _CHANGES) for each in whole)
    return changes <= _CHANGES_MAX and sum(isinstance(each, CrashBroker) for each in whole) <= _CRASHES_MAX


def does_something(program: tuple[GroupOperation, ...], last: GroupOperation) -> bool:
    """Return whether an operation after a program may change anything.

    A member that leaves in order may be gone at any later time, so that operations on it are taken to change something.
    """
    runs, may_leave, hangs, broker, holds = [False, False], [False, False], [False, False], True, False
    for each in program:
        match each:
            case Join(member):
                runs[member], may_leave[member], hangs[member] = True, False, False
            case KillMember(member):
                runs[member] = may_leave[member] = False
            case Leave(member):
                may_leave[member] = runs[member]
            case HangMember(member) | ResumeMember(member):
                hangs[member] = isinstance(each, HangMember)
            case CrashBroker():
                broker = False
            case RestartBroker():
                broker = True
            case HoldResults(hold):
                holds = hold
    match last:
        case Join(member):
            return not runs[member] or may_leave[member]
        case KillMember(member) | Leave(member) | FinishBatch(member) | ParkRequests(member) | LoseRequest(member):
            return runs[member]
        case HangMember(member):
            return runs[member] and not hangs[member]
        case ResumeMember(member):
            return runs[member] and hangs[member]
        case HealMember(member):
            return runs[member] and ParkRequests(member) in program
        case CrashBroker():
            return broker
        case RestartBroker():
            return not broker
        case HoldResults(hold):
            return holds != hold
    return True


def _touched(operation: GroupOperation) -> frozenset[str]:
    """Return what an operation reads or changes.

    Nothing for an operation that may touch everything.
    """
    match operation:
        case HoldResults():
            return frozenset({"hold"})
        case FailRequests():
            return frozenset({"fail"})
        case PassTime():
            return frozenset({"time"})
        case HangMember(member) | ResumeMember(member):
            return frozenset({f"hang {member}"})
        case FinishBatch(member):
            return frozenset({"time", f"listener {member}", f"network {member}"})
        case ParkRequests(member) | LoseRequest(member) | HealMember(member):
            return frozenset({f"network {member}"})
        case _:
            return frozenset()


def is_independent(first: GroupOperation, second: GroupOperation) -> bool:
    """Return whether both orders of two neighbours have the same effect.

    An operation on the broker has no such pair.
    """
    one, other = _touched(first), _touched(second)
    return bool(one and other) and not one & other


def unequal_words(length: int, settings: GroupSettings, *, tracker: DirtyTracker) -> tuple[int, list[str]]:
    """Run every word up to a length that is left out.

    Return their number, and those that are no repetition.
    """
    wrong, count = [], 0
    for begin, shorter in BEGINNINGS:
        for size in range(1, length - shorter + 1):
            for word in product(ALPHABET, repeat=size):
                *before, last = word
                if not all(_is_listed(begin, tuple(before[:n]), each) for n, each in enumerate(before)):
                    continue
                if not _is_within(tuple(before), last) or _is_listed(begin, tuple(before), last):
                    continue
                count += 1
                if does_something((*begin, *before), last):
                    other = (*begin, *before[:-1], last, before[-1])
                else:
                    other = (*begin, *before)
                states = [_state(each, settings, tracker) for each in ((*begin, *word), other)]
                if states[0] != states[1]:
                    wrong.append(" ".join(each.op for each in word))
    return count, wrong


def _state(program: tuple[GroupOperation, ...], settings: GroupSettings, tracker: DirtyTracker) -> bytes:
    trial = GroupTrial(settings_of_programs(settings), tracker=tracker)
    for operation in program:
        trial.run(operation)
    return whole_state(trial)
