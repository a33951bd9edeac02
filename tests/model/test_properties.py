"""Test properties in the model: reading a string, and rewriting it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tornpage.model.properties import changed, joined, property_of, separators_inside, stored_bytes, text_of, without

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "vectors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["kind"] == "properties"], ids=lambda v: v["name"])
def test_vector_is_read_as_it_says(vector: dict[str, Any]) -> None:
    text = bytes.fromhex(vector["hex"]).decode()
    for name, value in vector["decoded"].items():
        assert property_of(text, name) == value
    assert changed(text, {}) == changed(vector["decoded"], {})


@pytest.mark.parametrize(
    ("properties", "anew"),
    [
        ("", ""),
        ("\x02", ""),
        ("A\x01b", "A\x01b"),
        ("A\x01b\x02", "A\x01b"),
        ("A\x01b\x02\x02C\x01d\x02", "A\x01b\x02C\x01d"),
        ("A\x01\x02\x01b\x02C\x02D\x01e", "D\x01e"),
        ("A\x01b\x01c", "A\x01b\x01c"),
        ("A\x01\x01", "A\x01\x01"),
        ("\x01A\x01b", ""),
        ("A\x01b\x02C\x01d\x02A\x01e", "A\x01e\x02C\x01d"),
        ("A\x01b\x02C\x01d\x02A\x01", "A\x01b\x02C\x01d"),
        ("A\x01b\x02__CRC32#\x01123\x02", "A\x01b"),
        ({"A": "b", "C": "", "": "d", "E": "f"}, "A\x01b\x02E\x01f"),
        ({"__CRC32#": "1", "A": "b"}, "A\x01b"),
    ],
    ids=ascii,
)
def test_made_anew_from_the_pairs(properties: Any, anew: str) -> None:
    assert changed(properties, {}) == anew


def test_changes_stay_in_place_and_new_names_go_to_the_end() -> None:
    text = "A\x01b\x02WAIT\x01false\x02C\x01d\x02A\x01e\x02"
    assert changed(text, {"C": "1", "Z": "2", "B": "3"}) == "A\x01e\x02WAIT\x01false\x02C\x011\x02Z\x012\x02B\x013"
    assert changed(text, {"Z": "2"}, less="WAIT") == "A\x01e\x02C\x01d\x02Z\x012"


@pytest.mark.parametrize(
    ("properties", "stored"),
    [
        ("A\x01b\x02\x02", "A\x01b\x02\x02"),
        ("no pair", "no pair"),
        ("__CRC32#\x01123", ""),
        ("__CRC32#", ""),
        ("A\x01b\x02__CRC32#\x01123", "A\x01b"),
        ("A\x01b\x02__CRC32#\x01123\x02", "A\x01b\x02"),
        ("__CRC32#\x011\x02A\x01b\x02__CRC32#\x012\x02C\x01d", "A\x01b\x02C\x01d"),
        ("X__CRC32#\x011", "X__CRC32#\x011"),
        ({}, ""),
        ({"A": "b", "C": ""}, "A\x01b\x02C\x01"),
        ({"A": "b", "__CRC32#": "1", "C": "d"}, "A\x01b\x02C\x01d"),
    ],
    ids=ascii,
)
def test_text_that_is_not_changed_loses_the_checksum_only(properties: Any, stored: str) -> None:
    assert text_of(properties) == stored
    assert stored_bytes(properties, trailer=False) == stored.encode()
    separator = "\x02" if stored and not stored.endswith("\x02") else ""
    assert stored_bytes(properties, trailer=True) == (stored + separator).encode()


def test_a_name_is_taken_out_wherever_it_stands() -> None:
    assert without("UNIQ_KEY\x011\x02A\x01b\x02UNIQ_KEY\x012", "UNIQ_KEY") == "A\x01b"
    assert without("A\x01UNIQ_KEY\x02", "UNIQ_KEY") == "A\x01UNIQ_KEY\x02"


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("", "", ""),
        ("A\x01b", "", "A\x01b"),
        ("", "C\x01d", "C\x01d"),
        ("A\x01b", "C\x01d", "A\x01b\x02C\x01d"),
        ("A\x01b\x02", "C\x01d", "A\x01b\x02C\x01d"),
        ("A\x01b\x02", "", "A\x01b\x02"),
    ],
    ids=ascii,
)
def test_strings_are_joined_with_one_separator_if_any(first: str, second: str, both: str) -> None:
    assert joined(first, second) == both


@pytest.mark.parametrize(
    ("properties", "inside"),
    [
        ({"A": "b\x01"}, False),
        ({"A\x01": "b"}, True),
        ({"A\x02": "b"}, True),
        ({"A": "\x02"}, True),
        ({"__CRC32#": "\x02"}, False),
        ("A\x01\x02\x01", False),
    ],
    ids=ascii,
)
def test_separators_inside(properties: Any, inside: bool) -> None:
    assert separators_inside(properties) is inside


def test_text_that_cannot_be_encoded() -> None:
    with pytest.raises(UnicodeEncodeError):
        stored_bytes("A\x01\ud800", trailer=False)
    assert stored_bytes("A\x01\udcff", trailer=False, errors="surrogateescape") == b"A\x01\xff"
