"""Test overlapping calls: the judge accepts exactly what some order of them explains."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import Any

import pytest

from tests.properties.foreign.test_shapes import STORES, Pair, append, put
from tornpage.model.operations import Call
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.foreign.shapes.history import History
from tornpage.properties.foreign.shapes.language import promises_of
from tornpage.properties.foreign.shapes.registry import SHAPES, run_of
from tornpage.properties.foreign.shapes.shape import Book, decoded, encoded, value_of

GET_A = Call("get", "a")


class Scripted:
    """Answer what a test says: reads from `values`, concurrent calls in the order `arrives`."""

    def __init__(self) -> None:
        self.values: dict[str, bytes | None] = {}
        self.queues: dict[str, list[bytes]] = {}
        self.answers: dict[int, dict[str, Any]] = {}
        self.arrives: Sequence[int] = ()
        self.sent: list[Any] = []

    def call(self, do: str, **arguments: Any) -> dict[str, Any]:
        if do == "get":
            return {"value": encoded(self.values.get(arguments["key"]))}
        if do == "scan":
            return {"pairs": [[key, encoded(value)] for key, value in self.values.items() if value is not None]}
        if do == "list":
            return {"bodies": [encoded(body) for body in self.queues.get(arguments["queue"], [])]}
        if do == "put":
            self.sent.append(decoded(self, do, arguments, arguments.get("value", arguments.get("body"))))
        return {}

    def together(self, calls: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int, dict[str, Any]]]:
        self.sent = [
            decoded(self, "together", call, call.get("value", call.get("body"))) if call["do"] == "put" else None
            for call in calls
        ]
        for moment, caller in enumerate(self.arrives or range(len(calls))):
            yield moment, caller, self.answers.get(caller, {})

    def ahead(self, do: str, requests: Iterable[Mapping[str, Any]]) -> None:
        """Answer when asked."""

    def odd(self, do: str, answer: Any, expected: str) -> GuaranteeBroken:
        return GuaranteeBroken(8, f"{do}: {expected}", "", str(answer))


class Run:
    """Carry out concurrent calls on a scripted store."""

    def __init__(self, shape: str = "key-value", **promises: Any) -> None:
        book = run_of(shape, promises_of(SHAPES[shape].promises, {"callers": 4, **promises}))
        assert isinstance(book, Book)
        self.book, self.store, self.count = book, Scripted(), 0

    def call(self, call: Call) -> "Run":
        self.count += 1
        self.book.carry_out(call, self.store, self.count)
        return self

    def together(self, *calls: Call, arrives: Sequence[int] = (), **answers: dict[str, Any]) -> list[Any]:
        """Return the values of the calls. The answer of caller 0 is given as `c0`."""
        self.store.arrives = arrives
        self.store.answers = {int(name[1:]): answer for name, answer in answers.items()}
        self.call(Call("together", parts=calls))
        return self.store.sent

    def finds(self, key: str, value: bytes | None) -> "Run":
        self.store.values[key] = value
        return self.call(Call("get", key))

    def accepts(self, since: History | None = None, **found: bytes | None) -> bool:
        """Return whether a power loss may leave the values, without a change of this run."""
        state, self.store.values = self.book.state, dict(found)
        try:
            self.book.judge(self.store, "power", state if since is None else since)
        except GuaranteeBroken:
            return False
        finally:
            self.book.state = state
        return True


# ---- registers -------------------------------------------------------------------------------------------------------


def test_overlapping_puts_end_in_either_order_and_then_in_one() -> None:
    run = Run()
    one, two = run.together(put("a"), put("a"))
    assert [run.accepts(a=value) for value in (one, two, None)] == [True, True, False]
    assert run.accepts(a=one, b=b"?") is False
    run.finds("a", two)
    assert [run.accepts(a=value) for value in (one, two)] == [False, True]
    with pytest.raises(GuaranteeBroken, match="a get returns another value than the last one put"):
        run.finds("a", one)


def test_order_that_a_crash_has_shown_stays() -> None:
    run = Run(durable="flush")
    one, two = run.together(put("a"), put("a"))
    run.store.values = {"a": one}
    run.book.judge(run.store, "power", run.book.state)
    assert [run.accepts(a=value) for value in (one, two, None)] == [True, True, True]
    run.finds("a", one)
    with pytest.raises(GuaranteeBroken):
        run.finds("a", two)


def test_put_answered_before_the_crash_is_there_and_an_unanswered_one_may_be() -> None:
    run = Run()
    one, two = run.together(put("a"), put("b"), arrives=(1, 0))
    moment, midway = run.book.midway[0]
    assert moment == 0
    assert run.accepts(midway, a=None, b=two)
    assert run.accepts(midway, a=one, b=two)
    assert not run.accepts(midway, a=one, b=None)
    assert run.accepts(History(values=2), a=None, b=None)


def test_unanswered_put_replaces_the_answered_one_or_does_not() -> None:
    run = Run()
    run.call(put("a"))
    (old,) = run.store.sent
    one, two, three = run.together(put("a"), put("a"), put("a"), arrives=(1, 0, 2))
    midway = run.book.midway[0][1]
    assert [run.accepts(midway, a=value) for value in (old, one, two, three, None)] == [False, True, True, True, False]


def test_later_put_hides_both() -> None:
    run = Run()
    one, two = run.together(put("a"), put("a"))
    run.call(put("a"))
    assert [run.accepts(a=value) for value in (one, two, run.store.sent[-1])] == [False, False, True]


def test_overlapping_batches_end_in_one_order_for_all_keys() -> None:
    run = Run(batch="atomic")
    parts = (put("a"), put("b"))
    run.together(Call("batch", parts=parts), Call("batch", parts=parts))
    a1, b1, a2, b2 = (effect.value for effect in run.book.state.effects)
    legal = [run.accepts(a=a, b=b) for a, b in ((a1, b1), (a2, b2), (a1, b2), (a2, b1))]
    assert legal == [True, True, False, False]
    run.finds("a", a1)
    with pytest.raises(GuaranteeBroken):
        run.finds("b", b2)
    run.store.values = {"a": a1, "b": b2}
    with pytest.raises(GuaranteeBroken) as raised:
        Run.accepts(run, a=a1, b=b2) or run.book.judge(run.store, "power", run.book.state)
    assert raised.value.contract in (2, 17)


def test_overlapping_get_returns_a_value_of_the_key() -> None:
    for value, legal in ((0, True), (1, True), (2, True), (None, False)):
        run = Run()
        run.call(put("a"))
        values = [run.store.sent[0]]
        values += [value_of(2, 8), value_of(3, 8)]
        answer = {"value": None if value is None else encoded(values[value])}
        calls = (put("a"), put("a"), GET_A)
        if legal:
            run.together(*calls, c2=answer)
            assert run.accepts(a=values[1])
            assert run.accepts(a=values[2])
        else:
            with pytest.raises(GuaranteeBroken, match="a get returns another value"):
                run.together(*calls, c2=answer)


@pytest.mark.parametrize("reads", ["early", "durable"])
def test_value_that_a_get_has_returned_is_lost_only_if_reads_may_be_early(reads: str) -> None:
    run = Run(reads=reads)
    value = value_of(1, 8)
    run.together(put("a"), GET_A, arrives=(1, 0), c1={"value": encoded(value)})
    midway = run.book.midway[0][1]
    assert run.accepts(midway, a=value)
    assert run.accepts(midway, a=None) == (reads == "early")


def legal_states(
    calls: Sequence[Call], values: Sequence[bytes], answered: set[int], seen: Mapping[str, bytes | None]
) -> set[tuple[bytes | None, ...]]:
    """Return the values of a and b that some order of the calls leaves, by trying everything.

    Reads at rest have `seen` values. Each key keeps the first writes of the order, with the answered ones.
    """
    found: set[tuple[bytes | None, ...]] = set()
    for order in permutations(range(len(calls))):
        rows = {key: [n for n in order if calls[n].name == key] for key in "ab"}
        last = {key: values[row[-1]] if row else None for key, row in rows.items()}
        if any(last[key] != value for key, value in seen.items()):
            continue
        kept = []
        for row in rows.values():
            fewest = max((place for place, n in enumerate(row, 1) if n in answered), default=0)
            kept.append([values[row[count - 1]] if count else None for count in range(fewest, len(row) + 1)])
        found |= set(product(*kept))
    return found


def test_judge_agrees_with_a_trial_of_everything() -> None:
    rng, compared = random.Random(5), 0
    for _ in range(60):
        calls = [put(rng.choice("aab")) for _ in range(rng.randrange(2, 5))]
        arrives = rng.sample(range(len(calls)), len(calls))
        run = Run(durable=rng.choice(("put", "flush")))
        values = run.together(*calls, arrives=arrives)
        seen: dict[str, bytes | None] = {}
        count = rng.randrange(len(calls) + 1)
        midway = run.book.midway[count - 1][1] if count else History(values=run.book.state.values)
        if count == len(calls) and rng.random() < 0.7:
            key = calls[0].name
            seen[key] = rng.choice([value for value, call in zip(values, calls, strict=True) if call.name == key])
            run.finds(key, seen[key])
            midway = run.book.state
        answered = set(arrives[:count]) if "put" in run.book.promises.durable else set()
        legal = legal_states(calls, values, answered, seen)
        for state in product([None, *values], [None, *values]):
            assert run.accepts(midway, a=state[0], b=state[1]) == (state in legal), (calls, arrives[:count], state)
            compared += 1
    assert compared > 600


# ---- queues ----------------------------------------------------------------------------------------------------------


def listed(run: Run, *bodies: bytes) -> None:
    run.store.queues = {"q": list(bodies)}
    run.call(Call("list", "q"))


def test_overlapping_puts_of_a_queue_have_one_order() -> None:
    run = Run("queue")
    one, two, three = run.together(put("q"), put("q"), put("q"))
    listed(run, two, three, one)
    with pytest.raises(GuaranteeBroken, match="a list returns other messages"):
        listed(run, three, two, one)
    run.store.queues = {"q": [two, three, one]}
    assert run.book.judge(run.store, "power", run.book.state) == 0
    for found, number in (((two, one, three), 4), ((two, three), 2), ((three, one), 2)):
        run.store.queues = {"q": list(found)}
        with pytest.raises(GuaranteeBroken) as raised:
            run.book.judge(run.store, "power", run.book.state)
        assert raised.value.contract == number


def test_concurrent_takes_return_different_messages() -> None:
    run = Run("queue")
    for _ in range(2):
        run.call(put("q"))
    first, second = (effect.value for effect in run.book.state.effects)
    take = Call("take", "q")
    with pytest.raises(GuaranteeBroken, match="two concurrent takes return the same message"):
        run.together(take, take, c0={"handle": 1, "body": encoded(first)}, c1={"handle": 2, "body": encoded(first)})
    with pytest.raises(GuaranteeBroken, match="no order of the concurrent calls explains what the takes return"):
        run.together(take, put("r"), c0={"handle": 1, "body": encoded(second)})
    run.together(take, take, c0={"handle": 1, "body": encoded(second)}, c1={"handle": 2, "body": encoded(first)})
    assert [handle for handle, _ in run.book.taken["q"]] == [1, 2]
    with pytest.raises(GuaranteeBroken, match="no order"):
        run.together(take, put("q"), c0={"handle": 1, "body": encoded(first)})


def test_take_shows_the_order_of_puts_that_overlap_it() -> None:
    one, two = value_of(1, 8), value_of(2, 8)
    run = Run("queue")
    run.together(put("q"), put("q"), Call("take", "q"), c2={"handle": 1, "body": encoded(two)})
    listed(run, two, one)
    run = Run("queue", take="removes")
    run.together(put("q"), put("q"))
    run.together(Call("take", "q"), put("q"), c0={"handle": 1, "body": encoded(two)})
    rest = [effect.value for effect in run.book.state.effects if effect.kind == "put" and effect.value != two]
    listed(run, *rest)
    with pytest.raises(GuaranteeBroken, match="a list returns other messages"):
        listed(run, *rest[::-1])


# ---- every shape -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", STORES)
@pytest.mark.parametrize("ordered", [False, True], ids=["independent", "ordered"])
@pytest.mark.parametrize("durable", ["", "nothing"], ids=["durable", "lost"])
def test_reference_with_concurrent_callers_holds(shape: str, ordered: bool, durable: str) -> None:
    promises: dict[str, Any] = {"ordered": ordered, "callers": 4, **({"durable": durable} if durable else {})}
    rng, lost, together = random.Random(11), 0, 0
    for _ in range(8):
        pair = Pair(shape, **promises)
        for _ in range(12):
            if rng.random() < 0.85:
                call = pair.book.draw(rng.choice)
                assert isinstance(call, Call)
                together += call.verb == "together"
                pair.run(call)
            else:
                fault = rng.choice(("kill", "power"))
                lost += pair.store.crash(fault)
                pair.judge(fault)
    assert together > 10
    assert bool(lost) == bool(durable)


def test_at_most_four_calls_of_a_row_are_carried_out() -> None:
    run = Run(callers=16)
    assert len(run.together(*[put("a")] * 6)) == 4
    assert {len(orders) for orders in run.book.state.orders.values()} == {24}
    assert Run(callers=2).together(*[put("a")] * 6)[2:] == []


def test_log_continues_after_concurrent_appends() -> None:
    pair = Pair("log", callers=3).run(*append(2), Call("together", parts=tuple(append(3))), *append(1))
    assert [index for index, _ in pair.book.now("the log")] == [0, 1, 2, 3, 4, 5]
