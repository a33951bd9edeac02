"""Test file maps of a store: runs tile each file, count its content, and stay few."""

import shutil
from pathlib import Path

import pytest

from tornpage.properties.decode.opening import open_view
from tornpage.properties.inspect import Query, inspect_view
from tornpage.properties.inspect import filemap as module
from tornpage.properties.inspect.filemap import file_maps
from tornpage.properties.inspect.rows import Row

GOLDEN = Path(__file__).parents[2] / "data" / "golden"


def maps(store: Path) -> dict[str, Row]:
    return {row["file"]: row for row in file_maps(open_view(store))}


@pytest.mark.parametrize(
    "name", ["03-rollover-blanks-retention", "06-index-files-collisions", "09-crash-stale-log-tail"]
)
def test_runs_tile_every_file_and_count_what_inspect_counts(name: str) -> None:
    store = GOLDEN / name / "store"
    found = maps(store)
    for row in found.values():
        assert row["size"] == (store / row["file"]).stat().st_size
        end = 0
        for run in row["runs"]:
            assert run["at"] == end, row["file"]
            end += run["size"]
        assert end == row["size"], row["file"]
    items = {
        what: sum(r["items"] for row in found.values() for r in row["runs"] if r["what"] == what)
        for what in ("record", "entries")
    }
    assert items["record"] == inspect_view(store, "log", None, Query(limit=0))["figures"]["records"]
    assert items["entries"] == inspect_view(store, "index", None, Query())["figures"]["index_entries"]


def test_damage_is_a_run_and_a_file_without_bytes_has_none(tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(GOLDEN / "01-plain-ascii" / "store", store, copy_function=shutil.copyfile)
    log = store / "commitlog" / f"{0:020}"
    data = bytearray(log.read_bytes())
    data[1024:1536] = bytes(512)
    log.write_bytes(data)
    (store / "commitlog" / f"{65536:020}").write_bytes(b"")
    found = maps(store)
    runs = found[f"commitlog/{0:020}"]["runs"]
    bad = next(run for run in runs if run["what"] == "unreadable")
    assert bad["at"] <= 1024 < 1536 <= bad["at"] + bad["size"] < 3072
    assert found[f"commitlog/{65536:020}"]["runs"] == []


def test_a_queue_file_that_begins_inside_a_unit_is_not_mapped(tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(GOLDEN / "01-plain-ascii" / "store", store, copy_function=shutil.copyfile)
    queue = next((store / "consumequeue").glob("*/0"))
    shutil.copyfile(queue / f"{0:020}", queue / f"{10008:020}")
    assert all(run["at"] >= 0 for row in maps(store).values() for run in row["runs"])
    found = inspect_view(store, "queues", None, Query())["findings"]
    strays = [finding["file"] for finding in found if finding["code"] == "CQ_STRAY_FILE"]
    assert (queue / f"{10008:020}").relative_to(store).as_posix() in strays


def test_what_is_too_much_for_a_drawing_is_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    store = GOLDEN / "06-index-files-collisions" / "store"
    whole = maps(store)
    monkeypatch.setattr(module, "RUNS_MAX", 1)
    for name, row in maps(store).items():
        if len(whole[name]["runs"]) > 1 and any(run["items"] for run in whole[name]["runs"][1:]):
            assert [run["what"] for run in row["runs"]][1:] == ["more"]
            assert sum(run["size"] for run in row["runs"]) == row["size"]
    monkeypatch.setattr(module, "FILES_MAX", 1)
    assert sorted({row["kind"] for row in maps(store).values()}) == ["index", "log", "queue"]
    assert len(maps(store)) == 3
