"""Test the properties string: the property WAIT as text and as mapping, and blank values."""

import pytest

from tornpage.impl.message.properties_text import is_blank, text_of, wait_store_msg_ok
from tornpage.model.message import Message as ModelMessage
from tornpage.model.message import waits_for_disk


@pytest.mark.parametrize(
    ("properties", "waits"),
    [
        ("", True),
        ({}, True),
        ("WAIT\x01true", True),
        ("WAIT\x01TRUE", True),
        ("A\x01b\x02WAIT\x01false", False),
        ("WAIT\x01yes", False),
        ("WAIT\x01", True),
        ("XWAIT\x01false", True),
        ("A\x01WAIT\x01false", True),
        ("WAIT\x01false\x02WAIT\x01true", True),
        ({"WAIT": "false"}, False),
        ({"WAIT": "True"}, True),
    ],
)
def test_wait_property(properties: str | dict[str, str], waits: bool) -> None:
    assert wait_store_msg_ok(text_of(properties) or "") is waits


def test_store_and_model_agree_about_an_empty_wait() -> None:
    """As text the empty value vanishes, so the producer waits.

    As a mapping the model waited and the store did not.
    """
    properties = {"WAIT": ""}
    model = ModelMessage("T", b"", 0, properties, 0, 0, 0, ("127.0.0.1", 1), ("127.0.0.1", 1))
    text = text_of(properties)
    assert text is not None
    assert wait_store_msg_ok(text) == waits_for_disk(model) == wait_store_msg_ok("WAIT\x01")


@pytest.mark.parametrize("value", ["", " ", "\t\r\n", "\u2003", "\u3000 \x1c"])
def test_white_space_is_blank(value: str) -> None:
    assert is_blank(value)


@pytest.mark.parametrize("value", ["x", "\u00a0", "\u2007", "\u202f", "\u0085", " \u00a0 "])
def test_what_forbids_a_line_break_is_not_blank(value: str) -> None:
    """`Character.isWhitespace` is false for these; `str.strip` removes them."""
    assert not is_blank(value)
