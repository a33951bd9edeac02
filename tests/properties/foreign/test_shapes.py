"""Test the shapes: legal states after a crash, findings, and the language of promises."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tornpage.model.operations import Call
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.foreign.protocol import BadHandshake, read_handshake
from tornpage.properties.foreign.shapes.adapters import answer_of_shape, answer_together
from tornpage.properties.foreign.shapes.history import Effect, cuts
from tornpage.properties.foreign.shapes.language import Promises, promises_of
from tornpage.properties.foreign.shapes.memory import MemoryFiles, MemoryKeyValue, MemoryLog, MemoryQueues
from tornpage.properties.foreign.shapes.registry import SHAPES, run_of
from tornpage.properties.foreign.shapes.shape import Book

STORES: dict[str, Callable[..., Any]] = {
    "key-value": MemoryKeyValue,
    "queue": MemoryQueues,
    "log": MemoryLog,
    "file": MemoryFiles,
}
USUAL: dict[str, dict[str, Any]] = {
    "key-value": {"batch": "atomic"},
    "queue": {"delete": True},
    "log": {"truncate": "both"},
    "file": {"remove": True},
}


class Direct:
    """Answer from a store in this process."""

    def __init__(self, shape: str, store: Any) -> None:
        self._shape, self.store = shape, store

    def call(self, do: str, **arguments: Any) -> dict[str, Any]:
        return answer_of_shape(self._shape, self.store, {"do": do, **arguments})

    def together(self, calls: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int, dict[str, Any]]]:
        found: list[dict[str, Any]] = []
        answer_together(self._shape, self.store, calls, found.append)
        for moment, answer in enumerate(found):
            yield moment, answer.pop("call"), answer

    def ahead(self, do: str, requests: Iterable[Mapping[str, Any]]) -> None:
        """Answer when asked."""

    def odd(self, do: str, answer: Any, expected: str) -> GuaranteeBroken:
        return GuaranteeBroken(8, f"{do}: {expected}", "", str(answer))


class Pair:
    """Run a store in memory beside its book."""

    def __init__(self, shape: str, store: Any = None, **promises: Any) -> None:
        given = {**USUAL[shape], **promises}
        self.store = STORES[shape](**given) if store is None else store
        self.session = Direct(shape, self.store)
        book = run_of(shape, promises_of(SHAPES[shape].promises, given))
        assert isinstance(book, Book)
        self.book = book
        self.count = 0

    def run(self, *calls: Call) -> "Pair":
        for call in calls:
            self.count += 1
            self.book.carry_out(call, self.session, self.count)
        return self

    def flush(self) -> "Pair":
        self.store.flush()
        self.book.flushed("the flush")
        return self

    def judge(self, fault: Any, since: Any = None) -> int:
        return self.book.judge(self.session, fault, self.book.state if since is None else since)

    def broken(self, fault: Any = "power", since: Any = None) -> tuple[int, str]:
        with pytest.raises(GuaranteeBroken) as raised:
            self.judge(fault, since)
        return raised.value.contract, raised.value.sentence

    def takes(self, *serials: int) -> "Pair":
        """Take effects away from the store, whatever it has promised."""
        left = [effect for effect in self.store._state.effects if effect.serial not in serials]
        self.store._state = self.store._state.cut_to(left)
        return self


def put(key: str, size_bytes: int = 8) -> Call:
    return Call("put", key, size_bytes=size_bytes)


def append(count: int = 1) -> list[Call]:
    return [Call("append", size_bytes=8)] * count


# ---- references keep their promises ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", STORES)
@pytest.mark.parametrize("ordered", [False, True], ids=["independent", "ordered"])
@pytest.mark.parametrize("durable", ["", "flush", "close", "nothing", ["flush"]], ids=str)
def test_reference_holds_in_random_programs(shape: str, ordered: bool, durable: Any) -> None:
    promises: dict[str, Any] = {"ordered": ordered, **({"durable": durable} if durable else {})}
    rng, lost = random.Random(7), 0
    for _ in range(12):
        pair = Pair(shape, **promises)
        for _ in range(30):
            kind = rng.random()
            if kind < 0.8:
                call = pair.book.draw(rng.choice)
                assert isinstance(call, Call)
                pair.run(call)
            elif kind < 0.9:
                pair.flush()
            else:
                fault = rng.choice(("kill", "power"))
                lost += pair.store.crash(fault)
                pair.judge(fault)
    assert bool(lost) == bool(durable), "a store whose writes are durable loses nothing at rest"


@pytest.mark.parametrize("shape", STORES)
def test_loss_of_any_promised_write_is_found(shape: str) -> None:
    """One write that still shows is taken from a store that has promised it."""
    rng, found = random.Random(3), 0
    for _ in range(60):
        pair = Pair(shape)
        for _ in range(8):
            call = pair.book.draw(rng.choice)
            assert isinstance(call, Call)
            pair.run(call)
        before = pair.session.store._state
        cells = {effect.cell for effect in before.effects}
        shown = {cell: pair.book.now(cell) for cell in cells}
        if not before.effects:
            continue
        pair.takes(rng.choice(before.effects).serial)
        state = pair.store._state.effects
        now = {cell: pair.book.shape.value(cell, [e for e in state if e.cell == cell]) for cell in cells}
        if now != shown:
            assert pair.broken()[0] in (1, 2, 3, 4)
            found += 1
        else:
            assert pair.judge("power") == 0
    assert found > 10


# ---- what a crash may leave ------------------------------------------------------------------------------------------


def effects(*promised: bool, together: tuple[int, ...] = ()) -> list[Effect]:
    return [
        Effect(n, n, "a", "put", n, power="x" if safe else "", together=7 if n in together else 0, caller=n)
        for n, safe in enumerate(promised, 1)
    ]


def numbers(given: list[Effect]) -> list[list[int]]:
    return [[effect.serial for effect in cut.effects] for cut in cuts(given, "power", {})]


def test_cuts_are_prefixes_with_everything_promised() -> None:
    assert numbers(effects(False, False)) == [[1, 2], [1], []]
    assert numbers(effects(False, True, False)) == [[1, 2, 3], [1, 2]]
    assert numbers(effects(True)) == [[1]]


def test_concurrent_effects_survive_in_any_subset() -> None:
    row = effects(False, False, False, False, together=(2, 3))
    assert numbers(row) == [[1, 2, 3, 4], [1, 2, 3], [1, 2], [1, 3], [1], []]
    promised = effects(False, False, True, together=(2, 3))
    assert numbers(promised) == [[1, 2, 3], [1, 3]]


def test_keys_are_independent_unless_one_order_is_promised() -> None:
    """The put of key b survives, and the earlier one of key a does not."""
    loose = Pair("key-value", durable="flush").run(put("a"), put("b")).takes(1)
    assert loose.judge("power") == 1
    strict = Pair("key-value", durable="flush", ordered=True).run(put("a"), put("b")).takes(1)
    assert strict.broken() == (1, "a write survives although an earlier one is lost")


def test_queues_are_independent_and_ordered_in_themselves() -> None:
    loose = Pair("queue", durable="flush").run(put("q"), put("r")).takes(1)
    assert loose.judge("power") == 1
    torn = Pair("queue", durable="flush").run(put("q"), put("q")).takes(1)
    assert torn.broken() == (1, "a message survives although an earlier one of its queue is lost")


@pytest.mark.parametrize(("batch", "half"), [("atomic", True), ("each", False)])
def test_batch_survives_as_promised(batch: str, half: bool) -> None:
    pair = Pair("key-value", durable="flush", batch=batch).run(Call("batch", parts=(put("a"), put("b")))).takes(2)
    if half:
        assert pair.broken() == (1, "a part of an atomic batch survives without the rest")
    else:
        assert pair.judge("power") == 1


def test_chain_of_batches_is_shortened_in_every_key() -> None:
    """Key c shows that the second batch is lost; then key b must not show it."""
    batches = (Call("batch", parts=(put("a"), put("b"))), Call("batch", parts=(put("b"), put("c"))))
    assert Pair("key-value", durable="flush").run(*batches).takes(3, 4).judge("power") == 2
    assert Pair("key-value", durable="flush").run(*batches).takes(4).broken()[0] == 1


def test_commit_makes_its_batch_durable_and_not_other_puts() -> None:
    calls = (put("a"), Call("batch", parts=(put("b"),)))
    assert Pair("key-value", durable="commit").run(*calls).takes(1).judge("power") == 1
    assert Pair("key-value", durable="commit").run(*calls).takes(2).broken()[0] == 2


def test_flush_without_close() -> None:
    flushed = Pair("key-value", durable=["flush"]).run(put("a")).flush().takes(1)
    assert flushed.broken()[0] == 2
    closed = Pair("key-value", durable=["flush"]).run(put("a"))
    closed.book.closed("the close")
    assert closed.takes(1).judge("power") == 1


def test_kill_and_power_are_promised_apart() -> None:
    assert (
        Pair("file", durable="flush", kill="write").run(Call("write", "a", size_bytes=8)).takes(1).broken("kill")[0]
        == 2
    )
    assert (
        Pair("file", durable="flush", kill="write").run(Call("write", "a", size_bytes=8)).takes(1).judge("power") == 1
    )


def test_call_without_answer_may_have_happened_or_not() -> None:
    for lost in ((), (1,)):
        pair = Pair("key-value")
        before = pair.book.state
        pair.run(put("a")).takes(*lost)
        assert pair.judge("power", before) == len(lost)
        assert bool(pair.book.now("a")) != bool(lost)


def test_lost_value_may_not_come_back() -> None:
    pair = Pair("key-value", durable="flush").run(put("a"))
    value, held = pair.store.get("a"), pair.store._state
    assert pair.takes(1).judge("power") == 1
    pair.store._state = held
    assert value is not None
    assert pair.broken() == (3, "a write comes back that an earlier crash had taken")


def test_recovered_write_is_safe_only_if_promised() -> None:
    for recovered, contract in ((False, 0), (True, 2)):
        pair = Pair("key-value", recovered=recovered)
        before = pair.book.state
        pair.run(put("a"))
        assert pair.judge("kill", before) == 0
        pair.book.recovered("the recovery")
        pair.takes(1)
        if contract:
            assert pair.broken()[0] == contract
        else:
            assert pair.judge("power") == 1


# ---- queues ----------------------------------------------------------------------------------------------------------

DELIVERED = (put("q"), put("q"), Call("take", "q"), Call("acknowledge", "q"))


def test_acknowledgement_has_a_promise_of_its_own() -> None:
    again = (3, "a message is delivered again whose removal was promised to survive")
    assert Pair("queue").run(*DELIVERED).takes(3).broken() == again
    assert Pair("queue", removed="flush", removed_kill="remove").run(*DELIVERED).takes(3).judge("power") == 1


@pytest.mark.parametrize("take", ["lends", "removes"])
def test_judge_takes_the_messages_of_a_store_without_a_list(take: str) -> None:
    pair = Pair("queue", list=False, take=take).run(put("q"), put("q"), put("r"))
    pair.store.crash("kill")
    assert pair.judge("kill") == 0
    pair.run(Call("take", "q"), Call("acknowledge", "q"))
    assert len(pair.book.now("q")) == (1 if take == "lends" else 0)
    assert Pair("queue", list=False, take=take).run(put("q")).takes(1).broken()[0] == 2


def test_order_and_doubles_of_a_queue() -> None:
    pair = Pair("queue").run(put("q"), put("q"))
    one, two = pair.store._state.effects
    for found, said in (
        ((two, one), (4, "a queue has its messages in another order than they were put")),
        ((one, two, replace(one, serial=9)), (1, "a queue has a message twice")),
        ((one, two, replace(one, serial=9, value=b"?")), (1, "a queue has a message that was never put there")),
    ):
        pair.store._state = replace(pair.store._state, effects=found)
        assert pair.broken() == said
    loose = Pair("queue", fifo=False).run(put("q"), put("q"))
    loose.store._state = replace(loose.store._state, effects=loose.store._state.effects[::-1])
    assert loose.judge("power") == 0


def test_take_of_the_wrong_message_is_found() -> None:
    pair = Pair("queue").run(put("q"), put("q"))
    pair.store._taken.add(1)
    with pytest.raises(GuaranteeBroken, match="a take returns another message than the next one"):
        pair.run(Call("take", "q"))


# ---- logs ------------------------------------------------------------------------------------------------------------


def test_truncations_of_a_log() -> None:
    front, back = Call("truncate_front", number=1), Call("truncate_back", number=1)
    assert Pair("log").run(*append(3), front).takes(4).broken()[0] == 3
    assert Pair("log").run(*append(3), back).takes(4).broken()[0] == 3
    late = {"removed": "flush", "removed_kill": "remove"}
    assert Pair("log", **late).run(*append(3), front, *append()).takes(4).judge("power") == 1
    ordered = Pair("log", ordered=True, **late).run(*append(3), front, *append()).takes(4)
    assert ordered.broken()[0] in (1, 3)


def test_log_without_an_entry_in_the_middle_has_a_gap() -> None:
    assert Pair("log", durable="flush").run(*append(3)).takes(2).broken() == (4, "the log has a gap")
    assert Pair("log").run(*append(3)).takes(3).broken() == (2, "an entry that was promised to survive is lost")


def test_concurrent_appends_are_ordered_by_their_indexes() -> None:
    together = Call("together", parts=(*append(3),))
    pair = Pair("log", callers=3)
    before = pair.book.state
    pair.run(together)
    assert sorted(index for index, _ in pair.book.now("the log")) == [0, 1, 2]
    last = pair.store._state.effects[-1].serial
    assert pair.takes(last).judge("power", before) == 1


def test_concurrent_writes_of_two_keys_have_no_order() -> None:
    pair = Pair("key-value", callers=3, ordered=True)
    before = pair.book.state
    pair.run(Call("together", parts=(put("a"), put("b"))))
    assert pair.takes(pair.store._state.effects[0].serial).judge("power", before) == 1


# ---- files -----------------------------------------------------------------------------------------------------------


def test_part_of_a_file_is_allowed_only_without_atomic_writes() -> None:
    for atomic in (True, False):
        pair = Pair("file", atomic=atomic)
        pair.run(Call("write", "a", size_bytes=8))
        before = pair.book.state
        pair.run(Call("write", "a", size_bytes=40))
        part = replace(pair.store._state.effects[-1], value=b"part")
        pair.store._state = replace(pair.store._state, effects=(part,))
        if atomic:
            assert pair.broken(since=before) == (1, "the store has something else than any write left")
        else:
            assert pair.judge("power", before) == 0
            assert pair.book.now("a") == b"part"


# ---- the language ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "promises", "said"),
    [
        ("key-value", {}, "durable after put, safe from a kill after put"),
        ("key-value", {"durable": ["flush"], "kill": "put"}, "durable after flush alone, safe from a kill after put"),
        ("key-value", {"durable": "nothing", "kill": "put", "ordered": True}, "after put; one order of all writes"),
        ("queue", {"removed": "nothing"}, "removals after nothing; a take lends"),
        ("log", {"durable": "flush", "truncate": "front"}, "durable after flush, safe from a kill after flush"),
        (
            "file",
            {"consistent": "kill", "kill": "write"},
            "no promise after a power loss, safe from a kill after write",
        ),
    ],
)
def test_promises_are_said_in_words(shape: str, promises: Mapping[str, Any], said: str) -> None:
    read: Promises = promises_of(SHAPES[shape].promises, promises)
    assert said in read.said()


@pytest.mark.parametrize(
    ("shape", "promises", "said"),
    [
        ("key-value", {"durable": ["flush", "soon"]}, "put, commit, flush, close, nothing, or a list of such points"),
        ("key-value", {"durable": "put", "kill": "flush"}, "so kill needs put too"),
        ("queue", {"removed": "put"}, "removed is 'put': remove, flush, close, nothing"),
        ("queue", {"take": "gives"}, "take is 'gives': lends, removes"),
        ("queue", {"index": True}, "promises 'index', which is not a known promise"),
        ("log", {"callers": 99}, "callers is 99: at most 16"),
        ("messages", {"ordered": False}, "state the shape queue"),
    ],
)
def test_wrong_promises_are_named(shape: str, promises: Mapping[str, Any], said: str) -> None:
    with pytest.raises(BadHandshake) as raised:
        read_handshake({"tornpage": 1, "shape": shape, "promises": promises})
    assert said in str(raised.value)
