"""Test `tornpage bench java`: ratios, refusals, our side, and a live run."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tornpage.bench.java.ours import Stretch, config_for, fill, measured, opened_in, write_to_recover
from tornpage.bench.java.running import Row
from tornpage.bench.java.shapes import SHAPES, Shape, Work
from tornpage.cli.main import cli
from tornpage.front import MessageStore
from tornpage.outcomes.java_bench import beside_java
from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.rocketmq.installing import REFERENCE, installed

TINY = Work(puts=64, syncs=2, reads=64, recover_bytes=1 << 20, recover_file_bytes=1 << 20)


def test_a_row_has_medians_and_ratios() -> None:
    theirs = tuple(Stretch(100, seconds, 0.001) for seconds in (1.0, 2.0, 9.0))
    ours = tuple(Stretch(100, seconds, 0.003) for seconds in (4.0, 1.0, 5.0))
    row = Row(SHAPES[0], theirs, ours).document()
    assert (row["rocketmq_rate"], row["tornpage_rate"], row["rate_ratio"]) == (50.0, 25.0, 0.5)
    assert (row["rocketmq_cpu_us"], row["tornpage_cpu_us"]) == pytest.approx((10.0, 30.0))
    assert row["cpu_ratio"] == pytest.approx(3.0)
    assert row["rounds"] == 3
    free = Row(SHAPES[0], (Stretch(1, 1.0, 0.0),), (Stretch(1, 1.0, 0.1),)).document()
    assert free["cpu_ratio"] is None


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.kind != "open"], ids=lambda shape: shape.name)
def test_our_side_does_its_work(shape: Shape, tmp_path: Path) -> None:
    config = config_for(sync=shape.kind == "sync", file_bytes=1 << 20)
    count = shape.count(TINY)
    with MessageStore.open(tmp_path / "store", config) as store:
        if shape.kind in {"pull", "query"}:
            fill(store, shape, count)
        stretch = measured(store, shape, count)
    assert (stretch.items, stretch.seconds > 0) == (count, True)


def test_our_side_opens_what_it_wrote(tmp_path: Path) -> None:
    with MessageStore.open(tmp_path / "store", config_for(file_bytes=1 << 20)) as store:
        end = write_to_recover(store, TINY.recover_bytes)
    assert opened_in(str(tmp_path / "store"), file_bytes=1 << 20, end=end).items == 1


def refused(*arguments: str) -> str:
    seen = CliRunner().invoke(cli, ["bench", *arguments])
    assert (seen.exit_code, seen.output.count("\n")) == (2, 1)
    return seen.output


def test_misuse_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "'fast' is no row; give one of put_1024" in refused("java", "--only", "fast")
    assert "java is measured alone" in refused("java", "put")
    assert "--only belongs to `tornpage bench java`" in refused("put", "--only", "put_1024")
    assert "is no directory" in refused("java", "--directory", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "no java on PATH" in refused("java")


@pytest.mark.deep
def test_a_live_run_measures_both_sides(tmp_path: Path) -> None:
    try:
        installed(REFERENCE)
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    outcome, text, table = beside_java([], str(tmp_path), seconds=0.01, work=TINY)
    document = json.loads(json.dumps(outcome.document()))
    assert [row["name"] for row in document["rows"]] == [shape.name for shape in SHAPES]
    assert all(row["rocketmq_rate"] > 0 and row["tornpage_rate"] > 0 for row in document["rows"])
    assert document["timings"] == sorted(document["figures"])
    assert outcome.exit_code == 0
    assert all(shape.name in text and f"| {shape.name} |" in table for shape in SHAPES)
    assert list(tmp_path.iterdir()) == []
