"""Test foreign case files: no effect on a terminal, no markup, no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli

NASTY = "\x1b]0;x\x07\u202e<script>alert(1)</script>\x9b2J\r'\"&"
CASE = {
    "tornpage_case": 1,
    "settings": {"file_bytes": 1024, "sync_flush": True, "bug": "lying-flush"},
    "operations": [
        {"op": "put"},
        {
            "op": "crash",
            "survived": {"page /store/config/durableFloor 0": 0, "page /store/commitlog/00000000000000000000 0": 0},
            "others": "kept",
        },
    ],
    "was": {"contract": 2, "sentence": "records that had to survive are missing after recovery"},
}

Harm = Callable[[dict[str, Any]], object]
HARMS: dict[str, Harm] = {
    "nothing": lambda case: case,
    "topic": lambda case: case["operations"][0].update(topic=NASTY),
    "verb": lambda case: case["operations"][0].update(op=NASTY),
    "argument": lambda case: case["operations"][0].update({NASTY: 1}),
    "fact": lambda case: case["operations"][1]["survived"].update({NASTY: 0}),
    "bug": lambda case: case["settings"].update(bug=NASTY),
    "setting": lambda case: case["settings"].update({NASTY: 1}),
    "memory": lambda case: case["was"].update(sentence=NASTY),
    "key": lambda case: case.update({NASTY: NASTY}),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_hostile_case_is_only_text(harm: str, tmp_path: Path) -> None:
    case = json.loads(json.dumps(CASE))
    HARMS[harm](case)
    (tmp_path / "cases").mkdir()
    file, page = tmp_path / "cases" / f"{NASTY.replace('/', '')}.json", tmp_path / "page.html"
    file.write_text(json.dumps(case))
    said = []
    for line in (["replay", str(file)], ["explain", str(file), "--out", str(page)], ["replay", str(file.parent)]):
        done = CliRunner().invoke(cli, line)
        assert done.exit_code in (0, 1, 2, 3), done.output
        assert not isinstance(done.exception, Exception), done.exception
        said.append(done.stdout + done.stderr)
    assert all(said)
    assert not [character for character in "".join(said) if not character.isprintable() and character != "\n"]
    assert page.exists() or harm not in ("nothing", "memory", "key")
    if page.exists():
        text = page.read_text(encoding="utf-8")
        assert text.count("<script>") == text.count("</script>") == 1
        assert not [character for character in text if not character.isprintable() and character != "\n"]


@pytest.mark.parametrize(("key", "setting"), [("cluster", "nodes"), ("group", "queues"), ("raft", "members")])
def test_a_setting_of_another_type_is_refused(key: str, setting: str, tmp_path: Path) -> None:
    path = tmp_path / f"{key}-1.json"
    path.write_text(json.dumps({f"tornpage_{key}": 1, "settings": {setting: "x"}, "operations": []}))
    for command in ("replay", "shrink"):
        found = CliRunner().invoke(cli, [command, str(path)])
        assert found.exit_code == 2, found.output
        assert isinstance(found.exception, SystemExit)
    again = CliRunner().invoke(cli, ["replay", str(tmp_path)])
    assert again.exit_code == 3
    assert "cannot be read" in again.output
