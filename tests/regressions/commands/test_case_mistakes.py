"""Test that mistakes in a case, a target or an `--out` directory are named with a remedy.

Messages did not name the file. A target without methods was reported as a broken guarantee. A full disk left parts.
"""

import errno
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli
from tornpage.properties.disk.disk import Image
from tornpage.properties.foreign.spec import BadSpec, read_spec
from tornpage.properties.judge.image import write_image
from tornpage.run.writing import write_whole

_STORE = """
class Bare:
    promises = {"durable": "put"}

    def __init__(self, directory):
        pass


class KeyValue(Bare):
    shape = "key-value"

    def put(self, key, value):
        pass
"""


def refusal(*arguments: str) -> str:
    """Return the one line of a refused command."""
    ran = CliRunner().invoke(cli, arguments)
    assert ran.exit_code == 2, ran.output
    assert ran.output.count("\n") == 1
    return ran.output


@pytest.mark.parametrize("verb", ["replay", "shrink", "explain"])
@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("hello", "the file is not JSON"),
        ("{}", "this is not a case"),
        ('{"tornpage_interleaving": 1}', "interleaving"),
        ('{"tornpage_case": 9}', "format 9"),
    ],
)
def test_wrong_case_file_is_named(tmp_path: Path, verb: str, content: str, why: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(content)
    said = refusal(verb, str(path))
    assert said.startswith(f"tornpage: {path}: ")
    assert why in said


@pytest.mark.parametrize("verb", ["shrink", "explain"])
def test_directory_or_empty_case_has_a_remedy(tmp_path: Path, verb: str) -> None:
    assert f"{tmp_path} is a directory: name one of its case files" in refusal(verb, str(tmp_path))
    assert "give a token" in refusal(verb, "")


def test_empty_case_is_no_directory() -> None:
    assert "the case is empty" in refusal("replay", "")


def test_unknown_code_has_a_remedy() -> None:
    assert "docs/findings.md lists all codes" in refusal("explain", "NO_SUCH_THING_AT_ALL")


def test_folder_without_code_is_no_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder_of_nothing").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadSpec, match="folder_of_nothing is a directory without Python code"):
        read_spec("folder_of_nothing:Store")


@pytest.mark.parametrize(
    ("name", "missing"), [("Bare", "flush, close, put, get, read"), ("KeyValue", "flush, close, delete, get")]
)
def test_target_without_methods_is_refused(tmp_path: Path, name: str, missing: str) -> None:
    path = tmp_path / "store.py"
    path.write_text(_STORE)
    said = refusal("explore", "target", f"{path}:{name}", "--states", "5")
    assert f"{name} lacks {missing}; give it these methods" in said


def test_target_without_promises_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.py"
    path.write_text("class Silent:\n    def __init__(self, directory):\n        pass\n")
    said = refusal("explore", "target", f"{path}:Silent", "--states", "5")
    assert "Silent has no promises; give it a mapping such as {'durable': 'put'}" in said


def test_failed_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a full disk left an empty page, an empty test and a part of an image."""
    kept = tmp_path / "kept.html"
    kept.write_text("before")

    def full(path: Path, _: bytes) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    for path in (kept, tmp_path / "new.html"):
        with pytest.raises(OSError, match="No space left") as raised:
            write_whole(path, "text")
        assert raised.value.filename == str(path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"kept.html": "before"}


def test_interrupted_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a hidden file stayed beside the page.

    An interrupt left it, and so did a text without an encoding.
    """
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "page.html", "\udcff")

    def interrupted(path: Path, _: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "page.html", "text")
    assert not list(tmp_path.iterdir())


def test_link_and_pipe_stay(tmp_path: Path) -> None:
    """Regression: `--html /dev/null --overwrite` replaced the device by a page.

    It also replaced a link by a file.
    """
    page, link, pipe = tmp_path / "page.html", tmp_path / "link.html", tmp_path / "pipe"
    page.write_text("before")
    link.symlink_to(page)
    write_whole(link, "text")
    assert link.is_symlink()
    assert page.read_text() == "text"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, "text")
        assert os.read(reader, 100) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize("is_new", [True, False])
def test_failed_image_leaves_the_directory_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_new: bool
) -> None:
    written: list[Path] = []

    def full(path: Path, content: bytes) -> int:
        if written:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        written.append(path)
        return real(path, content)

    real = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", full)
    directory = tmp_path / "image"
    if not is_new:
        directory.mkdir()
    with pytest.raises(OSError, match="No space left"):
        write_image(Image(frozenset({"/d"}), {"/d/a": b"1", "/b": b"2"}), directory, root="")
    assert written
    assert directory.exists() is not is_new
    assert is_new or not list(directory.iterdir())


def test_resume_without_a_campaign_says_so(tmp_path: Path) -> None:
    ran = CliRunner().invoke(cli, ["campaign", "--resume", "--out", str(tmp_path), "--target", f"{tmp_path}/none.py:S"])
    assert ran.exit_code == 2
    assert f"{tmp_path} has no campaign to resume, so it begins now" in ran.output


@pytest.mark.parametrize(
    ("verb", "run"),
    [
        ("kills", "kills.run:run_kills"),
        ("pair", "pair.run:run_pair"),
        ("group", "group.run:run_group"),
        ("restarts", "kills.restarts:run_restarts"),
    ],
)
def test_place_without_room_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: str, run: str) -> None:
    module, _, function = run.partition(":")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", f"{tmp_path}/one")

    monkeypatch.setattr(f"tornpage.properties.explore.{module}.{function}", full)
    ran = CliRunner().invoke(cli, ["explore", verb, "1", "--directory", str(tmp_path)])
    assert ran.exit_code == 2
    why = f"cannot work in {tmp_path}/one: No space left on device; name another --directory"
    assert ran.output.splitlines()[-1] == f"tornpage: {why}"


@pytest.mark.parametrize(("given", "place"), [(("--directory", "."), "."), ((), "the directory for temporary files")])
def test_failure_without_a_file_names_the_directory(
    monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], place: str
) -> None:
    """Regression: the message said "cannot work in None"."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tornpage.properties.explore.pair.run.run_pair", full)
    said = refusal("explore", "pair", "1", *given)
    assert f"cannot work in {place}: No space left on device" in said


def test_plan_refuses_resume_without_asking_for_a_directory() -> None:
    assert "--resume is not for --plan, which runs nothing; leave it out" in refusal("campaign", "--plan", "--resume")
