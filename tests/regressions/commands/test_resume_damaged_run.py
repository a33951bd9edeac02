"""`--resume` names a damaged file of an earlier run, or repeats its task.

Symptom: `--resume` ended with a traceback where the earlier run had left a damaged file: a point of a sweep that is no
JSON (also in the rows of an interrupted sweep), a shard of a campaign that is no Parquet, a task of an audit with an
empty mark, or a `campaign.json` with too deep nesting.
Cause: a run gives a file its name when the file is whole, so the file was trusted. But the file is not synced, so a
power failure may leave an empty file of that name, and users edit files.
Fix: a sweep and a campaign name the file and the remedy (pipeline/sweep/sweep.py, `stored_points`;
pipeline/campaign/files.py, `_checked`; pipeline/rows/outputs.py, `claim`). An audit repeats the task
(pipeline/audit/work.py, `do_task`).
Found by: reading.
"""

import json
from pathlib import Path

import pytest

from tests.support.pipeline.handmade import copied
from tornpage.pipeline.audit.stores import plan_store
from tornpage.pipeline.audit.work import WorkError, do_task, open_work, plan_tasks
from tornpage.pipeline.campaign.files import CampaignFiles
from tornpage.pipeline.rows.outputs import OutputTaken, claim
from tornpage.pipeline.sweep.sweep import stored_points

DEEP = "[" * 100_000
DAMAGED = pytest.mark.parametrize("text", ["", "{", DEEP, "\udcff", "[]", "7"], ids=range(6))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(errors="surrogateescape"))


@DAMAGED
def test_a_damaged_point_of_a_sweep_is_named(tmp_path: Path, text: str) -> None:
    write(tmp_path / "points/000000.json", json.dumps({"point": 0}))
    write(tmp_path / "points/000001.json", text)
    with pytest.raises(OutputTaken, match=r"points/000001\.json .*; remove it"):
        stored_points(tmp_path)


def test_the_row_of_another_point_is_none(tmp_path: Path) -> None:
    write(tmp_path / "points/000001.json", json.dumps({"point": 0}))
    with pytest.raises(OutputTaken, match="remove it"):
        stored_points(tmp_path)


def test_a_file_beside_the_points_is_none(tmp_path: Path) -> None:
    write(tmp_path / "points/000000.json", json.dumps({"point": 0}))
    write(tmp_path / "points/0 copy.json", "")
    assert stored_points(tmp_path) == [{"point": 0}]


@DAMAGED
def test_a_damaged_claim_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    write(tmp_path / "sweep.json", text)
    with pytest.raises(OutputTaken, match="name another --out directory") as refusal:
        claim(tmp_path, {"points": 1}, name="sweep.json", what="sweep", resume=True)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize("data", [b"", b"PAR1", b"x" * 100])
def test_a_damaged_shard_of_a_campaign_is_named(tmp_path: Path, data: bytes) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "histories/part-shard-000000.parquet"
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(OutputTaken, match=r"part-shard-000000\.parquet .*; remove it") as refusal:
        CampaignFiles(tmp_path).complete()
    assert "\n" not in str(refusal.value)


@DAMAGED
def test_a_task_of_an_audit_whose_mark_is_damaged_is_done_again(tmp_path: Path, text: str) -> None:
    pytest.importorskip("pyarrow")
    plan = plan_store(0, copied("01-plain-ascii", tmp_path / "store"))
    task = plan_tasks(plan)[0]
    open_work(tmp_path / "work", [plan], resume=False, overwrite=False)
    assert do_task(task, tmp_path / "work")
    assert not do_task(task, tmp_path / "work")
    write(tmp_path / "work/done" / f"{task.name}.json", text)
    assert do_task(task, tmp_path / "work")
    assert not do_task(task, tmp_path / "work")


@DAMAGED
def test_a_work_directory_that_does_not_say_its_stores_is_refused(tmp_path: Path, text: str) -> None:
    plan = plan_store(0, copied("01-plain-ascii", tmp_path / "store"))
    open_work(tmp_path / "work", [plan], resume=False, overwrite=False)
    write(tmp_path / "work/stores.json", text)
    with pytest.raises(WorkError, match="give --overwrite"):
        open_work(tmp_path / "work", [plan], resume=True, overwrite=False)
