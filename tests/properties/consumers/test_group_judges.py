"""Test each judge of consumer groups on sound and on broken traces made by hand."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tornpage.model.consumers.events import (
    Arrived,
    Began,
    Crashed,
    Durable,
    Event,
    Finished,
    FirstOffset,
    Granted,
    Opened,
    Pulled,
    Quiet,
    Released,
    Started,
    Stopped,
    Stored,
    StoredProgress,
)
from tornpage.model.consumers.state import Entry, Group, Queue, Record, Rules
from tornpage.properties.consumers.judge import judged, shares_are_those_of_the_strategy
from tornpage.properties.contract import GuaranteeBroken

Q = Queue("T", 0)
RETRY, DEAD = Queue("%RETRY%G", 0), Queue("%DLQ%G", 0)
ORDERLY = Group(Rules(is_orderly=True))


def stored(
    place: int, *, queue: Queue = Q, identity: int = -1, times: int = 0, level: int = 0, tag: bool = True
) -> Stored:
    """Store a message of 100 bytes as the record number `place` of the log."""
    entry = Entry(place if identity < 0 else identity, times, tag)
    return Stored(Record(100 * place, 100 * (place + 1), queue, entry, level))


def owns(life: int, first: int = 0, *, at_ms: int = 0, lease: str = "") -> list[Event]:
    """Let a life own the queue from an offset on."""
    return [Started(life), Granted(life, Q, lease or f"lease of {life}", at_ms, at_ms), FirstOffset(life, Q, first)]


def runs(
    run: int, life: int, offset: int, *, at_ms: int = 0, ends: bool = True, is_success: bool = True
) -> list[Event]:
    """Let a listener of a life run on one message."""
    began = Began(run, life, Q, (offset,), (Entry(offset),), at_ms)
    return [began, Finished(run, is_success, at_ms)] if ends else [began]


THREE = [stored(0), stored(1), stored(2)]
SOUND: list[Event] = [
    *THREE, *owns(1), Pulled(1, Q, 0, 3, 5), Arrived(1, Q, (0, 1, 2), 6),
    *runs(1, 1, 1), *runs(2, 1, 0), StoredProgress(1, Q, 2, 2), *runs(3, 1, 2, is_success=False),
    stored(3, queue=RETRY, identity=2, times=1, level=3), StoredProgress(1, Q, 3, 3), Released(1, Q, 9), Stopped(1),
    stored(4, queue=RETRY, identity=2, times=1),
    Started(2), Granted(2, RETRY, "r", 10_000, 10_000), FirstOffset(2, RETRY, 0), Arrived(2, RETRY, (0,), 10_000),
    Began(4, 2, RETRY, (0,), (Entry(2, 1),), 10_000), Finished(4, True, 10_000), StoredProgress(2, RETRY, 1, 1),
    Quiet({Q: frozenset({2})}),
]  # fmt: skip


def test_a_sound_trace_holds() -> None:
    group = judged(SOUND)
    assert group.finished == {0, 1, 2}
    assert group.progress == {Q: 3, RETRY: 1}


BROKEN: dict[str, tuple[Group, Sequence[Event], int]] = {
    "J1 a message is never finished": (Group(), [*THREE, Started(1), Quiet({Q: frozenset({1})})], 19),
    "J2 progress passes over a running message": (
        Group(), [*THREE, *owns(1), *runs(1, 1, 0, ends=False), *runs(2, 1, 1), StoredProgress(1, Q, 2, 2)], 21),
    "J2 progress past the end": (Group(), [stored(0), *owns(1), *runs(1, 1, 0), StoredProgress(1, Q, 2, 2)], 21),
    "J2 progress goes back": (
        Group(), [*THREE, *owns(1), *runs(1, 1, 0), StoredProgress(1, Q, 1, 1), StoredProgress(1, Q, 0, 0)], 24),
    "J3 two runs of one member": (
        ORDERLY, [*THREE, *owns(1), *runs(1, 1, 0, ends=False), *runs(2, 1, 1, ends=False)], 20),
    "J3 two runs of two members": (
        ORDERLY, [*THREE, *owns(1), *runs(1, 1, 0, ends=False), *owns(2, at_ms=30_000),
                  *runs(2, 2, 0, at_ms=30_000, ends=False)], 20),
    "J3 a lock that is too old": (ORDERLY, [*THREE, *owns(1), *runs(1, 1, 0, at_ms=30_001, ends=False)], 20),
    "J3 no lock": (ORDERLY, [*THREE, Started(1), FirstOffset(1, Q, 0), *runs(1, 1, 0, ends=False)], 20),
    "J3 a message overtakes": (ORDERLY, [*THREE, *owns(1), *runs(1, 1, 1, ends=False)], 20),
    "J4 no reader": (Group(), [Started(1), Quiet({Q: frozenset()})], 16),
    "J4 two readers": (Group(), [Started(1), Started(2), Quiet({Q: frozenset({1, 2})})], 22),
    "J5 below the first offset": (Group(), [*THREE, *owns(1, 2), *runs(1, 1, 1, ends=False)], 22),
    "J5 twice to one member": (Group(), [*THREE, *owns(1), *runs(1, 1, 0), *runs(2, 1, 0, ends=False)], 22),
    "J5 no first offset": (Group(), [*THREE, Started(1), *runs(1, 1, 0, ends=False)], 21),
    "J5 given back without its results": (
        Group(), [*THREE, *owns(1), *runs(1, 1, 0), *runs(2, 1, 1), StoredProgress(1, Q, 1, 1), Released(1, Q, 9)], 22),
    "J5 given back while a listener runs": (
        Group(), [*THREE, *owns(1), *runs(1, 1, 0, ends=False), Released(1, Q, 29_999)], 22),
    "J3 given back while an orderly listener runs": (
        ORDERLY, [*THREE, *owns(1), *runs(1, 1, 0, ends=False), Released(1, Q, 99_999)], 20),
    "J6 too much in memory": (
        Group(Rules(threshold=2)), [*THREE, *owns(1), Arrived(1, Q, (0, 1), 0), Arrived(1, Q, (2,), 0)], 16),
    "J6 empty pulls without a pause": (
        Group(Rules(empty_pulls_max=3)), [*owns(1), *(Pulled(1, Q, 0, 0, at_ms) for at_ms in range(4))], 16),
    "J7 lag stays": (
        Group(), [stored(0), stored(1, tag=False), *owns(1), *runs(1, 1, 0), StoredProgress(1, Q, 1, 1),
                  Quiet({Q: frozenset({1})})], 16),
    "J8 progress past the end after a crash": (
        Group(), [stored(0), *owns(1), *runs(1, 1, 0), StoredProgress(1, Q, 1, 1), Crashed(True),
                  Opened(0, {Q: 1})], 17),
    "J8 progress that never was": (Group(), [*THREE, Durable(300), Crashed(True), Opened(300, {Q: 2})], 13),
    "J8 a kill loses messages": (Group(), [*THREE, Crashed(False), Opened(200, {})], 2),
    "J8 durable messages are lost": (Group(), [*THREE, Durable(300), Crashed(True), Opened(200, {})], 2),
    "retries: no failed try": (Group(), [stored(0), stored(1, queue=RETRY, identity=0, times=1, level=3)], 23),
    "retries: another delay": (
        Group(), [stored(0), *owns(1), *runs(1, 1, 0, is_success=False),
                  stored(1, queue=RETRY, identity=0, times=1, level=4)], 23),
    "retries: a dead letter too early": (
        Group(Rules(times_max=1)), [stored(0), *owns(1), *runs(1, 1, 0, is_success=False),
                                    stored(1, queue=DEAD, identity=0, times=1)], 23),
    "retries: no dead letter": (
        Group(Rules(times_max=0)), [stored(0), *owns(1), *runs(1, 1, 0, is_success=False),
                                    stored(1, queue=RETRY, identity=0, times=1, level=3)], 23),
    "retries: before it is due": (
        Group(), [stored(0), *owns(1), *runs(1, 1, 0, is_success=False),
                  stored(1, queue=RETRY, identity=0, times=1, level=3), stored(2, queue=RETRY, identity=0, times=1),
                  Arrived(1, RETRY, (0,), 9_999)], 23),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_each_judge_fails_on_a_broken_trace(name: str) -> None:
    group, events, contract = BROKEN[name]
    judged(events[:-1], group)
    with pytest.raises(GuaranteeBroken) as broken:
        judged(events[-1:], judged(events[:-1], group))
    assert broken.value.contract == contract


LEGAL: dict[str, tuple[Group, Sequence[Event]]] = {
    "a failed message comes again": (Group(), [*THREE, *owns(1), *runs(1, 1, 0, is_success=False), *runs(2, 1, 0)]),
    "a message without stored result comes again": (Group(), [*THREE, *owns(1), *runs(1, 1, 0), Stopped(1), *owns(2),
                                                              *runs(2, 2, 0)]),
    "a hung owner runs past its lock": (
        ORDERLY, [*THREE, *owns(1), *runs(1, 1, 0, ends=False), *owns(2, at_ms=60_000), *runs(2, 2, 0, at_ms=60_000)]),
    "a tag that does not match is passed over": (
        Group(), [stored(0, tag=False), stored(1), *owns(1), *runs(1, 1, 1), StoredProgress(1, Q, 2, 2)]),
    "a copy that was not durable is lost": (
        Group(), [stored(0), Durable(100), *owns(1), *runs(1, 1, 0, is_success=False),
                  stored(1, queue=RETRY, identity=0, times=1, level=3), StoredProgress(1, Q, 1, 1), Crashed(True),
                  Opened(100, {Q: 1}), Quiet({Q: frozenset({1})})]),
    "a slow listener outlasts a hand-over": (
        Group(), [*THREE, *owns(1), *runs(1, 1, 0, ends=False), Released(1, Q, 30_000)]),
}  # fmt: skip


@pytest.mark.parametrize("name", LEGAL)
def test_legal_traces_hold(name: str) -> None:
    group, events = LEGAL[name]
    judged(events, group)


def test_a_lost_copy_makes_its_message_open_again() -> None:
    """The progress over a message whose durable copy a kill cannot lose stays.

    A lost copy counts no more.
    """
    begin = [stored(0), *owns(1), *runs(1, 1, 0, is_success=False),
             stored(1, queue=RETRY, identity=0, times=1, level=3), Crashed(True), Opened(100, {})]  # fmt: skip
    with pytest.raises(GuaranteeBroken, match="passes over message"):
        judged([*begin, StoredProgress(1, Q, 1, 1)])


def test_shares_are_compared_with_the_formulas() -> None:
    expected = {"a": [0, 1], "b": [2]}
    shares_are_those_of_the_strategy(dict(expected), expected, queues=3, strategy="AVG")
    with pytest.raises(GuaranteeBroken, match="no member"):
        shares_are_those_of_the_strategy({"a": [0], "b": [2]}, expected, queues=3, strategy="AVG")
    with pytest.raises(GuaranteeBroken, match="several members"):
        shares_are_those_of_the_strategy({"a": [0, 1], "b": [1, 2]}, expected, queues=3, strategy="AVG")
    with pytest.raises(GuaranteeBroken, match="not those of RocketMQ"):
        shares_are_those_of_the_strategy({"a": [0], "b": [1, 2]}, expected, queues=3, strategy="AVG")


def test_rules_are_part_of_the_group() -> None:
    assert replace(Rules(), is_orderly=True) == ORDERLY.rules
