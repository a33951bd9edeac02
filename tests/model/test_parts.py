"""Test operations of several clients in parts: all parts in order are one step."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest

from tests.model.support import layout_of
from tornpage.model.answers import Answer, PutAnswer, QueueRead, matches
from tornpage.model.dispatch import Queue
from tornpage.model.operations import (
    AnyOperation,
    AskMaximum,
    AskMinimum,
    Clean,
    Close,
    Commit,
    DeleteTopics,
    Flush,
    GetAt,
    Member,
    Pull,
    Put,
    PutBatch,
    Query,
    QueryProgress,
    Step,
)
from tornpage.model.parts import Part, Shared, parts, step_part
from tornpage.model.state import Layout, State
from tornpage.model.step import step

PLAIN = layout_of(file_bytes=1024)
LAYOUTS = {
    "plain": PLAIN,
    "sync": replace(PLAIN, sync_flush=True),
    "pool": replace(PLAIN, pool_buffers=2),
    "light queues": replace(PLAIN, multi_dispatch=True, light_queues=True),
}
NAMED = "KEYS\x01k\x02INNER_MULTI_DISPATCH\x01%LMQ%a"
QUEUES: tuple[Queue, ...] = (("T", 0), ("U", 0), ("%LMQ%a", 0))
OPERATIONS_OF_EACH = 40
SEEDS = range(20)


def drawn(rng: Random, state: State) -> AnyOperation:
    """Return an operation of a client or of a service; closes are rare."""
    topic, offset = rng.choice(("T", "T", "U", "%LMQ%a")), rng.randint(0, 4)
    put = Put(rng.choice("TTU"), body_bytes=rng.choice((0, 40, 300, 800)), fill=rng.randrange(1000), properties=NAMED)
    places = [0, 5, state.log.end_offset, *(record.offset for record in state.log.records)]
    return rng.choice(
        (
            put,
            replace(put, fill=put.fill + 1),
            PutBatch(put.topic, members=(Member(20, put.fill), Member(30, put.fill))),
            GetAt(rng.choice(places) + rng.choice((0, 0, 0, 1))),
            Pull(topic, 0, offset, rng.choice((0, 1, 32))),
            AskMaximum(topic),
            AskMinimum(topic),
            Query(topic, rng.choice("kl"), rng.choice((1, 32))),
            Commit(topic, 0, offset),
            QueryProgress(topic),
            Flush(),
            Step("reput"),
            Step("commit"),
            Step("flush"),
            Step("flush-queues"),
            Clean(percent=90) if rng.random() < 0.5 else Flush(),
            DeleteTopics(rng.choice(((), ("T",), ("U",)))) if rng.random() < 0.5 else Flush(),
            Close() if rng.random() < 0.1 else put,
        )
    )


def states_met(layout: Layout, seed: int) -> Iterator[tuple[State, AnyOperation]]:
    """Yield operations drawn one after the other, each with its first state."""
    rng, state = Random(f"parts {seed}"), State()
    for _ in range(OPERATIONS_OF_EACH):
        operation = drawn(rng, state)
        yield state, operation
        state, _ = next(step(state, operation, layout))


def carried_out(shared: Shared, order: Sequence[Part], answer: Answer | None = None) -> Iterator[tuple[Shared, Answer]]:
    """Yield each state after all parts in order, with the last answer that is not empty."""
    if not order:
        yield shared, answer or Answer()
        return
    for after, said in step_part(shared, order[0]):
        yield from carried_out(after, order[1:], answer if said == Answer() else said)


SAYS = ("put", "got", "client", "committed", "durable", "names", "failed")
"""Return the answer of an operation in a comparable form; clients do not read watermarks."""


def told(operation: AnyOperation, state: State, answer: Answer) -> Answer:
    """Return the answer in a comparable form.

    A flush adds the durable end of the log, a closed store that it is closed.
    """
    if isinstance(operation, Flush | DeleteTopics) and not state.is_open:
        return Answer(client="closed")
    said = Answer(**{name: getattr(answer, name) for name in SAYS})
    return replace(said, client=state.log.flushed_offset) if answer.durable is not None else said


@pytest.mark.parametrize("name", LAYOUTS)
def test_all_parts_in_order_are_one_step(name: str) -> None:
    layout, several = LAYOUTS[name], 0
    for seed in SEEDS:
        for before, operation in states_met(layout, seed):
            for state, answer in step(before, operation, layout):
                found = told(operation, state, answer)
                order = parts(operation, layout, found=found, queues=QUEUES)
                several += len(order) > 1
                after = list(carried_out(Shared.of(before), order))
                assert [each.state for each, _ in after] == [state], (seed, operation)
                assert matches(after[0][1], found)
    assert several > 30


@pytest.mark.parametrize("name", LAYOUTS)
def test_where_all_is_dispatched_parts_have_the_outcomes_of_the_step_and_no_others(name: str) -> None:
    layout, compared = LAYOUTS[name], 0
    for seed in SEEDS:
        for before, operation in states_met(layout, seed):
            whole = [(state, told(operation, state, answer)) for state, answer in step(before, operation, layout)]
            order = parts(operation, layout, queues=QUEUES)
            done = carried_out(Shared.of(before), order)
            apart = [(shared.state, told(operation, shared.state, answer)) for shared, answer in done]
            assert all(outcome in apart for outcome in whole), (seed, operation)
            if before.log.dispatched_offset == before.log.readable_end and before.is_open:
                compared += 1
                others = [answer for state, answer in apart if (state, answer) not in whole]
                assert all(map(_is_known_without_units, others)), (seed, operation)
    assert compared > 100


def _is_known_without_units(answer: Answer) -> bool:
    """Return whether a pull found its queue without a message.

    Another client may just have made the queue.
    """
    return isinstance(answer.client, QueueRead) and answer.client.status == "NO_MESSAGE_IN_QUEUE"


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_wrong_answer_leaves_no_outcome(name: str) -> None:
    layout, tried = LAYOUTS[name], 0
    for seed in SEEDS:
        for before, operation in states_met(layout, seed):
            ((state, answer), *_) = step(before, operation, layout)
            for wrong in wrong_answers(told(operation, state, answer)):
                tried += 1
                order = parts(operation, layout, found=wrong, queues=QUEUES)
                assert not list(carried_out(Shared.of(before), order)), (seed, operation, wrong)
    assert tried > 1000


def wrong_answers(answer: Answer) -> Iterator[Answer]:
    """Yield answers that no order explains: each differs from a right one in one value."""
    put = answer.put
    if isinstance(put, tuple):
        for name in ("offset", "size_bytes", "queue_offset", "store_timestamp", "message_count"):
            yield Answer(put=put._replace(**{name: getattr(put, name) + 1}))
    if answer.got is not None:
        yield Answer(got=answer.got._replace(status="NO_SUCH_STATUS"))
        yield Answer(got=answer.got._replace(queue_offset=answer.got.queue_offset + 1))
    if isinstance(answer.client, QueueRead):
        read = answer.client
        yield Answer(client=read._replace(next_begin_offset=read.next_begin_offset + 1))
        yield Answer(client=read._replace(max_offset=read.max_offset + 100))
        if read.records:
            yield Answer(client=read._replace(records=read.records[1:]))
    elif isinstance(answer.client, int):
        yield Answer(client=answer.client + 2000)
    if isinstance(answer.committed, int):
        yield Answer(committed=answer.committed + 100)
    if answer.durable is not None:
        yield Answer(durable=not answer.durable)
    if answer.names is not None:
        yield Answer(names=(*answer.names, "V"))


# ---- visible states between two parts ------------------------------------------------------------------------------


def shared_after(*operations: AnyOperation, layout: Layout = PLAIN) -> Shared:
    state = State()
    for operation in operations:
        state, _ = next(step(state, operation, layout))
    return Shared.of(state)


def answers(shared: Shared, operation: AnyOperation, layout: Layout = PLAIN) -> list[object]:
    """Return the legal answers to a client at this point."""
    return [answer.client for _, answer in carried_out(shared, parts(operation, layout))]


def test_a_queue_may_show_each_unit_before_the_step_of_dispatch_ends() -> None:
    shared = shared_after(Put(), Put(fill=1))
    assert answers(shared, AskMaximum()) == [0, 1, 2]
    ((dispatched, _),) = carried_out(shared, parts(Step("reput"), PLAIN))
    assert answers(dispatched, AskMaximum()) == [2]


def test_what_a_queue_has_shown_it_goes_on_to_show() -> None:
    shared = shared_after(Put(), Put(fill=1))
    ((seen, _),) = carried_out(shared, parts(AskMaximum(), PLAIN, found=Answer(client=1)))
    assert answers(seen, AskMaximum()) == [1, 2]


def test_a_deletion_takes_numbers_before_the_queue() -> None:
    shared = shared_after(Put(), Step("reput"))
    order = parts(DeleteTopics(), PLAIN, queues=(("T", 0),))
    assert [part.name for part in order] == [
        "commits stop", "numbers restart", "T/0 is gone", "progress is forgotten",
    ]  # fmt: skip
    ((after, _),) = carried_out(shared, order[:2])
    assert answers(after, AskMaximum()) == [1]
    ((_, answer),) = carried_out(after, parts(Put(fill=1), PLAIN))
    assert isinstance(answer.put, PutAnswer)
    assert answer.put.queue_offset == 0
    ((gone, _),) = carried_out(after, order[2:])
    assert answers(gone, AskMaximum()) == [0]


def test_a_commit_shows_the_log_bit_by_bit() -> None:
    pool = LAYOUTS["pool"]
    shared = shared_after(Put(), Put(fill=1), layout=pool)
    ends = [record.end_offset for record in shared.state.log.records]
    begins, ends_part, flushed = parts(Flush(), pool)
    assert (begins.name, ends_part.name, flushed.name) == ("commit begins", "commit ends", "flushed")
    assert shared.bounds(pool) == (0, 0)
    ((under_way, _),) = step_part(shared, begins)
    assert under_way.bounds(pool) == (0, ends[-1])
    statuses = [answer.got.status for _, answer in carried_out(under_way, parts(GetAt(ends[0]), pool)) if answer.got]
    assert statuses == ["OFFSET_OVERFLOW_BADLY", "OFFSET_OVERFLOW_ONE", "FOUND"]
    ((done, _),) = step_part(under_way, ends_part)
    assert done.bounds(pool) == (ends[-1], ends[-1])


def test_a_queue_that_follows_a_clean_up_late_passes_by_what_is_gone() -> None:
    puts = [Put(body_bytes=800, fill=fill) for fill in range(3)]
    shared = shared_after(*puts, Step("reput"))
    ((cleaned, _),) = carried_out(shared, parts(Step("clean"), PLAIN, found=Answer(client=1024)))
    reads = [read for read in answers(cleaned, Pull("T", 0, 0)) if isinstance(read, QueueRead)]
    assert [(read.status, read.min_offset, read.next_begin_offset) for read in reads] == [
        ("FOUND", 0, 3), ("OFFSET_TOO_SMALL", 1, 1),
    ]  # fmt: skip
    assert [record.queue_offset for record in reads[0].records] == [1, 2]
