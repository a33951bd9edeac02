"""Test that a wrong answer of a function without a disk is found."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tornpage.impl.config import defaults
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.read_marks import ReadMarks
from tornpage.impl.message import codec, key_hash
from tornpage.impl.read import runtime_info, sql92, sql92_nodes
from tornpage.impl.read.filters import PropertyFilter
from tornpage.impl.read.queue_pull import TransferLimits
from tornpage.impl.statistics import read_statistics, store_statistics
from tornpage.model.broker.defaults import DEFAULTS
from tornpage.model.broker.statistics import Samples, bucket_of
from tornpage.model.operations import TryFunctions
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.lockstep.functions import files, filters, policies, records, texts
from tornpage.properties.lockstep.functions.asking import functions_answer
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings


@pytest.fixture(autouse=True)
def _new_expressions() -> Iterator[None]:
    """Forget the compiled expressions of a wrong compiler."""
    yield
    sql92._compiled.cache_clear()


def ask_all(fills: int = 6) -> None:
    for fill in range(fills):
        functions_answer(fill)


def test_all_functions_answer_as_the_model() -> None:
    ask_all()


@pytest.mark.parametrize(
    ("place", "name", "wrong"),
    [
        (read_statistics, "_SAMPLES_MAX", 600),
        (store_statistics, "_MINUTE_MS", 61_000),
        (store_statistics, "_LIMITS_MS", (1, 10, 51)),
        (store_statistics, "REFUSALS_PER_WARNING", 50_001),
        (sql92_nodes, "_DEPTH_MAX", 201),
        (sql92_nodes, "_INT_MAX", 1 << 31),
        (texts, "java_hash", lambda text: 0),
        (key_hash, "_INT32_MAX", (1 << 31) + 1),
        (texts, "topic_bytes", lambda topic: topic.encode(errors="replace") if len(topic) < 128 else None),
        (filters, "is_hit", lambda bits, bit_map: True),
        (runtime_info, "_span", lambda span_ms: f"[ 0 days, 0 hours, 0 minutes, {span_ms // 1000 % 60} seconds ]"),
        (runtime_info, "_rates", lambda rates: str(rates.rate_10s or "")),
        (TransferLimits, "is_full", lambda self, collected, count, size, behind_bytes: count >= self.count_in_disk),
    ],
)
def test_wrong_function_is_found(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, wrong: object) -> None:
    monkeypatch.setattr(place, name, wrong)
    with pytest.raises(GuaranteeBroken, match=r"contract 8: .* has another answer than the model's"):
        ask_all()


def wrong_default() -> MessageStoreConfig:
    return MessageStoreConfig(mapped_file_size_consume_queue=6_000_001)


def test_wrong_default_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DEFAULTS["mapped_file_size_consume_queue"] == defaults.MAPPED_FILE_SIZE_CONSUME_QUEUE
    monkeypatch.setattr(policies, "MessageStoreConfig", lambda **given: wrong_default())
    with pytest.raises(GuaranteeBroken, match="the default of mapped_file_size_consume_queue"):
        ask_all(1)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("matches_unit", lambda self, code, ext: ext is None),
        ("matches", lambda self, properties: True),
    ],
)
def test_wrong_filter_is_found(monkeypatch: pytest.MonkeyPatch, name: str, wrong: Callable[..., bool]) -> None:
    monkeypatch.setattr(PropertyFilter, name, wrong)
    with pytest.raises(GuaranteeBroken, match="has another answer"):
        ask_all(1)


def test_functions_are_asked_by_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    with choose_tracker("auto") as tracker:
        trial = lockstep_of(Settings(), tracker=tracker)
        trial.run(TryFunctions(fill=3))
        monkeypatch.setattr(texts, "java_hash", lambda text: 0)
        with pytest.raises(GuaranteeBroken, match="the hash of"):
            trial.run(TryFunctions(fill=3))


def test_rates_are_differences_of_samples() -> None:
    samples = Samples(0)
    for second in range(1, 12):
        samples.event(second * 1_000, (second * 5,))
    assert samples.rates(0) == (5.0, None, None)
    assert samples.event(3_500, (99,)) == (True, True)
    assert samples.rates(0) == (None, None, None)
    assert [bucket_of(each) for each in (0, 1, 9, 10, 9_999, 10_000)] == [0, 1, 1, 2, 11, 12]


@pytest.mark.parametrize(
    ("kind", "name", "wrong"),
    [
        (codec, "size_of_record", lambda *_: 1),
        (codec, "store_timestamp_of_record", lambda *_: 1),
        (codec, "framed_record", codec.check_record),
        (codec, "check_record", codec.framed_record),
        (codec, "ends_like_trailer", lambda _: True),
        (MappedFile, "holds", lambda *_: True),
        (MappedFile, "erase_failed_append", lambda *_: None),
        (MappedFile, "commit", lambda _: None),
        (MappedFile, "release", lambda _: None),
        (MappedFile, "ask_for_pages", lambda *_, **__: None),
        (MappedFile, "is_unreferenced", True),
        (ReadMarks, "trusts", lambda *_: True),
        (files, "first_nonzero", lambda _, position: position),
    ],
)
def test_wrong_reader_or_file_is_found(kind: Any, name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, name, wrong)
    with pytest.raises(GuaranteeBroken):
        check_records_and_files()


def check_records_and_files() -> None:
    for fill in range(4):
        for part in (records, files):
            part.check(random.Random(fill))
