"""Test `tornpage explore interleavings` and the replay of its findings for users."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.json_schema import objections
from tests.support.properties.sweeps import sweep
from tornpage.cli.explore import command as explore
from tornpage.cli.replay import command as replay
from tornpage.model.operations import DeleteTopics, Put, Step
from tornpage.properties.campaign.result import Found
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.interleavings import campaign
from tornpage.properties.explore.interleavings.campaign import InterleavingResult, InterleavingTally
from tornpage.properties.explore.interleavings.scenario import Scenario
from tornpage.properties.explore.interleavings.shrink import BrokenInterleaving
from tornpage.properties.program.case import Settings

BUG = "deleted-beside-puts"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(explore, ["interleavings", *arguments])


def without_timings(document: dict[str, Any]) -> dict[str, Any]:
    figures = {name: value for name, value in document["figures"].items() if name not in document["timings"]}
    return {**document, "figures": figures}


@pytest.fixture
def _easy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the requirements to those of a short campaign."""
    monkeypatch.setattr(campaign, "EFFECTS", ("puts",))


@pytest.mark.slow
@pytest.mark.usefixtures("_easy")
def test_equal_seeds_give_equal_documents() -> None:
    first, second = (run("--states", "12", "--seed", "5", "--json") for _ in range(2))
    assert first.exit_code == second.exit_code == 0, first.output
    one, other = json.loads(first.stdout), json.loads(second.stdout)
    assert without_timings(one) == without_timings(other)
    assert (one["command"], one["verdict"], one["seed"], one["findings"]) == ("explore", "holds", 5, [])
    figures = one["figures"]
    assert figures["interleavings"] == 12
    assert 0 < figures["distinct_interleavings"] <= 12
    assert figures["exhausted_interleavings"] == 3
    assert {"seconds", "distinct_interleavings_per_s", "interleavings_per_s", "points_per_s"} <= set(one["timings"])


@pytest.fixture(scope="module")
def failure() -> BrokenInterleaving:
    """Return a race that needs one switch."""
    settings = Settings(file_bytes=1024, queue_units=3, index=False, bug=BUG)
    tasks = ((Put(fill=1),), (DeleteTopics(),))
    scenario = Scenario("a race", settings, (Put(), Step("reput")), tasks, ())
    with choose_tracker("auto") as tracker:
        runs = sweep(
            scenario, tracker=tracker, modules=("tornpage.impl.log.commit_log", "tornpage.properties.planted.races")
        )
        interleaving, ran = next((i, r) for i, r in runs if r.broken is not None)
    assert ran.broken is not None
    return BrokenInterleaving(interleaving, ran.broken, ran)


@pytest.fixture
def _found(failure: BrokenInterleaving, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the campaign find it at once."""
    result = InterleavingResult(InterleavingTally(interleavings=7), found=[Found(failure)])
    monkeypatch.setattr(campaign, "explore_interleavings", lambda **_: result)


@pytest.mark.usefixtures("_found")
def test_a_race_is_told_with_program_calls_and_token(tmp_path: Path) -> None:
    found = run("--states", "300", "--bug", BUG, "--json", "--out", str(tmp_path / "run"))
    assert found.exit_code == 1
    document = json.loads(found.stdout)
    (finding,) = document["findings"]
    assert finding["severity"] == "broken"
    assert any("delete_topics" in line for line in finding["program"])
    assert any("clean_unused_topics" in line for line in finding["history"])
    assert finding["turns"]
    assert not [*objections(json.loads((tmp_path / "run" / "run.json").read_text()))]
    for case in (finding["token"], finding["case_file"]):
        again = CliRunner().invoke(replay, [case, "--json"])
        assert again.exit_code == 1
        assert json.loads(again.stdout)["findings"][0]["sentence"] == finding["sentence"]
    text = CliRunner().invoke(replay, [finding["token"]])
    assert re.search(r"contract \d+ is broken", text.output)
    assert f"tornpage replay {finding['token']}" in text.output


@pytest.mark.usefixtures("_found")
def test_a_token_of_other_lines_that_holds_now_proves_nothing(tmp_path: Path) -> None:
    found = run("--states", "300", "--bug", BUG, "--out", str(tmp_path))
    assert found.exit_code == 1
    (path,) = tmp_path.glob("interleaving-*.json")
    document = json.loads(path.read_text())
    del document["settings"]["bug"]
    path.write_text(json.dumps(document))
    assert CliRunner().invoke(replay, [str(path)]).exit_code == 0
    path.write_text(json.dumps({**document, "source": "00000000"}))
    changed = CliRunner().invoke(replay, [str(path), "--json"])
    assert changed.exit_code == 3
    assert json.loads(changed.stdout)["findings"][0]["code"] == "source-changed"


def test_a_campaign_that_is_too_short_is_vacuous() -> None:
    result = run("--states", "4")
    assert result.exit_code == 3
    assert "topics_deleted" in result.output
    assert result.output.rstrip().endswith("verdict: vacuous")


def test_an_unknown_history_is_not_green(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        campaign,
        "explore_interleavings",
        lambda **_: InterleavingResult(InterleavingTally(unknown=2), undecided=["two histories"], canary="c"),
    )
    result = run("--json")
    assert result.exit_code == 3
    assert [finding["code"] for finding in json.loads(result.stdout)["findings"]] == ["unknown-history"]


def test_a_harness_at_fault_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: object) -> InterleavingResult:
        raise HarnessError("it does not repeat")

    monkeypatch.setattr(campaign, "explore_interleavings", fails)
    result = run("--states", "3")
    assert result.exit_code == 4
    assert "it does not repeat" in result.output


@pytest.mark.parametrize("option", [["--recovery"], ["--kills", "3"], ["--file-bytes", "2048"]])
def test_other_verbs_and_their_options_are_refused(option: list[str]) -> None:
    result = run(*option)
    assert result.exit_code == 2
    assert "not with `explore interleavings`" in result.output or "are two ways to explore" in result.output


@pytest.mark.parametrize("case", ["ti1-", "ti1-00000000-AAAA"])
def test_a_token_that_is_none_is_refused(case: str) -> None:
    result = CliRunner().invoke(replay, [case])
    assert result.exit_code == 2
    assert "token" in result.output


def test_an_interleaving_has_no_image(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text('{"tornpage_interleaving": 1}')
    result = CliRunner().invoke(replay, [str(path), "--image", str(tmp_path / "image")])
    assert result.exit_code == 2
    assert "no power loss" in result.output
