"""Test that an exception of an object of the store is a broken guarantee."""

from __future__ import annotations

import pytest

from tornpage.impl.config.policy import FlushPolicy
from tornpage.impl.message.delay_levels import DelayLevels
from tornpage.impl.read.read_buffer import RecordBuffer
from tornpage.properties.contract import GuaranteeBroken, HarnessError, reading_store


def test_a_missing_attribute_of_a_buffer_breaks_a_guarantee() -> None:
    buffer = object.__new__(RecordBuffer)
    with pytest.raises(GuaranteeBroken) as broken, reading_store():
        buffer.queue_offset  # noqa: B018
    assert broken.value.contract == 8
    assert "queue_offset" in broken.value.found


def test_an_exception_inside_a_function_of_the_store_breaks_a_guarantee() -> None:
    with pytest.raises(GuaranteeBroken, match="ValueError"), reading_store():
        DelayLevels.parse("no level")


def test_a_missing_attribute_of_a_class_of_the_store_breaks_a_guarantee() -> None:
    with pytest.raises(GuaranteeBroken, match="AttributeError"), reading_store():
        FlushPolicy.no_such_name  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("error", [ValueError("of the lab"), HarnessError("of the lab"), KeyboardInterrupt()])
def test_an_exception_of_the_lab_stays_as_it_is(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, reading_store():
        raise error
    assert raised.value is error


def test_a_broken_guarantee_stays_as_it_is() -> None:
    broken = GuaranteeBroken(2, "not durable")
    with pytest.raises(GuaranteeBroken) as raised, reading_store():
        raise broken
    assert raised.value is broken
