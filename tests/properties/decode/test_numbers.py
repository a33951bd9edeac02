"""Test delay levels and queue offsets that properties of any origin hold as text."""

from __future__ import annotations

import pytest

from tornpage.properties.decode.numbers import delay_level, queue_offsets


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("3", 3),
        ("+3", 3),
        ("-3", -3),
        ("0" * 5000 + "7", 7),
        ("2147483647", 2**31 - 1),
        ("2147483648", 0),
        ("-2147483648", -(2**31)),
        ("9" * 5000, 0),
        ("", 0),
        ("x", 0),
        ("3 ", 0),
        ("٣", 0),
        ("+-3", 0),
    ],
)
def test_a_level_is_a_number_of_32_bits(text: str, level: int) -> None:
    assert delay_level(text) == level


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("4,5", [4, 5]),
        ("9" * 18, [10**18 - 1]),
        ("9" * 19, []),
        ("1" * 5000, []),
        ("4,x", []),
        ("4,-5", []),
        ("4,", []),
        ("٣", []),
        ("", []),
    ],
)
def test_offsets_have_18_digits_at_most(text: str, offsets: list[int]) -> None:
    assert queue_offsets(text) == offsets
