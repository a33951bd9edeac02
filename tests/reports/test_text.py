"""Test the cleaning of hostile text and the format of numbers."""

import pytest

from tornpage.reports.text import counted, listed, number, shortened, tick, visible


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Proof 1", "Proof 1"),
        ("日本語 é", "日本語 é"),
        ("a\nb\tc", "a\nb\tc"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("nul\0", r"nul\x00"),
        ("\u202egnp", r"\u202egnp"),
        ("\ud800", r"\ud800"),
        ("\U000e0001", r"\U000e0001"),
        ("\r\n", "\\x0d\n"),
    ],
)
def test_visible_writes_out_what_cannot_be_seen(text: str, seen: str) -> None:
    assert visible(text) == seen
    seen.encode()


def test_shortened_keeps_both_ends_on_one_line() -> None:
    assert shortened("short", length=5) == "short"
    assert shortened("a\n b", length=9) == "a b"
    for length in range(1, 30):
        assert len(shortened("0123456789" * 3, length=length)) == length
    assert shortened("0123456789", length=5) == "01…89"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0, "0"),
        (1234567, "1,234,567"),
        (20000.0, "20,000"),
        (0.0123456, "0.0123"),
        (1843.217, "1,843"),
        (20.25, "20.2"),
    ],
)
def test_number_is_short_and_separated(value: float, told: str) -> None:
    assert number(value) == told


@pytest.mark.parametrize(("value", "told"), [(0.1, "0.1"), (100, "100"), (2500, "2.5k"), (1e6, "1M"), (1e9, "1G")])
def test_tick_is_shorter_still(value: float, told: str) -> None:
    assert tick(value) == told


@pytest.mark.parametrize(
    ("words", "told"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_listed_reads_as_a_sentence(words: list[str], told: str) -> None:
    assert listed(words) == told


def test_word_of_one_is_singular() -> None:
    assert [counted(value, "record") for value in (0, 1, 1.0, 1.5, 2_000)] == [
        "0 records",
        "1 record",
        "1 record",
        "1.5 records",
        "2,000 records",
    ]
    assert [counted(value, "entry", "entries") for value in (1, 2)] == ["1 entry", "2 entries"]
