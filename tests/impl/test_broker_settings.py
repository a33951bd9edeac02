"""Test the names and values of a broker's settings, from 4.9.3 to 5.4.0."""

from __future__ import annotations

import pytest

from tornpage.impl.config.broker_settings import FRACTIONS, KNOWN, NUMBERS, SWITCHES, TEXTS, parse_lines, problem_of


def test_kinds_have_no_name_in_common() -> None:
    assert len(KNOWN) == len(NUMBERS) + len(FRACTIONS) + len(SWITCHES) + len(TEXTS) == 468


@pytest.mark.parametrize(
    "name", ["mappedFileSizeCommitLog", "maxHashSlotNum", "enableLmq", "timerWheelEnable", "brokerClusterName"]
)
def test_names_of_both_major_versions_are_known(name: str) -> None:
    assert name in KNOWN


def test_lines_are_those_of_a_properties_file() -> None:
    text = "# comment\n! another\n\nbrokerName = a b\nnamesrvAddr=a:1;\\\n  b:2\nlistenPort: 10911\nbrokerId 0\n"
    assert parse_lines(text) == (
        {"brokerName": "a b", "namesrvAddr": "a:1;b:2", "listenPort": "10911", "brokerId": "0"},
        None,
    )


@pytest.mark.parametrize("line", ["noValue", "\x00\x01=1", "\N{REPLACEMENT CHARACTER}=1"])
def test_malformed_line_is_named(line: str) -> None:
    problem = parse_lines(f"brokerName=b\n{line}\n")[1]
    assert problem is not None
    assert problem.startswith("line 2 is no name=value: ")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("noSuchThing", "1", "unknown broker setting 'noSuchThing'"),
        ("maxHashSlotNumm", "1", "did you mean maxHashSlotNum"),
        ("maxHashSlotNum", "many", "it has to be a whole number"),
        ("enableLmq", "yes", "it has to be true or false"),
        ("flushDiskType", "NOPE", "it has to be ASYNC_FLUSH or SYNC_FLUSH"),
    ],
)
def test_what_no_broker_reads_is_refused(name: str, value: str, said: str) -> None:
    assert said in (problem_of({name: value}) or "")


def test_settings_of_a_usual_broker_are_taken() -> None:
    assert problem_of({"flushDiskType": "SYNC_FLUSH", "deleteWhen": "04", "fileReservedTime": "48"}) is None
