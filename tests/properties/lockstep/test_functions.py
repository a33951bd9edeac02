"""Test that a wrong answer of a function without a disk is found."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tornpage.impl.config import defaults
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.read import sql92, sql92_nodes
from tornpage.impl.read.filters import PropertyFilter
from tornpage.impl.statistics import read_statistics, store_statistics
from tornpage.model.broker.defaults import DEFAULTS
from tornpage.model.broker.statistics import Samples, bucket_of
from tornpage.model.operations import TryFunctions
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.lockstep.functions import filters, policies, texts
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
        (texts, "topic_bytes", lambda topic: topic.encode(errors="replace") if len(topic) < 128 else None),
        (filters, "is_hit", lambda bits, bit_map: True),
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
