"""Test files of output directories: whole or absent."""

import json
import os
from pathlib import Path

import pytest

from tornpage.pipeline.rows.outputs import OutputTaken, claim, whole


def test_a_file_is_there_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "points" / "000000.json"
    with whole(path) as unfinished:
        unfinished.write_text("row")
        assert not path.exists()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert path.read_text() == "row"


def test_a_file_has_its_name_once_it_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power loss could leave a shard that counted as done and could not be read."""
    path, did = tmp_path / "histories" / "part", []
    fsync = os.fsync

    def synced(fd: int) -> None:
        did.append((Path(os.readlink(f"/proc/self/fd/{fd}")), path.exists()))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", synced)
    with whole(path) as unfinished:
        unfinished.write_text("row")
    assert did == [(unfinished, False), (path.parent, True)]


def fails_half_way(path: Path) -> None:
    with whole(path) as unfinished:
        unfinished.write_text("half")
        raise OSError("the disk is full")


def test_what_breaks_off_leaves_nothing_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "points.parquet"
    path.write_text("before")
    with pytest.raises(OSError, match="full"):
        fails_half_way(path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "before"


def test_a_run_of_other_sources_is_not_continued(tmp_path: Path) -> None:
    """Rows of two versions were mixed, and the result hash was that of no version."""
    path = tmp_path / "campaign.json"
    claim(tmp_path, {"seed": 1}, name=path.name, what="campaign", resume=False)
    claim(tmp_path, {"seed": 1}, name=path.name, what="campaign", resume=True)
    path.write_text(json.dumps({**json.loads(path.read_text()), "sources": "0123456789ab"}))
    with pytest.raises(OutputTaken, match="holds a campaign of other sources of tornpage"):
        claim(tmp_path, {"seed": 1}, name=path.name, what="campaign", resume=True)
    with pytest.raises(OutputTaken, match=r"holds another campaign \(other seed, sources\)"):
        claim(tmp_path, {"seed": 2}, name=path.name, what="campaign", resume=True)
