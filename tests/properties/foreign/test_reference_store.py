"""Test the reference store: its answers, each promise in each crash fault, and refusals."""

import pytest

from tornpage.properties.foreign.reference_store import SAFE_AFTER, CrashFault, ReferenceStore, SafeAfter


def filled(**promises: SafeAfter) -> ReferenceStore:
    """Return a store with a flushed message and one that was not flushed."""
    store = ReferenceStore(**promises)  # type: ignore[arg-type]
    store.put("T", 0, b"flushed")
    store.flush()
    store.put("T", 0, b"put")
    return store


def test_it_answers_by_offset_by_number_and_by_key() -> None:
    store = ReferenceStore()
    first, number = store.put("T", 1, b"a", ["k", "j"])
    assert (number, store.put("T", 1, b"b", ["k"])[1], store.put("T", 2, b"c", ["k"])[1]) == (0, 1, 0)
    assert store.get(first) == b"a"
    assert store.get(first + 1) is None
    assert [store.read("T", 1, n) for n in (0, 1, 2, -1)] == [b"a", b"b", None, None]
    assert (store.find("T", "k"), store.find("T", "j"), store.find("U", "k")) == ([b"a", b"b", b"c"], [b"a"], [])


@pytest.mark.parametrize(
    ("promise", "least"), [("put", 2), ("flush", 1), ("close", 0), ("nothing", 0)], ids=lambda value: str(value)
)
@pytest.mark.parametrize("disaster", ["power", "kill"])
def test_a_disaster_leaves_what_was_promised_or_more(promise: SafeAfter, least: int, disaster: CrashFault) -> None:
    store = filled(durable=promise)
    assert sorted(store.survivors(disaster)) == list(range(least, 3))
    assert store.crash(disaster) == least
    assert store.read("T", 0, least) is None


def test_a_kill_may_take_less_than_a_power_loss() -> None:
    store = filled(durable="flush", kill="put")
    assert (sorted(store.survivors("kill")), sorted(store.survivors("power"))) == ([2], [1, 2])


@pytest.mark.parametrize("promise", SAFE_AFTER)
def test_a_close_keeps_everything_that_it_promises(promise: SafeAfter) -> None:
    store = filled(durable=promise)
    store.close()
    store.reopen()
    assert (store.read("T", 0, 1) == b"put") == (promise != "nothing")


def test_a_put_under_way_may_survive_or_not() -> None:
    store = ReferenceStore()
    before = store.state
    store.put("T", 0, b"a")
    assert sorted(store.survivors("power", since=before)) == [0, 1]
    assert store.crash("power", messages=1, since=before) == 1
    assert sorted(store.survivors("power")) == [0, 1], "recovery alone promises nothing"
    store.flush()
    assert sorted(store.survivors("power")) == [0, 1], "a flush of a store that promises with the put may do nothing"
    store.put("T", 0, b"b")
    assert sorted(store.survivors("power")) == [2], "what is before an answered message is as safe as that"


def test_numbers_go_on_behind_what_survived() -> None:
    store = filled(durable="flush")
    assert store.crash("power") == 1
    assert store.put("T", 0, b"again")[1] == 1


def test_it_refuses_what_contradicts_itself_and_says_so() -> None:
    with pytest.raises(ValueError, match="a kill takes less than a power loss"):
        ReferenceStore(durable="put", kill="flush")
    with pytest.raises(ValueError, match="'always' is no promise: put, flush, close, nothing"):
        ReferenceStore(durable="always")
    store = filled(durable="put")
    with pytest.raises(ValueError, match="1 messages: a kill leaves 2 to 2"):
        store.crash("kill", messages=1)
    with pytest.raises(ValueError, match="the body has 2000000 bytes"):
        store.put("T", 0, bytes(2_000_000))
    with pytest.raises(ValueError, match="the message is refused: MESSAGE_ILLEGAL"):
        store.put("", 0, b"")
    store.close()
    with pytest.raises(ValueError, match="the store is closed"):
        store.put("T", 0, b"")
