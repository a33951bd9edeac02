"""Test delay levels: the default table, invalid tables, and valid levels."""

import pytest

from tornpage.impl.message.delay_levels import (
    DEFAULT_MESSAGE_DELAY_LEVEL,
    HALF_TOPIC,
    SCHEDULE_TOPIC,
    DelayLevels,
    delay_level_of,
    queue_of_level,
)

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000


def test_default_table_is_that_of_rocketmq() -> None:
    levels = DelayLevels.parse(DEFAULT_MESSAGE_DELAY_LEVEL)
    assert levels.highest == 18
    assert [levels.delay_ms(level) for level in range(1, 19)] == [
        *(seconds * SECOND_MS for seconds in (1, 5, 10, 30)),
        *(minutes * MINUTE_MS for minutes in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30)),
        *(hours * HOUR_MS for hours in (1, 2)),
    ]


@pytest.mark.parametrize(
    ("text", "delays_ms"),
    [
        ("1s", (1_000,)),
        ("0s", (0,)),
        ("1s 2m 3h 4d", (1_000, 2 * MINUTE_MS, 3 * HOUR_MS, 4 * DAY_MS)),
        ("2h 1s", (2 * HOUR_MS, 1_000)),
        ("007s", (7_000,)),
        ("0" * 10_000 + "1s", (1_000,)),
        ("9223372036854775s", (9_223_372_036_854_775_000,)),
    ],
)
def test_a_table_is_parsed(text: str, delays_ms: tuple[int, ...]) -> None:
    levels = DelayLevels.parse(text)
    assert levels == DelayLevels(delays_ms)
    assert levels.highest == len(delays_ms)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("", 1),
        (" ", 1),
        (" 1s", 1),
        ("1s ", 2),
        ("1s  2s", 2),
        ("1s\t2s", 1),
        ("1s\n", 1),
        ("1s,2s", 1),
        ("1s 5", 2),
        ("s", 1),
        ("1s 2s m", 3),
        ("1S", 1),
        ("1ms", 1),
        ("1w", 1),
        ("-1s", 1),
        ("+1s", 1),
        ("1.5s", 1),
        ("1_0s", 1),
        ("١s", 1),
        ("1s 9223372036854776s", 2),
        ("106751991168d", 1),
        ("9" * 10_000 + "s", 1),
    ],
)
def test_a_table_that_does_not_parse_says_where(text: str, level: int) -> None:
    with pytest.raises(ValueError, match=rf"^delay level {level} is ") as caught:
        DelayLevels.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("level", [-1, 0, 4])
def test_a_level_that_the_table_does_not_have_is_an_error(level: int) -> None:
    with pytest.raises(ValueError, match=f"delay level {level}: the levels are 1 to 3"):
        DelayLevels.parse("1s 2s 3s").delay_ms(level)


@pytest.mark.parametrize(
    ("value", "level"),
    [
        (None, 0),
        ("0", 0),
        ("-0", 0),
        ("+0", 0),
        ("1", 1),
        ("+18", 18),
        ("-5", -5),
        ("99", 99),
        ("000", 0),
        ("0000000000018", 18),
        ("2147483647", 2**31 - 1),
        ("2147483648", None),
        ("-2147483648", -(2**31)),
        ("-2147483649", None),
        ("9999999999", None),
        ("10000000000", None),
        ("9" * 32_000, None),
        ("0" * 32_000, 0),
        ("-" + "0" * 32_000 + "7", -7),
        ("0" * 32_000 + "x", None),
        ("", None),
        ("+", None),
        ("-", None),
        ("+-1", None),
        ("--1", None),
        (" 1", None),
        ("1 ", None),
        ("1\n", None),
        ("1_0", None),
        ("1.0", None),
        ("0x1", None),
        ("1e1", None),
        ("١", None),
        ("²", None),
        ("three", None),
        ("1\0", None),
    ],
)
def test_what_the_property_asks_for(value: str | None, level: int | None) -> None:
    assert delay_level_of(value) == level


def test_each_level_waits_in_a_queue_of_its_own() -> None:
    assert [queue_of_level(level) for level in (1, 2, 18)] == [0, 1, 17]


def test_topics_are_spelled_as_in_rocketmq() -> None:
    assert (SCHEDULE_TOPIC, HALF_TOPIC) == ("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC")
