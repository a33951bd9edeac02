"""Test `tornpage sim experiment` and `sim frontier`: output, errors and interrupts."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner, Result

import tornpage.outcomes.experiments
from tornpage.bench.crashes.frontier import crash_frontier
from tornpage.cli.report import command as report
from tornpage.cli.simulating.sim import command
from tornpage.properties.contract import HarnessError
from tornpage.reports.pages.simulation_page import build_simulation_page
from tornpage.sim.experiments.pool import POOL
from tornpage.sim.experiments.registry import EXPERIMENTS
from tornpage.sim.experiments.stalls import STALLS
from tornpage.sim.experiments.values import Experiment, Progress, Row, Setup


def call(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def document(*arguments: str) -> dict[str, Any]:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    loaded = json.loads(result.stdout, parse_constant=pytest.fail)
    assert isinstance(loaded, dict)
    return loaded


def test_the_list_has_every_experiment_and_what_it_asks() -> None:
    text = call("experiment", "--list").output
    for experiment in EXPERIMENTS:
        assert experiment.name in text
        assert experiment.question in text
    assert "(measures the real store)" in text
    found = document("experiment", "--list")
    assert [one["name"] for one in found["experiments"]][: len(EXPERIMENTS)] == [one.name for one in EXPERIMENTS]


def test_results_lie_in_the_document_and_in_tables_that_become_a_page(tmp_path: Path) -> None:
    out = tmp_path / "run"
    found = document(
        "experiment", "stalls", "--effort", "0.002", "--seed", "7", "--device", "ebs-gp3", "--out", str(out)
    )
    assert (found["command"], found["verdict"], found["seed"], found["device"]) == (
        "sim experiment",
        None,
        7,
        "ebs-gp3",
    )
    assert found["figures"] == {"experiments": 1, "experiments_done": 1}
    assert found["timings"] == []
    result = found["results"]["stalls"]
    assert json.loads((out / "tables" / "experiment-stalls.json").read_text()) == result
    assert result["caption"]["command"] == "tornpage sim experiment stalls --effort 0.002 --device ebs-gp3 --seed 7"
    assert "published fio runs" in result["caption"]["source"]
    assert result["experiment"]["answer"] == STALLS.caption(result["rows"])
    page = CliRunner().invoke(report, [str(out)])
    assert page.exit_code == 0, page.output
    text = Path(page.output.strip()).read_text()
    assert STALLS.question in text
    assert "<svg" in text


def test_equal_seeds_give_equal_documents() -> None:
    documents = [document("experiment", "stalls", "--effort", "0.002", "--seed", seed) for seed in ("5", "5", "6")]
    assert documents[0] == documents[1] != documents[2]


def test_people_read_question_and_answer() -> None:
    text = call("experiment", "stalls", "--effort", "0.002").output
    assert STALLS.question in text
    assert "re-protect fault" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("experiment",), "name experiments, or give --all"),
        (("experiment", "knee", "--all"), "name experiments, or give --all"),
        (("experiment", "pol"), "no experiment 'pol'; did you mean pool"),
        (("experiment", "pool", "--device", "tape"), "no device 'tape'; there are vm-ext4"),
        (("experiment", "pool", "--effort", "0"), "0"),
        (("experiment", "pool", "--effort", "2"), "2"),
        (("experiment", "pool", "--effort", "nan"), "nan is no finite number"),
        (("frontier", "--directory", "/proc/no/such/place"), "'/proc/no/such/place' is no directory"),
        (("frontier", "--crashes", "0"), "0"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(arguments: tuple[str, ...], told: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "Traceback" not in result.output


def test_a_place_for_kills_that_cannot_be_written_is_refused_before_anything_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda _, mode: mode == os.R_OK)
    result = call("frontier", "--kills", "1", "--directory", str(tmp_path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"tornpage: {tmp_path} cannot be written to; name another --directory\n"


def test_a_foreign_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters").write_text("mine")
    result = call("experiment", "stalls", "--effort", "0.002", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "letters" in result.stderr


def failing(error: Exception) -> tuple[Experiment, ...]:
    """Return two experiments, the second of which fails."""

    def fails(setup: Setup, progress: Progress) -> Iterator[Row]:
        progress("half way")
        raise error

    return (STALLS, replace(POOL, measure=fails))


@pytest.mark.parametrize(
    ("error", "code", "verdict", "told"),
    [
        (OSError("no room"), 2, None, "the real store cannot work here: no room; name a directory with room in TMPDIR"),
        (HarnessError("odd"), 4, "harness", "the harness failed: odd"),
    ],
)
def test_an_experiment_that_cannot_be_keeps_those_that_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, verdict: str | None, told: str
) -> None:
    """The last of ten measures the real store.

    Its failure lost minutes of simulation.
    """
    monkeypatch.setattr(tornpage.outcomes.experiments, "catalogue", lambda: failing(error))
    result = call("experiment", "--all", "--effort", "0.002", "--out", str(tmp_path / "run"))
    assert result.exit_code == code
    assert STALLS.question in result.output
    assert told in result.output
    assert "1 of 2 experiments are done" in result.output
    assert [path.name for path in (tmp_path / "run" / "tables").iterdir()] == ["experiment-stalls.json"]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["verdict"] == verdict


def test_the_only_experiment_that_cannot_be_is_a_refusal_with_the_remedy_of_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sim experiment` named a --directory that it does not have."""
    monkeypatch.setattr(tornpage.outcomes.experiments, "catalogue", lambda: failing(OSError("no room"))[1:])
    result = call("experiment", "pool")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "tornpage: the real store cannot work here: no room; name a directory with room in TMPDIR\n"
    )


def test_experiments_are_listed_without_a_temporary_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing the experiments needed a writable directory.

    On a full disk it ended with a traceback.
    """

    def nowhere() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    assert crash_frontier(kills=0).is_measured
    refused = call("frontier", "--crashes", "1", "--kills", "1", "--effort", "0.001")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "No usable temporary directory found; name another --directory" in refused.stderr


def test_an_interrupt_keeps_the_experiments_that_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(setup: Setup, progress: Progress) -> Iterator[Row]:
        progress("half way")
        raise KeyboardInterrupt

    known: tuple[Experiment, ...] = (STALLS, replace(POOL, measure=interrupted))
    monkeypatch.setattr(tornpage.outcomes.experiments, "catalogue", lambda: known)
    result = call("experiment", "--all", "--effort", "0.002", "--out", str(tmp_path / "run"))
    assert result.exit_code == 130
    assert "interrupted: 1 of 2 experiments are done" in result.output
    assert [path.name for path in (tmp_path / "run" / "tables").iterdir()] == ["experiment-stalls.json"]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["interrupted"] is True


@pytest.mark.parametrize("error", [KeyboardInterrupt(), HarnessError("a kill is not explained")], ids=repr)
def test_a_frontier_that_ends_early_keeps_the_rows_that_it_has(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Ctrl-C in the last of its kills lost the measurements of ten minutes."""

    def kill(*_: object, **__: object) -> NoReturn:
        raise error

    monkeypatch.setattr("tornpage.bench.crashes.frontier.kill_one", kill)
    out = tmp_path / "run"
    result = call("frontier", "--crashes", "2", "--kills", "1", "--effort", "0.01", "--out", str(out))
    assert result.exit_code == (130 if isinstance(error, KeyboardInterrupt) else 4)
    assert "It ended early with 2 rows, from which nothing is concluded." in result.output
    assert "0 of 1 experiments are done" in result.output
    [table] = (out / "tables").iterdir()
    kept = json.loads(table.read_text())
    assert [row["crash"] for row in kept["rows"]] == ["power loss, simulated", "power loss, real store"]
    assert kept["experiment"]["is_whole"] is False
    assert "nothing is concluded" in build_simulation_page(out).read_text()
