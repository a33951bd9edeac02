"""Cases, truths, times and config files of foreign tools are refused in one line.

Symptom: a traceback in place of one line, or a process that took all memory or minutes of time.
Cause: `json` raises more than JSONDecodeError: ValueError for numbers of more than 4,300 digits, RecursionError for
deep nesting. It reads Infinity as a number that is no integer. A schedule was as long as the largest number in it. Each
quote without an end was followed to the end of its file. A count of deleted topics was trusted.
Fix: readers treat all of these as unreadable text, and their work is in proportion to its length.
"""

import base64
import json
import zlib
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from tornpage.outcomes.counterexamples import given_cases
from tornpage.properties.decode.config_files import (
    load_config,
    parse_config,
    parse_consumer_offsets,
    parse_delay_offsets,
)
from tornpage.properties.decode.deleted_topics import parse_deleted_topics
from tornpage.properties.decode.derived_floor import parse_derived_floor
from tornpage.properties.explore.interleavings import token as interleavings
from tornpage.properties.inspect import InspectError
from tornpage.properties.inspect.query import parse_times, read_settings
from tornpage.properties.judge.image import read_truth
from tornpage.properties.judge.shape import read_settings_file
from tornpage.properties.program.case import Case
from tornpage.properties.program.packing import BadToken
from tornpage.reports.errors import ReportError
from tornpage.reports.plots.prediction import read_validation

MANY_DIGITS = "9" * 5_000
DEEP = "[" * 100_000
INFINITY = float("inf")


def case_text(**changes: Any) -> str:
    return json.dumps({"tornpage_case": 1, "settings": {}, "operations": [], **changes})


@pytest.mark.parametrize(
    "text",
    [
        f'{{"tornpage_case": {MANY_DIGITS}}}',
        f'{{"tornpage_case": {DEEP}',
        case_text(operations=[{"op": "aim_fault", "text": None}]),
        case_text(operations=[{"op": "crash", "survived": []}]),
        case_text(operations=[{"op": "crash", "survived": 7}]),
        case_text(settings=[]),
        case_text(settings={"disk": []}),
    ],
)
def test_a_case(text: str) -> None:
    with pytest.raises(BadToken):
        Case.from_text(text)


def test_a_token_of_what_is_no_text() -> None:
    word = base64.urlsafe_b64encode(zlib.compress(b"\xff")).decode()
    with pytest.raises(BadToken):
        Case.from_token(f"tp1-{zlib.crc32(bytes([0xFF])):08x}-{word}")


def interleaving(**changes: Any) -> str:
    whole: dict[str, Any] = {
        "tornpage_interleaving": 1, "name": "n", "settings": {}, "before": [], "tasks": [[]], "services": [],
        "percent": 10, "order": [0], "switches": [[3, 1]], "modules": [],
    }  # fmt: skip
    interleavings.from_text(json.dumps(whole))
    return json.dumps({**whole, **changes})


@pytest.mark.parametrize(
    "text",
    [
        f'{{"tornpage_interleaving": {MANY_DIGITS}}}',
        interleaving(percent=INFINITY),
        interleaving(order=[-INFINITY]),
        interleaving(switches=[[10**12, 1]]),
        interleaving(switches=[[-1, 1]]),
        interleaving(tasks=[[{"op": []}]]),
    ],
)
def test_an_interleaving(text: str) -> None:
    with pytest.raises(BadToken):
        interleavings.from_text(text)


def test_a_directory_of_cases(tmp_path: Path) -> None:
    (tmp_path / "case-1.json").write_text(f'{{"tornpage_case": {MANY_DIGITS}}}')
    (tmp_path / "run.json").write_text(f'{{"findings": {MANY_DIGITS}}}')
    [case] = given_cases(str(tmp_path))
    with pytest.raises(BadToken):
        case.case()


@pytest.mark.parametrize("name", ["commitLogOffset", "storeSize"])
@pytest.mark.parametrize("number", [INFINITY, -INFINITY, float("nan")])
def test_a_truth(tmp_path: Path, name: str, number: float) -> None:
    row = {"commitLogOffset": 0, "storeSize": 100, "recordSha256": "", name: number}
    (tmp_path / "truth.json").write_text(json.dumps({"records": [row]}))
    with pytest.raises(InspectError):
        read_truth(str(tmp_path / "truth.json"))


@pytest.mark.parametrize("text", [MANY_DIGITS, f"-{MANY_DIGITS}..", "--5"])
def test_times(text: str) -> None:
    with pytest.raises(InspectError):
        parse_times(text)


@pytest.mark.parametrize("name", ["maxIndexNum", "mappedFileSizeCommitLog"])
def test_settings_of_a_broker(tmp_path: Path, name: str) -> None:
    (tmp_path / "broker.conf").write_text(f"{name}={MANY_DIGITS}\n")
    for read in (read_settings, read_settings_file):
        with pytest.raises(InspectError):
            read(str(tmp_path / "broker.conf"))


@pytest.mark.parametrize("text", [f"{{1:{DEEP}", f"{{1:{MANY_DIGITS}}}", DEEP])
def test_a_config_file(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_config(text.encode())
    assert load_config({"x": text.encode(), "x.bak": b"{1:2}"}, "x") == {"1": 2}


def test_a_config_file_of_quotes_is_read_in_one_pass() -> None:
    def cpu_s(size: int) -> float:
        began = process_time()
        with pytest.raises(ValueError, match=r"\w"):
            parse_config(b"{" + b'\\"' * size)
        return process_time() - began

    assert cpu_s(200_000) < 5, "it took minutes"


@pytest.mark.parametrize("number", [INFINITY, float("nan"), MANY_DIGITS])
def test_numbers_of_consumers_and_levels(number: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_consumer_offsets({"offsetTable": {"T@g": {"0": number}}})
    with pytest.raises(ValueError, match=r"\w"):
        parse_delay_offsets({"offsetTable": {"1": number}})


def test_a_derived_floor() -> None:
    body = DEEP.encode()
    with pytest.raises(ValueError, match=r"\w"):
        parse_derived_floor(b"TPDERIVED1 %08x\n" % zlib.crc32(body) + body)


def test_a_list_of_deleted_topics_that_says_it_has_billions() -> None:
    body = b"TPDELTP1" + b"\xff" * 4
    with pytest.raises(ValueError, match="shorter than it says"):
        parse_deleted_topics(body + zlib.crc32(body).to_bytes(4, "big"))


@pytest.mark.parametrize("line", [DEEP, '{"case": "a", "messages": Infinity, "passes": true}', "7"])
def test_scores_of_a_validation(tmp_path: Path, line: str) -> None:
    (tmp_path / "scores.jsonl").write_text(line + "\n")
    (tmp_path / "quantiles.jsonl").write_text("")
    with pytest.raises(ReportError):
        read_validation(tmp_path)
