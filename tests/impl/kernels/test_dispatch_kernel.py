"""Test the compiled dispatcher: its units and index entries are those of its plain twin."""

from functools import cache
from importlib import import_module
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.impl.log_files import LogFile, damaged, log_file, log_files
from tornpage.impl.dispatch import dispatch_records as plain
from tornpage.impl.message.delay_levels import DEFAULT_MESSAGE_DELAY_LEVEL, SCHEDULE_TOPIC, DelayLevels
from tornpage.impl.message.dispatching import Dispatched, DispatchRules, QueueRun
from tornpage.impl.message.message import Message
from tornpage.impl.message.multi_dispatch import MultiDispatch

RULES = DispatchRules(
    index=True,
    delay_levels=DelayLevels.parse(DEFAULT_MESSAGE_DELAY_LEVEL),
    multi_dispatch=None,
    ext=False,
    bit_map_of=None,
)


@cache
def compiled() -> Any:
    """Return the twin, compiled in this process by the first test that needs it."""
    return import_module("tornpage.impl.kernels.dispatch")


def rules() -> st.SearchStrategy[DispatchRules]:
    return st.builds(
        DispatchRules,
        index=st.booleans(),
        delay_levels=st.sampled_from((RULES.delay_levels, DelayLevels(()))),
        multi_dispatch=st.sampled_from((None, MultiDispatch(light_queues=False), MultiDispatch(light_queues=True))),
        ext=st.sampled_from((False, False, False, True)),
        bit_map_of=st.just(lambda topic, pairs: topic[:1]),
        batch_bytes_max=st.sampled_from((1, 200, 500, 1 << 20)),
    )


def joined(runs: Any) -> list[QueueRun]:
    """Return the runs, joining those that are adjacent in their queue and in their numbers."""
    made: list[QueueRun] = []
    latest: dict[Any, int] = {}
    for run in runs:
        kind = (run.key, run.named)
        before = latest.get(kind)
        if before is not None and made[before].queue_offset + len(made[before].units) // 20 == run.queue_offset:
            was = made[before]
            made[before] = was._replace(
                units=was.units + run.units, end_offset=run.end_offset, ext=(*was.ext, *run.ext)
            )
        else:
            latest[kind] = len(made)
            made.append(run)
    return made


def both(file: LogFile, use: DispatchRules, position: int = 0, end: int | None = None) -> Dispatched:
    """Return the result of the plain twin.

    The compiled one has to give the same in at most as many runs.
    """
    view = memoryview(file.data)
    end = len(view) if end is None else end
    expected = plain.dispatch_records(view, position, end, use)
    found = compiled().dispatch_records(view, position, end, use)
    assert (found.end_position, found.records, found.store_timestamp, found.reason) == (
        expected.end_position,
        expected.records,
        expected.store_timestamp,
        expected.reason,
    )
    assert [list(column) for column in found.index] == [list(column) for column in expected.index]
    assert sorted(joined(found.runs)) == sorted(joined(expected.runs))
    assert len(found.runs) <= len(expected.runs)
    firsts = list(dict.fromkeys((run.key, run.named) for run in expected.runs))
    assert list(dict.fromkeys((run.key, run.named) for run in found.runs)) == firsts
    assert all(type(number) is int for run in found.runs for number in (run.queue_offset, run.end_offset, run.key[1]))
    return expected


@pytest.mark.slow
@given(file=log_files(), use=rules(), data=st.data())
def test_twins_agree_on_whole_files(file: LogFile, use: DispatchRules, data: st.DataObject) -> None:
    position = 0
    while both(file, use, position).records:
        position = both(file, use, position).end_position
    end = data.draw(st.integers(0, len(file.data)), label="end")
    both(file, use, 0, end)
    both(file, use, data.draw(st.integers(0, end), label="position"), end)


@given(file=damaged(), use=rules())
@example(file=LogFile(b"", 0, 0), use=RULES)
def test_twins_agree_on_damaged_files(file: LogFile, use: DispatchRules) -> None:
    both(file, use)


@given(data=st.binary(max_size=200))
def test_twins_agree_on_any_bytes(data: bytes) -> None:
    both(LogFile(data, 0, len(data)), RULES)


@pytest.mark.parametrize("odd", [(), (1,), (2,), (1, 2)], ids=str)
@pytest.mark.parametrize("wrong", [1, 2])
def test_a_record_of_another_file_ends_the_batch_whichever_twin_reads_it(odd: tuple[int, ...], wrong: int) -> None:
    """Its physical offset may belong to a file, but not to the file of the record before."""
    topics = [SCHEDULE_TOPIC if number in odd else "T" for number in range(3)]
    file = log_file([(Message(topic, b""), False) for topic in topics])
    data = bytearray(file.data)
    at = 0
    for _ in range(wrong):
        at += int.from_bytes(data[at : at + 4], "big")
    offset = int.from_bytes(data[at + 28 : at + 36], "big")
    data[at + 28 : at + 36] = (offset + file.file_bytes).to_bytes(8, "big")
    expected = both(file._replace(data=bytes(data)), RULES)
    assert (expected.records, expected.reason) == (wrong, "bad_position")


@pytest.mark.parametrize("value", ["ff", "c3", "61eda080", "c080", "f4908080", "e09fbf", "f08fbfbf", "80"])
@pytest.mark.parametrize("name", ["KEYS", "TAGS", "UNIQ_KEY", "OTHER"])
def test_twins_agree_on_text_that_is_none(value: str, name: str) -> None:
    """Topic, property or both hold bytes that are no UTF-8; no put of this store writes them."""
    bad = bytes.fromhex(value)
    topic, text = b"t" * len(bad), b"x" * len(bad)
    properties = f"{name}\x01a{text.decode()} b\x02KEYS2\x01k\x02UNIQ_KEY\x01u"
    good = [Message("T" + topic.decode(), b"", properties=properties), Message("T", b"", properties="KEYS\x01k")]
    file = log_file([(message, False) for message in good])
    for wrong in ((topic,), (text,), (topic, text)):
        data = file.data
        for mark in wrong:
            data = data.replace(mark, bad)
        assert both(file._replace(data=data), RULES).records == 2


@given(key=st.text(st.characters(codec="utf-8", exclude_characters="\0\x01\x02"), min_size=1, max_size=8))
@example(key="é߿ࠀ퟿￿𐀀\U0010ffff")
@example(key="polygenelubricants")
def test_hashes_are_those_of_java(key: str) -> None:
    both(
        log_file([(Message("T", b"", properties=f"TAGS\x01{key}\x02UNIQ_KEY\x01{key}\x02KEYS\x01{key}"), True)]), RULES
    )


@pytest.mark.parametrize("keys", [3, 68, 69, 5000])
def test_many_keys_and_many_records_leave_the_tables_of_the_kernel_whole(keys: int) -> None:
    message = Message("T", b"", properties="KEYS\x01" + " ".join(map(str, range(keys))))
    file = log_file([(message, False)] * 3)
    expected = both(file, RULES)
    assert len(expected.index.hashes) == 3 * keys


@pytest.mark.parametrize("count", [4095, 4096, 4097])
def test_more_records_than_the_kernel_takes_at_once(count: int) -> None:
    kinds = [(Message("T", b"", queue_id=n % 3, prepared_transaction_offset=n // 3), False) for n in range(count)]
    assert both(log_file(kinds), RULES).records == count


def test_each_record_may_have_a_queue_of_its_own() -> None:
    kinds = [(Message(f"T{n % 700}", b"", queue_id=n), False) for n in range(3000)]
    assert len(both(log_file(kinds), RULES).runs) == 3000


def test_ordinary_records_do_not_fall_back_on_the_plain_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = "KEYS\x01k1 k2\x02TAGS\x01标\x02UNIQ_KEY\x01u"
    kinds = [(Message("中文", b"b", properties=properties, prepared_transaction_offset=n), True) for n in range(9)]
    file = log_file(kinds)
    monkeypatch.setattr(plain, "dispatch_records", None)
    found = compiled().dispatch_records(memoryview(file.data), 0, len(file.data) - 72, RULES)
    assert (found.records, len(found.runs), len(found.index.hashes)) == (9, 1, 27)


def test_the_view_can_be_released_behind_a_dispatch() -> None:
    view = memoryview(bytearray(log_file([(Message("T", b""), True)]).data))
    found = compiled().dispatch_records(view, 0, len(view), RULES)
    view.release()
    assert found.records == 1
