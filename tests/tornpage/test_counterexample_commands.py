"""Test shrink, explain and promote for users, and saved cases judged again."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.main import cli
from tornpage.model.operations import Crash, Flush, Operation, Put
from tornpage.properties.planted import RAFT_REPRODUCERS
from tornpage.properties.program.case import Case, Settings
from tornpage.render import counterexample as failures

OPERATIONS: tuple[Operation, ...] = (
    *(Put(body_bytes=300, fill=n, properties="KEYS\x01<b>k</b>") for n in range(4)),
    Crash(survived={"size /store/commitlog/00000000000000000000": 0, "page /store/lock 0": 0}, others="kept"),
)
BROKEN = Case(Settings(file_bytes=1024, bug="size-not-synced"), OPERATIONS)
HOLDS = Case(Settings(file_bytes=1024), OPERATIONS)


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def case_file(tmp_path: Path) -> Path:
    path = tmp_path / "case-1.json"
    path.write_text(json.dumps(BROKEN.document()))
    return path


# ---- shrink ----------------------------------------------------------------------------------------------------------


def test_shrink_says_how_small_it_became_and_what_ended_it(case_file: Path, tmp_path: Path) -> None:
    result = run("shrink", str(case_file), "--out", str(tmp_path / "small"), "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert document["verdict"] == "broken"
    assert document["figures"]["operations"] <= 4
    assert document["figures"]["one_minimal"] == 1
    (finding,) = document["findings"]
    saved = Path(finding["case_file"])
    assert Case.from_text(saved.read_text()).token() == finding["token"]
    assert json.loads(saved.read_text())["was"]["sentence"] == finding["sentence"]


def test_shrink_without_time_says_so(case_file: Path) -> None:
    result = run("shrink", str(case_file), "--seconds", "1e-9")
    assert result.exit_code == 1
    assert "not 1-minimal: time ran out" in result.stdout


def test_the_text_follows_the_order_of_a_report(case_file: Path) -> None:
    text = run("shrink", str(case_file), "--seconds", "1e-9").stdout
    parts = ("is broken:", "program", "crash     power loss", "lost   ", "legal because", "expected", "found")
    places = [
        text.index(part) for part in (*parts, "disagree", "tornpage replay", "tornpage shrink", "tornpage explain")
    ]
    assert places == sorted(places)


@pytest.mark.parametrize("command", ["shrink", "explain"])
def test_a_case_that_holds_ends_well_and_writes_nothing(command: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(command, HOLDS.token(), "--out", str(out))
    assert result.exit_code == 0
    assert "every guarantee holds" in result.stdout
    assert not out.exists()


@pytest.mark.parametrize("command", [["replay"], ["shrink"], ["explain"], ["promote", "--name", "x"]])
@pytest.mark.parametrize("given", ["no-such-file", "no" * 3000, "a\0b", "tp1-12345678-abc", "ti1-12345678-abc"])
def test_what_is_no_case_is_refused_in_a_line(command: list[str], given: str) -> None:
    result = run(*command, given)
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1


def test_an_unknown_bug_is_refused() -> None:
    unknown = Case(Settings(bug="never-planted"), ()).token()
    for command in (["shrink"], ["explain"], ["promote", "--name", "x", "--directory", "."]):
        assert run(*command, unknown).exit_code == 2


# ---- explain ---------------------------------------------------------------------------------------------------------


def test_explain_writes_one_page_and_prints_its_path_alone_on_a_line(case_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run("explain", str(case_file), "--out", str(page))
    assert result.exit_code == 1
    assert str(page) in result.stdout.splitlines()
    text = page.read_text()
    assert "What recovery decided" in text
    assert "&lt;b&gt;k&lt;/b&gt;" in text
    assert "<b>k</b>" not in text


def test_explain_shows_how_it_shrank_if_it_may(case_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run("explain", str(case_file), "--seconds", "1e-9", "--out", str(page))
    assert "It ended early (time)" in page.read_text()


def test_a_page_that_cannot_be_written_is_refused(case_file: Path, tmp_path: Path) -> None:
    result = run("explain", str(case_file), "--out", str(tmp_path / "none" / "page.html"))
    assert result.exit_code == 2
    assert "name another file with --out" in result.stderr


# ---- promote ---------------------------------------------------------------------------------------------------------


def test_a_promoted_case_is_a_test_that_runs(case_file: Path, tmp_path: Path) -> None:
    result = run("promote", str(case_file), "--name", "a_lost_size", "--directory", str(tmp_path))
    assert result.exit_code == 0
    path = tmp_path / "test_a_lost_size.py"
    assert str(path) in result.stdout.splitlines()
    names = runpy.run_path(str(path))
    assert names["CASE"] == BROKEN
    names["test_the_store_holds_what_it_promises"]()
    names["test_the_planted_bug_is_still_caught"]()


def test_a_promoted_test_fails_once_the_bug_is_in_the_store_or_seen_no_more(case_file: Path, tmp_path: Path) -> None:
    run("promote", str(case_file), "--name", "a_lost_size", "--directory", str(tmp_path))
    written = (tmp_path / "test_a_lost_size.py").read_text()
    (tmp_path / "broken.py").write_text(written.replace('bug="")', 'bug="size-not-synced")'))
    with pytest.raises(AssertionError):
        runpy.run_path(str(tmp_path / "broken.py"))["test_the_store_holds_what_it_promises"]()
    (tmp_path / "blind.py").write_text(written.replace('"bug": "size-not-synced"', '"bug": ""'))
    with pytest.raises(AssertionError):
        runpy.run_path(str(tmp_path / "blind.py"))["test_the_planted_bug_is_still_caught"]()


def test_hostile_text_of_a_case_stays_in_its_text(tmp_path: Path) -> None:
    hostile = Put(topic='"""\nraise SystemExit(9)\n"""', properties="KEYS\x01\\x22\\")
    case = Case(Settings(file_bytes=1024), (hostile, Flush()))
    result = run("promote", case.token(), "--name", "hostile", "--directory", str(tmp_path))
    assert result.exit_code == 0
    assert runpy.run_path(str(tmp_path / "test_hostile.py"))["CASE"] == case


def test_promote_overwrites_nothing_and_names_the_remedy(case_file: Path, tmp_path: Path) -> None:
    (tmp_path / "test_kept.py").write_text("kept")
    result = run("promote", str(case_file), "--name", "kept", "--directory", str(tmp_path))
    assert result.exit_code == 2
    assert "choose another --name" in result.stderr
    assert (tmp_path / "test_kept.py").read_text() == "kept"


@pytest.mark.parametrize("name", ["../x", "A", "1x", "a-b", ""])
def test_a_name_that_is_none_is_refused(name: str, case_file: Path, tmp_path: Path) -> None:
    assert run("promote", str(case_file), "--name", name, "--directory", str(tmp_path)).exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["case-1.json"]


def test_a_case_that_does_not_catch_its_bug_is_not_kept(tmp_path: Path) -> None:
    blind = Case(BROKEN.settings, (Flush(),))
    result = run("promote", blind.token(), "--name", "blind", "--directory", str(tmp_path))
    assert result.exit_code == 2
    assert "does not catch size-not-synced any more" in result.stderr


def test_a_token_is_not_taken_for_the_name_of_a_file() -> None:
    many = Case(Settings(), tuple(Put(body_bytes=n, fill=n * 7919, topic=f"Topic{n}") for n in range(60)))
    assert len(many.token()) > 255
    assert run("replay", many.token()).exit_code == 0


# ---- saved cases judged again ----------------------------------------------------------------------------------------


def test_all_cases_of_a_directory_are_judged_again(tmp_path: Path) -> None:
    was = {"contract": 7, "sentence": "it was so"}
    (tmp_path / "case-a.json").write_text(json.dumps({**BROKEN.document(), "was": was}))
    (tmp_path / "case-b.json").write_text(json.dumps({**HOLDS.document(), "was": was}))
    (tmp_path / "case-c.json").write_text('{"tornpage_case": 0, "settings": {}, "operations": []}')
    (tmp_path / "case-d.json").write_text("cut off")
    document = json.loads((result := run("replay", str(tmp_path), "--json")).stdout)
    assert result.exit_code == 1
    rows = {Path(row["case"]).name: row for row in document["rows"]}
    assert rows["case-a.json"]["was"] == "contract 7: it was so"
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "case-a.json": "broken",
        "case-b.json": "holds now",
        "case-c.json": "cannot be read",
        "case-d.json": "cannot be read",
    }
    assert "format 0" in rows["case-c.json"]["why"]
    assert "not JSON" in rows["case-d.json"]["why"]


def test_exit_codes_of_several_cases(tmp_path: Path) -> None:
    (tmp_path / "case-b.json").write_text(json.dumps(HOLDS.document()))
    assert run("replay", str(tmp_path)).exit_code == 0
    (tmp_path / "case-c.json").write_text("{}")
    assert run("replay", str(tmp_path)).exit_code == 3
    assert run("replay", str(tmp_path), BROKEN.token()).exit_code == 1
    assert run("replay", str(tmp_path), "--image", "x").exit_code == 2
    assert run("replay", str(tmp_path / "nothing")).exit_code == 2


def test_findings_of_a_run_are_judged_where_their_case_file_is_gone(tmp_path: Path) -> None:
    finding = {"code": "contract-7", "sentence": "once", "token": BROKEN.token()}
    (tmp_path / "run.json").write_text(json.dumps({"findings": [finding]}))
    (row,) = json.loads(run("replay", str(tmp_path), "--json").stdout)["rows"]
    assert (row["was"], row["verdict"]) == ("contract 7: once", "broken")
    (tmp_path / "case-a.json").write_text(json.dumps(BROKEN.document()))
    assert len(json.loads(run("replay", str(tmp_path), "--json").stdout)["rows"]) == 1
    (tmp_path / "empty").mkdir()
    assert run("replay", str(tmp_path / "empty")).exit_code == 2


def test_pages_lost_are_told_as_ranges() -> None:
    from tornpage.properties.explain.page_map import PageFate, PageMap, WriteFate

    pages = [PageFate("/store/commitlog/0", number, 1, "lost") for number in (2, 3, 5)]
    shown = PageMap((), 0, "posix-strict", (*pages, PageFate("/store/index/1", 0, 2, "torn")), (
        WriteFate("create /store/lock", "lost"), WriteFate("size /store/a", "kept")), ())  # fmt: skip
    assert failures._lost(shown) == ["commitlog/0[2..3][5..5]", "index/1[0..0] torn", "create lock"]


def test_an_interrupted_shrink_prints_what_it_has(case_file: Path) -> None:
    script = (
        "import sys\nfrom tornpage.properties.campaign import replay as module\nreal, calls = module.replay, 0\n"
        "def replay(case, **given):\n    global calls\n    calls += 1\n    if calls == 12: raise KeyboardInterrupt\n"
        "    return real(case, **given)\nmodule.replay = replay\nfrom tornpage.cli.main import main\n"
        f"sys.argv = ['tornpage', 'shrink', {str(case_file)!r}]\nmain()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 130, done.stderr
    assert "it was interrupted" in done.stdout


def test_a_case_of_a_raft_group_is_replayed_shrunk_and_promoted(tmp_path: Path) -> None:
    token = RAFT_REPRODUCERS["LB01"].token()
    replayed = CliRunner().invoke(cli, ["replay", token, "--json"])
    assert (replayed.exit_code, json.loads(replayed.stdout)["verdict"]) == (1, "broken")
    shrunk = CliRunner().invoke(cli, ["shrink", token, "--seconds", "5", "--out", str(tmp_path), "--json"])
    assert shrunk.exit_code == 1
    (case,) = tmp_path.glob("raft-*.json")
    assert CliRunner().invoke(cli, ["replay", str(case)]).exit_code == 1
    promoted = CliRunner().invoke(cli, ["promote", str(case), "--name", "early_answer", "--directory", str(tmp_path)])
    assert (promoted.exit_code, "catches LB01" in promoted.stdout) == (0, True)
    compile((tmp_path / "test_early_answer.py").read_text(), "test_early_answer.py", "exec")
    explained = CliRunner().invoke(cli, ["explain", token])
    assert (explained.exit_code, explained.stderr.count("\n")) == (2, 1)
    assert "`tornpage replay` prints its schedule" in explained.stderr
