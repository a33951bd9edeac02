"""Test `check --target` and `explore target`: output and exit codes."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.main import cli
from tornpage.model.operations import Crash, Put
from tornpage.properties.campaign.replay import Tries
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.program.case import Case, Settings
from tornpage.testing import assert_store_holds

TOY = Path(__file__).resolve().parents[2] / "examples" / "toy_store.py"
BROKEN = Path(__file__).resolve().parents[1] / "support" / "properties" / "broken_stores.py"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


@pytest.mark.slow
@pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
def test_explore_finds_the_bug_of_the_toy_and_its_token_shows_it_again(tmp_path: Path) -> None:
    target = f"{shutil.copy(TOY, tmp_path)}:ToyStore"
    out = tmp_path / "out"
    found = run("explore", "target", target, "--states", "30", "--failures", "1", "--out", str(out), "--json")
    assert found.exit_code == 1
    document = json.loads(found.stdout)
    assert document["target"] == target
    assert 0 < document["figures"]["first_failure_s"] <= document["figures"]["seconds"]
    assert "first_failure_s" in document["timings"]
    (finding,) = document["findings"]
    assert finding["crash"][:2] == [
        "crash     power loss on the disk posix-strict, at rest after operation 1",
        "lost      create /messages",
    ]
    assert finding["in_first_open"] is False
    assert finding["code"] == "contract-2"
    assert finding["program"] == ["put()", "crash()"]
    assert finding["settings"] == {"target": target}
    assert f"explore target {target}" in found.stderr
    assert Path(finding["case_file"]).is_file()
    again = run("replay", finding["token"])
    assert (again.exit_code, finding["sentence"] in again.stdout) == (1, True)
    assert run("replay", str(out)).exit_code == 1
    explained = run("explain", finding["token"], "--out", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert explained.exit_code == 1
    for said in (
        "answered: 1 message, 1 promised to survive a power loss",
        "<dt>legal after this crash</dt><dd>1 message</dd>",
        "create /messages: its directory was not synced after it",
        "the power fails, at rest",
    ):
        assert said in page
    assert "What recovery decided" not in page
    assert run("report", str(out), "--pages", "1").exit_code == 0
    assert list(out.glob("case-*.html"))
    Path(tmp_path / "toy_store.py").unlink()
    gone = run("replay", finding["token"])
    assert (gone.exit_code, "there is no file" in gone.stderr) == (2, True)


@pytest.mark.deep
def test_check_finds_what_a_restart_shows() -> None:
    """Return the machine of targets with its shrunk failure."""
    found = run("check", "--target", f"{BROKEN}:CountsAnew")
    assert found.exit_code == 1
    assert "contract 4 is broken: a put returns another number than the next one of its queue" in found.stdout
    assert re.search(r"1\. put\(\)\n +2\. open\(\)  # closes the store first\n +3\. put\(\)\n", found.stdout)
    assert "durable after put" in found.stderr


def test_a_test_that_proves_nothing_fails() -> None:
    with pytest.raises(AssertionError, match=r"vacuous: .* never happened; give more examples"):
        assert_store_holds(f"{BROKEN}:Mended", examples=1)


@pytest.mark.slow
def test_a_store_that_answers_by_chance_is_the_fault_of_nobody_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tornpage.properties.campaign.engine.replay", lambda case, tracker: None)
    never = Tries(None, 0, 5)
    monkeypatch.setattr(
        "tornpage.properties.explore.foreign.campaign.replay_several", lambda case, tries, tracker: never
    )
    found = run("explore", "target", f"{BROKEN}:CountsAnew", "--states", "30")
    assert (found.exit_code, "does the store depend on time or randomness?" in found.stdout) == (4, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "--target", "x"], "'x' is no target"),
        (["check", "--target", f"{BROKEN}:PromisesTheMoon"], "did you mean 'durable'?"),
        (["explore", "target", "cmd:true {dir}"], "exits with 0 instead of answering hello"),
        (["check", "--target", f"{TOY}:ToyStore", "--machine", "put"], "--machine applies to tornpage's store"),
        (["check", "--disk", "journal"], "go with --target"),
        (["explore", "--answer-seconds", "3"], "goes with `explore target`, not with `explore crashes`"),
        (
            ["explore", "target", f"{TOY}:ToyStore", "--workers", "2"],
            "--workers goes with `explore crashes`, `explore kills`, `explore damage`, `explore cluster`, "
            "`explore consumers`, `explore raft`, not with `explore target`",
        ),
        (["check", "--target", f"{TOY}:ToyStore", "--bug", "lying-flush"], "only in tornpage's own store"),
    ],
)
def test_misuse_is_one_line(arguments: list[str], said: str) -> None:
    found = run(*arguments)
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.count("\n") == 1
    assert said in found.stderr


@pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
def test_promoted_case_is_a_test_by_public_names_beside_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Symptom: the test used private names and worked in one directory only."""
    (tmp_path / "tests").mkdir()
    shutil.copy(TOY, tmp_path / "my.py")
    monkeypatch.chdir(tmp_path)
    case = Case(Settings(target="my.py:ToyStore"), (Put(body_bytes=8), Crash()))
    kept = run("promote", case.token(), "--name", "a_lost_file", "--directory", "tests")
    assert kept.exit_code == 1, kept.output
    test = (tmp_path / "tests" / "test_a_lost_file.py").read_text()
    assert re.findall(r"^(?:from|import) .*", test, re.MULTILINE) == ["from tornpage.testing import assert_case_holds"]
    assert '"target": "../my.py:ToyStore"' in test
    assert re.search(r"# 1\. put\(.*\n.*# 2\. crash\(\)", test)
    monkeypatch.chdir("/")
    names: dict[str, Any] = {}
    exec(compile(test, str(tmp_path / "tests" / "test_a_lost_file.py"), "exec"), names)
    with pytest.raises(AssertionError, match="contract 2 is broken: a message that was promised to survive is lost"):
        names["test_the_store_keeps_its_promises"]()
    mended = TOY.read_text().replace(
        "fsync(self.file)\n", "fsync(self.file)\n        os.fsync(os.open(directory, os.O_RDONLY))\n", 1
    )
    (tmp_path / "my.py").write_text(mended)
    names["test_the_store_keeps_its_promises"]()


@pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
def test_image_of_a_store_has_all_its_files(tmp_path: Path) -> None:
    """Symptom: the directory was empty although a file of the store was on the disk."""
    case = Case(Settings(target=f"{BROKEN}:Mended"), (Put(body_bytes=8), Crash()))
    done = run("replay", case.token(), "--image", str(tmp_path / "image"), "--tries", "1")
    assert done.exit_code == 0, done.output
    (file,) = (tmp_path / "image").rglob("*")
    assert file.stat().st_size > 8
