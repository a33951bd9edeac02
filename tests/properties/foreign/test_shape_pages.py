"""Test the pages in docs/targets: requests, promises, edits, commands and examples."""

import json
import re
import shlex
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.main import cli
from tornpage.outcomes.skeletons import LANGUAGES, template
from tornpage.properties.foreign.protocol import read_handshake
from tornpage.properties.foreign.shapes import adapters
from tornpage.properties.foreign.shapes.language import Promises
from tornpage.properties.foreign.shapes.registry import MESSAGES, SHAPES
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.testing import assert_store_holds

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs" / "targets"
OTHERS = [shape for shape in SHAPES if shape != MESSAGES]
PAGES = {shape: (FOLDER / f"{shape}.md").read_text() for shape in OTHERS}
GENERAL = (FOLDER / "shapes.md").read_text()
EXAMPLES = {"key-value": "key_value", "queue": "mail_queue", "log": "entry_log", "file": "whole_files"}
SECOND = {"key-value": "go", "queue": "node", "log": "go", "file": "node"}
watched = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
SOME = ["queue", "file", *(pytest.param(shape, marks=pytest.mark.deep) for shape in ("key-value", "log"))]
"""The others take as long and are left for the deep tests."""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def run(command: str) -> Result:
    return CliRunner().invoke(cli, shlex.split(command)[1:])


def test_each_shape_has_a_page_and_examples() -> None:
    assert PAGES.keys() == EXAMPLES.keys() == SECOND.keys()
    assert re.findall(r"^\| `([\w-]+)` \| .* \| \[", GENERAL, re.MULTILINE) == OTHERS


@pytest.mark.parametrize("shape", OTHERS)
def test_requests_and_promises_are_those_there_are(shape: str) -> None:
    page = PAGES[shape]
    requests = [json.loads(each) for each in re.findall(r'`(\{"do"[^`]*)`', page)]
    assert [each["do"] for each in requests] == [*adapters._VERBS[shape], "flush", "close"]
    common = [field.name for field in fields(Promises)]
    named = re.findall(r"^\| `(\w+)` \| .* \| .* \|$", page, re.MULTILINE)
    assert named == [field.name for field in fields(SHAPES[shape].promises) if field.name not in common]
    assert re.findall(r"^\| `(\w+)` \| [^|]* \| .* \|$", GENERAL, re.MULTILINE)[-len(common) :] == common


def test_promises_and_handshake_of_the_general_page_are_read() -> None:
    said = re.findall(r"^\| `(\".*)` \|", GENERAL, re.MULTILINE)
    assert len(said) == 6
    for promises in said:
        read_handshake({"tornpage": 1, "shape": "key-value", "promises": json.loads(f"{{{promises}}}")})
    assert read_handshake(json.loads(blocks(GENERAL, "json")[0])).shape == "key-value"


def test_store_in_memory_does_what_the_page_says() -> None:
    (example,) = blocks(GENERAL, "python")
    exec(example, {})


@pytest.mark.parametrize("shape", OTHERS)
def test_examples_are_what_init_writes(shape: str) -> None:
    for language in ("python", SECOND[shape]):
        spoken, name = LANGUAGES[language], EXAMPLES[shape]
        example = ROOT / "examples" / spoken.filled(spoken.file, name)
        assert example.read_text() == spoken.filled(template(language, shape).read_text(), name)


@pytest.mark.slow
@watched
@pytest.mark.parametrize("shape", SOME)
def test_edit_of_a_page_is_found(shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, name = PAGES[shape], f"examples/{EXAMPLES[shape]}.py"
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    (diff,) = blocks(page, "diff")
    before, after = (
        "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[0] in (" ", sign)) for sign in ("-", "+")
    )
    text = Path(name).read_text()
    assert text.count(before) == 1
    Path(name).write_text(text.replace(before, after))
    (command,), (said,) = blocks(page, "sh"), blocks(page, "text")
    found = run(command.strip())
    assert (found.exit_code, found.stdout.splitlines()[0]) == (1, said.strip())
    token = re.findall(r"tornpage replay (tp1-\S+)", found.stdout)[0]
    explained = run(f"tornpage explain {token} --out page.html")
    assert (explained.exit_code, said.strip().partition(": ")[2] in Path("page.html").read_text()) == (1, True)
    assert run(f"tornpage promote {token} --name kept --directory .").exit_code == 1
    assert "assert_case_holds(CASE)" in Path("test_kept.py").read_text()


@pytest.mark.slow
@watched
@pytest.mark.parametrize("shape", SOME)
def test_examples_hold(shape: str) -> None:
    whole = "".join(part.capitalize() for part in EXAMPLES[shape].split("_"))
    assert_store_holds(f"{ROOT}/examples/{EXAMPLES[shape]}.py:{whole}", examples=12, seed=3)


@pytest.mark.deep
@watched
@pytest.mark.parametrize("shape", OTHERS)
def test_examples_in_another_language_hold(shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoken, name = LANGUAGES[SECOND[shape]], EXAMPLES[shape]
    if shutil.which(SECOND[shape]) is None:
        pytest.skip(f"there is no {SECOND[shape]} here")
    shutil.copytree(ROOT / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GO111MODULE", "off")
    if spoken.builds:
        subprocess.run(shlex.split(spoken.filled(spoken.builds, name)), check=True)
    held = CliRunner().invoke(cli, ["explore", "target", spoken.filled(spoken.target, name), "--states", "40"])
    assert held.exit_code == 0, held.output


@pytest.mark.slow
@watched
def test_example_with_concurrent_callers_holds() -> None:
    assert_store_holds(f"{ROOT}/examples/shared_keys.py:SharedKeys", examples=6, seed=3)


@pytest.mark.deep
@watched
def test_edit_of_the_page_of_concurrent_callers_is_found(tmp_path: Path) -> None:
    page = (FOLDER / "callers.md").read_text()
    (diff,), (said,) = blocks(page, "diff"), blocks(page, "text")
    before, after = (
        "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[0] in (" ", sign)) for sign in ("-", "+")
    )
    text = (ROOT / "examples" / "shared_keys.py").read_text()
    assert text.count(before) == 1
    (tmp_path / "shared_keys.py").write_text(text.replace(before, after))
    found = run(f"tornpage explore target {tmp_path}/shared_keys.py:SharedKeys --states 600 --failures 1")
    assert (found.exit_code, found.stdout.splitlines()[0]) == (1, said.strip())


@pytest.mark.deep
@watched
def test_example_with_concurrent_callers_in_go_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("go") is None:
        pytest.skip("there is no go here")
    monkeypatch.setenv("GO111MODULE", "off")
    source = ROOT / "examples" / "shared_keys.go"
    subprocess.run(["go", "build", "-o", str(tmp_path / "shared_keys"), str(source)], check=True)
    held = CliRunner().invoke(cli, ["explore", "target", f"cmd:{tmp_path}/shared_keys {{dir}}", "--states", "40"])
    assert held.exit_code == 0, held.output


@pytest.mark.deep
@watched
def test_adapter_of_the_page_holds(tmp_path: Path) -> None:
    (adapter,) = blocks(PAGES["key-value"], "python")
    names: dict[str, Any] = {}
    exec(adapter, names)
    assert names["Sqlite"].shape == "key-value"
    (tmp_path / "sqlite.py").write_text(adapter)
    assert_store_holds(f"{tmp_path}/sqlite.py:Sqlite", examples=20)
