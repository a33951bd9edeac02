"""Test `tornpage sim validate`: impossible measurements are refused in one line.

A small run leaves rows that can be drawn.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tornpage.bench.validation.scores import Observed, score
from tornpage.bench.validation.validation import Case, Validation
from tornpage.cli.simulating.sim import command
from tornpage.outcomes import validating
from tornpage.outcomes.validating import validate_outcome
from tornpage.properties.contract import HarnessError
from tornpage.reports.plots.prediction import read_validation
from tornpage.run.directory import prepare
from tornpage.sim.device.sync_table import TooFewSamples


def validate(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["validate", *arguments])


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """Yield a directory outside memory, where tests' directories may be in memory."""
    with TemporaryDirectory(dir="/var/tmp") as path:
        yield Path(path)


@pytest.mark.parametrize("name", ["", "/proc/no/such/place"], ids=["empty", "missing"])
def test_a_place_that_is_no_directory_is_named(name: str) -> None:
    found = validate(name)
    assert (found.exit_code, found.output) == (
        2,
        f"tornpage: {name!r} is no directory; name one that exists, on the disk to be measured\n",
    )


def test_a_directory_in_memory_is_refused_since_a_sync_takes_no_time_there() -> None:
    found = validate("/dev/shm")
    assert found.exit_code == 2
    assert found.output.startswith("tornpage: /dev/shm lives in memory (tmpfs), where a sync takes no time")


def test_an_out_that_cannot_be_made_is_refused_before_anything_is_measured(on_disk: Path) -> None:
    (on_disk / "file").write_text("")
    found = validate(str(on_disk), "--out", str(on_disk / "file" / "out"))
    assert found.exit_code == 2
    assert "name another --out directory" in found.output


@pytest.mark.parametrize("seconds", ["0", "-1", "x"])
def test_seconds_have_to_be_some_time(seconds: str, tmp_path: Path) -> None:
    assert validate(str(tmp_path), "--seconds", seconds).exit_code == 2


def test_a_refusal_leaves_the_results_of_an_earlier_run_alone(tmp_path: Path) -> None:
    """They were removed before the check that the directory to measure is in memory."""
    prepare(str(tmp_path / "out"))
    table = tmp_path / "out" / "tables" / "experiment.json"
    table.write_text("{}")
    assert validate("/dev/shm", "--out", str(tmp_path / "out")).exit_code == 2
    assert table.exists()


def ends(error: BaseException) -> Callable[..., None]:
    def measure(place: str, seconds: float, seed: int, rounds: list[object], cases: object) -> None:
        rounds.append(None)
        raise error

    return measure


@pytest.mark.parametrize(
    ("error", "code", "verdict"),
    [(KeyboardInterrupt(), 130, "unknown"), (HarnessError("a put was refused"), 4, "harness")],
    ids=["Ctrl-C", "harness"],
)
def test_a_run_that_ends_early_is_not_taken_for_the_one_before(
    on_disk: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, verdict: str
) -> None:
    """Its directory kept showing the verdict and the rows of an earlier run."""
    for name in ("run.json", "scores.jsonl", "quantiles.jsonl", "slices.jsonl", "index.html"):
        (on_disk / name).write_text('{"verdict": "holds"}')
    monkeypatch.setattr(validating, "_measure", ends(error))
    assert validate("/var/tmp", "--out", str(on_disk)).exit_code == code
    assert sorted(path.name for path in on_disk.iterdir()) == ["run.json", "sources.json", "tables"]
    assert json.loads((on_disk / "run.json").read_text())["verdict"] == verdict


def test_rounds_that_tell_too_little_leave_the_verdict_unknown(on_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk whose syncs take 12 ms the harness was blamed.

    The remedy was more --seconds.
    """

    def too_few(*_: object) -> None:
        raise TooFewSamples("no 'wake' was measured")

    monkeypatch.setattr(validating, "_measure", lambda *known: known[3].extend((None, None)))
    monkeypatch.setattr("tornpage.bench.validation.validation.validate", too_few)
    found = validate(str(on_disk))
    assert found.exit_code == 3
    assert "a round does not tell enough: no 'wake' was measured; syncs of more than some 10 ms" in found.stdout


def test_a_fault_of_the_harness_in_predicting_is_told_and_kept(on_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended with a traceback if it was found while predicting."""

    def differs(*_: object) -> None:
        raise HarnessError("store and simulator were not asked for the same puts")

    monkeypatch.setattr(validating, "_measure", lambda *known: known[3].extend((None, None)))
    monkeypatch.setattr("tornpage.bench.validation.validation.validate", differs)
    found = validate("/var/tmp", "--out", str(on_disk))
    assert found.exit_code == 4
    assert found.stdout == "the harness failed: store and simulator were not asked for the same puts\n"
    assert json.loads((on_disk / "run.json").read_text())["verdict"] == "harness"


def test_text_and_document_have_one_median() -> None:
    """The median of an even number of messages differed.

    It was the lower middle one in the document, the upper in the text.
    """
    seen = Observed(np.array([1_000_000, 9_000_000]), 1.0, 1.0)
    scores = score(seen, seen)
    case = Case("two messages", 2, seen, seen, (seen, seen), scores, scores)
    validation = Validation((case,), 2, {}, 1.0, 1.0, 1.0, 1.0)
    outcome = validating._outcome(validation, [], 0, "/disk", [])
    assert outcome.extra["scores"][0]["measured_p50_us"] == 1_000
    assert "two messages                              2    1,000 " in validating._text(validation, outcome, True)


@pytest.mark.deep
def test_a_small_run_measures_predicts_and_leaves_rows(on_disk: Path) -> None:
    from tornpage.bench.validation.cases import CALIBRATING, HELD_OUT

    def few(cases: object, *names: str) -> dict[str, object]:
        return {name: replace(cases[name], duration_ns=300_000_000) for name in names}  # type: ignore[index]

    calibrating = few(CALIBRATING, "group commit 1500/s", "group commit 4000/s", "timed 500 ms 2000/s")
    held_out = few(HELD_OUT, "group commit 2500/s", "timed 10 ms 1 page 1000/s")
    out = on_disk / "out"
    outcome, text = validate_outcome(
        str(on_disk),
        seconds=1,
        out=str(out),
        seed=3,
        cases=(calibrating, held_out),  # type: ignore[arg-type]
    )
    document = json.loads(json.dumps(outcome.document()))
    assert document["verdict"] in ("holds", "broken", "unknown")
    assert document["figures"]["held_out"] == 2
    assert document["figures"]["rounds"] == 2
    predictions, quantiles = read_validation(out)
    assert [one.case for one in predictions] == [one.case for one in quantiles] == list(held_out)
    assert "group commit 2500/s" in text
    assert [path.name for path in on_disk.iterdir()] == ["out"], "stores are gone"
