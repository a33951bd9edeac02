"""A case whose setting has a wrong type is refused in one line.

Symptom: `tornpage replay` of a case file with a text in place of a number ended in a traceback.
Cause: the settings were used unchecked, and the first comparison in the store's configuration failed.
Fix: reading a case refuses a setting whose type differs from that of its default, and names it.
"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli
from tornpage.properties.program.case import BadToken, Case

HOSTILE = "\x1b]0;x\x07<script>\u202e"


@pytest.mark.parametrize(
    ("name", "value"),
    [("file_bytes", HOSTILE), ("file_bytes", 1.5), ("sync_flush", 1), ("bug", 7), ("queue_units", None), ("role", [])],
)
def test_a_setting_of_another_kind_is_refused_in_one_line(name: str, value: object, tmp_path: Path) -> None:
    text = json.dumps({"tornpage_case": 1, "settings": {name: value}, "operations": [{"op": "put"}]})
    with pytest.raises(BadToken, match=name):
        Case.from_text(text)
    (tmp_path / "case.json").write_text(text)
    for command in ("replay", "explain", "shrink"):
        done = CliRunner().invoke(cli, [command, str(tmp_path / "case.json")])
        assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.output
        assert not [character for character in done.stderr if not character.isprintable() and character != "\n"]


def test_a_whole_number_is_a_time() -> None:
    text = json.dumps({"tornpage_case": 1, "settings": {"answer_seconds": 3}, "operations": []})
    assert Case.from_text(text).settings.answer_seconds == 3
