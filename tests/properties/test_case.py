"""Tokens and case files: what was written is what is read, and a wrong one is refused with a sentence."""

import json

import pytest

from properties.case import BadToken, Case, Close, Crash, Damage, FailSync, Flush, Get, Open, Put, Settings, describe

CASE = Case(
    Settings(file_bytes=4096, sync_flush=True, disk="journal", bug="no-crc"),
    (
        Put(topic="订单", body_bytes=7, properties="KEYS\x01k", born_v6=True),
        Flush(),
        Get(record=1, shift=-1),
        FailSync(),
        Crash(back=3, survived={"page /store/commitlog/00000000000000000000 0": (1, 2, 128), "create /store/abort": 1}),
        Crash(kill=True),
        Close(),
        Open(),
        Damage(kind="truncate", amount=77),
    ),
)


def test_a_token_gives_the_case_back() -> None:
    token = CASE.token()
    assert token.isascii()
    assert token.isprintable()
    assert " " not in token
    assert Case.from_token(token) == CASE
    assert Case.from_token(f" {token}\n") == CASE


def test_a_case_file_gives_the_case_back_and_says_only_what_differs_from_the_defaults() -> None:
    document = CASE.document()
    assert Case.from_text(json.dumps(document)) == CASE
    assert document["operations"][1] == {"op": "flush"}
    assert "files_max" not in document["settings"]


def test_equal_cases_have_equal_tokens() -> None:
    assert Case(Settings(), (Put(), Flush())).token() == Case(Settings(), (Put(), Flush())).token()


@pytest.mark.parametrize("position", [0, 6, 14, 30, -1])
def test_a_changed_token_is_refused(position: int) -> None:
    token = CASE.token()
    other = "B" if token[position] != "B" else "C"
    changed = token[:position] + other + (token[position + 1 :] if position != -1 else "")
    with pytest.raises(BadToken):
        Case.from_token(changed)


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_an_incomplete_token_is_refused(cut: int) -> None:
    with pytest.raises(BadToken, match=r"incomplete|changed"):
        Case.from_token(CASE.token()[:-cut])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON"),
        ("[]", "tornpage_case"),
        ('{"tornpage_case": 2}', "tornpage_case"),
        ('{"tornpage_case": 1}', "cannot be read"),
        ('{"tornpage_case": 1, "settings": {"colour": 1}, "operations": []}', "cannot be read"),
        ('{"tornpage_case": 1, "settings": {}, "operations": [{"op": "dance"}]}', "cannot be read"),
        ('{"tornpage_case": 1, "settings": {"disk": "tape"}, "operations": []}', "unknown disk"),
    ],
)
def test_a_wrong_case_file_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(BadToken, match=said):
        Case.from_text(text)


def test_an_operation_reads_as_a_line_of_a_program() -> None:
    assert describe(Put()) == "put()"
    assert describe(Crash(kill=True, back=2)) == "crash(kill=True, back=2)"
