"""Test docs/test-your-store.md word for word: its commands, its edit and its examples."""

import json
import re
import shlex
import shutil
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.main import cli
from tornpage.properties.foreign.protocol import read_handshake
from tornpage.properties.foreign.shapes.messages import MessagePromises
from tornpage.properties.foreign.tracing import why_untraceable

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "test-your-store.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = [line for language, block in BLOCKS if language == "sh" for line in block.splitlines()]
(SHOWN,) = [block for language, block in BLOCKS if language == "text"]
(DIFF,) = [block for language, block in BLOCKS if language == "diff"]
watched = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of the examples, in the working directory."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    return tmp_path / "examples" / "toy_store.py"


def run(command: str) -> Result:
    program, *arguments = shlex.split(command)
    assert program == "tornpage"
    return CliRunner().invoke(cli, arguments)


def mend(toy: Path) -> None:
    """Make the edit that the page shows."""
    lines = DIFF.splitlines()
    old = "\n".join(line[1:] for line in lines if line[0] in " -")
    new = "\n".join(line[1:] for line in lines if line[0] in " +")
    text = toy.read_text()
    assert text.count(old) == 1
    toy.write_text(text.replace(old, new))


def shows_what_the_page_shows(found: Result) -> None:
    printed = found.stdout.splitlines()
    for line in SHOWN.splitlines():
        assert any(other.startswith(line.removesuffix("…")) for other in printed), f"{line!r} is not in\n{found.stdout}"


def test_the_toy_has_sixty_lines_without_its_protocol() -> None:
    lines = (ROOT / "examples" / "toy_store.py").read_text().splitlines()
    assert lines.index("def answer(store, ask):") <= 63


def test_there_are_these_commands() -> None:
    assert [command.split()[1] for command in COMMANDS] == ["check", "check", "explore", "check"]
    assert COMMANDS[0] == "tornpage check --target examples/toy_store.py:ToyStore"


@pytest.mark.slow
@watched
def test_the_first_command_finds_the_bug_as_shown(toy: Path) -> None:
    found = run(COMMANDS[0])
    assert found.exit_code == 1, found.output
    shows_what_the_page_shows(found)


@pytest.mark.deep
@watched
def test_the_mended_store_passes(toy: Path) -> None:
    assert run(COMMANDS[0]).exit_code == 1
    mend(toy)
    for command in COMMANDS[1:3]:
        found = run(command)
        assert found.exit_code == 0, found.output
        assert found.stdout.endswith("verdict: holds\n")


@pytest.mark.deep
@watched
def test_over_json_lines_the_same_bug_is_found_and_the_mended_store_passes(toy: Path) -> None:
    found = run(COMMANDS[3])
    assert found.exit_code == 1, found.output
    target = "examples/toy_store.py:ToyStore"
    shown = SHOWN.replace(target, "cmd:python3 examples/toy_store.py --dir {dir}")
    for line in shown.splitlines():
        assert line.removesuffix("…") in found.stdout
    mend(toy)
    assert run(COMMANDS[3].replace("check --target", "explore target") + " --states 40 --seed 1").exit_code == 0


@pytest.mark.deep
@watched
@pytest.mark.parametrize(
    ("sentence", "before", "after"),
    [
        ("the `os.fsync` in `put`", "os.fsync(self.file)\n        return self.remember", "return self.remember"),
        ("the checksum", "message and zlib.crc32(message) == checksum", "message"),
        ("the `os.fsync` after the `ftruncate`", "acknowledged\n        os.fsync(self.file)\n", "acknowledged\n"),
    ],
)
def test_what_the_page_says_to_leave_out_is_found(toy: Path, sentence: str, before: str, after: str) -> None:
    assert sentence in TEXT
    mend(toy)
    text = toy.read_text()
    assert text.count(before) == 1
    toy.write_text(text.replace(before, after))
    command = "tornpage explore target examples/toy_store.py:ToyStore --states 300 --failures 1 --seed 2"
    assert run(command).exit_code == 1


def test_the_promises_are_those_there_are() -> None:
    table = re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)
    only_other_shapes = ("ordered", "callers")
    assert table == [field.name for field in fields(MessagePromises) if field.name not in only_other_shapes]


def test_the_requests_are_json() -> None:
    rows = re.findall(r'^\| `(\{"do".*\})` \| `?(.*)`? \|$', TEXT, re.MULTILINE)
    assert [json.loads(request)["do"] for request, _ in rows] == [
        "hello", "put", "get", "read", "find", "flush", "close", "open",
    ]  # fmt: skip
    assert read_handshake(json.loads(rows[0][1].removesuffix("`"))).name == "toy"
    assert json.loads(rows[-1][1].removesuffix("`"))["open"] is True


EXAMPLES = [block for language, block in BLOCKS if language == "python" and "import" in block]


def test_the_reference_does_what_the_page_says() -> None:
    (example,) = [block for block in EXAMPLES if "ReferenceStore" in block]
    exec(example, {})


@pytest.mark.deep
@watched
def test_a_test_of_yours_fails_with_the_text_above(toy: Path) -> None:
    (example,) = [block for block in EXAMPLES if "import assert_store_holds" in block]
    names: dict[str, Any] = {}
    exec(example, names)
    with pytest.raises(AssertionError) as raised:
        names["test_my_store"]()
    for line in SHOWN.splitlines():
        assert line.removesuffix("…") in str(raised.value)
    mend(toy)
    names["test_my_store"]()


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", TEXT)
    assert links
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
