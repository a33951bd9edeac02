"""Test that `init` writes skeletons that build, answer, and hold."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.main import cli
from tornpage.outcomes.skeletons import LANGUAGES
from tornpage.properties.foreign.tracing import why_untraceable

TOOLS = {"python": sys.executable, "go": "go", "rust": "rustc", "java": "javac", "node": "node", "c": "gcc"}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_each_language_has_a_tool_to_test_it() -> None:
    assert TOOLS.keys() == LANGUAGES.keys()


@pytest.mark.slow
@pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
@pytest.mark.parametrize("language", LANGUAGES)
def test_skeleton_builds_and_holds(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    builds_and_holds(language, "messages", tmp_path, monkeypatch, repository)


@pytest.mark.slow
@pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
@pytest.mark.parametrize("language", ["c", *(pytest.param(each, marks=pytest.mark.deep) for each in ("rust", "java"))])
def test_key_value_skeleton_builds_and_holds(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    builds_and_holds(language, "key-value", tmp_path, monkeypatch, repository)


@pytest.mark.slow
@pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
@pytest.mark.parametrize("shape", ["queue", "log", "file"])
@pytest.mark.parametrize("language", ["c", *(pytest.param(each, marks=pytest.mark.deep) for each in ("rust", "java"))])
def test_skeleton_of_other_shapes_builds_and_holds(
    language: str, shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    builds_and_holds(language, shape, tmp_path, monkeypatch, repository)


def builds_and_holds(
    language: str, shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    if shutil.which(TOOLS[language]) is None:
        pytest.skip(f"there is no {TOOLS[language]} here")
    monkeypatch.chdir(tmp_path)
    made = run("init", "my_store", "--language", language, "--shape", shape)
    assert made.exit_code == 0, made.output
    spoken = LANGUAGES[language]
    if spoken.builds:
        cache = repository / "build" / "go"  # kept: the standard library takes 12 s of processor time to compile
        environment = {**os.environ, "GOCACHE": str(cache), "GO111MODULE": "off"}
        built = subprocess.run(
            shlex.split(spoken.filled(spoken.builds, "my_store")), env=environment, capture_output=True, text=True
        )
        assert (built.returncode, built.stderr) == (0, "")
    target = spoken.filled(spoken.target, "my_store")
    assert f"tornpage explore target {shlex.quote(target) if ' ' in target else target} --seconds 30" in made.stdout
    held = run("explore", "target", target, "--states", "25" if language == "java" else "40", "--seed", "2")
    assert held.exit_code == 0, held.output


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("kept")
    refused = run("init", "mine", "--language", "python", "--directory", str(tmp_path))
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "is there already; choose another NAME, or take it away" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["test_mine.py"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["My-Store", "--language", "c"], "is no name for a store"),
        (["x", "--language", "c", "--directory", "no"], "is no directory"),
    ],
)
def test_misuse_is_one_line(arguments: list[str], said: str) -> None:
    refused = run("init", *arguments)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert said in refused.stderr
