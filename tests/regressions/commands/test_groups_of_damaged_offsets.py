"""The finding about damaged offsets names what is wrong with the file.

Symptom: `inspect STORE groups` printed sentences of Python: "invalid literal for int() with base 10: 'x'" and "'list'
object has no attribute 'items'".
Cause: the sentence of the exception was the sentence of the finding.
Fix: the parsers say what they have found (properties/decode/config_files.py).
Found by: trying the command line with damaged stores.
"""

from typing import Any

import pytest

from tornpage.properties.decode.config_files import parse_consumer_offsets, parse_delay_offsets


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"offsetTable": {"T@g": {"0": "x"}}}, "^'x' is no whole number$"),
        ({"offsetTable": {"T@g": {"0": None}}}, "^None is no whole number$"),
        ({"offsetTable": {"T@g": {"q": 1}}}, "^'q' is no whole number$"),
        ({"offsetTable": {"T@g": {"0": float("inf")}}}, "^inf is no whole number$"),
        ({"offsetTable": []}, "^these are no consumer offsets: a table is no object of JSON$"),
        ([], "^these are no consumer offsets: a table is no object of JSON$"),
    ],
)
def test_damaged_consumer_offsets_are_named(document: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_consumer_offsets(document)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"offsetTable": {"3": "x"}}, "^'x' is no whole number$"),
        ({}, "^these are no delay offsets: offsetTable is no object of JSON$"),
        ([], "^these are no delay offsets: offsetTable is no object of JSON$"),
    ],
)
def test_damaged_delay_offsets_are_named(document: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_delay_offsets(document)
