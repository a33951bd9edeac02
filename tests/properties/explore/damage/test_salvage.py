"""What a damaged store owes, by the model: each promise can be broken."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tornpage.model.salvage import Before, Message, Opened, broken_promises

QUEUE = ("T", 0)
MESSAGES = [Message(100 * number, b"%d" % number, QUEUE, number) for number in range(3)]


def before(*, intact: tuple[int, ...] = (0, 100, 200), may_be_cut: bool = False, has_floor: bool = False) -> Before:
    return Before(MESSAGES, intact, [QUEUE], may_be_cut, has_floor)


def whole() -> Opened:
    return Opened(
        is_writable=True,
        served={message.offset: message.body for message in MESSAGES},
        pulled={QUEUE: {message.number: (message.offset, message.body) for message in MESSAGES}},
        puts={QUEUE: (3, True)},
    )


def test_a_whole_store_owes_nothing() -> None:
    assert list(broken_promises(before(), whole())) == []


def raises(found: Opened) -> None:
    found.raised.append("put raises error")


def sticks(found: Opened) -> None:
    found.stuck.append(QUEUE)


def loses(found: Opened) -> None:
    del found.served[100]


def serves_another_body(found: Opened) -> None:
    found.served[100] = b"other"


def mixes_numbers(found: Opened) -> None:
    found.pulled[QUEUE][1] = (200, b"2")


def hides(found: Opened) -> None:
    del found.pulled[QUEUE][1]


def loses_a_put(found: Opened) -> None:
    found.puts[QUEUE] = (3, False)


def gives_a_number_twice(found: Opened) -> None:
    found.puts[QUEUE] = (2, True)


def refuses_a_put(found: Opened) -> None:
    found.refused_puts.append(QUEUE)


def is_silent(found: Opened) -> None:
    found.is_writable = False


@pytest.mark.parametrize(
    ("harm", "contract"),
    [
        (raises, 8),
        (sticks, 7),
        (loses, 7),
        (serves_another_body, 7),
        (mixes_numbers, 17),
        (hides, 18),
        (loses_a_put, 18),
        (gives_a_number_twice, 18),
        (refuses_a_put, 18),
        (is_silent, 7),
    ],
)
def test_each_promise_can_be_broken(harm: Callable[[Opened], None], contract: int) -> None:
    found = whole()
    harm(found)
    assert [number for number, _ in broken_promises(before(), found)][:1] == [contract]


def test_the_log_of_a_read_only_store_ends_where_its_records_end() -> None:
    found, owed = whole(), before()
    found.is_writable, found.log_end = False, 300
    found.damages.append("commitlog/0")
    assert list(broken_promises(replace(owed, log_end=300), found)) == []
    assert [number for number, _ in broken_promises(replace(owed, log_end=290), found)] == [9]


def test_a_finding_about_the_queue_excuses_a_hidden_message() -> None:
    found = whole()
    hides(found)
    found.notes.append("consumequeue/T/0")
    assert list(broken_promises(before(), found)) == []


def test_a_cut_is_excused_by_a_tear_and_what_is_set_aside() -> None:
    found = whole()
    del found.served[200], found.pulled[QUEUE][2]
    found.puts.clear()
    found.has_tear = True
    assert [number for number, _ in broken_promises(before(), found)] == [7]
    assert [number for number, _ in broken_promises(before(may_be_cut=True), found)] == [7]
    found.set_aside.add(200)
    assert list(broken_promises(before(may_be_cut=True), found)) == []
    assert [number for number, _ in broken_promises(before(), found)] == [7]
