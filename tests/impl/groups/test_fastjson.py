"""Test JSON as RocketMQ writes it: unquoted integer keys, tabs, and equal bytes."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tornpage.impl.groups.fastjson import parse, written
from tornpage.properties.decode.config_files import parse_config

GOLDEN = sorted(Path(__file__).parents[2].joinpath("data", "golden").rglob("delayOffset.json*"))


def is_document(text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


SCALARS = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text()
NUMBERED = st.dictionaries(st.integers(0, 20), SCALARS, max_size=4)
DOCUMENTS = st.recursive(
    SCALARS | NUMBERED,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None)
@given(document=DOCUMENTS)
def test_what_is_written_is_read(document: object) -> None:
    assert parse(written(document)) == document


@settings(max_examples=50, deadline=None)
@given(document=st.dictionaries(st.text(), DOCUMENTS, max_size=4))
def test_the_other_decoder_reads_it_too(document: dict[str, Any]) -> None:
    assert parse_config(written(document).encode()) == json.loads(json.dumps(document))


def test_it_looks_like_the_file_of_a_broker() -> None:
    table = {"offsetTable": {"T@G": {0: 5, 1: 3}, "U@G": {}}}
    assert written(table) == '{\n\t"offsetTable":{\n\t\t"T@G":{0:5,1:3\n\t\t},\n\t\t"U@G":{}\n\t}\n}'


def test_there_are_files_of_java() -> None:
    assert GOLDEN


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parts[-4]}-{path.name}")
def test_files_of_java_are_written_byte_for_byte(path: Path) -> None:
    stored = path.read_text()
    assert written(parse(stored)) == stored


@pytest.mark.parametrize(
    ("text", "escaped"),
    [('a"b\\', '"a\\"b\\\\"'), ("\x00\x1f\x7f", '"\\u0000\\u001F\\u007F"'), ("\n\t", '"\\n\\t"'),
     ("订\u2028", '"订\\u2028"'), ("\udc80", '"\\uDC80"')],
)  # fmt: skip
def test_texts_are_escaped_as_fastjson_does(text: str, escaped: str) -> None:
    assert written(text) == escaped
    assert parse(escaped) == text


def test_keys_in_quotes_stay_texts_and_the_last_of_two_counts() -> None:
    assert parse('{"0":1, -1 : [ ] ,2:{},2:3}') == {"0": 1, -1: [], 2: 3}


@pytest.mark.parametrize(
    "text",
    ["", " ", "{", "{1}", "{1:}", '{"a" 1}', "[1,]", "[1 2]", "nul", '"a', '{"a":1}x', "{a:1}", "[" * 100 + "]" * 100,
     "{1.5:1}", "}", ":", '"\\x"'],
)  # fmt: skip
def test_what_is_no_document_is_refused(text: str) -> None:
    assert not is_document(text)


@pytest.mark.parametrize("value", [1.5, b"x", {1, 2}])
def test_what_no_document_holds_is_a_mistake(value: object) -> None:
    with pytest.raises(TypeError):
        written({"a": value})


def test_objects_are_keys_as_in_offsets_json() -> None:
    table = {(("brokerName", "b"), ("queueId", 0), ("topic", "t")): 5, (("brokerName", "b"), ("queueId", 1)): 7}
    text = (
        '{\n\t"offsetTable":{{\n\t\t\t"brokerName":"b",\n\t\t\t"queueId":0,\n\t\t\t"topic":"t"\n\t\t}:5,'
        '{\n\t\t\t"brokerName":"b",\n\t\t\t"queueId":1\n\t\t}:7\n\t}\n}'
    )
    assert written({"offsetTable": table}) == text
    assert parse(text) == {"offsetTable": table}


@pytest.mark.parametrize("text", ['{{"a":[]}:1}', '{{"a":{"b":1}}:1}', '{{"a":null}:1}', "{{}1}", "{" * 100])
def test_objects_with_other_values_are_no_keys(text: str) -> None:
    with pytest.raises(ValueError, match=r"key|expected|invalid|nested"):
        parse(text)
