"""`tornpage sim validate`: what cannot be measured is refused in a line; a small run leaves rows that can be drawn."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner, Result

from reports.prediction import read_validation
from tornpage.commands.sim import command
from tornpage.validating import validate_outcome


def validate(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["validate", *arguments])


@pytest.mark.parametrize("name", ["", "/no/such/place"], ids=["empty", "missing"])
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


def test_an_out_that_cannot_be_made_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = validate(str(tmp_path), "--out", str(tmp_path / "file" / "out"))
    assert found.exit_code == 2
    assert "name another --out directory" in found.output


@pytest.mark.parametrize("seconds", ["0", "-1", "x"])
def test_seconds_have_to_be_some_time(seconds: str, tmp_path: Path) -> None:
    assert validate(str(tmp_path), "--seconds", seconds).exit_code == 2


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """Yield a directory that is not in memory, where those of tests may be."""
    with TemporaryDirectory(dir="/var/tmp") as path:
        yield Path(path)


@pytest.mark.deep
def test_a_small_run_measures_predicts_and_leaves_rows(on_disk: Path) -> None:
    from bench.validation_cases import CALIBRATING, HELD_OUT

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
